"""Probes of runs: when it may be asked what became of one, and when the answer is believed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from duly.ledger.found import FoundDone, FoundNot, FoundNothing
from duly.ledger.open import Taken
from duly.ledger.probe import Question, hold_question, in_doubt, last_asked, may_be_asked, record_finding, rest
from duly.ledger.records import Claim, RunId
from duly.ledger.restore import doubt_since
from duly.times import HOUR, MINUTE
from duly.work.identity import new_attempt_id
from tests.books import LATE, WORD, Book, PostgresBook
from tests.ledger.test_forget import days_later, forget

AFTER = 5 * MINUTE
HAPPENED = FoundDone("their batch 4711")
DID_NOT = FoundNot("no batch of that day", at_once=False, again_in=AFTER)
DID_NOT_AT_ONCE = FoundNot("no batch of that day", at_once=True, again_in=AFTER)
CANNOT_TELL = FoundNothing("no answer", AFTER)


@pytest.fixture
def claim(book: Book) -> Claim:
    """A run of an external job whose attempt has said that it does not know, long enough ago to be asked about."""
    book.job(contract="external")
    claim = book.take()
    book.doubt(claim)
    book.clock.advance(AFTER)
    return claim


def hold(book: Book, run: RunId, *, lease: int = MINUTE) -> Question | None:
    return book.write(hold_question(run, new_attempt_id(), lease=lease, probe_after=AFTER))


def ask(book: Book, run: RunId) -> Question:
    question = hold(book, run)
    assert question is not None
    return question


def found(book: Book, question: Question, word: FoundDone | FoundNot | FoundNothing) -> str:
    return book.write(record_finding(question, word, by="host/9@1+b"))


# -- what is believed ---------------------------------------------------------------------------------------------------


def test_that_it_happened_completes_the_run_with_the_evidence(book: Book, claim: Claim) -> None:
    assert found(book, ask(book, claim.run), HAPPENED) == "completed"

    assert book.attempts(claim.run) == [(1, "completed")]
    assert book.events("resolved") == [("host/9@1+b", "its probe says that it happened", "done")]
    assert book.rows("select kind, body from duly_text where kind = 'evidence'") == [("evidence", "their batch 4711")]
    assert book.rows("select * from duly_probe") == []


def test_that_it_did_not_is_believed_the_second_time_and_then_it_is_worked_again(book: Book, claim: Claim) -> None:
    assert found(book, ask(book, claim.run), DID_NOT) == "unknown"
    assert hold(book, claim.run) is None  # not again at once
    assert book.events("probed") == [
        ("host/9@1+b", "", "a probe says once that it did not happen: no batch of that day")
    ]
    book.clock.advance(AFTER)

    assert found(book, ask(book, claim.run), DID_NOT) == "failed"

    assert book.events("resolved") == [("host/9@1+b", "its probe says that it did not happen", "not done")]
    again = book.poke()
    assert isinstance(again, Taken)
    assert (again.claim.run, again.claim.number) == (claim.run, 2)


def test_who_reads_his_own_writes_is_believed_at_once(book: Book, claim: Claim) -> None:
    assert found(book, ask(book, claim.run), DID_NOT_AT_ONCE) == "failed"


def test_one_that_cannot_tell_changes_nothing_and_is_asked_later_and_later(book: Book, claim: Claim) -> None:
    before = book.run(claim.run)

    assert found(book, ask(book, claim.run), CANNOT_TELL) == "unknown"

    assert book.run(claim.run) == before
    asked = book.store.read(last_asked(before))
    assert asked is not None
    assert (asked.asked, asked.denials, asked.said) == (1, 0, "cannot tell: no answer")
    assert asked.next_at == book.clock.now() + AFTER
    assert [rest(n, probe_after=AFTER) // MINUTE for n in (1, 2, 3, 4, 5, 9)] == [5, 10, 20, 40, 60, 60]
    assert rest(3, probe_after=2 * HOUR) == 2 * HOUR


def test_between_two_denials_nothing_else_need_be_said(book: Book, claim: Claim) -> None:
    for word, state in ((DID_NOT, "unknown"), (CANNOT_TELL, "unknown"), (DID_NOT, "failed")):
        assert found(book, ask(book, claim.run), word) == state
        book.clock.advance(AFTER)


def test_a_cancelled_run_that_did_not_happen_waits_for_a_person(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.cancel()
    book.doubt(claim)
    book.clock.advance(AFTER)

    assert found(book, ask(book, claim.run), DID_NOT_AT_ONCE) == "failed"

    assert book.run(claim.run).waits_for_a_person


# -- when it may be asked -----------------------------------------------------------------------------------------------


def may_ask(book: Book, run: RunId) -> bool:
    """By all who say so: the look, the list of a job's runs, and the write."""
    said = {
        book.store.read(may_be_asked(run, probe_after=AFTER)),
        [row.id for row in book.store.read(in_doubt("export", probe_after=AFTER))] == [run],
        hold(book, run, lease=1) is not None,
    }
    assert len(said) == 1
    book.clock.advance(1)
    return said == {True}


