"""duly: a claim under the contract `external`, as work on other systems needs it. It must survive, so it is flushed too.

The effect is written through the claim's own transaction here, so that it can be counted with the others'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duly
from bench.contestant import EFFECT, JOB, Contestant, Given, Window, compete
from bench.contestants.ledger import ATOMIC, EVERY_FIVE_MINUTES, is_known, ledger_of


class Claimed:
    """Runs that are claimed one after the other, and completed."""

    def __init__(self, ledger: duly.Ledger[Any]) -> None:
        self._ledger = ledger

    def work(self, windows: Sequence[Window]) -> None:
        for window in windows:
            claim = self._ledger.take(JOB, window.name)
            assert isinstance(claim, duly.Claim)
            with claim:
                claim.run.tx.execute(EFFECT)
                claim.complete()

    def again(self, windows: Sequence[Window]) -> int:
        return sum(is_known(self._ledger.take(JOB, window.name)) for window in windows)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    with ledger_of(given) as ledger:
        job = ledger.job(JOB, EVERY_FIVE_MINUTES, catch_up=duly.EACH, effect="external")(lambda run: None)
        job.run("2025-01-01T00:00:00Z")  # from here on the ledger knows it
        yield Claimed(ledger)


if __name__ == "__main__":
    compete(
        enter,
        of="duly",
        atomic=True,
        guarantees=f"{ATOMIC}; a remote effect is never repeated on a guess: an attempt that vanished is unknown until told",
    )
