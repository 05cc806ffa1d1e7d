"""Put off: who cannot tell yet what became of something says so, and nothing asks before they wanted."""

from __future__ import annotations

import pytest

from duly.errors import NotAllowed
from duly.ledger.found import FoundDone
from duly.ledger.probe import in_doubt, last_asked, may_be_asked, record_finding
from duly.ledger.put_off import put_off
from duly.ledger.records import Claim
from duly.ledger.take import look
from duly.times import HOUR, MINUTE
from tests.books import WORD, Book
from tests.ledger.test_probe import AFTER, CANNOT_TELL, ask, found, hold


@pytest.fixture
def claim(book: Book) -> Claim:
    """A run of an external job whose attempt has said that it does not know."""
    book.job(contract="external")
    claim = book.take()
    book.doubt(claim)
    book.clock.advance(AFTER)
    return claim


def test_a_run_that_is_put_off_stays_unknown_with_the_word_on_record(book: Book, claim: Claim) -> None:
    row = book.write(put_off(claim.run, WORD, again_in=HOUR))

    assert row.state == "unknown"
    assert [(by, reason) for by, reason, _ in book.events("put_off")] == [(WORD.by, WORD.reason)]
    assert book.attempts(claim.run) == []  # nobody has said how it ended


def test_no_probe_asks_before_and_one_does_after(book: Book, claim: Claim) -> None:
    book.write(put_off(claim.run, WORD, again_in=HOUR))

    assert book.store.read(in_doubt("export", probe_after=AFTER)) == []
    assert hold(book, claim.run) is None
    book.clock.advance(HOUR - 1)
    assert not book.store.read(may_be_asked(claim.run, probe_after=AFTER))
    book.clock.advance(1)
    assert hold(book, claim.run) is not None


def test_what_a_probe_said_before_is_kept(book: Book, claim: Claim) -> None:
    found(book, ask(book, claim.run), CANNOT_TELL)
    book.write(put_off(claim.run, WORD, again_in=2 * HOUR))

    row = book.store.read(look(claim.run))
    assert row is not None
    asked = book.store.read(last_asked(row))
    assert asked is not None
    assert (asked.asked, asked.said) == (1, "cannot tell: no answer")


def test_who_asks_a_probe_at_this_moment_may_still_say_what_it_found(book: Book, claim: Claim) -> None:
    question = ask(book, claim.run)
    book.write(put_off(claim.run, WORD, again_in=HOUR))

    assert book.write(record_finding(question, FoundDone("their batch 4711"), by="host/9@1+b")) == "completed"


def test_a_run_whose_outcome_is_known_cannot_be_put_off(book: Book) -> None:
    book.job()
    run = book.take().run

    with pytest.raises(NotAllowed, match="put off this run: it is running"):
        book.write(put_off(run, WORD, again_in=MINUTE))
    assert book.events("put_off") == []
