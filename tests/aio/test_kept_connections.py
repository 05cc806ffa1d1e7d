"""On SQLite a run's connection is kept for the next run in the same event loop: to open one costs more than a run."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import duly
import duly.aio
from duly.errors import TransactionOwned
from tests.aio.till import Till, add_ten, job
from tests.books import Book

Ledger = duly.aio.Ledger[Any]
Run = duly.aio.Run[Any]

_counting: list[list[str]] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event == "sqlite3.connect":
        for opened in _counting:
            opened.append(str(args[0]))


sys.addaudithook(_hear)  # for good: a hook cannot be removed


@contextmanager
def opened() -> Iterator[list[str]]:
    """What SQLite is asked to open meanwhile."""
    _counting.append([])
    try:
        yield _counting[-1]
    finally:
        _counting.pop()


@pytest.fixture
def here(tmp_path: Path) -> Till:
    return Till(Book(tmp_path / "till.db"))


def test_runs_one_after_the_other_open_one_connection(here: Till) -> None:
    async def story(ledger: Ledger) -> int:
        credit = job(ledger)
        await credit.run("2026-09-12")
        with opened() as files:
            for window in ("2026-09-10", "2026-09-11", "2026-09-13", "2026-09-14"):
                await credit.run(window)
        return len(files)

    assert here.play(story) == 0
    assert here.units == 50


def test_runs_beside_each_other_have_one_each(here: Till) -> None:
    async def story(ledger: Ledger) -> list[object]:
        both = asyncio.Barrier(2)

        async def meets(run: Run) -> None:
            await both.wait()
            await add_ten(run)

        return await asyncio.gather(*(job(ledger, meets, name).run("2026-09-13") for name in ("credit", "debit")))

    assert all(isinstance(answer, duly.Completed) for answer in here.play(story))
    assert here.units == 20


def test_what_a_run_that_failed_left_is_not_met_by_the_next(here: Till) -> None:
    async def story(ledger: Ledger) -> object:
        async def spoils(run: Run) -> None:
            tx = await run.tx
            await tx.execute("pragma query_only = on")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await job(ledger, spoils, "spoiled").run("2026-09-13")
        return await job(ledger).run("2026-09-13")

    assert isinstance(here.play(story), duly.Completed)
    assert here.units == 10


def test_who_kept_the_connection_of_a_run_cannot_write_through_it_into_the_next(here: Till) -> None:
    async def story(ledger: Ledger) -> None:
        kept: list[Any] = []

        async def keeps(run: Run) -> None:
            tx = await run.tx
            kept.extend((tx, await tx.execute("select units from balance")))
            await add_ten(run)

        async def uses(run: Run) -> None:
            await add_ten(run)
            tx, cursor = kept
            with pytest.raises((ValueError, TransactionOwned)):
                await tx.execute("update balance set units = 1000")
            with pytest.raises((ValueError, TransactionOwned, sqlite3.ProgrammingError)):
                await cursor.execute("update balance set units = 1000")

        await job(ledger, keeps).run("2026-09-13")
        await job(ledger, uses, "debit").run("2026-09-13")

    here.play(story)

    assert here.units == 20
