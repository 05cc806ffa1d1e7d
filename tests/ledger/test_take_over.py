"""Holders that vanish: when a run may be taken over, what its contract says then, and what a late attempt may still do."""

from __future__ import annotations

import pytest

from duly.errors import ClaimLost, DulyError, OutcomeUnknown
from duly.ledger.open import Idle, Taken
from duly.ledger.records import Busy, Claim
from duly.times import HOUR
from tests.books import LATE, LEASE, Book, let_die

# -- gone: the lease is over and the file lock is free ------------------------------------------------------------------


def test_a_run_is_not_taken_over_while_its_lease_lasts(book: Book) -> None:
    book.job()
    claim = book.take()
    book.clock.advance(LEASE - 1)

    assert isinstance(book.ask(), Busy)

    book.clock.advance(1)
    assert isinstance(book.ask(), Claim)
    assert book.attempts(claim.run) == [(1, "lost")]


@pytest.mark.parametrize("contract", ["transactional", "idempotent", "external"])
def test_a_run_is_not_judged_while_its_holder_shows_a_pulse(book: Book, contract: str) -> None:
    book.job(contract=contract)
    claim = book.take()
    pulse = book.hold_pulse(claim)
    book.clock.advance(100 * LATE)

    assert isinstance(book.ask(), Busy)
    assert isinstance(book.poke(), Idle)
    assert book.state(claim.run) == "running"

    let_die(pulse)
    assert not isinstance(book.ask(), Busy)


