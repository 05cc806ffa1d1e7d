"""Backfill: past windows are owed on request, as many at a time as it says, under the keys that they have."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest

from duly.errors import BelowHorizon, Misuse, NotAllowed, RunPaused, RunSkipped, UnknownBackfill
from duly.evidence.backfill import progress
from duly.evidence.explain import explain
from duly.evidence.explain_words import sentences
from duly.evidence.status import status
from duly.evidence.verdict import window_of
from duly.ledger import backfill_states as backfills
from duly.ledger.address import by_window
from duly.ledger.backfill import (
    ALL,
    FAILED,
    MISSING,
    NEWEST,
    SKIPPED,
    cancel_backfill,
    pause_backfill,
    resume_backfill,
)
from duly.ledger.backfill_claim import ONE_IN
from duly.ledger.forget import forgettable, raise_horizon
from duly.ledger.open import Idle, Taken
from duly.ledger.records import AlreadyCompleted, Busy, Claim
from duly.ledger.register import find
from duly.ledger.rename import rename
from duly.ledger.retire import retire_job
from duly.ledger.ripe import outlook
from duly.ledger.scopes import scopes_to_work
from duly.schedule.calendar import make_calendar
from duly.schedule.spec import cron, daily, hourly
from duly.times import DAY, HOUR, MINUTE, SECOND, parse_instant
from tests.books import WORD, Book, PostgresBook

FIRST, BEYOND = "2026-09-01", "2026-09-06"  # five days, long before the line began
FIVE = ["2026-09-01", "2026-09-02", "2026-09-03", "2026-09-04", "2026-09-05"]


def caught_up(book: Book, **policies: Any) -> None:
    """A job by day whose line began on 5 October, and of which nothing is owed."""
    book.job(**policies)
    book.work_all()
    book.clock.advance(MINUTE)


def states_of(book: Book, first: str = FIRST, beyond: str = BEYOND) -> dict[str, str]:
    return {day[:10]: state for day, state in book.runs() if first <= day[:10] < beyond}


def idle(answer: object) -> Idle:
    assert isinstance(answer, Idle), answer
    return answer


# -- what is asked for ---------------------------------------------------------------------------------------------------


def test_a_plan_counts_the_windows_by_what_they_are_and_changes_nothing(book: Book) -> None:
    caught_up(book, overlap=1)
    book.complete(book.take("2026-09-02"))
    book.fail(book.take("2026-09-03"), retry_in=None)
    book.skip("2026-09-04")

    with book.no_commit():
        plan = book.plan(FIRST, BEYOND, concurrency=4)

    assert {kind: number for kind, number in plan.counts.items() if number} == {
        "missing": 2,
        "completed": 1,
        "failed": 1,
        "skipped": 1,
    }
    assert plan.to_do == 2
    assert plan.at_a_time == 4


def test_windows_of_the_future_are_left_out_and_said(book: Book) -> None:
    caught_up(book)

    plan = book.plan("2026-10-01", "2026-10-11")

    assert plan.to_do == 4  # the 5th is complete, the 6th goes on
    assert (plan.future, plan.not_owed) == (5, 0)


@pytest.mark.parametrize("days", [("2026-10-01", "2026-10-06"), ("2026-10-01",)])
def test_what_comes_due_after_its_line_ended_is_left_out_and_said(book: Book, days: tuple[str, ...]) -> None:
    caught_up(book)
    book.amend("update duly_line set ends = ?", parse_instant("2026-10-04T00:00:00Z"))

    plan = book.plan(*days)

    assert (plan.to_do, plan.future, plan.not_owed) == (2, 0, 3)


@pytest.mark.parametrize("direction", ["oldest", NEWEST])
def test_what_comes_due_after_an_end_that_came_later_is_not_passed_over_in_silence(book: Book, direction: str) -> None:
    caught_up(book, overlap=1)
    number = book.backfill(FIRST, BEYOND, direction=direction)
    book.amend("update duly_line set ends = ?", parse_instant("2026-09-04T00:00:00Z"))
    left = book.store.read(progress(number)).left
    owed = ["backfill 1 owes it" in seen(book, day)[1] for day in FIVE]

    done = book.work_backfill()

    assert left == 2
    assert owed == [True, True, False, False, False]
    assert sorted(done) == FIVE[:2]
    row = book.backfill_row(number)
    assert (row.state, row.said) == (
        "done",
        "every window of it has been worked or settled, but 3 that come due after the line ended, and are not owed",
    )


def test_a_retired_job_has_a_line_to_work_while_a_backfill_of_it_is_not_over(book: Book) -> None:
    caught_up(book, overlap=1)
    number = book.backfill(FIRST, BEYOND)
    book.write(retire_job("export", WORD, skip_owed=True))

    before = book.store.read(scopes_to_work("export"))
    book.work_backfill()
    after = book.store.read(scopes_to_work("export"))

    assert (before, after) == ([""], [])
    assert book.backfill_row(number).state == "done"


def test_without_an_end_it_goes_up_to_now(book: Book) -> None:
    caught_up(book)

    plan = book.plan("2026-10-01")

    assert (plan.to_do, plan.future) == (4, 0)


def test_where_runs_may_not_overlap_it_says_that_they_go_one_at_a_time(book: Book) -> None:
    caught_up(book)

    assert book.plan(FIRST, BEYOND, concurrency=4).at_a_time == 1


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"stop_after": 0}, "stop_after"),
        ({"what": ("lost",)}, "what"),
        ({"direction": "up"}, "order"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(book: Book, asked: dict[str, Any], field: str) -> None:
    caught_up(book)

    with pytest.raises(Misuse, match=f"^{field}:"):
        book.backfill(FIRST, BEYOND, **asked)


def test_below_the_horizon_it_is_refused_with_the_number_of_windows(book: Book) -> None:
    caught_up(book)
    for _ in range(3):
        book.clock.advance(DAY)
        book.work_all()
    raised(book)

    with pytest.raises(BelowHorizon, match=r"^5 windows .* begin the range at 2026-10-0"):
        book.plan(FIRST, BEYOND)


def test_nothing_to_do_is_refused_and_says_what_the_windows_are(book: Book) -> None:
    caught_up(book)
    for day in FIVE:
        book.complete(book.take(day))

    with pytest.raises(NotAllowed, match="5 completed"):
        book.backfill(FIRST, BEYOND)


def test_two_that_are_not_over_have_no_window_in_common(book: Book) -> None:
    caught_up(book)
    number = book.backfill(FIRST, BEYOND)

    with pytest.raises(NotAllowed, match=f"^backfill {number} "):
        book.backfill("2026-09-05", "2026-09-09")
    book.write(cancel_backfill(number, WORD))
    book.backfill("2026-09-05", "2026-09-09")


# -- what is worked ------------------------------------------------------------------------------------------------------


def waits_for(book: Book, table: str) -> bool:
    """Whether somebody waits for a lock in a statement that reads this table."""
    return bool(
        book.rows(
            f"""select 1 from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock' and query like '%{table}%'"""
        )
    )


