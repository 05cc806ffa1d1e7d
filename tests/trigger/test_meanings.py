"""What an error means to whoever called is said in one place, and each door puts that into its own words."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import duly
import duly.aio
from duly import errors
from duly.cli import codes
from duly.cli.exec import _code_of
from duly.errors import AGAIN, DECIDED, FOR_GOOD, THE_JOBS, DulyError, meaning_of

ALL = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, DulyError)}

# What is in none of these is for good: a person mends it, and no other try.
COMES_AGAIN = {
    errors.ClaimLost,
    errors.ReceiptLost,
    errors.RunBusy,
    errors.RunPaused,
    errors.ReceiptBusy,
    errors.Conflict,
    errors.LedgerBusy,
    errors.LedgerUnavailable,
    errors.CommitUnknown,
    errors.FileChanged,
}
WAS_DECIDED = {errors.RunSkipped, errors.Retired}


@pytest.mark.parametrize("kind", sorted(ALL, key=repr))
def test_each_error_has_one_meaning(kind: type[DulyError]) -> None:
    expected = AGAIN if kind in COMES_AGAIN else DECIDED if kind in WAS_DECIDED else FOR_GOOD

    assert meaning_of(kind()) == expected


def test_exec_says_the_same_by_its_codes() -> None:
    """A caller that comes again after 75, and not after another, does what a task does."""
    again = {kind for kind in ALL if _code_of(kind()) == codes.TRY_AGAIN}

    assert {kind for kind in ALL if _code_of(kind()) == codes.DONE} == WAS_DECIDED
    # One that was taken over has a code of its own; a receipt is none of exec's; and what one process remembers of a ledger
    # that went back the next one does not.
    assert again == COMES_AGAIN - {errors.ClaimLost, errors.ReceiptLost, errors.ReceiptBusy} | {errors.LedgerWentBack}


def test_of_several_the_gravest_counts() -> None:
    busy, skipped, damaged = errors.LedgerBusy(), errors.RunSkipped(), errors.LedgerCorrupt()

    assert meaning_of(ExceptionGroup("", [skipped])) == DECIDED
    assert meaning_of(ExceptionGroup("", [skipped, ExceptionGroup("", [busy])])) == AGAIN
    assert meaning_of(ExceptionGroup("", [busy, damaged, skipped])) == FOR_GOOD
    assert meaning_of(ExceptionGroup("", [busy, damaged, OSError()])) == THE_JOBS


@pytest.mark.parametrize(
    "error",
    [
        errors.LedgerCorrupt(),
        errors.LedgerBusy(),
        errors.RunSkipped(),
        errors.ClaimLost(),
        errors.RunCancelled(),
        OSError(),
    ],
)
@pytest.mark.parametrize("effect", ["transactional", "external"])
def test_what_a_function_raises_is_the_jobs_in_whatever_way_it_is_called(
    tmp_path: Path, error: Exception, effect: str
) -> None:
    ledger = duly.sqlite(tmp_path / "l.db")

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH, effect=effect)
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        close.run("2026-10-05")
    assert meaning_of(raised.value) == THE_JOBS


def test_what_is_caught_up_with_is_told_apart_too(tmp_path: Path) -> None:
    ledger = duly.sqlite(tmp_path / "l.db")

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        raise errors.LedgerBusy

    with pytest.raises(ExceptionGroup) as raised:
        close.catch_up()
    assert meaning_of(raised.value) == THE_JOBS


def test_a_group_that_a_function_raises_is_the_jobs(tmp_path: Path) -> None:
    ledger = duly.sqlite(tmp_path / "l.db")

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        raise ExceptionGroup("of another job's", [errors.LedgerBusy()])

    with pytest.raises(ExceptionGroup) as raised:
        close.run("2026-10-05")
    assert meaning_of(raised.value) == THE_JOBS


def test_what_a_coroutine_raises_is_the_jobs(tmp_path: Path) -> None:
    async def main() -> None:
        async with duly.aio.sqlite(tmp_path / "l.db") as ledger:

            @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)
            async def close(run: Any) -> None:
                raise errors.LedgerBusy

            with pytest.raises(errors.LedgerBusy) as raised:
                await close.run("2026-10-05")
            assert meaning_of(raised.value) == THE_JOBS

    asyncio.run(main())


@pytest.mark.parametrize(("error", "meaning"), [(errors.RunCancelled(), FOR_GOOD), (errors.ClaimLost(), AGAIN)])
def test_what_the_ledger_says_of_the_run_is_none_of_the_jobs(tmp_path: Path, error: Exception, meaning: str) -> None:
    ledger = duly.sqlite(tmp_path / "l.db")

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH, effect="external")
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        run._cancel()  # as its heartbeat does, when a person has asked for it
        run._supersede()  # or another attempt has taken over
        raise error

    with pytest.raises(type(error)) as raised:
        close.run("2026-10-05")

    assert meaning_of(raised.value) == meaning
