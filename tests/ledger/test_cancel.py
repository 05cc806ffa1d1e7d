"""Cancel: a person asks the attempt at a run to stop. What comes of it is the attempt's word, or its contract's."""

from __future__ import annotations

from typing import Any

import pytest

from duly.errors import ClaimLost, NotAllowed, OutcomeUnknown, RunBusy, RunFailed
from duly.ledger.ask import Statement
from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import CANCELLED, CONTRACTS, EXTERNAL, IDEMPOTENT, TRANSACTIONAL, Ending, Terms, after_cancel
from duly.ledger.open import Idle, Taken
from duly.ledger.records import Busy, Claim
from duly.ledger.take import LOSE_IF_UNCHANGED, TAKE_OVER, run_parameters
from duly.times import DAY, HOUR, MINUTE
from tests.books import Book, let_die

KEY = "export:2026-10-05[UTC]"


def worked(book: Book, **policies: Any) -> Claim:
    """An attempt that works the run."""
    book.job(**policies)
    return book.take()


# -- the request --------------------------------------------------------------------------------------------------------


def test_the_attempt_hears_of_it_with_its_next_heartbeat(book: Book) -> None:
    claim = worked(book)
    assert book.beat(claim) == "held"

    run = book.cancel()

    assert (run.state, run.cancel_is_asked) == ("running", True)
    assert book.beat(claim) == "asked to stop"
    assert book.events("cancel_asked") == [("ops@example", "looked into it", "")]


