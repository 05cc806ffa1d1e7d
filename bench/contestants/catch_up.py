"""duly: `catch_up()` of a job that is far behind, a hundred runs to a commit. Offered again, each window is named by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duly
from bench.contestant import Contestant, Given, Window, compete
from bench.contestants.ledger import ATOMIC, is_known, job_that_owes, ledger_of


class Behind:
    """A job that owes all windows at once."""

    def __init__(self, ledger: duly.Ledger[Any]) -> None:
        self._ledger = ledger

    def work(self, windows: Sequence[Window]) -> None:
        self._job = job_that_owes(self._ledger, windows)
        assert len(self._job.catch_up()) == len(windows)

    def again(self, windows: Sequence[Window]) -> int:
        return sum(is_known(self._job.run(window.name, scope="shop")) for window in windows)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    with ledger_of(given) as ledger:
        yield Behind(ledger)


if __name__ == "__main__":
    compete(enter, of="duly", atomic=True, guarantees=f"{ATOMIC}; of a hundred runs all are kept, or none")
