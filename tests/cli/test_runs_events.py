"""duly runs events: who did what, newest first, a page at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from duly.cli.dispatch import dispatch
from tests.books import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    book = Book(tmp_path / "jobs.db")
    book.job()
    book.fail(book.take(), retry_in=None)
    book.skip()
    book.unskip()
    return book


def events(book: Book, *words: str) -> int:
    return dispatch(["runs", "events", *words, "--ledger", book.path])


def test_a_line_says_when_what_whose_who_why_and_what_changed(book: Book, capfd: pytest.CaptureFixture[str]) -> None:
    assert events(book, "export", "-n", "1") == 0

    said = capfd.readouterr()
    assert said.out == (
        "Tue 6 Oct 03:00Z   unskipped   export:2026-10-05[UTC]   by ops@example   looked into it   "
        "skipped → failed, tried again from 2026-10-06T03:00:00Z\n"
    )
    assert "--before" in said.err


def test_pages_follow_each_other(book: Book, capfd: pytest.CaptureFixture[str]) -> None:
    kinds: list[str] = []
    words: list[str] = []
    while True:
        assert events(book, "-n", "2", "--json", *words) == 0
        document = json.loads(capfd.readouterr().out)
        kinds += [one["kind"] for one in document["events"]]
        if document["next"] is None:
            break
        words = ["--before", document["next"]]

    assert document["schema"] == "duly.events.v1"
    assert kinds == ["unskipped", "skipped", "job_registered"]


def test_they_are_narrowed_down(book: Book, capfd: pytest.CaptureFixture[str]) -> None:
    book.clock.advance(60_000_000)

    assert events(book, "--since", "-1m", "--by", "ops@example", "--kind", "skipped", "--format", "jsonl") == 0
    (line,) = capfd.readouterr().out.splitlines()
    assert json.loads(line)["reason"] == "looked into it"
    assert events(book, "--since", "2026-10-06T03:00:01Z", "--format", "csv") == 0
    assert capfd.readouterr().out == "key\n"


@pytest.mark.parametrize(
    "words", [["--by", "ana"], ["events", "--against", "x.db"], ["verify-export", "x", "--at", "2026-10-06T00:00:00Z"]]
)
def test_a_flag_that_would_not_be_heeded_is_refused(
    book: Book, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert dispatch(["runs", *words, "--ledger", book.path]) == 64

    assert "belongs to `duly runs " in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["export", "import"], "one word too many"),
        (["imports"], "the ledger knows no job 'imports'"),
        (["--since", "lately"], "since: "),
        (["--before", "lately"], "before: "),
    ],
)
def test_what_cannot_be_meant_is_refused(
    book: Book, capfd: pytest.CaptureFixture[str], words: list[str], field: str
) -> None:
    assert events(book, *words) == 64

    said = capfd.readouterr().err
    assert field in said
    assert "\n  try: duly " in said