def wait_until(happens: Callable[[], bool]) -> None:
    deadline = monotonic() + 10
    while not happens():
        assert monotonic() < deadline
        sleep(0.01)


def test_whoever_starts_one_by_a_former_name_holds_the_job_too(book: Book) -> None:
    if not isinstance(book, PostgresBook):
        pytest.skip("on SQLite one writer works at a time")
    caught_up(book)
    book.write(rename("export", "report", WORD))
    starting = threading.Thread(target=book.backfill, args=(FIRST, BEYOND))

    with psycopg.connect(book.path) as held:
        held.execute("select 1 from duly.line for update")
        starting.start()
        with psycopg.connect(book.path) as other:
            wait_until(lambda: waits_for(book, "duly_line"))
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("select 1 from duly.job for update nowait")
    starting.join()

    assert book.backfill_row(1).state == "active"


def test_windows_before_the_line_began_are_worked_once_under_their_own_keys(book: Book) -> None:
    caught_up(book)
    number = book.backfill(FIRST, BEYOND)

    done = book.work_backfill()

    assert done == FIVE
    assert set(states_of(book).values()) == {"completed"}
    assert isinstance(book.ask("2026-09-03"), AlreadyCompleted)
    assert book.backfill_row(number).state == "done"


def test_the_newest_first_where_that_is_asked_for(book: Book) -> None:
    caught_up(book)
    book.backfill(FIRST, BEYOND, direction=NEWEST)

    assert book.work_backfill() == FIVE[::-1]