def test_a_renewed_lease_counts_from_the_renewal(book: Book) -> None:
    book.job()
    claim = book.take()
    book.clock.advance(LEASE // 2)

    assert book.renew(claim)

    book.clock.advance(LEASE - 1)
    assert isinstance(book.ask(), Busy)
    book.clock.advance(1)
    assert isinstance(book.ask(), Claim)


def test_the_renewal_of_a_lost_attempt_does_not_prolong_its_successor(book: Book) -> None:
    book.job()
    first = book.take()
    for _ in range(10):
        book.clock.advance(LEASE // 2)
        book.renew(first)
    book.clock.advance(LEASE)

    second = book.take()

    assert book.run(second.run).lease_until == book.clock.now() + LEASE


# -- by contract --------------------------------------------------------------------------------------------------------


def test_a_vanished_transactional_attempt_did_nothing_and_its_run_is_taken_again(book: Book) -> None:
    book.job(contract="transactional")
    first = book.take()
    book.lapse()

    second = book.take()

    assert (second.run, second.number) == (first.run, 2)
    assert book.attempts(first.run) == [(1, "lost")]
    assert book.run(second.run).failures == 0  # a crash of the host is no failure of the job


def test_a_vanished_idempotent_attempt_is_repeated_while_the_destination_remembers(book: Book) -> None:
    book.job(contract="idempotent", remembers=HOUR)
    first = book.take()
    book.clock.advance(HOUR - 1)

    assert isinstance(book.ask(), Claim)
    assert book.attempts(first.run) == [(1, "lost")]


def test_what_the_destination_remembers_is_counted_from_the_first_attempt(book: Book) -> None:
    book.job(contract="idempotent", remembers=HOUR)
    first = book.take()
    book.clock.advance(HOUR - 1)
    second = book.take()
    book.clock.advance(LATE)

    answer = book.ask()

    assert isinstance(answer, OutcomeUnknown)
    assert book.state(first.run) == "unknown"
    assert second.first_started_at == first.started_at


def test_an_idempotent_attempt_whose_destination_remembers_for_ever_is_repeated(book: Book) -> None:
    book.job(contract="idempotent", remembers=None)
    book.take()
    book.clock.advance(10_000 * HOUR)

    assert isinstance(book.ask(), Claim)


def test_a_vanished_external_attempt_leaves_its_run_unknown_and_never_taken_again(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.lapse()

    first, second = book.ask(), book.ask()

    assert isinstance(first, OutcomeUnknown)
    assert isinstance(second, OutcomeUnknown)
    assert (book.state(claim.run), book.run(claim.run).fence) == ("unknown", 1)
    assert len(book.events("unknown")) == 1


def test_the_contract_that_counts_is_the_one_sealed_with_the_attempt(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()
    book.job(contract="transactional")
    book.lapse()

    assert isinstance(book.ask(), OutcomeUnknown)
    assert book.state(claim.run) == "unknown"


def test_any_poke_tells_that_a_run_is_unknown_and_goes_on_to_the_next(book: Book) -> None:
    book.job(contract="external")
    claim = book.take("2026-10-05")
    book.clock.advance(24 * HOUR)

    taken = book.poke()

    assert isinstance(taken, Taken)
    assert str(taken.key) == "export:2026-10-06[UTC]"
    assert book.state(claim.run) == "unknown"


def test_a_poke_takes_over_what_may_be_taken_again(book: Book) -> None:
    book.job()
    lost = book.poke()
    assert isinstance(lost, Taken)
    book.lapse()

    taken = book.poke()

    assert isinstance(taken, Taken)
    assert (taken.claim.run, taken.claim.number) == (lost.claim.run, 2)


# -- stale attempts (I2, I3) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["complete", "fail", "release", "doubt"])
def test_a_stale_attempt_cannot_end_the_run(book: Book, act: str) -> None:
    book.job()
    stale = book.take()
    book.lapse()
    holder = book.take()
    before = book.everything()

    with pytest.raises(ClaimLost):
        getattr(book, act)(stale)

    assert book.everything() == before
    book.complete(holder)
    assert book.attempts(holder.run) == [(1, "lost"), (2, "completed")]


@pytest.mark.parametrize("act", ["complete", "fail", "release"])
def test_an_attempt_ends_once(book: Book, act: str) -> None:
    book.job()
    claim = book.take()
    getattr(book, act)(claim)
    before = book.everything()

    for again in ("complete", "fail", "release"):
        with pytest.raises(ClaimLost):
            getattr(book, again)(claim)

    assert book.everything() == before


def test_a_stale_attempt_cannot_complete_after_its_successor_failed(book: Book) -> None:
    book.job()
    stale = book.take()
    book.lapse()
    successor = book.take()
    book.fail(successor)

    with pytest.raises(ClaimLost):
        book.complete(stale)

    assert book.state(stale.run) == "failed"


def test_a_stale_attempt_cannot_renew(book: Book) -> None:
    book.job()
    stale = book.take()
    book.lapse()
    book.take()

    assert not book.renew(stale)


def test_an_attempt_needs_its_own_id_even_with_the_right_number(book: Book) -> None:
    """A claim lost in a crash: its number was given out again."""
    book.job()
    zombie = book.take()
    book.amend("delete from duly_run")
    holder = book.take()
    assert (holder.run, holder.number) == (zombie.run, zombie.number)

    for act in (book.complete, book.fail, book.release):
        with pytest.raises(ClaimLost):
            act(zombie)
    with pytest.raises(ClaimLost):
        book.doubt(zombie)

    assert not book.renew(zombie)
    assert book.run(holder.run).attempt_id == holder.attempt_id
    assert book.state(holder.run) == "running"


def test_an_attempt_needs_its_own_number_even_with_the_right_id(book: Book) -> None:
    book.job()
    claim = book.take()
    book.amend("update duly_run set fence = fence + 1")

    for act in (book.complete, book.fail, book.release):
        with pytest.raises(ClaimLost):
            act(claim)

    assert not book.renew(claim)
    assert book.state(claim.run) == "running"


def test_an_attempt_whose_run_is_gone_completes_nothing(book: Book) -> None:
    book.job()
    claim = book.take()
    book.amend("delete from duly_run")

    with pytest.raises(ClaimLost):
        book.complete(claim)

    assert book.rows("select * from duly_attempt") == []


# -- a late report from unknown -----------------------------------------------------------------------------------------


def unknown(book: Book) -> Claim:
    """An external attempt that was found with its lease over, and is alive after all."""
    book.job(contract="external")
    claim = book.take("2026-10-05")
    book.lapse()
    assert isinstance(book.ask("2026-10-05"), OutcomeUnknown)
    return claim


def test_the_same_attempt_may_still_complete(book: Book) -> None:
    claim = unknown(book)

    book.complete(claim)

    assert book.state(claim.run) == "completed"
    assert book.attempts(claim.run) == [(1, "completed")]


def test_the_same_attempt_may_still_fail(book: Book) -> None:
    claim = unknown(book)

    book.fail(claim, retry_in=None)

    assert book.state(claim.run) == "failed"
    assert book.attempts(claim.run) == [(1, "failed")]


def test_the_same_attempt_may_still_renew_while_its_line_notes_it(book: Book) -> None:
    claim = unknown(book)

    assert book.renew(claim)

    assert book.state(claim.run) == "running"
    assert isinstance(book.ask("2026-10-05"), Busy)


def test_the_same_attempt_may_not_renew_once_another_run_holds_the_line(book: Book) -> None:
    claim = unknown(book)
    book.take("2026-10-04")

    assert not book.renew(claim)

    assert book.state(claim.run) == "unknown"
    book.complete(claim)  # but it may say what it did
    assert book.state(claim.run) == "completed"


def test_the_same_attempt_may_renew_beside_others_where_overlap_is_allowed(book: Book) -> None:
    book.job(contract="external", overlap=1)
    claim = book.take("2026-10-05")
    book.lapse()
    book.ask("2026-10-05")
    book.take("2026-10-04")

    assert book.renew(claim)

    assert book.state(claim.run) == "running"


def test_nobody_else_may_report_for_it(book: Book) -> None:
    claim = unknown(book)
    other = book.take("2026-10-04")
    forged = Claim(
        claim.run, other.attempt_id, claim.number, 0, 0, LEASE, "external", "host/2@2+b", "test", 0, claim.started_at
    )

    for act in (book.complete, book.fail):
        with pytest.raises(ClaimLost):
            act(forged)
    assert not book.renew(forged)
    assert book.state(claim.run) == "unknown"


def test_after_a_person_resolved_it_the_late_attempt_is_refused(book: Book) -> None:
    claim = unknown(book)
    book.resolve(claim.run, done=False)

    with pytest.raises(ClaimLost):
        book.complete(claim)

    assert book.state(claim.run) == "failed"
    assert book.attempts(claim.run) == [(1, "failed")]


# -- doubt and resolve --------------------------------------------------------------------------------------------------


def test_an_attempt_that_doubts_gives_up_its_lease_and_its_line(book: Book) -> None:
    book.job(contract="external")
    claim = book.take("2026-10-05")
    book.renew(claim)

    book.doubt(claim)

    run = book.run(claim.run)
    assert (run.state, run.lease_until) == ("unknown", None)
    assert not book.renew(claim), "a renewal that was under way takes the doubt back"
    assert book.state(claim.run) == "unknown"
    assert isinstance(book.ask("2026-10-04"), Claim)


def test_an_attempt_agrees_with_whoever_said_first_that_it_is_unknown(book: Book) -> None:
    claim = unknown(book)

    book.doubt(claim)

    assert book.state(claim.run) == "unknown"


def test_what_was_done_is_completed_with_the_evidence(book: Book) -> None:
    claim = unknown(book)

    run = book.resolve(claim.run, done=True)

    assert (run.state, run.settled_at) == ("completed", book.clock.now())
    assert book.attempts(claim.run) == [(1, "completed")]
    assert book.events("resolved") == [("ops@example", "looked into it", "done")]


def test_what_was_not_done_is_retried_at_the_next_poke_whatever_the_retries(book: Book) -> None:
    book.job(contract="external", retries=0)
    claim = book.take("2026-10-05")
    book.doubt(claim)

    book.resolve(claim.run, done=False)

    taken = book.poke()
    assert isinstance(taken, Taken)
    assert (taken.claim.run, taken.claim.number) == (claim.run, 2)


@pytest.mark.parametrize("state", ["running", "completed", "failed", "open"])
def test_a_run_that_is_not_unknown_is_not_resolved(book: Book, state: str) -> None:
    book.job()
    claim = book.take()
    if state != "running":
        {"completed": book.complete, "failed": book.fail, "open": book.release}[state](claim)
    before = book.everything()

    with pytest.raises(DulyError, match=f"is {state}"):
        book.resolve(claim.run, done=True)

    assert book.everything() == before


def test_a_person_does_not_speak_over_an_attempt_that_renewed_a_moment_ago(book: Book) -> None:
    claim = unknown(book)
    book.amend("update duly_run set lease_until = ?", book.clock.now() + LEASE)

    with pytest.raises(DulyError, match="renewed its lease"):
        book.resolve(claim.run, done=True)


def test_a_person_does_not_speak_over_an_attempt_that_holds_its_lock_unless_it_is_said_to_be_dead(book: Book) -> None:
    claim = unknown(book)
    pulse = book.hold_pulse(claim)

    with pytest.raises(DulyError, match="still holds its lock"):
        book.resolve(claim.run, done=True)
    book.resolve(claim.run, done=True, attempt_is_dead=True)

    let_die(pulse)
    assert book.state(claim.run) == "completed"
    assert book.events("resolved") == [("ops@example", "looked into it", "done, attempt said to be dead")]


# -- release ------------------------------------------------------------------------------------------------------------


def test_a_released_run_is_open_again_and_nothing_counts_against_it(book: Book) -> None:
    book.job()
    claim = book.take()

    book.release(claim)

    again = book.take()
    assert (again.number, again.failures) == (2, 0)
    assert book.attempts(claim.run) == [(1, "released")]


def test_an_attempt_whose_line_went_on_is_not_told_to_stop(book: Book) -> None:
    """Nobody has taken its run: it is in doubt, and the attempt the best witness."""
    book.job(contract="external")
    claim = book.take("2026-10-04")
    book.lapse()
    assert isinstance(book.ask("2026-10-05"), Claim)
    assert book.state(claim.run) == "unknown"

    assert book.beat(claim) == "held"

    assert book.state(claim.run) == "unknown"
    book.complete(claim)
    assert book.state(claim.run) == "completed"
