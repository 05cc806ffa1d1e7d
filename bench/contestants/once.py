"""duly: `duly.once` in a transaction of the caller's, which begins and commits it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import duly
from bench.contestant import EFFECT, JOB, Contestant, Given, Window, compete
from bench.contestants.ledger import EVERY_FIVE_MINUTES, ledger_of


class Borrowed:
    """Transactions of the caller's, a run in each."""

    def __init__(self, connection: Any, begin: str) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._begin = begin

    def work(self, windows: Sequence[Window]) -> None:
        assert sum(self._once(window) for window in windows) == len(windows)

    def again(self, windows: Sequence[Window]) -> int:
        return sum(not self._once(window) for window in windows)

    def _once(self, window: Window) -> bool:
        self._execute(self._begin)
        is_new = duly.once(self._connection, window.key)
        if is_new:
            self._execute(EFFECT)
        self._execute("commit")
        return is_new


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    with ledger_of(given) as ledger, closing(given.connect()) as connection:
        ledger.job(JOB, EVERY_FIVE_MINUTES, catch_up=duly.EACH)(lambda run: None).run("2025-01-01T00:00:00Z")
        yield Borrowed(connection, "begin" if given.on_postgres else "begin immediate")


if __name__ == "__main__":
    compete(
        enter,
        of="duly",
        atomic=True,
        guarantees="effect and completion commit with the caller's transaction, once for each key; what failed leaves no trace",
    )
