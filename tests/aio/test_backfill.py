"""Backfills in an event loop, on each database: several tasks share one, and keep its bound."""

from __future__ import annotations

import asyncio
from typing import Any

import duly
import duly.aio
from tests.aio.till import Till, add_ten, job
from tests.books import LATE


def test_tasks_that_share_a_backfill_work_each_window_once_and_no_more_than_it_says_at_a_time(till: Till) -> None:
    at_once: list[int] = []
    going_on: set[str] = set()

    async def work(run: duly.aio.Run[Any]) -> None:
        going_on.add(run.key)
        at_once.append(len(going_on))
        await add_ten(run)
        await asyncio.sleep(0)  # the others have their turn
        going_on.discard(run.key)

    async def story(ledger: duly.aio.Ledger[Any]) -> list[duly.Completed]:
        credit = job(ledger, work, overlap=True)
        await credit.catch_up()
        till.book.clock.advance(LATE)
        till.book.backfill("2026-08-01", "2026-08-11", job="credit", concurrency=2)
        parts = await asyncio.gather(*(credit.work_backfill() for _ in range(3)))
        return [each for part in parts for each in part]

    done = till.play(story)

    assert sorted(each.key for each in done) == [f"credit:2026-08-{day:02}[UTC]" for day in range(1, 11)]
    assert till.units == 10 * 11
    assert max(at_once) <= 2
    assert till.book.backfill_row(1).state == "done"
