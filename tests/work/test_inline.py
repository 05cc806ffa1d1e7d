"""Inline jobs: claim, effect and completion in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

import duly
from duly.errors import Misuse
from tests.books import LATE
from tests.work.bank import Bank, Worker, add_ten

Run = duly.Run[sqlite3.Connection]


def inline(bank: Bank, effect: Callable[[Run], object] = lambda run: add_ten(run.tx)) -> duly.Job[sqlite3.Connection]:
    return bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True)(effect)


def test_it_is_done_in_one_commit_and_nobody_sees_it_being_worked(bank: Bank) -> None:
    states: list[object] = []

    def effect(run: Run) -> None:
        states.append(bank.rows("select state from duly_run"))
        add_ten(run.tx)

    assert inline(bank, effect).run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 1)

    assert states == [[]]
    assert (bank.units, bank.history()) == (10, [(1, "completed")])


def test_a_duplicate_costs_no_commit(bank: Bank) -> None:
    credit = inline(bank)
    credit.run("2026-09-13")

    with bank.no_commit():
        assert isinstance(credit.run("2026-09-13"), duly.AlreadyCompleted)


def test_an_attempt_that_fails_leaves_its_record_and_no_effect(bank: Bank) -> None:
    def effect(run: Run) -> None:
        add_ten(run.tx)
        raise ZeroDivisionError("secret")

    with pytest.raises(ZeroDivisionError):
        inline(bank, effect).run("2026-09-13")

    assert (bank.units, bank.history()) == (0, [(1, "failed")])
    ((error,),) = bank.rows("select error from duly_attempt")
    assert error.startswith("ZeroDivisionError at test_inline.py:")


def test_a_retry_after_a_failure_may_say_the_same_payload(bank: Bank) -> None:
    troubles: list[Exception] = [ConnectionError()]

    def effect(run: Run) -> None:
        add_ten(run.tx)
        if troubles:
            raise troubles.pop()

    credit = inline(bank, effect)
    with pytest.raises(ConnectionError):
        credit.run("2026-09-13", payload={"rate": 10})
    bank.clock.advance("1h")

    with pytest.raises(duly.PayloadConflict):
        credit.run("2026-09-13", payload={"rate": 11})
    assert credit.run("2026-09-13", payload={"rate": 10}) == duly.Completed("credit:2026-09-13[UTC]", 2)

    assert (bank.units, bank.history()) == (10, [(1, "failed"), (2, "completed")])


def test_what_was_found_on_the_way_to_a_refusal_is_kept(bank: Bank) -> None:
    credit = inline(bank)
    credit.run("2026-09-13", payload={"rate": 10})
    bank.amend("update duly_job set contract = 'external'")
    bank.take("2026-09-12", job=declared(bank, contract="external"))
    bank.lapse()

    with pytest.raises(duly.PayloadConflict):
        credit.run("2026-09-13", payload={"rate": 11})
    with pytest.raises(duly.OutcomeUnknown):
        credit.run("2026-09-12")

    assert len(bank.events("payload_refused")) == 1
    assert len(bank.events("unknown")) == 1
    assert ("2026-09-12T00:00:00", "unknown") in bank.runs("credit")


def declared(bank: Bank, contract: str = "transactional") -> str:
    bank.job("credit", contract=contract)
    return "credit"


def test_a_worker_that_is_killed_leaves_nothing_behind(bank: Bank) -> None:
    script = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True)
def credit(run):
    run.tx.execute("update balance set units = units + 10")
    stop("after the effect")

credit.run("2026-09-13")
"""
    worker = Worker(bank, script)
    worker.reaches("after the effect")
    worker.kill()

    assert (bank.units, bank.history()) == (0, [])
    assert inline(bank).run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 1)  # without waiting for a lease


def test_catching_up_works_each_day_and_tells_of_failures_at_the_end(bank: Bank) -> None:
    def effect(run: Run) -> None:
        assert run.date is not None
        add_ten(run.tx)
        if run.date.day == 15:
            raise ZeroDivisionError

    credit = inline(bank, effect)
    credit.catch_up()
    bank.clock.advance("3d")

    with pytest.raises(ExceptionGroup) as caught:
        credit.catch_up()

    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]
    assert bank.units == 30
    assert [state for _, state in bank.runs("credit")] == ["completed", "failed", "completed", "completed"]


@pytest.mark.parametrize("group", [1, 9])
def test_the_first_run_of_a_line_fails_once_and_is_on_record(bank: Bank, group: int) -> None:
    called: list[str] = []

    def effect(run: Run) -> None:
        called.append(run.key)
        assert len(called) < 5
        raise ZeroDivisionError

    settings: dict[str, Any] = {"inline": True, "group": group, "retry_delay": "1h"}
    credit = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, **settings)(effect)
    with pytest.raises(ExceptionGroup):
        credit.catch_up()

    assert [state for _, state in bank.runs("credit")] == ["failed"]
    assert bank.history() == [(1, "failed")]


def test_it_takes_over_what_another_attempt_left(bank: Bank) -> None:
    bank.take("2026-09-13", job=declared(bank))
    bank.clock.advance(LATE)

    assert inline(bank).run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 2)

    assert bank.history() == [(1, "lost"), (2, "completed")]


def test_an_effect_that_is_not_in_the_transaction_cannot_be_inline(bank: Bank) -> None:
    with pytest.raises(Misuse, match=r"^inline:"):
        bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True, effect="external")


def test_the_ledger_is_free_after_it_however_it_ended(bank: Bank) -> None:
    def fail(run: Run) -> None:
        raise ZeroDivisionError

    inline(bank).run("2026-09-12")
    with pytest.raises(ZeroDivisionError):
        inline(bank, fail).run("2026-09-13")
    inline(bank).run("2026-09-20")  # not due

    bank.amend("insert into export values ('free')")
