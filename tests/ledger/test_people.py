"""What a person may say of a run: retry, skip, unskip, reopen. Each leaves who said it and why."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from duly.errors import BelowHorizon, ClaimLost, NotAllowed, OutcomeUnknown, RunSkipped
from duly.ledger.cancel import cancel
from duly.ledger.open import Idle, Taken
from duly.ledger.records import AlreadyCompleted, Claim, Run
from duly.ledger.resolve import skip, unskip
from duly.times import DAY
from tests.books import WORD, Book
from tests.ledger.rivals import beside, rival_of

# -- retry --------------------------------------------------------------------------------------------------------------


def test_a_failed_run_that_waits_for_a_person_is_worked_at_the_next_poke_after_a_retry(book: Book) -> None:
    book.job()
    claim = book.take()
    book.fail(claim, retry_in=None)
    assert isinstance(book.poke(), Idle)

    run = book.retry(claim.run)

    assert (run.state, run.retry_at, run.failures) == ("failed", book.clock.now(), 0)
    taken = book.poke()
    assert isinstance(taken, Taken)
    assert taken.claim.number == 2
    assert book.events("retried") == [("ops@example", "looked into it", "")]


def test_a_retry_with_a_new_payload_lets_the_next_claim_fix_it(book: Book) -> None:
    book.job()
    claim = book.take(payload="json1:wrong")
    book.fail(claim, retry_in=None)

    book.retry(claim.run, new_payload=True)

    again = book.take(payload="json1:right")
    assert book.run(again.run).payload == "json1:right"
    assert book.events("retried") == [("ops@example", "looked into it", "new payload")]


def test_a_retry_without_a_new_payload_keeps_the_old_one(book: Book) -> None:
    book.job()
    claim = book.take(payload="json1:first")
    book.fail(claim, retry_in=None)

    book.retry(claim.run)

    assert book.run(claim.run).payload == "json1:first"


@pytest.mark.parametrize("state", ["running", "completed", "unknown", "skipped", "open"])
def test_only_a_failed_run_is_retried(book: Book, state: str) -> None:
    book.job()
    claim = book.take()
    match state:
        case "completed":
            book.complete(claim)
        case "unknown":
            book.doubt(claim)
        case "open":
            book.release(claim)
        case "skipped":
            book.fail(claim)
            book.skip()
    before = book.everything()

    with pytest.raises(NotAllowed, match=f"is {state}"):
        book.retry(claim.run)

    assert book.everything() == before


# -- skip and unskip ----------------------------------------------------------------------------------------------------


def test_a_window_that_never_ran_is_skipped_with_a_row_of_its_own(book: Book) -> None:
    book.job()

    run = book.skip("2026-10-05")

    assert (run.state, run.fence, run.cause) == ("skipped", 0, "looked into it")
    assert book.ranges() == []
    assert isinstance(book.poke(), Idle)


def test_an_unskipped_window_is_owed_again(book: Book) -> None:
    book.job()
    book.skip("2026-10-05")

    book.unskip("2026-10-05")

    assert book.work_all() == ["export:2026-10-05[UTC]"]


def test_a_running_run_is_not_skipped(book: Book) -> None:
    book.job()
    book.take()

    with pytest.raises(NotAllowed, match="wait for its attempt"):
        book.skip()


def test_a_window_below_the_horizon_is_not_given_a_row_by_a_skip(book: Book) -> None:
    book.job()
    _, run, _ = book.find("2026-10-05")
    book.amend("update duly_series set horizon = ?", run.nominal + 1)

    with pytest.raises(BelowHorizon):
        book.skip("2026-10-05")

    assert book.runs() == []


def after_downtime(book: Book) -> None:
    """The windows of 5 to 9 October passed while nothing poked, and the policy keeps the newest only."""
    book.job(catch_up="latest")
    book.clock.advance(5 * DAY)
    assert book.work_all() == ["export:2026-10-10[UTC]"]
    assert book.ranges() == [("2026-10-05", "2026-10-10")]


def test_a_window_in_a_skipped_range_answers_that_it_was_skipped_and_why(book: Book) -> None:
    after_downtime(book)

    answer = book.ask("2026-10-07")

    assert isinstance(answer, RunSkipped)
    assert "catch-up latest" in str(answer)


def test_a_window_is_cut_out_of_the_middle_of_a_skipped_range(book: Book) -> None:
    after_downtime(book)

    run = book.unskip("2026-10-07")

    assert run.state == "open"
    assert [isinstance(book.ask(f"2026-10-0{day}"), RunSkipped) for day in (5, 6, 8, 9)] == [True] * 4
    assert book.work_all() == ["export:2026-10-07[UTC]"]


@pytest.mark.parametrize("day", ["2026-10-05", "2026-10-09"])
def test_a_window_is_cut_off_the_end_of_a_skipped_range(book: Book, day: str) -> None:
    after_downtime(book)

    book.unskip(day)

    others = {"2026-10-05", "2026-10-06", "2026-10-07", "2026-10-08", "2026-10-09"} - {day}
    assert all(isinstance(book.ask(other), RunSkipped) for other in others)
    assert isinstance(book.ask(day), Claim)


def test_every_window_of_a_range_can_be_unskipped_one_by_one(book: Book) -> None:
    after_downtime(book)

    for day in (7, 5, 9, 6, 8):
        book.unskip(f"2026-10-0{day}")

    assert book.work_all() == [f"export:2026-10-0{day}[UTC]" for day in (5, 6, 7, 8, 9)]


def test_what_was_never_skipped_is_not_unskipped(book: Book) -> None:
    book.job()
    claim = book.take("2026-10-05")

    with pytest.raises(NotAllowed, match="is running"):
        book.unskip("2026-10-05")
    with pytest.raises(NotAllowed, match="has no row yet"):
        book.unskip("2026-10-03")

    assert book.state(claim.run) == "running"
    assert len(book.runs()) == 1


# -- reopen -------------------------------------------------------------------------------------------------------------


def test_a_reopened_run_is_done_again_under_a_key_of_its_own(book: Book) -> None:
    book.job()
    claim = book.take()
    book.complete(claim)

    again = book.reopen(claim.run)

    assert book.runs() == [("2026-10-05T00:00:00", "replaced"), ("2026-10-05T00:00:00", "open")]
    assert book.run(claim.run).fence == claim.number + 1
    taken = book.poke()
    assert isinstance(taken, Taken)
    assert (taken.claim.run, str(taken.key)) == (again.id, "export:2026-10-05[UTC]#2")
    book.complete(taken.claim)
    assert isinstance(book.ask(), AlreadyCompleted)


def test_a_late_attempt_of_the_first_revision_is_refused_after_a_reopen(book: Book) -> None:
    book.job(contract="external")
    late = book.take()
    book.doubt(late)
    book.resolve(late.run, done=True)
    book.reopen(late.run)
    before = book.everything()

    with pytest.raises(ClaimLost):
        book.complete(late)
    with pytest.raises(ClaimLost):
        book.fail(late)

    assert not book.renew(late)
    assert book.everything() == before


def test_a_run_is_reopened_once_for_each_completion(book: Book) -> None:
    book.job()
    claim = book.take()
    book.complete(claim)
    book.reopen(claim.run)

    with pytest.raises(NotAllowed):
        book.reopen(claim.run)

    assert len(book.runs()) == 2


@pytest.mark.parametrize("state", ["running", "failed", "unknown", "open", "skipped"])
def test_only_a_completed_run_is_reopened(book: Book, state: str) -> None:
    book.job()
    claim = book.take()
    match state:
        case "failed":
            book.fail(claim)
        case "unknown":
            book.doubt(claim)
        case "open":
            book.release(claim)
        case "skipped":
            book.fail(claim)
            book.skip()
    before = book.everything()

    with pytest.raises(NotAllowed, match=f"is {state}"):
        book.reopen(claim.run)

    assert book.everything() == before


def test_a_reopened_run_takes_a_payload_of_its_own(book: Book) -> None:
    book.job()
    claim = book.take(payload="json1:first")
    book.complete(claim)
    book.reopen(claim.run)

    again = book.take(payload="json1:second")

    assert (book.run(claim.run).payload, book.run(again.run).payload) == ("json1:first", "json1:second")


def test_an_unknown_run_answers_unknown_to_everything_but_its_resolution(book: Book) -> None:
    book.job()
    claim = book.take()
    book.doubt(claim)

    assert isinstance(book.ask(), OutcomeUnknown)
    for act in (book.retry, book.reopen):
        with pytest.raises(NotAllowed, match="resolve"):
            act(claim.run)
    with pytest.raises(NotAllowed, match="resolve"):
        book.skip()


# -- a rival who opens the window just now ---------------------------------------------------------------------------------


@pytest.mark.parametrize("say", [skip, cancel])
def test_a_window_that_a_rival_opens_meanwhile_is_not_said_to_be_pruned(
    book: Book, say: Callable[..., Coroutine[Any, Any, Run]]
) -> None:
    rival = rival_of(book)
    book.job()
    known, run, occurrence = book.find()
    operation = beside(say(known, run, occurrence, WORD), lambda: rival.release(rival.take()))

    assert book.write(operation).state == "skipped"

    assert book.attempts(run) == [(1, "released")]


def test_a_window_that_a_rival_works_meanwhile_is_not_skipped(book: Book) -> None:
    rival = rival_of(book)
    book.job()
    known, run, occurrence = book.find()

    with pytest.raises(NotAllowed, match="it is running; wait for its attempt"):
        book.write(beside(skip(known, run, occurrence, WORD), rival.take))


def test_two_who_take_a_window_out_of_a_skipped_range_at_once_are_told_what_it_is(book: Book) -> None:
    rival = rival_of(book)
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance("3d")
    book.work_all()
    known, run, occurrence = book.find("2026-10-06")
    operation = beside(unskip(known, run, occurrence, WORD), lambda: rival.unskip("2026-10-06"))

    with pytest.raises(NotAllowed, match="it is open"):
        book.write(operation)

    assert book.state(run) == "open"
