"""Taking a run: who gets it, and what everybody else is told."""

from __future__ import annotations

import pytest

from duly.errors import (
    BelowHorizon,
    OutcomeUnknown,
    PayloadConflict,
    RunFailed,
    RunSkipped,
    UnknownJob,
    UnknownRun,
    WindowInvalid,
)
from duly.ledger.ask import drive
from duly.ledger.named import Named, peek_window, take_window
from duly.ledger.open import Idle, Taken, claim_next
from duly.ledger.peek import peek
from duly.ledger.records import AlreadyCompleted, Busy, Claim, Claimer, NotDue, RunId
from duly.ledger.register import Declaration
from duly.ledger.take import LOOK, take
from duly.ledger.windows import open_window
from duly.schedule.keys import parse_key
from duly.schedule.spec import every
from duly.times import MINUTE, parse_instant
from duly.work.identity import new_attempt_id
from tests.books import LEASE, Book, let_die
from tests.ledger.rivals import beside, rival_of

# -- one run ------------------------------------------------------------------------------------------------------------


def test_a_window_that_was_never_opened_can_be_taken(book: Book) -> None:
    book.job()

    claim = book.take("2026-10-05")

    run = book.run(claim.run)
    assert (run.state, run.fence, run.attempt_id) == ("running", 1, claim.attempt_id)
    assert (run.window_start, run.window_end) == (
        parse_instant("2026-10-05T00:00:00Z"),
        parse_instant("2026-10-06T00:00:00Z"),
    )
    assert claim.lease_until == book.clock.now() + LEASE


def test_whoever_comes_second_is_told_who_holds_the_run_and_until_when(book: Book) -> None:
    book.job()
    claim = book.take()

    answer = book.ask()

    assert answer == Busy(claim.run, claim.lease_until, claim.owner)
    assert book.attempts(claim.run) == []


def test_a_completed_run_answers_when_and_by_which_attempt_it_was_completed(book: Book) -> None:
    book.job()
    claim = book.take()
    book.complete(claim)

    answer = book.ask()

    assert answer == AlreadyCompleted(claim.run, book.clock.now(), 1)


def test_a_window_that_has_not_ended_is_not_due(book: Book) -> None:
    book.job()

    answer = book.ask("2026-10-06")

    assert isinstance(answer, NotDue)
    assert answer.due == parse_instant("2026-10-07T00:00:00Z")
    assert book.runs() == []


def test_an_attempt_whose_reply_was_lost_recognises_its_own_claim(book: Book) -> None:
    book.job()
    me = new_attempt_id()
    first = book.ask(attempt=me)
    assert isinstance(first, Claim)

    row = book.run(first.run)

    assert row.attempt_id == me
    assert isinstance(book.ask(), Busy)


def test_a_failed_run_keeps_its_key_and_gets_the_next_number(book: Book) -> None:
    book.job()
    first = book.take()
    book.fail(first)

    second = book.take()

    assert second.run == first.run
    assert (first.number, second.number) == (1, 2)
    assert second.first_started_at == first.started_at
    assert second.failures == 1


def test_a_named_window_ignores_a_retry_time(book: Book) -> None:
    book.job()
    claim = book.take()
    book.fail(claim, retry_in=30 * MINUTE)

    assert isinstance(book.ask(), Claim)


def test_a_named_window_does_not_ignore_that_its_run_waits_for_a_person(book: Book) -> None:
    book.job()
    claim = book.take()
    book.fail(claim, retry_in=None)

    assert isinstance(book.ask(), RunFailed)


def test_a_skipped_run_and_an_unknown_one_are_refused(book: Book) -> None:
    book.job()
    book.skip("2026-10-04")
    book.doubt(book.take("2026-10-05"))

    assert isinstance(book.ask("2026-10-04"), RunSkipped)
    assert isinstance(book.ask("2026-10-05"), OutcomeUnknown)


def test_a_window_off_the_grid_is_refused_with_the_nearest_ones(book: Book) -> None:
    book.job("sync", every("15m"))

    with pytest.raises(WindowInvalid, match="2026-10-05T12:00:00"):
        book.ask("2026-10-05T12:01:00Z", job="sync")


def test_a_run_outside_the_schedule_is_found_again_by_its_id(book: Book) -> None:
    book.job()
    claim = book.ask_adhoc("repair-7")
    assert isinstance(claim, Claim)
    book.complete(claim)

    assert isinstance(book.ask_adhoc("repair-7"), AlreadyCompleted)
    assert isinstance(book.ask_adhoc("repair-8"), Claim)
    assert isinstance(book.ask("2026-10-05"), Busy)  # it holds the line as any run does


# -- keys ---------------------------------------------------------------------------------------------------------------


def test_a_key_of_a_job_that_was_never_scheduled_makes_its_run(book: Book) -> None:
    claim = book.ask_key("charge:2026-10-05[Europe/Berlin]")

    assert isinstance(claim, Claim)
    assert book.runs("charge") == [("2026-10-05T00:00:00", "running")]
    assert book.rows("select zone, grain, due from duly_run_readable") == [("Europe/Berlin", "day", None)]


