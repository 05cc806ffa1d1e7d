"""duly: a job, whose windows are named one after the other.

Two ways: `inline`, claim, effect and completion in one transaction; or `transactional`, the claim in a transaction of its own,
whose commit need not be flushed: if it is lost, so is the effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duly
from bench.contestant import JOB, Contestant, Given, Window, compete
from bench.contestants.ledger import ATOMIC, EVERY_FIVE_MINUTES, credit, is_known, ledger_of


class Named:
    """Runs of a job that are asked for by name."""

    def __init__(self, ledger: duly.Ledger[Any], way: str) -> None:
        self._job = ledger.job(JOB, EVERY_FIVE_MINUTES, catch_up=duly.EACH, inline=way == "inline")(credit)

    def work(self, windows: Sequence[Window]) -> None:
        for window in windows:
            assert isinstance(self._job.run(window.name), duly.Completed)

    def again(self, windows: Sequence[Window]) -> int:
        return sum(is_known(self._job.run(window.name)) for window in windows)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    with ledger_of(given) as ledger:
        yield Named(ledger, given.way)


if __name__ == "__main__":
    compete(enter, of="duly", atomic=True, guarantees=ATOMIC)
