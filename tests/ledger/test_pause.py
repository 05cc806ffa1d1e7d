"""Pause: nothing is started, windows come due, and what was held back is owed when it is over, or skipped as paused."""

from __future__ import annotations

import pytest

from duly.errors import Misuse, NotAllowed, RunPaused, UnknownJob, UnknownScope
from duly.ledger.open import Idle, Taken
from duly.ledger.records import AlreadyCompleted, Claim
from duly.schedule.catch_up import EACH, LATEST, NONE
from duly.schedule.spec import hourly
from duly.times import DAY, HOUR
from tests.books import WORD, Book
from tests.ledger.test_owed import days


def test_nothing_of_a_paused_job_is_started_by_a_poke_or_by_name(book: Book) -> None:
    book.job()
    book.pause()

    answer = book.poke()

    assert isinstance(answer, Idle)
    assert answer.paused is not None
    assert (answer.paused.by, answer.paused.why) == (WORD.by, WORD.reason)
    refusal = book.ask("2026-10-05")
    assert isinstance(refusal, RunPaused)
    assert WORD.reason in str(refusal)
    assert isinstance(book.ask_adhoc("once-more"), RunPaused)
    assert book.runs() == []


def test_what_is_running_goes_on_and_what_is_complete_is_told(book: Book) -> None:
    book.job()
    done = book.take("2026-10-04")
    book.complete(done)
    claim = book.take("2026-10-05")
    book.pause()

    assert book.renew(claim)
    book.complete(claim)

    assert book.state(claim.run) == "completed"
    assert isinstance(book.ask("2026-10-05"), AlreadyCompleted)


def test_a_retry_waits_until_the_pause_is_over(book: Book) -> None:
    book.job()
    claim = book.take("2026-10-05")
    book.fail(claim)
    book.pause()
    book.clock.advance(HOUR)
    assert isinstance(book.poke(), Idle)

    book.resume()

    assert isinstance(book.poke(), Taken)


def test_a_pause_ends_by_itself_at_its_instant(book: Book) -> None:
    book.job(catch_up="each")
    book.work_all()
    book.pause(until=book.store.now() + 3 * DAY)
    book.clock.advance(3 * DAY - 1)
    assert book.work_all() == []

    book.clock.advance(1)

    assert book.work_all() == days(6, 7, 8)


def test_what_the_policy_drops_of_a_pause_is_skipped_as_paused_and_by_whom(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(2 * DAY)
    book.pause(until=book.store.now() + 3 * DAY)
    book.clock.advance(5 * DAY)

    assert book.work_all() == days(12)

    # The 6th and 7th came due before it, the 8th to 10th during it, the 11th after it.
    assert book.ranges() == [
        ("2026-10-06", "2026-10-08"),
        ("2026-10-08", "2026-10-11"),
        ("2026-10-11", "2026-10-12"),
    ]
    assert book.reasons() == [
        "catch-up latest: a newer window was due",
        f"paused by {WORD.by}: {WORD.reason}",
        "catch-up latest: a newer window was due",
    ]


def test_resuming_applies_the_policy_of_the_job_and_says_what_is_owed(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.pause()
    book.clock.advance(4 * DAY)

    (resumed,) = book.resume()

    assert [len(step.fresh) for step in resumed.steps] == [1]
    assert book.ranges() == [("2026-10-06", "2026-10-09")]
    assert book.reasons() == [f"paused by {WORD.by}: {WORD.reason}"]
    assert book.work_all() == days(9)


@pytest.mark.parametrize(
    ("policy", "worked"), [(EACH, days(6, 7, 8, 9)), (LATEST, days(9)), (NONE, [])], ids=["each", "latest", "none"]
)
def test_resuming_may_take_another_policy_for_once(book: Book, policy: object, worked: list[str]) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.pause()
    book.clock.advance(4 * DAY)

    book.resume(policy=policy)  # type: ignore[arg-type]  # one of the three

    assert book.work_all() == worked
    assert book.rows("select catch_up from duly_job") == [("latest",)]
    book.clock.advance(2 * DAY)
    assert book.work_all() == days(11)  # by the standing policy again


def test_a_run_that_waited_before_the_pause_is_dropped_by_none_as_resumed_without_it(book: Book) -> None:
    book.job(catch_up="each")
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim)
    book.pause()

    book.resume(policy=NONE)

    assert book.run(taken.run.id).cause == "catch-up none: resumed without it"


def test_one_scope_is_paused_and_the_others_are_not(book: Book) -> None:
    book.job()
    for scope in ("acme", "zeta"):
        book.declare(scope=scope)
    book.pause(scope="acme")

    assert isinstance(book.poke(scope="acme"), Idle)
    assert isinstance(book.poke(scope="zeta"), Taken)
    with pytest.raises(NotAllowed, match="not paused"):
        book.resume()

    book.resume(scope="acme")
    assert isinstance(book.poke(scope="acme"), Taken)


def test_a_scope_of_a_job_that_is_paused_as_a_whole_is_not_resumed_alone(book: Book) -> None:
    book.job()
    book.declare(scope="acme")
    book.pause()

    with pytest.raises(NotAllowed, match="as a whole"):
        book.resume(scope="acme")


def test_pausing_again_keeps_since_when_it_is_so_and_takes_the_new_end(book: Book) -> None:
    book.job()
    book.pause()
    (since,) = book.rows("select paused_at from duly_job")[0]
    book.clock.advance(HOUR)
    until = book.store.now() + HOUR

    book.pause(until=until)

    assert book.rows("select paused_at, paused_until from duly_job") == [(since, until)]


def test_what_makes_no_sense_is_refused_by_name(book: Book) -> None:
    book.job()
    with pytest.raises(Misuse, match=r"^until:"):
        book.pause(until=book.store.now())
    with pytest.raises(UnknownJob):
        book.pause("nothing")
    with pytest.raises(UnknownScope, match="'acme'"):
        book.pause(scope="acme")
    with pytest.raises(NotAllowed, match="not paused"):
        book.resume()


def test_both_are_on_record_with_who_and_why(book: Book) -> None:
    book.job()
    book.declare(scope="acme")
    book.pause(scope="acme", until=book.store.now() + HOUR)
    book.resume(scope="acme", policy=LATEST)

    assert book.events("paused") == [(*WORD_, "scope 'acme', until 2026-10-06T04:00:00Z")]
    assert book.events("resumed") == [(*WORD_, "scope 'acme', catch-up latest, this once")]


WORD_ = (WORD.by, WORD.reason)


def test_a_pause_of_a_job_changes_its_edition_and_so_does_one_of_a_line(book: Book) -> None:
    """Who claims from memory compares it, and looks again."""
    book.job(schedule=hourly("UTC"))
    seen = {book.rows("select edition from duly_job")[0]}
    for scope in (None, ""):
        book.pause(scope=scope)
        seen.add(book.rows("select edition from duly_job")[0])
        book.resume(scope=scope)
        seen.add(book.rows("select edition from duly_job")[0])

    assert len(seen) == 5
    assert isinstance(book.poke(), Taken)


def test_a_claim_can_be_made_again_after_it(book: Book) -> None:
    book.job()
    book.pause()
    book.resume()

    assert isinstance(book.ask("2026-10-05"), Claim)
