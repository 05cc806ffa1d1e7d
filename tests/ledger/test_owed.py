"""What is owed: which windows a poke opens, which it drops and why, and in which order it works them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from duly.ledger import policy as opening
from duly.ledger.ask import Ask
from duly.ledger.open import Idle, Taken
from duly.ledger.records import Claim
from duly.schedule.spec import daily, every
from duly.times import DAY, MINUTE
from tests.books import Book, let_die


def days(*numbers: int) -> list[str]:
    return [f"export:2026-10-{number:02d}[UTC]" for number in numbers]


# -- where a line starts ------------------------------------------------------------------------------------------------


def test_a_new_job_owes_the_newest_window_that_is_due_and_none_before(book: Book) -> None:
    book.job()

    assert book.work_all() == days(5)


def test_a_window_before_the_start_may_be_named(book: Book) -> None:
    book.job()

    assert isinstance(book.ask("2026-09-01"), Claim)


def test_a_new_scope_starts_at_its_own_newest_window(book: Book) -> None:
    book.job()
    book.work_all()
    book.clock.advance(3 * DAY)

    taken = book.poke(scope="acme")

    assert isinstance(taken, Taken)
    assert str(taken.key) == "acme/export:2026-10-08[UTC]"
    assert taken.run.due == book.rows("select starts from duly_line where scope = 'acme'")[0][0]


def test_nothing_more_is_owed_until_the_next_window_ends(book: Book) -> None:
    book.job()
    book.work_all()

    book.clock.set("2026-10-06T23:59:59.999999Z")
    assert book.work_all() == []

    book.clock.set("2026-10-07T00:00:00Z")
    assert book.work_all() == days(6)


def test_an_ended_line_owes_nothing_from_its_end_on(book: Book) -> None:
    book.job()
    book.amend("update duly_line set ends = starts + ?", 2 * DAY)
    book.clock.advance(10 * DAY)

    assert book.work_all() == days(5, 6)


# -- each ---------------------------------------------------------------------------------------------------------------


def test_after_five_days_down_each_day_is_worked_oldest_first(book: Book) -> None:
    book.job(catch_up="each")
    book.work_all()
    book.clock.advance(5 * DAY)

    assert book.work_all() == days(6, 7, 8, 9, 10)
    assert book.ranges() == []


def test_what_was_taken_by_name_is_not_opened_again(book: Book) -> None:
    book.job(catch_up="each")
    book.work_all()
    book.clock.advance(3 * DAY)
    book.complete(book.take("2026-10-07"))

    assert book.work_all() == days(6, 8)


def test_a_far_backlog_is_opened_in_batches_and_nothing_of_it_is_lost(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "OPEN_AT_ONCE", 3)
    book.job(catch_up="each")
    book.work_all()
    book.clock.advance(10 * DAY)

    first = book.poke()

    assert isinstance(first, Taken)
    opened = [state for _, state in book.runs()]
    assert opened == ["completed", "running", "open", "open"]
    book.complete(first.claim)
    assert book.work_all() == days(*range(7, 16))


def test_a_year_of_five_minute_windows_is_opened_a_bounded_number_at_a_time(book: Book) -> None:
    book.job("sync", every("5m"), catch_up="each")
    book.work_all("sync")
    book.clock.advance(365 * DAY)

    assert isinstance(book.poke("sync"), Taken)

    assert len(book.runs("sync")) == opening.OPEN_AT_ONCE + 1


# -- latest -------------------------------------------------------------------------------------------------------------


def test_after_five_days_down_the_latest_day_is_worked_and_the_others_are_one_range_with_its_reason(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(5 * DAY)

    assert book.work_all() == days(10)
    assert book.runs() == [("2026-10-05T00:00:00", "completed"), ("2026-10-10T00:00:00", "completed")]
    assert book.ranges() == [("2026-10-06", "2026-10-10")]
    assert book.rows("select reason, by from duly_skipped") == [
        ("catch-up latest: a newer window was due", "dev@example")
    ]


def test_the_first_poke_of_a_late_morning_skips_no_window_that_is_not_due(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(DAY)

    assert book.work_all() == days(6)
    assert book.ranges() == []


@pytest.mark.parametrize("state", ["open", "failed"])
def test_latest_drops_an_older_run_that_nobody_works_and_says_why(book: Book, state: str) -> None:
    book.job(catch_up="latest")
    taken = book.poke()
    assert isinstance(taken, Taken)
    if state == "open":
        book.release(taken.claim)
    else:
        book.fail(taken.claim, retry_in=DAY * 30)
    book.clock.advance(DAY)

    assert book.work_all() == days(6)

    dropped = book.run(taken.claim.run)
    assert (dropped.state, dropped.was) == ("skipped", state)
    assert dropped.cause == "catch-up latest: a newer window was due"
    assert book.events("skipped") == [("dev@example", "", "catch-up latest: a newer window was due")]


def test_latest_never_drops_a_run_that_is_being_worked(book: Book) -> None:
    book.job(catch_up="latest", overlap=1)
    older = book.take("2026-10-05")
    pulse = book.hold_pulse(older)
    book.clock.advance(DAY)

    assert book.work_all() == days(6)
    assert book.state(older.run) == "running"

    book.complete(older)
    let_die(pulse)


def test_latest_never_drops_an_unknown_run(book: Book) -> None:
    book.job(catch_up="latest", contract="external")
    older = book.take("2026-10-05")
    book.doubt(older)
    book.clock.advance(DAY)

    assert book.work_all() == days(6)
    assert book.state(older.run) == "unknown"


def test_latest_never_drops_a_run_that_waits_for_a_person(book: Book) -> None:
    book.job(catch_up="latest")
    older = book.take("2026-10-05")
    book.fail(older, retry_in=None)
    book.clock.advance(DAY)

    assert book.work_all() == days(6)
    assert book.state(older.run) == "failed"


@pytest.mark.parametrize("word", ["retry", "unskip", "reopen"])
def test_latest_never_drops_a_run_that_a_person_asked_for(book: Book, word: str) -> None:
    book.job(catch_up="latest")
    claim = book.take("2026-10-05")
    match word:
        case "retry":
            book.fail(claim, retry_in=None)
            book.retry(claim.run)
        case "unskip":
            book.fail(claim, retry_in=None)
            book.skip()
            book.unskip()
        case "reopen":
            book.complete(claim)
            book.reopen(claim.run)
    book.clock.advance(2 * DAY)

    revision = "#2" if word == "reopen" else ""
    assert book.work_all() == [days(5)[0] + revision, *days(7)]


def test_a_window_taken_by_name_inside_a_range_speaks_for_itself(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(3 * DAY)
    named = book.take("2026-10-07")
    book.complete(named)

    assert book.work_all() == days(8)
    assert book.state(named.run) == "completed"


# -- order --------------------------------------------------------------------------------------------------------------


def test_an_unknown_run_does_not_stop_later_windows(book: Book) -> None:
    book.job(contract="external")
    claim = book.take("2026-10-05")
    book.doubt(claim)
    book.clock.advance(2 * DAY)

    assert book.work_all() == days(6, 7)


@pytest.mark.parametrize("trouble", ["unknown", "failed"])
def test_an_ordered_job_waits_until_the_run_before_is_settled(book: Book, trouble: str) -> None:
    book.job(contract="external", ordered=1)
    claim = book.take("2026-10-05")
    if trouble == "unknown":
        book.doubt(claim)
    else:
        book.fail(claim, retry_in=None)
    book.clock.advance(2 * DAY)

    idle = book.poke()

    assert isinstance(idle, Idle)
    assert [state for _, state in book.runs()] == [trouble, "open", "open"]
    if trouble == "unknown":
        book.resolve(claim.run, done=True)
    else:
        book.skip("2026-10-05")
    assert book.work_all() == days(6, 7)


def test_a_failed_run_is_not_poked_before_its_retry_time(book: Book) -> None:
    book.job()
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim, retry_in=10 * MINUTE)

    book.clock.advance(10 * MINUTE - 1)
    assert isinstance(book.poke(), Idle)

    book.clock.advance(1)
    assert isinstance(book.poke(), Taken)


def test_what_was_tried_in_this_poke_is_not_tried_again(book: Book) -> None:
    book.job()
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim, retry_in=0)

    assert isinstance(book.poke(tried=frozenset({taken.run.id})), Idle)
    assert isinstance(book.poke(), Taken)


def test_windows_of_a_line_are_worked_one_after_the_other_by_two_pokes(book: Book) -> None:
    book.job()
    book.work_all()
    book.clock.advance(2 * DAY)
    first = book.poke()
    assert isinstance(first, Taken)

    second = book.poke()

    assert isinstance(second, Idle)
    assert second.standing is not None
    assert second.standing.id == first.run.id


def test_two_pokes_share_the_work_where_overlap_is_allowed(book: Book) -> None:
    book.job(overlap=1)
    book.work_all()
    book.clock.advance(2 * DAY)

    first, second = book.poke(), book.poke()

    assert isinstance(first, Taken)
    assert isinstance(second, Taken)
    assert [str(first.key), str(second.key)] == days(6, 7)


def test_what_comes_due_while_a_poke_works_is_left_to_the_next(book: Book) -> None:
    book.job()
    as_of = book.clock.now()
    book.clock.advance(DAY)
    taken = book.poke(as_of=as_of)
    assert isinstance(taken, Taken)
    book.complete(taken.claim)

    assert isinstance(book.poke(as_of=as_of), Idle)
    assert book.work_all() == days(6)


def test_a_day_of_twenty_five_hours_is_one_window(book: Book) -> None:
    """Berlin, 25 October 2026: the clocks go back at 03:00 CEST, 01:00 UTC."""
    book.job(schedule=daily("Europe/Berlin"))
    book.clock.set("2026-10-26T00:00:00Z")

    taken = book.poke()

    assert isinstance(taken, Taken)
    assert str(taken.key) == "export:2026-10-05[Europe/Berlin]"  # where the line started
    book.complete(taken.claim)
    *_, key = book.work_all()
    assert key == "export:2026-10-25[Europe/Berlin]"
    assert book.rows(
        "select (max(window_end) - min(window_start)) / 3600000000 from duly_run where nominal = "
        "(select max(nominal) from duly_run)"
    ) == [(25,)]


def test_who_catches_up_looks_at_one_run_and_not_at_all_that_are_left(book: Book) -> None:
    book.job(catch_up="each")
    book.work_all()
    book.clock.advance(100 * DAY)
    taken = book.poke()  # all are open now
    assert isinstance(taken, Taken)
    book.complete(taken.claim)

    with rows_read(book) as read:
        assert isinstance(book.poke(), Taken)

    assert read() < 20


@contextmanager
def rows_read(book: Book) -> Iterator[Callable[[], int]]:
    """How many rows the ledger's statements answer with in here."""
    answers = type(book.store.session.answers)  # type: ignore[attr-defined]  # of either store
    asked, rows = answers.__call__, 0

    def counted(self: object, ask: Ask) -> object:
        nonlocal rows
        answer = asked(self, ask)
        rows += len(answer) if isinstance(answer, list) else 1
        return answer

    answers.__call__ = counted
    try:
        yield lambda: rows
    finally:
        answers.__call__ = asked


def test_a_run_whose_holder_is_gone_comes_before_the_newer_ones_of_the_backlog(book: Book) -> None:
    book.job(catch_up="each", overlap=1)
    book.work_all()
    book.clock.advance(3 * DAY)
    assert isinstance(book.poke(), Taken)  # the 6th, and vanishes
    book.lapse()

    assert book.work_all() == days(6, 7, 8)
