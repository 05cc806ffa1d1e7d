"""ledger.prune: what a program forgets of its jobs is what `duly db prune` would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import duly
from duly.errors import Misuse, NotAllowed, UnknownJob
from duly.times import DAY
from tests.books import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Three jobs with five days each: one is kept for ever, one for two days, one for as long as its catch-up needs."""
    book = Book(tmp_path / "jobs.db")
    book.job("kept")
    book.job("brief", retain=2 * DAY)
    book.job("bound", catch_up="each max_age=30d", retain=DAY)
    for _ in range(5):
        for job in ("kept", "brief", "bound"):
            book.work_all(job)
        book.clock.advance(DAY)
    return book


@pytest.fixture
def ledger(book: Book) -> Iterator[duly.Ledger[sqlite3.Connection]]:
    ledger = duly.sqlite(book.path)
    yield ledger
    ledger.close()


def test_a_job_is_pruned_by_what_it_says_or_by_what_is_said(
    book: Book, ledger: duly.Ledger[sqlite3.Connection]
) -> None:
    assert ledger.prune("brief") == 4
    assert ledger.prune("kept", older_than="3d") == 3
    assert [len(book.runs(job)) for job in ("kept", "brief", "bound")] == [2, 1, 5]
    with pytest.raises(duly.BelowHorizon):
        ledger.take("kept", "2026-10-05")


def test_of_all_jobs_those_that_cannot_be_pruned_are_named_after_the_others(
    book: Book, ledger: duly.Ledger[sqlite3.Connection]
) -> None:
    with pytest.raises(NotAllowed, match="bound cannot be pruned so far: its catch-up policy"):
        ledger.prune()

    assert [len(book.runs(job)) for job in ("kept", "brief", "bound")] == [5, 1, 5]


def test_what_cannot_be_meant_is_refused(ledger: duly.Ledger[sqlite3.Connection]) -> None:
    with pytest.raises(Misuse, match="kept is kept for ever"):
        ledger.prune("kept")
    with pytest.raises(UnknownJob):
        ledger.prune("nobody's")
    with pytest.raises(Misuse, match="older_than"):
        ledger.prune("kept", older_than="soon")
    with pytest.raises(Misuse, match="older_than"):
        ledger.prune("kept", older_than=-1)
