"""Stamps: another after whatever a person could see, on each database; and the same while nothing happens but looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duly.errors import LedgerUnavailable
from duly.ledger.ask import now
from duly.schedule.spec import daily
from duly.store.reader import RestingLedger
from duly.store.sqlite import SqliteStore
from tests.books import EACH_DATABASE, Book, book_on


@pytest.fixture(params=EACH_DATABASE)
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    with book_on(request, tmp_path) as book:
        book.job("export", daily("UTC"))
        yield book


def test_each_thing_that_happens_makes_it_another(book: Book) -> None:
    """One after the other within a moment, through a connection that stays."""
    seen = [book.store.stamp()]

    def then(step: Callable[[], object]) -> None:
        step()
        seen.append(book.store.stamp())

    claim = book.take()
    seen.append(book.store.stamp())
    then(lambda: book.fail(claim))
    then(lambda: book.retry(book.find()[1]))
    then(lambda: book.pause("export"))
    then(lambda: book.resume("export"))
    again = book.take()
    seen.append(book.store.stamp())
    then(lambda: book.cancel())
    then(lambda: book.complete(again))

    assert len(set(seen)) == len(seen), seen


def test_who_comes_to_read_a_file_and_goes_again_leaves_it_as_it_is(tmp_path: Path) -> None:
    """Each reading of a ledger at rest makes the files beside it, and takes them away."""
    book = Book(tmp_path / "ledger.db")
    book.job("export", daily("UTC"))
    book.work_all()
    book.store.close()
    resting = RestingLedger(book.path)
    before = resting.stamp()

    for _ in range(2):
        reader = SqliteStore(book.path, create=False)
        reader.read(now())
        assert reader.stamp() == before, "while it is open"
        reader.close()
        assert resting.stamp() == before, "when it has gone"


def test_another_file_in_its_place_is_another(tmp_path: Path) -> None:
    book = Book(tmp_path / "ledger.db")
    book.store.close()
    before = book.store.stamp()

    copied = (tmp_path / "ledger.db").read_bytes()
    (tmp_path / "ledger.db").rename(tmp_path / "aside.db")
    with pytest.raises(LedgerUnavailable, match="cannot be looked at"):
        book.store.stamp()
    (tmp_path / "ledger.db").write_bytes(copied)

    assert book.store.stamp() != before
