"""Cancel, as a Python job hears of it: a function is told, and cannot be killed."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

import duly
from tests.books import LEASE
from tests.work.bank import Bank, add_ten, until

DAY = "2026-09-13"
Run = duly.Run[sqlite3.Connection]


class Stopped(Exception):
    """What a function raises that was asked to stop."""


def hear(bank: Bank, run: Run | duly.Claim) -> None:
    """A person cancels the run, and a heartbeat hears of it."""
    assert not run.cancelled
    bank.cancel(DAY, job="credit")
    bank.clock.advance(LEASE // 2)
    until(lambda: run.cancelled)


def working(bank: Bank, function: Any, **settings: Any) -> duly.Job[sqlite3.Connection]:
    return bank.ledger.job("credit", duly.daily("UTC"), **{"catch_up": duly.EACH, "lease": "1m", **settings})(function)


def stops(bank: Bank) -> Any:
    def function(run: Run) -> None:
        hear(bank, run)
        add_ten(run.tx)
        raise Stopped

    return function


@pytest.mark.parametrize(
    ("effect", "state", "outcome"),
    [
        ({"effect": "transactional", "retries": 3}, "failed", "cancelled"),
        ({"effect": "idempotent", "remembers": "1d"}, "failed", "cancelled"),
        ({"effect": "external"}, "unknown", "unknown"),
    ],
)
def test_what_it_raises_when_it_has_heard_ends_it_as_cancelled(
    bank: Bank, effect: dict[str, Any], state: str, outcome: str
) -> None:
    with pytest.raises(Stopped):
        working(bank, stops(bank), **effect).run(DAY)

    assert bank.rows("select state, cause, retry_at from duly_run") == [(state, "cancelled", None)]
    assert bank.history() == [(1, outcome)]
    assert bank.units == 0


def test_what_completes_all_the_same_is_complete(bank: Bank) -> None:
    def function(run: Run) -> None:
        hear(bank, run)
        add_ten(run.tx)

    assert working(bank, function).run(DAY) == duly.Completed(f"credit:{DAY}[UTC]", 1)

    assert (bank.units, bank.completed) == (10, 1)


def test_what_raises_before_it_hears_is_not_retried_either(bank: Bank) -> None:
    def function(run: Run) -> None:
        bank.cancel(DAY, job="credit")
        raise ConnectionError

    credit = working(bank, function)
    with pytest.raises(ConnectionError):
        credit.run(DAY)

    bank.clock.advance(100 * LEASE)
    with pytest.raises(duly.RunFailed):
        credit.run(DAY)
    assert bank.history() == [(1, "failed")]


def test_a_claim_is_told_and_left_as_cancelled(bank: Bank) -> None:
    bank.job("credit", contract="transactional")
    claim = bank.ledger.take("credit", DAY)
    assert isinstance(claim, duly.Claim)

    with claim:
        hear(bank, claim)

    assert bank.rows("select state, cause from duly_run") == [("failed", "cancelled")]
    assert bank.history() == [(1, "cancelled")]


def test_a_claim_that_says_itself_how_it_failed_is_believed_and_not_retried(bank: Bank) -> None:
    bank.job("credit", contract="idempotent")
    claim = bank.ledger.take("credit", DAY)
    assert isinstance(claim, duly.Claim)

    with claim:
        hear(bank, claim)
        claim.fail("half of the file was sent")

    assert bank.rows("select state, cause, retry_at from duly_run") == [("failed", "half of the file was sent", None)]