def test_asking_again_changes_nothing(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    before = book.everything()

    for _ in range(3):
        assert book.cancel(by="another@example").state == "running"

    assert book.everything() == before
    assert len(book.events("cancel_asked")) == 1
    assert book.beat(claim) == "asked to stop"


def test_a_heartbeat_prolongs_the_lease_of_an_attempt_that_was_asked_to_stop(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    book.clock.advance(40_000_000)

    book.beat(claim)

    book.clock.advance(40_000_000)
    assert isinstance(book.ask(), Busy)


def test_a_duplicate_is_answered_as_while_it_runs(book: Book) -> None:
    worked(book)
    before = book.ask()
    book.cancel()

    assert book.ask() == before
    assert isinstance(book.poke(), Idle)


def test_a_later_attempt_is_not_meant(book: Book) -> None:
    first = worked(book)
    book.cancel()
    book.fail(first)
    book.retry(first.run)

    second = book.take()

    assert book.beat(second) == "held"
    assert not book.run(first.run).cancel_is_asked
    book.fail(second, retry_in=MINUTE)
    assert book.run(first.run).retry_at is not None


def test_an_attempt_that_was_taken_over_is_not_meant_and_its_successor_may_be_asked(book: Book) -> None:
    first = worked(book)
    book.lapse()
    second = book.take()

    book.cancel()

    assert (book.beat(first), book.beat(second)) == ("lost", "asked to stop")


def test_a_window_of_the_same_line_is_not_meant(book: Book) -> None:
    book.job(overlap=1)
    claim, other = book.take("2026-10-05"), book.take("2026-10-04")

    book.cancel("2026-10-05")

    assert (book.beat(claim), book.beat(other)) == ("asked to stop", "held")


# -- how it ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", CONTRACTS)
def test_what_completes_all_the_same_is_complete(book: Book, contract: str) -> None:
    claim = worked(book, contract=contract)
    book.cancel()

    book.complete(claim)

    assert book.state(claim.run) == "completed"
    assert book.attempts(claim.run) == [(1, "completed")]
    assert isinstance(book.poke(), Idle)


def test_what_fails_before_it_has_heard_is_not_retried_by_policy(book: Book) -> None:
    claim = worked(book)
    book.cancel()

    ending = Ending("failed", "exit 1", retry=True)
    may_retry_in = book.write(fail_or_raise(claim, ending, retry_in=MINUTE, error="exit 1"))

    assert may_retry_in is None
    assert book.run(claim.run).waits_for_a_person
    book.clock.advance(12 * HOUR)
    assert isinstance(book.ask(), RunFailed)
    assert isinstance(book.poke(), Idle)


def test_what_gives_the_run_back_ends_as_cancelled_and_is_not_taken_again(book: Book) -> None:
    claim = worked(book)
    book.cancel()

    book.release(claim)

    run = book.run(claim.run)
    assert (run.state, run.cause, run.retry_at, run.failures) == ("failed", CANCELLED, None, 0)
    assert book.attempts(claim.run) == [(1, "cancelled")]
    assert isinstance(book.poke(), Idle)


def test_giving_back_twice_is_refused_as_ever(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    book.release(claim)
    before = book.everything()

    with pytest.raises(ClaimLost):
        book.release(claim)

    assert book.everything() == before


def test_a_person_lets_it_run_again(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    book.release(claim)

    book.retry(claim.run)

    assert book.work_all() == [KEY]


@pytest.mark.parametrize(
    ("terms", "elapsed", "code", "state"),
    [
        (Terms(TRANSACTIONAL, retries=3), 0, 143, "failed"),
        (Terms(TRANSACTIONAL), 0, 80, "unknown"),
        (Terms(IDEMPOTENT, DAY), HOUR, 143, "failed"),
        (Terms(IDEMPOTENT, DAY), 2 * DAY, 143, "unknown"),
        (Terms(IDEMPOTENT), 9 * DAY, None, "failed"),
        (Terms(EXTERNAL), 0, 143, "unknown"),
        (Terms(EXTERNAL), 0, 3, "unknown"),
        (Terms(EXTERNAL), 0, 0, "unknown"),
        (Terms(EXTERNAL), 0, None, "unknown"),
        (Terms(EXTERNAL, clean_exits=frozenset({143})), 0, 143, "failed"),
        (Terms(EXTERNAL, retries=3, retries_declared=True), 0, 3, "unknown"),
    ],
)
def test_the_contract_says_what_a_cancelled_attempt_means(
    terms: Terms, elapsed: int, code: int | None, state: str
) -> None:
    ending = after_cancel(terms, elapsed=elapsed, code=code)

    assert (ending.state, ending.cause, ending.retry) == (state, CANCELLED, False)


# -- an attempt that is gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", [TRANSACTIONAL, IDEMPOTENT])
def test_an_attempt_that_vanished_after_it_was_asked_leaves_its_run_to_a_person(book: Book, contract: str) -> None:
    claim = worked(book, contract=contract)
    book.cancel()
    book.lapse()

    assert isinstance(book.poke(), Idle)

    run = book.run(claim.run)
    assert (run.state, run.cause, run.retry_at) == ("failed", CANCELLED, None)
    assert book.attempts(claim.run) == [(1, "lost")]


def test_nor_does_a_caller_that_names_it_take_it_over(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    book.lapse()

    assert isinstance(book.ask(), RunFailed)
    assert book.run(claim.run).waits_for_a_person


@pytest.mark.parametrize("statement", [TAKE_OVER, LOSE_IF_UNCHANGED], ids=lambda each: each.name)
def test_whoever_looked_before_it_was_asked_does_not_let_it_be_tried_again(book: Book, statement: Statement) -> None:
    claim = worked(book)
    seen: dict[str, Any] = {**run_parameters(claim.run), "seen_fence": claim.number, "seen_attempt": claim.attempt_id}
    newcomer = {"attempt_id": b"n" * 16, "owner": "host/2", "trigger": "test", "lease": MINUTE}
    of_contract = {"contract": TRANSACTIONAL, "remembers": None, "cause": "its attempt vanished"}
    book.cancel()

    book.touch(statement, **seen, **newcomer, **of_contract)

    run = book.run(claim.run)
    assert run.attempt_id == claim.attempt_id
    assert run.retry_at is None


def test_nor_does_once(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    with pytest.raises(RunBusy):
        book.once(KEY)
    book.lapse()

    with pytest.raises(RunFailed):
        book.once(KEY)

    assert book.state(claim.run) == "running"


def test_the_next_window_ends_it_on_its_way(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    book.lapse()
    book.clock.advance(DAY)

    assert book.work_all() == ["export:2026-10-06[UTC]"]

    assert book.run(claim.run).waits_for_a_person


def test_an_external_one_is_unknown_because_it_was_cancelled(book: Book) -> None:
    claim = worked(book, contract=EXTERNAL)
    book.cancel()
    book.lapse()

    assert isinstance(book.ask(), OutcomeUnknown)

    assert (book.state(claim.run), book.run(claim.run).cause) == ("unknown", CANCELLED)


def test_one_that_is_resolved_as_not_done_waits_for_a_person(book: Book) -> None:
    claim = worked(book, contract=EXTERNAL)
    book.cancel()
    book.lapse()
    book.ask()

    book.resolve(claim.run, done=False)

    assert book.run(claim.run).waits_for_a_person
    assert isinstance(book.poke(), Idle)


def test_an_unknown_attempt_that_reports_after_all_is_believed(book: Book) -> None:
    claim = worked(book, contract=EXTERNAL)
    book.cancel()
    book.lapse()
    book.ask()

    assert book.beat(claim) == "asked to stop"
    book.complete(claim)

    assert book.state(claim.run) == "completed"


# -- without an attempt --------------------------------------------------------------------------------------------------


def test_a_run_that_nobody_works_is_skipped_instead(book: Book) -> None:
    claim = worked(book)
    book.release(claim)

    run = book.cancel()

    assert (run.state, run.cause) == ("skipped", "looked into it")
    assert book.events("skipped") == [("ops@example", "looked into it", "cancelled while no attempt was working it")]
    assert book.events("cancel_asked") == []
    assert isinstance(book.poke(), Idle)


def test_so_is_a_window_that_was_never_opened(book: Book) -> None:
    book.job()

    assert book.cancel().state == "skipped"

    assert isinstance(book.poke(), Idle)


@pytest.mark.parametrize("retry_in", [None, HOUR])
def test_so_is_one_that_failed_and_waits(book: Book, retry_in: int | None) -> None:
    claim = worked(book)
    book.fail(claim, retry_in=retry_in)

    assert book.cancel().state == "skipped"

    book.clock.advance(12 * HOUR)
    assert isinstance(book.poke(), Idle)


def test_one_whose_attempt_did_nothing_and_is_gone_waits_for_a_person(book: Book) -> None:
    claim = worked(book)
    book.lapse()

    run = book.cancel()

    assert (run.state, run.cause, run.retry_at) == ("failed", CANCELLED, None)
    assert book.attempts(claim.run) == [(1, "lost")]
    assert book.cancel().state == "skipped"


def test_one_whose_attempt_is_gone_and_may_have_done_anything_is_unknown(book: Book) -> None:
    claim = worked(book, contract=EXTERNAL)
    book.lapse()

    run = book.cancel()

    assert (run.state, run.cause) == ("unknown", CANCELLED)
    assert book.beat(claim) == "asked to stop", "should it be alive after all"


def test_an_attempt_with_a_pulse_is_asked_though_its_lease_lapsed(book: Book) -> None:
    claim = worked(book)
    pulse = book.hold_pulse(claim)
    book.lapse()

    run = book.cancel()

    let_die(pulse)
    assert (run.state, run.cancel_is_asked) == ("running", True)


@pytest.mark.parametrize("state", ["completed", "unknown", "skipped"])
def test_what_is_settled_or_unknown_is_not_cancelled(book: Book, state: str) -> None:
    claim = worked(book)
    match state:
        case "completed":
            book.complete(claim)
        case "unknown":
            book.doubt(claim)
        case _:
            book.release(claim)
            book.skip()
    before = book.everything()

    with pytest.raises(NotAllowed, match=f"is {state}"):
        book.cancel()

    assert book.everything() == before


def test_a_line_goes_on_after_a_run_of_it_was_cancelled(book: Book) -> None:
    claim = worked(book)
    book.cancel()
    book.release(claim)
    book.clock.advance(DAY)

    taken = book.poke()

    assert isinstance(taken, Taken)
    assert str(taken.key) == "export:2026-10-06[UTC]"
