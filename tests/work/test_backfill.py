"""Backfills worked by a function: `job.work_backfill()`, in threads and, the same, in an event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

import duly
import duly.aio
from duly.errors import Misuse, UnknownBackfill
from tests.work.bank import Bank, add_ten

Run = duly.Run[sqlite3.Connection]
DAYS = [f"credit:2026-09-0{day}[UTC]" for day in range(1, 5)]


def asked(bank: Bank, first: str = "2026-09-01", beyond: str = "2026-09-05", **more: Any) -> int:
    """A backfill of four days before the job's line began."""
    bank.clock.advance(1_000_000)
    return bank.backfill(first, beyond, job="credit", **more)


def test_its_windows_are_worked_and_their_effects_commit_with_them(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.catch_up()
    asked(bank)
    before = bank.units

    done = credit.work_backfill()

    assert [each.key for each in done] == DAYS
    assert bank.units == before + 40
    assert credit.work_backfill() == []


@pytest.mark.parametrize("inline", [False, True])
def test_it_goes_on_after_a_failure_and_tells_all_of_them_at_the_end(bank: Bank, inline: bool) -> None:
    def some(run: Run) -> None:
        add_ten(run.tx)
        if run.label in ("2026-09-02", "2026-09-03"):
            raise ConnectionError(run.label)

    credit = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=inline, retries=0)(some)
    credit.catch_up()
    number = asked(bank, stop_after=3)
    before = bank.units

    with pytest.raises(ExceptionGroup) as raised:
        credit.work_backfill(number)

    assert [str(e) for e in raised.value.exceptions] == ["2026-09-02", "2026-09-03"]
    assert bank.units == before + 20
    assert bank.backfill_row(number).state == "done"
    assert bank.rows("select count(*) from duly_backfill_run") == [(4,)]


@pytest.mark.parametrize("inline", [False, True])
def test_after_so_many_failures_it_stops(bank: Bank, inline: bool) -> None:
    def none(run: Run) -> None:
        if run.label < "2026-09-05":
            raise ConnectionError(run.label)

    credit = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=inline, retries=0)(none)
    credit.catch_up()
    number = asked(bank, stop_after=2)

    with pytest.raises(ExceptionGroup) as raised:
        credit.work_backfill()

    assert len(raised.value.exceptions) == 2
    assert bank.backfill_row(number).state == "stopped"


def test_what_is_owed_is_worked_first(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.catch_up()
    asked(bank)
    bank.clock.advance("2d")

    done = [each.key for each in credit.work_backfill()]

    assert len(done) == 6
    assert set(done[:2]).isdisjoint(DAYS)
    assert done[2:] == DAYS


def test_a_number_that_is_none_of_its_own_is_refused(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.catch_up()
    other = bank.ledger.job("other", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    other.catch_up()
    number = asked(bank)

    with pytest.raises(UnknownBackfill):
        credit.work_backfill(7)
    with pytest.raises(Misuse, match=r"^backfill: 1 is one of credit"):
        other.work_backfill(number)


def test_in_an_event_loop_it_is_the_same(bank: Bank) -> None:
    bank.daily_credit().catch_up()
    asked(bank)
    before = bank.units

    async def story() -> list[duly.Completed]:
        async with duly.aio.sqlite(bank.path) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[Any]) -> None:
                tx = await run.tx
                await tx.execute("update balance set units = units + 10")

            return await credit.work_backfill()

    done = asyncio.run(story())

    assert [each.key for each in done] == DAYS
    assert bank.units == before + 40