def test_a_window_of_an_unknown_job_is_refused(book: Book) -> None:
    book.job()

    mine = Claimer(new_attempt_id(), "host/2@2+b", "test")

    answer = book.write(take_window(Declaration("nightly"), "2026-10-05", mine))

    assert isinstance(answer, UnknownJob)


def test_a_key_names_the_newest_revision_unless_it_says_which(book: Book) -> None:
    claim = book.ask_key("charge:2026-10-05[UTC]")
    assert isinstance(claim, Claim)
    book.complete(claim)
    book.reopen(claim.run)

    first, newest = book.ask_key("charge:2026-10-05[UTC]#1"), book.ask_key("charge:2026-10-05[UTC]")

    assert isinstance(first, AlreadyCompleted)
    assert isinstance(newest, Claim)
    assert newest.run.revision == 2


def test_a_revision_that_nobody_opened_does_not_exist(book: Book) -> None:
    claim = book.ask_key("charge:2026-10-05[UTC]")
    assert isinstance(claim, Claim)
    book.complete(claim)

    with pytest.raises(UnknownRun):
        book.ask_key("charge:2026-10-05[UTC]#2")


def test_a_scheduled_key_is_printed_back_as_it_was_parsed(book: Book) -> None:
    book.job()
    claim = book.ask_key("export:2026-10-05[UTC]")
    assert isinstance(claim, Claim)

    assert book.find_key("export:2026-10-05[UTC]") == claim.run
    assert parse_key("export:2026-10-05[UTC]").nominal == claim.run.nominal


# -- payload (I6) -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["running", "completed", "failed", "unknown", "skipped", "open"])
def test_the_same_key_with_another_payload_is_refused_whatever_its_state(book: Book, state: str) -> None:
    book.job()
    claim = book.take(payload="json1:aa")
    match state:
        case "completed":
            book.complete(claim)
        case "failed":
            book.fail(claim)
        case "unknown":
            book.doubt(claim)
        case "skipped":
            book.fail(claim)
            book.skip()
        case "open":
            book.release(claim)
    before = book.everything()

    answer = book.ask(payload="json1:bb")

    assert isinstance(answer, PayloadConflict)
    assert book.state(claim.run) == state
    assert book.everything() == before
    assert len(book.events("payload_refused")) == 1


def test_a_claim_without_a_payload_adopts_the_stored_one(book: Book) -> None:
    book.job()
    book.fail(book.take(payload="json1:aa"))

    again = book.take()

    assert book.run(again.run).payload == "json1:aa"


def test_a_run_first_claimed_without_a_payload_takes_none_later(book: Book) -> None:
    book.job()
    book.fail(book.take())

    assert isinstance(book.ask(payload="json1:aa"), PayloadConflict)


# -- the horizon (I7) ---------------------------------------------------------------------------------------------------


def test_a_window_below_the_horizon_is_never_executed_and_leaves_evidence(book: Book) -> None:
    book.job()
    raise_horizon(book, above="2026-10-04")

    answer = book.ask("2026-10-04")

    assert isinstance(answer, BelowHorizon)
    assert book.runs() == []
    assert len(book.events("below_horizon")) == 1
    assert isinstance(book.ask("2026-10-05"), Claim)


def test_a_key_below_the_horizon_is_refused_too(book: Book) -> None:
    book.fail(claim_of(book.ask_key("charge:2026-10-05[UTC]")), retry_in=None)
    book.amend("update duly_series set horizon = (select max(nominal) from duly_run)")

    assert isinstance(book.ask_key("charge:2026-10-04[UTC]"), BelowHorizon)


def test_a_poke_opens_nothing_below_the_horizon(book: Book) -> None:
    book.job()
    book.clock.advance(3 * 24 * 60 * MINUTE)
    raise_horizon(book, above="2026-10-06")

    assert book.work_all() == ["export:2026-10-07[UTC]", "export:2026-10-08[UTC]"]


def test_a_completed_run_below_the_horizon_is_not_reopened(book: Book) -> None:
    book.job()
    claim = book.take("2026-10-04")
    book.complete(claim)
    raise_horizon(book, above="2026-10-04")

    with pytest.raises(BelowHorizon):
        book.reopen(claim.run)

    assert book.runs() == [("2026-10-04T00:00:00", "completed")]


def test_a_skipped_run_below_the_horizon_stays_skipped(book: Book) -> None:
    book.job()
    skipped = book.skip("2026-10-04")
    raise_horizon(book, above="2026-10-04")

    with pytest.raises(BelowHorizon):
        book.unskip("2026-10-04")

    assert book.state(skipped.id) == "skipped"


def test_a_claimer_that_looked_before_the_horizon_rose_is_refused_by_its_write(book: Book) -> None:
    """Stopped between its look and its write, it still believes in the series as it was."""
    book.job()
    known, run, occurrence = book.find("2026-10-04")
    assert known.line is not None
    assert known.series is not None
    raise_horizon(book, above="2026-10-04")
    mine = Claimer(new_attempt_id(), "host/2@2+b", "test")

    answer = book.write(take(known, known.series, occurrence, run, None, mine))
    book.write(open_window(known, run, occurrence))

    assert isinstance(answer, BelowHorizon)
    assert book.runs() == []