def test_it_is_asked_a_while_after_the_doubt(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.doubt(claim)
    book.clock.advance(AFTER - 2)

    assert not may_ask(book, claim.run)
    book.clock.advance(1)
    assert may_ask(book, claim.run)


def test_a_vanished_attempt_is_asked_about_a_while_after_somebody_has_found_it_gone(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.lapse()
    book.ask()
    assert book.state(claim.run) == "unknown"

    assert not may_ask(book, claim.run)
    book.clock.advance(AFTER)
    assert may_ask(book, claim.run)


def test_nobody_asks_while_the_attempt_shows_a_pulse(book: Book) -> None:
    if isinstance(book, PostgresBook):
        pytest.skip("on PostgreSQL there is no pulse but the lease")
    book.job(contract="external")
    claim = book.take()
    with pulse_of(book, claim):
        book.doubt(claim)
        book.clock.advance(AFTER)
        assert not may_ask(book, claim.run)

    assert may_ask(book, claim.run)


@contextmanager
def pulse_of(book: Book, claim: Claim) -> Iterator[None]:
    import os

    descriptor = book.hold_pulse(claim)
    try:
        yield
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("state", ["running", "completed", "failed", "open", "skipped"])
def test_only_an_unknown_run_is_asked_about(book: Book, state: str) -> None:
    book.job(contract="external")
    claim = book.take()
    match state:
        case "completed":
            book.complete(claim)
        case "failed":
            book.fail(claim)
        case "open":
            book.release(claim)
        case "skipped":
            book.fail(claim)
            book.skip()
    book.clock.advance(AFTER)

    assert not may_ask(book, claim.run)


def test_two_do_not_ask_at_once_and_one_who_never_answers_is_followed(book: Book, claim: Claim) -> None:
    first = ask(book, claim.run)
    assert hold(book, claim.run) is None

    book.clock.advance(MINUTE)
    second = ask(book, claim.run)

    assert (first.asked, second.asked) == (1, 2)
    assert found(book, first, HAPPENED) == "too late"
    assert found(book, second, DID_NOT) == "unknown"
    assert found(book, second, DID_NOT) == "unknown"  # told again: the reply was lost; it was asked once
    assert book.rows("select denials from duly_probe") == [(1,)]
    assert book.state(claim.run) == "unknown"


# -- what comes too late ------------------------------------------------------------------------------------------------


def test_what_the_attempt_itself_says_meanwhile_stands(book: Book, claim: Claim) -> None:
    question = ask(book, claim.run)
    book.complete(claim)

    assert found(book, question, DID_NOT_AT_ONCE) == "too late"

    assert book.state(claim.run) == "completed"


def test_what_a_person_says_meanwhile_stands_also_in_the_doubt_of_the_next_attempt(book: Book, claim: Claim) -> None:
    question = ask(book, claim.run)
    book.resolve(claim.run, done=False)
    again = book.take()
    book.doubt(again)
    book.clock.advance(AFTER)

    assert found(book, question, HAPPENED) == "too late"

    assert (book.state(claim.run), book.run(claim.run).fence) == ("unknown", 2)
    assert ask(book, claim.run).asked == 1


def test_an_attempt_that_went_on_is_asked_about_anew_when_it_is_in_doubt_again(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.lapse()
    book.ask()
    book.clock.advance(AFTER)
    assert found(book, ask(book, claim.run), DID_NOT) == "unknown"
    book.clock.advance(AFTER)
    open_question = ask(book, claim.run)

    assert book.renew(claim)  # it was only stopped, and goes on
    book.clock.advance(LATE)
    book.ask()
    assert found(book, open_question, DID_NOT) == "too late"  # he looked before that
    book.clock.advance(AFTER)
    anew = ask(book, claim.run)

    assert (anew.asked, anew.denials) == (1, 0)
    assert found(book, anew, DID_NOT) == "unknown"


def test_a_new_doubt_does_not_rest_as_long_as_the_one_before(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.lapse()
    book.ask()
    book.clock.advance(AFTER)
    assert found(book, ask(book, claim.run), FoundNothing("no answer", HOUR)) == "unknown"
    assert book.renew(claim)
    book.clock.advance(LATE)
    book.ask()
    assert not may_ask(book, claim.run)
    book.clock.advance(AFTER)

    assert may_ask(book, claim.run)


def test_a_clock_that_was_put_back_hides_no_doubt(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.doubt(claim)
    book.clock.advance(AFTER)
    assert found(book, ask(book, claim.run), DID_NOT) == "unknown"
    book.clock.set("2026-10-06T02:00:00Z")
    book.resolve(claim.run, done=False)
    book.doubt(book.take())
    book.clock.advance(AFTER)

    assert ask(book, claim.run).denials == 0


def test_a_restored_ledger_begins_a_new_doubt(book: Book, claim: Claim) -> None:
    assert found(book, ask(book, claim.run), DID_NOT) == "unknown"
    at = book.clock.now()
    book.clock.advance(AFTER)

    doubted = book.write(doubt_since(at, WORD))  # meanwhile it may have been denied again, and worked

    assert [run.id for run in doubted] == [claim.run]
    assert not may_ask(book, claim.run)
    book.clock.advance(AFTER)
    assert ask(book, claim.run).denials == 0


def test_a_pruned_run_leaves_no_question(book: Book, claim: Claim) -> None:
    ask(book, claim.run)
    book.complete(claim)
    days_later(book, 3)

    assert forget(book) > 0

    assert book.rows("select * from duly_probe") == []
