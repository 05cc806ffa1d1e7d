"""What a person's word does to a run's state, and where the table of states is drawn.

That every state meets every event is told for each store: `duly.testing.conformance.table`, in tests/conformance.
"""

from __future__ import annotations

from pathlib import Path

from duly.ledger import states
from duly.ledger.records import RunId
from tests.books import Book


def test_a_failed_run_that_was_skipped_is_failed_again_and_due_at_once(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    claim = book.take()
    book.fail(claim, retry_in=None)
    book.skip()

    run = book.unskip()

    assert (run.state, run.retry_at) == (states.FAILED, book.clock.now())


def test_reopening_opens_the_next_revision_beside_the_one_that_is_replaced(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    claim = book.take()
    book.complete(claim)

    again = book.reopen(claim.run)

    assert again.id == RunId(claim.run.series, claim.run.nominal, 2)
    assert [state for _, state in book.runs()] == [states.REPLACED, states.OPEN]


def test_the_picture_in_the_documentation_is_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "states.md"

    assert page.read_text(encoding="utf-8") == states.page()
