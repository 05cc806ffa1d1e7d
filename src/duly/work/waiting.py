"""Waiting by the ledger's clock. With a clock set by hand every wait looks at it each few milliseconds."""

from __future__ import annotations

from time import sleep

from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.store.protocol import Store

LOOK_SECONDS = 0.005  # how often a clock set by hand is looked at
FIRST_LOOK, LAST_LOOK = 0.01, 0.25  # between looks at a holder: soon at first, seldom later


def wait_seconds(store: Store, until: int) -> float:
    """How long to wait in real seconds before the ledger's clock is worth looking at again; 0 when `until` has come."""
    left = until - store.now()
    if left <= 0:
        return 0.0
    return LOOK_SECONDS if store.clock_by_hand else left / SECOND


class Patience:
    """Looks at a holder again and again, until a deadline by the ledger's clock."""

    __slots__ = ("_deadline", "_pause", "_store")

    def __init__(self, store: Store, micros: int) -> None:
        self._store = store
        self._deadline = store.now() + micros
        self._pause = FIRST_LOOK

    def pause(self) -> bool:
        """Wait a little before the next look. False: the deadline has come."""
        left = wait_seconds(self._store, self._deadline)
        if left <= 0:
            return False
        sleep(min(self._pause, left))
        self._pause = min(self._pause * 2, LAST_LOOK)
        return True