def raise_horizon(book: Book, *, above: str) -> None:
    """As a prune will: everything up to this window was settled and may be forgotten."""
    _, run, _ = book.find(above)
    book.amend("update duly_series set horizon = ? where id = ?", run.nominal + 1, run.series)


def claim_of(answer: object) -> Claim:
    assert isinstance(answer, Claim)
    return answer


# -- one run of a line at a time ----------------------------------------------------------------------------------------


def test_two_windows_of_a_line_do_not_run_at_once(book: Book) -> None:
    book.job()
    sunday = book.take("2026-10-04")

    answer = book.ask("2026-10-05")

    assert answer == Busy(sunday.run, sunday.lease_until, sunday.owner)


def test_windows_of_different_scopes_run_at_once(book: Book) -> None:
    book.job()
    book.take("2026-10-05", scope="acme")

    assert isinstance(book.ask("2026-10-05", scope="globex"), Claim)


def test_windows_of_a_line_run_at_once_where_overlap_is_allowed(book: Book) -> None:
    book.job(overlap=1)
    book.take("2026-10-04")

    assert isinstance(book.ask("2026-10-05"), Claim)


def test_a_run_that_ended_does_not_hold_its_line(book: Book) -> None:
    book.job()
    book.complete(book.take("2026-10-03"))
    book.doubt(book.take("2026-10-04"))

    assert isinstance(book.ask("2026-10-05"), Claim)


def test_a_dead_holder_is_ended_by_the_next_claim_of_its_line(book: Book) -> None:
    book.job()
    dead = book.take("2026-10-04")
    book.lapse()

    claim = book.take("2026-10-05")

    assert book.state(dead.run) == "failed"
    assert book.run(dead.run).retry_at == book.clock.now()
    assert book.attempts(dead.run) == [(1, "lost")]
    assert book.state(claim.run) == "running"


def test_a_dead_holder_whose_effect_nobody_can_know_turns_unknown_and_frees_its_line(book: Book) -> None:
    book.job(contract="external")
    dead = book.take("2026-10-04")
    book.lapse()

    book.take("2026-10-05")

    assert book.state(dead.run) == "unknown"
    assert book.attempts(dead.run) == []  # it may still report
    assert len(book.events("unknown")) == 1


def test_a_holder_that_shows_a_pulse_keeps_its_line(book: Book) -> None:
    book.job()
    held = book.take("2026-10-04")
    pulse = book.hold_pulse(held)
    book.lapse()

    assert isinstance(book.ask("2026-10-05"), Busy)
    assert book.state(held.run) == "running"

    let_die(pulse)
    assert isinstance(book.ask("2026-10-05"), Claim)


# -- what a duplicate costs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["running", "completed"])
def test_a_duplicate_is_answered_by_a_look_without_a_write(book: Book, state: str) -> None:
    book.job()
    claim = book.take()
    if state == "completed":
        book.complete(claim)
    mine = Claimer(new_attempt_id(), "host/2@2+b", "test")

    with book.no_commit():
        named = book.store.read(peek_window(book.declaration(), "2026-10-05", mine))

    assert isinstance(named, Named)
    assert isinstance(named.answer, AlreadyCompleted if state == "completed" else Busy)


def test_a_poke_of_a_settled_line_is_answered_by_a_look_without_a_write(book: Book) -> None:
    book.job()
    book.work_all()

    with book.no_commit():
        idle = book.store.read(peek(book.declaration(), as_of=None, tried=frozenset()))

    assert isinstance(idle, Idle)
    assert not idle.writes


def test_a_poke_of_a_line_with_work_asks_for_a_claim(book: Book) -> None:
    book.job()

    idle = book.store.read(peek(book.declaration(), as_of=None, tried=frozenset()))

    assert isinstance(idle, Idle)
    assert idle.writes
    assert isinstance(book.poke(), Taken)


@pytest.mark.parametrize("ordered", [0, 1])
def test_a_poke_is_not_told_of_a_run_that_was_completed_while_it_looked(book: Book, ordered: int) -> None:
    rival = rival_of(book)
    book.job(ordered=ordered)
    claim = rival.take()
    poke = claim_next(book.declaration(), Claimer(new_attempt_id(), "host/2@2+b", "cron"), as_of=None, tried=())

    idle = book.write(beside(poke, lambda: rival.complete(claim), at=LOOK))

    assert isinstance(idle, Idle)
    assert idle.standing is None


# -- operations ---------------------------------------------------------------------------------------------------------


def test_an_operation_that_awaits_something_else_than_the_ledger_is_a_bug(book: Book) -> None:
    class Foreign:
        def __await__(self) -> object:
            return (yield 7)

    async def operation() -> None:
        await Foreign()  # type: ignore[misc]  # that is the point

    with pytest.raises(TypeError, match="may await only"):
        drive(operation(), lambda ask: None)


def test_runs_of_different_nominals_are_different_runs() -> None:
    assert RunId(1, 2) != RunId(1, 3)
    assert RunId(1, 2) == RunId(1, 2, 1)
