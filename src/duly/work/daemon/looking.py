"""Looking: looks for what somebody is to be told of, in a thread of its own. Any daemon may, and one of them does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.errors import DulyError
from duly.ledger.looks import is_time_to_look
from duly.times import SECOND
from duly.work.alerts import look
from duly.work.daemon.bell import Bell
from duly.work.waiting import LOOK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.store.protocol import Store
    from duly.work.alerts import Alerting


class Looking:
    """Looks whenever nobody has for a while, until it is told to stop. `told` is called when there is something to deliver."""

    def __init__(
        self, store: Store, alerting: Alerting, poll: float, tell: Callable[[str], None], told: Callable[[], None]
    ) -> None:
        self._store = store
        self._alerting = alerting
        self._poll = LOOK_SECONDS if store.clock_by_hand else min(poll, alerting.every / SECOND)
        self._tell = tell
        self._told = told
        self._bell = Bell()
        self._stopped = False

    def stop(self) -> None:
        """Look no more. May be called in any thread."""
        self._stopped = True
        self._bell.ring()

    def serve(self) -> None:
        """Look until told to stop."""
        while not self._stopped:
            try:
                self._look_if_time()
            except Exception as e:  # it is to go on, whatever was wrong
                self._tell(f"nobody looked for alerts: {e if isinstance(e, DulyError) else type(e).__name__}")
            self._bell.wait(self._poll)

    def _look_if_time(self) -> None:
        if self._store.glance(is_time_to_look(self._alerting.every)) and look(self._store, self._alerting):
            self._told()
