"""Probing: asks about runs whose outcome is unknown, in threads of its own, for a probe may take its time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from duly.errors import DulyError
from duly.work.daemon.bell import Bell
from duly.work.waiting import LOOK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.store.protocol import Store
    from duly.work.daemon.crew import Hand

PLACES = 4  # a function that does not return holds one of them up, and the jobs that it serves
LAST_WORDS_SECONDS = 5.0  # how long who is asked may still answer when all is to end


class Probing:
    """Asks the probes of these jobs every `poll` seconds, until it is told to stop."""

    def __init__(self, store: Store, hands: list[Hand], poll: float, tell: Callable[[str], None]) -> None:
        self._store = store
        self._shares = [hands[place::PLACES] for place in range(min(PLACES, len(hands)))]
        self._bells = [Bell() for _ in self._shares]
        self._poll = min(poll, LOOK_SECONDS) if store.clock_by_hand else poll
        self._tell = tell
        self._stopped = False
        # Nobody ends a function from outside: its thread goes with the process.
        self._threads = [threading.Thread(target=self._serve, args=each, daemon=True) for each in self._each()]

    def _each(self) -> list[tuple[list[Hand], Bell]]:
        return list(zip(self._shares, self._bells, strict=True))

    def start(self) -> None:
        """Begin to ask."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask nothing more, and wait a little for those who are being asked. A question that nobody answered is asked again
        when its lease is over.
        """
        self._stopped = True
        for bell in self._bells:
            bell.ring()
        for thread in self._threads:
            thread.join(LAST_WORDS_SECONDS)

    def _serve(self, hands: list[Hand], bell: Bell) -> None:
        while not self._stopped:
            for hand in hands:
                self._ask(hand)
            bell.wait(self._poll)
        self._store.close()  # this thread's connection

    def _ask(self, hand: Hand) -> None:
        try:
            for probed in hand.ask_probe(lambda: self._stopped):
                self._tell(f"{probed.run}: its probe says that {probed.said}; it is {probed.state}")
        except Exception as e:  # it is to go on, whatever was wrong
            self._tell(f"{hand.name}: its probe was not asked: {e if isinstance(e, DulyError) else type(e).__name__}")