@pytest.mark.parametrize("direction", ["oldest", "newest"])
def test_hours_of_the_night_on_which_clocks_go_back_are_each_worked_once(book: Book, direction: str) -> None:
    book.clock.set("2026-10-28T03:00:00Z")
    book.job(schedule=hourly("Europe/Berlin"))
    book.work_all()
    book.clock.advance(MINUTE)
    book.backfill("2026-10-25", "2026-10-26", direction=direction)

    done = book.work_backfill()

    assert len(set(done)) == len(done) == 25
    (bounds,) = book.rows(
        "select count(*), min(window_start), max(window_end) from duly_run r where r.nominal between ? and ?",
        *(2 * (each // 1_000_000) for each in (1792886400000000, 1792972799000000)),
    )
    assert (bounds[0], bounds[2] - bounds[1]) == (25, 25 * HOUR)


def test_nothing_is_opened_ahead_of_its_slot(book: Book) -> None:
    """Scenario 54: the whole of it need not end before the next begins, and a year is not opened at once."""
    caught_up(book, overlap=1)
    book.backfill(FIRST, BEYOND, concurrency=2)

    first, second = book.take_of_backfill(), book.take_of_backfill()
    full = idle(book.claim_backfill())
    assert states_of(book) == {"2026-09-01": "running", "2026-09-02": "running"}
    assert full.standing is not None
    assert full.standing.id == first.run.id
    book.complete(second.claim)
    third = book.take_of_backfill()

    assert third.key.middle == "2026-09-03"
    assert states_of(book) == {"2026-09-01": "running", "2026-09-02": "completed", "2026-09-03": "running"}


def test_completed_windows_are_not_done_again_unless_that_is_said(book: Book) -> None:
    """Scenario 55."""
    caught_up(book)
    book.complete(book.take("2026-09-02"))
    book.clock.advance(MINUTE)
    book.backfill(FIRST, BEYOND)
    book.work_backfill()

    assert {run[-1] for run in book.rows("select revision from duly_run")} == {1}
    with pytest.raises(Misuse, match=r"^expect: "):
        book.backfill(FIRST, BEYOND, what=ALL)
    with pytest.raises(Misuse, match=r"^expect: 5 "):
        book.backfill(FIRST, BEYOND, what=ALL, expect=4)
    book.clock.advance(MINUTE)
    book.backfill(FIRST, BEYOND, what=ALL, expect=5)
    done = book.work_backfill()

    assert done == FIVE
    assert book.rows(
        "select revision, state, count(*) from duly_run where nominal < ? group by 1, 2 order by 1", 2 * 1_790_000_000
    ) == [(1, "replaced", 5), (2, "completed", 5)]


def test_failed_windows_are_tried_again_under_their_own_key_where_that_is_said(book: Book) -> None:
    caught_up(book, overlap=1)
    claim = book.take("2026-09-03")
    book.fail(claim, retry_in=None)
    book.clock.advance(MINUTE)
    book.backfill(FIRST, BEYOND, what=(FAILED,))

    assert book.work_backfill() == ["2026-09-03"]
    assert book.attempts(claim.run) == [(1, "failed"), (2, "completed")]
    assert states_of(book) == {"2026-09-03": "completed"}


@pytest.mark.parametrize("what", [(MISSING,), (MISSING, SKIPPED)])
def test_skipped_windows_are_done_only_where_that_is_said(book: Book, what: tuple[str, ...]) -> None:
    caught_up(book, catch_up="latest")
    book.skip("2026-09-02")
    book.clock.advance(4 * DAY)
    book.work_all()  # 6 to 8 October were dropped, as a range
    book.clock.advance(MINUTE)
    book.backfill("2026-09-01", "2026-09-04", what=what)
    done = book.work_backfill()
    assert ("2026-09-02" in done) == (SKIPPED in what)

    if SKIPPED in what:
        book.backfill("2026-10-06", "2026-10-09", what=what)
        assert book.work_backfill() == [f"2026-10-0{day}" for day in (6, 7, 8)]
    else:
        with pytest.raises(NotAllowed, match="3 skipped"):
            book.backfill("2026-10-06", "2026-10-09", what=what)


def test_what_the_policy_drops_after_it_was_asked_for_is_done_all_the_same(book: Book) -> None:
    caught_up(book, catch_up="latest")
    book.clock.advance(4 * DAY)
    book.backfill("2026-10-06", "2026-10-09")
    book.clock.advance(MINUTE)
    assert book.work_all() == ["export:2026-10-09[UTC]"]
    assert book.ranges() == [("2026-10-06", "2026-10-09")]

    assert book.work_backfill() == [f"2026-10-0{day}" for day in (6, 7, 8)]


def test_days_off_are_not_worked(book: Book) -> None:
    book.job(schedule=daily("UTC").on(make_calendar("office", "sat sun"), "skip"))
    book.work_all()
    book.clock.advance(MINUTE)
    plan = book.plan("2026-09-04", "2026-09-08")  # Friday to Monday

    book.backfill("2026-09-04", "2026-09-08")

    assert plan.counts["no work"] == 2
    assert book.work_backfill() == ["2026-09-04", "2026-09-07"]


def test_a_window_that_live_work_takes_meanwhile_is_not_done_again(book: Book) -> None:
    caught_up(book, overlap=1)
    book.backfill(FIRST, BEYOND)
    book.complete(book.take("2026-09-02"))
    held = book.take("2026-09-03")

    assert book.work_backfill() == [f"2026-09-0{day}" for day in (1, 4, 5)]
    book.complete(held)
    assert book.attempts(held.run) == [(1, "completed")]


def test_fires_of_a_cron_line_are_named_and_worked_as_such(book: Book) -> None:
    book.job(schedule=cron("*/30 * * * *", zone="UTC"))
    book.work_all()
    book.clock.advance(MINUTE)
    book.backfill("2026-09-01", "2026-09-02")

    assert len(book.work_backfill()) == 48


def test_a_long_stretch_of_settled_windows_is_passed_over_in_steps(book: Book) -> None:
    book.job(schedule=hourly("UTC"))
    book.work_all()
    book.clock.advance(MINUTE)
    first, last = (2 * (parse_instant(f"{day}T00:00:00Z") // SECOND) for day in ("2026-07-01", "2026-09-01"))
    book.amend("insert into duly_skipped values (1, ?, ?, 'long ago', 0, 'ops')", first, last)
    number = book.backfill("2026-07-01", "2026-09-02")

    step = idle(book.claim_backfill())

    assert step.writes
    assert step.standing is None
    place = book.backfill_row(number).place
    assert place > book.backfill_row(number).since
    done: list[str] = []
    while isinstance(answer := book.claim_backfill(), Taken) or answer.writes:  # type: ignore[union-attr]
        if isinstance(answer, Taken):
            book.complete(answer.claim)
            done.append(answer.key.middle)
    assert len(done) == 24
    assert book.backfill_row(number).state == "done"


# -- how many at a time --------------------------------------------------------------------------------------------------


def test_a_window_of_it_that_is_named_takes_a_slot_too(book: Book) -> None:
    caught_up(book, overlap=1)
    book.backfill(FIRST, BEYOND, concurrency=1)
    first = book.take_of_backfill()
    book.release(first.claim)
    second = book.take_of_backfill()
    assert second.run.id == first.run.id
    book.fail(second.claim, retry_in=None)
    book.retry(second.claim.run)
    third = book.take_of_backfill()
    assert third.run.id == first.run.id
    book.fail(third.claim, retry_in=None)
    other = book.take_of_backfill()
    book.retry(third.claim.run)

    answer = book.ask("2026-09-01")

    assert isinstance(answer, Busy)
    assert answer.run == other.run.id
    book.complete(other.claim)
    assert isinstance(book.ask("2026-09-01"), Claim)
    assert idle(book.claim_backfill()).standing is not None


def test_a_holder_that_is_gone_has_its_slot_until_it_is_ended_by_contract(book: Book) -> None:
    caught_up(book, overlap=1)
    book.backfill(FIRST, BEYOND, concurrency=1)
    lost = book.take_of_backfill()
    assert idle(book.claim_backfill()).standing is not None

    book.lapse()
    again = book.take_of_backfill()

    assert again.run.id == lost.run.id
    assert book.attempts(lost.claim.run) == [(1, "lost")]


def test_one_that_is_unknown_has_no_slot_and_comes_back_only_to_a_free_one(book: Book) -> None:
    caught_up(book, overlap=1, contract="external")
    book.backfill(FIRST, BEYOND, concurrency=1)
    lost = book.take_of_backfill()
    book.lapse()
    book.take_of_backfill()
    assert book.state(lost.claim.run) == "unknown"

    assert not book.renew(lost.claim)
    assert book.state(lost.claim.run) == "unknown"
    book.complete(lost.claim)
    assert book.state(lost.claim.run) == "completed"


def test_without_overlap_it_waits_for_whoever_holds_the_line(book: Book) -> None:
    caught_up(book)
    book.backfill(FIRST, BEYOND, concurrency=4)
    claim = book.take_of_backfill()

    assert idle(book.claim_backfill()).standing is not None
    assert isinstance(book.ask("2026-09-05"), Busy)
    book.complete(claim.claim)
    assert len(book.work_backfill()) == 4


def test_the_runs_of_an_ordered_job_wait_for_those_before_them(book: Book) -> None:
    caught_up(book, ordered=1, overlap=1)
    with pytest.raises(Misuse, match=r"^order: "):
        book.backfill(FIRST, BEYOND, direction=NEWEST)
    book.backfill(FIRST, BEYOND, concurrency=4)
    first = book.take_of_backfill()

    assert idle(book.claim_backfill()).standing is not None
    book.fail(first.claim, retry_in=None)
    assert idle(book.claim_backfill()).standing is not None
    book.clock.advance(DAY)
    assert book.work_all() == ["export:2026-10-06[UTC]"]  # what the line owes waits for no backfill


# -- live work first, and a minimum share --------------------------------------------------------------------------------


def test_what_the_line_owes_goes_first(book: Book) -> None:
    """Scenario 52: a backfill starves no live work."""
    caught_up(book)
    book.backfill(FIRST, BEYOND)
    book.complete(book.take_of_backfill().claim)
    book.clock.advance(DAY)

    assert idle(book.claim_backfill()).live
    assert book.work_all() == ["export:2026-10-06[UTC]"]
    assert not idle_or_taken_is_live(book)


def idle_or_taken_is_live(book: Book) -> bool:
    answer = book.claim_backfill()
    return isinstance(answer, Idle) and answer.live


def test_while_much_is_owed_every_fourth_claim_is_the_backfills(book: Book) -> None:
    """Scenario 53: nor is a backfill starved for ever."""
    caught_up(book)
    book.backfill(FIRST, BEYOND)
    book.clock.advance(20 * DAY)
    worked: list[bool] = []
    while len(worked) < 12:
        taken = book.claim_backfill()
        if isinstance(taken, Idle):
            assert taken.live
            taken = book.poke()
        assert isinstance(taken, Taken)
        book.complete(taken.claim)
        worked.append(taken.key.middle < "2026-10")

    assert ONE_IN == 4
    assert worked.count(True) == 3
    assert all(sum(worked[place : place + ONE_IN]) == 1 for place in range(9))


def test_where_runs_may_overlap_one_of_it_goes_on_beside_what_is_owed(book: Book) -> None:
    caught_up(book, overlap=1)
    book.backfill(FIRST, BEYOND, concurrency=4)
    book.clock.advance(3 * DAY)

    assert isinstance(book.claim_backfill(), Taken)
    assert idle(book.claim_backfill()).live
    assert len(book.work_all()) == 3
    assert isinstance(book.claim_backfill(), Taken)


def test_a_live_run_that_this_worker_has_tried_does_not_hold_the_backfill_up(book: Book) -> None:
    caught_up(book)
    book.backfill(FIRST, BEYOND)
    book.clock.advance(DAY)
    live = book.poke()
    assert isinstance(live, Taken)
    book.fail(live.claim, retry_in=0)

    assert idle(book.claim_backfill()).live
    assert isinstance(book.claim_backfill(tried=frozenset({live.run.id})), Taken)


@pytest.mark.parametrize("policy", ["each", "latest", "fresh"])
def test_what_a_backfill_owes_is_none_of_the_policys(book: Book, policy: str) -> None:
    caught_up(book, catch_up=policy)
    number = book.backfill(FIRST, BEYOND)
    taken = book.take_of_backfill()
    book.fail(taken.claim, retry_in=HOUR)

    assert book.work_all() == []
    book.clock.advance(2 * HOUR)
    assert book.work_all() == []
    assert book.state(taken.claim.run) == "failed"
    book.write(cancel_backfill(number, WORD))
    if policy == "each":
        assert book.work_all() == ["export:2026-09-01[UTC]"]
    else:
        assert book.work_all() == []
        assert book.state(taken.claim.run) == "skipped"


def test_what_a_backfill_owes_is_no_backlog_of_its_line(book: Book) -> None:
    """Who looks for something to poke is sent to the backfill, and finds nothing that a poke would work."""
    caught_up(book)
    book.backfill(FIRST, BEYOND)
    book.release(book.take_of_backfill().claim)

    looked = book.store.read(outlook())

    assert [(each.backfill, each.job) for each in looked.ripe] == [(True, "export")]
    assert idle(book.poke()).standing is None


def test_while_the_job_is_paused_its_backfills_are(book: Book) -> None:
    caught_up(book)
    book.backfill(FIRST, BEYOND)
    book.pause()

    assert idle(book.claim_backfill()).paused is not None
    book.resume()
    assert len(book.work_backfill()) == 5


# -- pause, stop, resume, cancel -----------------------------------------------------------------------------------------


def test_the_table_of_its_states_is_kept(book: Book) -> None:
    caught_up(book)
    number = book.backfill(FIRST, BEYOND)
    ops = {"pause": pause_backfill, "resume": resume_backfill, "cancel": cancel_backfill}
    for state in backfills.STATES:
        for event, operation in ops.items():
            book.amend(f"update duly_backfill set state = '{state}'")
            if state in backfills.TRANSITIONS[event]:
                assert book.write(operation(number, WORD)).state == backfills.TRANSITIONS[event][state]
            else:
                with pytest.raises(NotAllowed, match=f"cannot {event} backfill {number}: it is {state}"):
                    book.write(operation(number, WORD))


def test_paused_it_starts_nothing_more_until_it_is_resumed(book: Book) -> None:
    caught_up(book, overlap=1)
    number = book.backfill(FIRST, BEYOND)
    running = book.take_of_backfill()
    book.write(pause_backfill(number, WORD))

    assert isinstance(book.claim_backfill(), Idle)
    book.complete(running.claim)
    assert book.state(running.claim.run) == "completed"
    book.write(resume_backfill(number, WORD))
    assert len(book.work_backfill()) == 4
    assert [reason for _, reason, _ in book.events("backfill_paused")] == [WORD.reason]
    assert [reason for _, reason, _ in book.events("backfill_resumed")] == [WORD.reason]


def test_while_it_is_paused_a_person_may_work_one_of_its_windows_by_name(book: Book) -> None:
    caught_up(book, overlap=1)
    number = book.backfill(FIRST, BEYOND)
    book.fail(book.take_of_backfill().claim, retry_in=0)
    book.write(pause_backfill(number, WORD))

    assert isinstance(book.ask("2026-09-01"), Claim)


def test_after_so_many_failures_it_stops_and_goes_on_when_it_is_resumed(book: Book) -> None:
    caught_up(book)
    number = book.backfill(FIRST, BEYOND, stop_after=2)
    for _ in range(2):
        book.fail(book.take_of_backfill().claim, retry_in=None)

    assert isinstance(book.claim_backfill(), Idle)
    assert book.backfill_row(number).state == "stopped"
    assert book.events("backfill_stopped")[0][1] == "2 of its windows need a person"
    book.clock.advance(MINUTE)
    book.write(resume_backfill(number, WORD))
    book.complete(book.take_of_backfill().claim)
    book.retry(book.find("2026-09-01")[1])
    assert book.work_backfill() == [f"2026-09-0{day}" for day in (1, 4, 5)]
    assert book.backfill_row(number).state == "done"
    assert states_of(book)["2026-09-02"] == "failed"


def test_a_failure_that_is_tried_again_by_itself_does_not_stop_it_nor_end_it(book: Book) -> None:
    caught_up(book)
    number = book.backfill(FIRST, "2026-09-02", stop_after=1)
    taken = book.take_of_backfill()
    book.fail(taken.claim, retry_in=HOUR)

    waiting = idle(book.claim_backfill())
    assert waiting.standing is not None
    assert waiting.standing.id == taken.run.id
    assert book.backfill_row(number).state == "active"
    book.clock.advance(HOUR)
    assert book.work_backfill() == ["2026-09-01"]
    assert book.backfill_row(number).state == "done"


def test_cancelled_it_is_over_and_what_was_given_back_is_skipped_with_the_reason(book: Book) -> None:
    caught_up(book, overlap=1)
    number = book.backfill(FIRST, BEYOND, concurrency=2)
    given_back, running = book.take_of_backfill(), book.take_of_backfill()
    book.release(given_back.claim)
    book.write(cancel_backfill(number, WORD))

    assert isinstance(book.claim_backfill(), Idle)
    assert book.run(given_back.claim.run).state == "skipped"
    assert book.run(given_back.claim.run).cause == f"backfill {number} was cancelled: {WORD.reason}"
    assert isinstance(book.ask("2026-09-01"), RunSkipped)
    book.complete(running.claim)
    assert states_of(book) == {"2026-09-01": "skipped", "2026-09-02": "completed"}
    with pytest.raises(NotAllowed):
        book.write(resume_backfill(number, WORD))


def test_cancelled_it_gives_back_to_the_line_what_the_line_owed(book: Book) -> None:
    caught_up(book)
    book.clock.advance(2 * DAY)
    taken = book.poke()
    assert isinstance(taken, Taken)
    number = book.backfill("2026-10-01", "2026-10-08")
    book.complete(taken.claim)
    assert idle(book.poke()).standing is None  # the 7th is the backfill's now
    book.write(cancel_backfill(number, WORD))

    assert book.work_all() == ["export:2026-10-07[UTC]"]


def test_a_number_that_is_none_is_refused(book: Book) -> None:
    caught_up(book)
    with pytest.raises(UnknownBackfill, match="7"):
        book.write(pause_backfill(7, WORD))
    assert isinstance(book.claim_backfill(number=7), Misuse)


def test_of_two_the_oldest_is_worked_first_and_one_that_is_named_alone(book: Book) -> None:
    caught_up(book, overlap=1)
    first, second = book.backfill("2026-09-03", BEYOND), book.backfill(FIRST, "2026-09-03")

    named = book.claim_backfill(number=second)
    assert isinstance(named, Taken)
    assert named.key.middle == "2026-09-01"
    assert book.take_of_backfill().key.middle == "2026-09-03"
    assert isinstance(book.claim_backfill(), Idle)
    assert book.backfill_row(first).state == "active"


# -- the horizon ---------------------------------------------------------------------------------------------------------


def raised(book: Book) -> int | None:
    """Forget what may be forgotten now; the horizon after it."""
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    found = book.store.read(forgettable(known, known.series, settled_by=book.clock.now()))
    return None if found is None else book.write(raise_horizon(found, by="ops@example", reason="old"))


@pytest.mark.parametrize("state", ["active", "paused", "stopped"])
def test_it_holds_the_horizon_below_its_range_until_it_is_over(book: Book, state: str) -> None:
    caught_up(book)
    number = book.backfill(FIRST, BEYOND)
    book.amend(f"update duly_backfill set state = '{state}'")
    book.clock.advance(DAY)
    book.work_all()

    low = book.backfill_row(number).first
    assert raised(book) in (None, low)
    book.amend("update duly_backfill set state = 'active'")
    book.work_backfill()
    book.clock.advance(DAY)
    assert (raised(book) or 0) > low


def test_a_range_that_a_prune_looked_over_before_it_was_asked_for_is_held_all_the_same(book: Book) -> None:
    caught_up(book)
    book.clock.advance(DAY)
    book.work_all()
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    found = book.store.read(forgettable(known, known.series, settled_by=book.clock.now()))
    assert found is not None
    number = book.backfill(FIRST, BEYOND)

    assert book.write(raise_horizon(found, by="ops@example", reason="old")) <= book.backfill_row(number).first
    assert len(book.work_backfill()) == 5


def test_in_place_nobody_tries_again_what_a_pause_holds(book: Book) -> None:
    """What `exec` tries again in place is refused like any poke."""
    from duly.ledger.open import claim_again
    from duly.ledger.records import Claimer
    from duly.work.identity import new_attempt_id

    caught_up(book, overlap=1)
    number = book.backfill(FIRST, BEYOND)
    taken = book.take_of_backfill()
    book.fail(taken.claim, retry_in=0)
    book.write(pause_backfill(number, WORD))

    claimer = Claimer(new_attempt_id(), "host/3@3+c", "backfill")
    assert isinstance(book.write(claim_again(book.declaration(), taken.run.id, claimer)), RunPaused)


# -- what is seen --------------------------------------------------------------------------------------------------------


def seen(book: Book, day: str) -> tuple[str, str]:
    window = book.store.read(window_of(book.store.read(by_window("export", "", day)), book.clock.now()))
    return window.verdict.word, window.verdict.note


def test_a_window_that_it_owes_says_so_whether_or_not_it_has_a_row(book: Book) -> None:
    caught_up(book, overlap=1)
    book.backfill(FIRST, BEYOND, concurrency=2)
    first, second = book.take_of_backfill(), book.take_of_backfill()
    book.complete(first.claim)
    book.release(second.claim)

    assert seen(book, "2026-09-01") == ("complete", "")
    assert seen(book, "2026-09-02") == ("late", "given back: released; backfill 1 owes it")
    assert seen(book, "2026-09-03") == ("not owed", "before this line began; backfill 1 owes it")
    assert seen(book, "2026-09-06") == ("not owed", "before this line began")
    assert book.store.read(status("export")).needs == []
    told = book.store.read(explain(book.store.read(by_window("export", "", "2026-09-03"))))
    assert sentences(told, str)[-1] == "So backfill 1 owes it: whoever works that does it in its turn."


def test_how_far_it_is_is_read_from_its_runs(book: Book) -> None:
    caught_up(book, overlap=1)
    book.complete(book.take("2026-09-04"))
    number = book.backfill(FIRST, BEYOND, concurrency=3)
    done, failed, running = (book.take_of_backfill() for _ in range(3))
    book.complete(done.claim)
    book.fail(failed.claim, retry_in=None)

    far = book.store.read(progress(number))
    assert (far.total, far.done, far.running, far.failed, far.left) == (4, 1, 1, 1, 1)
    book.complete(running.claim)
    book.work_backfill()
    far = book.store.read(progress(number))
    assert (far.total, far.done, far.running, far.failed, far.left) == (4, 3, 0, 1, 0)


def test_while_a_clock_is_set_back_it_waits_and_passes_nothing_over(book: Book) -> None:
    book.job()
    book.clock.set("2026-10-10T03:00:00Z")
    book.work_all()
    number = book.backfill("2026-10-01", "2026-10-05")

    book.clock.set("2026-10-03T03:00:00Z")
    assert book.work_backfill() == ["2026-10-01", "2026-10-02"]
    assert book.backfill_row(number).state == "active"

    book.clock.set("2026-10-10T04:00:00Z")
    assert book.work_backfill() == ["2026-10-03", "2026-10-04"]
    assert book.backfill_row(number).state == "done"
