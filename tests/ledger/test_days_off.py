"""Business calendars: a day off is a skipped run with its reason, or moves when a period is due; time stays tiled.

Saturday is 3 October 2026, Sunday the 4th; Monday the 5th is the calendar's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import pytest

from duly.errors import RunSkipped
from duly.evidence.status import status
from duly.evidence.verdict import window_of
from duly.ledger.address import by_window
from duly.ledger.open import Taken
from duly.ledger.policy import newest_to_work
from duly.ledger.versions import apply
from duly.schedule.calendar import make_calendar
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule, cron, daily
from duly.times import HOUR, parse_instant
from tests.books import Book

CALENDAR = make_calendar("bank", "sat sun 2026-10-05")


def days(book: Book) -> dict[str, str]:
    return {nominal[:10]: state for nominal, state in book.runs()}


def test_a_day_off_is_skipped_with_its_reason_and_leaves_no_hole(book: Book) -> None:
    book.clock.set("2026-10-02T03:00:00Z")  # the first is complete
    book.job(schedule=daily("UTC").on(CALENDAR, "skip"))
    book.work_all()
    book.clock.set("2026-10-07T03:00:00Z")

    worked = book.work_all()

    assert worked == ["export:2026-10-02[UTC]", "export:2026-10-06[UTC]"]
    assert days(book) == {
        "2026-10-01": "completed",
        "2026-10-02": "completed",
        "2026-10-03": "skipped",
        "2026-10-04": "skipped",
        "2026-10-05": "skipped",
        "2026-10-06": "completed",
    }
    assert book.rows("select cause from duly_run where state = 'skipped' order by nominal")[2] == (
        "2026-10-05 is a day off of calendar bank",
    )
    bounds = book.rows("select window_start, window_end from duly_run order by nominal")
    assert all(before[1] == after[0] for before, after in pairwise(bounds))


def test_latest_is_the_newest_day_that_is_no_day_off(book: Book) -> None:
    book.clock.set("2026-09-30T03:00:00Z")
    book.job(schedule=daily("UTC").on(CALENDAR, "skip"), catch_up="latest")
    book.work_all()
    book.clock.set("2026-10-05T03:00:00Z")  # a Monday night: the weekend is over, and off

    assert book.work_all() == ["export:2026-10-02[UTC]"]
    assert days(book) == {
        "2026-09-29": "completed",
        "2026-10-02": "completed",
        "2026-10-03": "skipped",
        "2026-10-04": "skipped",
    }
    assert book.ranges() == [("2026-09-30", "2026-10-02")]


def test_a_day_off_that_is_named_is_skipped_too_until_somebody_unskips_it(book: Book) -> None:
    book.clock.set("2026-10-07T03:00:00Z")
    book.job(schedule=daily("UTC").on(CALENDAR, "skip"))

    assert isinstance(book.ask("2026-10-04"), RunSkipped)

    book.unskip("2026-10-04")
    book.take("2026-10-04")


def test_a_period_that_ends_on_a_day_off_is_due_on_the_next_business_day(book: Book) -> None:
    book.clock.set("2026-10-02T12:00:00Z")
    book.job(schedule=daily("UTC", at="06:00").on(CALENDAR, "next"))
    book.work_all()
    for day in ("2026-10-03T07:00:00Z", "2026-10-05T07:00:00Z"):
        book.clock.set(day)
        assert book.work_all() == []

    book.clock.set("2026-10-06T07:00:00Z")

    assert book.work_all() == [f"export:2026-10-0{day}[UTC]" for day in (2, 3, 4, 5)]


def test_a_fire_on_a_day_off_may_come_on_the_business_day_before(book: Book) -> None:
    book.clock.set("2026-10-01T12:00:00Z")
    book.job(schedule=cron("0 9 * * mon", zone="UTC").on(CALENDAR, "previous"))
    book.work_all()

    book.clock.set("2026-10-02T09:00:00Z")  # Friday, for Monday the 5th

    taken = book.poke()
    assert isinstance(taken, Taken)
    assert str(taken.key) == "export:2026-10-05T09:00:00Z"


def test_another_list_of_days_off_is_another_schedule(book: Book) -> None:
    book.job(schedule=daily("UTC").on(CALENDAR, "skip"))
    book.adopt("export", daily("UTC").on(make_calendar("bank", "sat sun"), "skip"))

    refused = book.poke()

    assert type(refused).__name__ == "ScheduleChanged"


def test_latest_looks_no_further_back_than_what_is_opened_where_all_since_is_off() -> None:
    schedule = daily("UTC").on(CALENDAR, "skip")
    saturday_is_over = parse_instant("2026-10-04T00:00:00Z")

    def newest_first() -> Iterator[Occurrence]:
        yield from islice(schedule.before(saturday_is_over), 2)
        pytest.fail("it looked at windows that were opened long ago")

    kept = newest_to_work(newest_first(), saturday_is_over - 24 * HOUR)

    assert [occurrence.off for occurrence in kept] == ["2026-10-03 is a day off of calendar bank"]


def test_latest_settles_the_days_off_of_a_weekend_one_by_one(book: Book) -> None:
    book.clock.set("2026-10-03T03:00:00Z")
    book.job(schedule=daily("UTC").on(CALENDAR, "skip"), catch_up="latest")
    assert book.work_all() == ["export:2026-10-02[UTC]"]

    book.clock.set("2026-10-04T03:00:00Z")

    assert book.work_all() == []
    assert days(book) == {"2026-10-02": "completed", "2026-10-03": "skipped"}


FIRES = cron("0 9 * * *", zone="Europe/Berlin")
WEEKEND = make_calendar("bank", "sat sun")


@pytest.mark.parametrize(
    ("before", "after", "applied"),
    [
        (
            FIRES.on(WEEKEND, "previous"),
            FIRES.on(make_calendar("bank", "sat sun 2026-12-28"), "previous"),
            "2026-10-02T06:00:00Z",
        ),
        (FIRES.on(WEEKEND, "previous"), FIRES.on(CALENDAR, "previous"), "2026-10-02T10:00:00Z"),
        (FIRES, FIRES.on(WEEKEND, "previous"), "2026-10-02T10:00:00Z"),
        (FIRES.on(WEEKEND, "previous"), FIRES, "2026-10-02T10:00:00Z"),
        (FIRES.on(WEEKEND, "next"), FIRES.on(CALENDAR, "next"), "2026-10-02T10:00:00Z"),
        (FIRES.on(WEEKEND, "next"), FIRES.on(WEEKEND, "previous"), "2026-10-03T10:00:00Z"),
    ],
    ids=["a far holiday", "Monday off", "plain to previous", "previous to plain", "next", "next to previous"],
)
def test_an_edit_of_the_days_off_loses_no_window(book: Book, before: Schedule, after: Schedule, applied: str) -> None:
    book.clock.set("2026-09-30T10:00:00Z")
    book.job(schedule=before)
    book.work_all()
    book.clock.set(applied)
    book.work_all()

    book.write(apply("export", after, by="ops@example", reason="the bank's calendar"))
    book.adopt("export", after)
    while book.clock.now() < parse_instant("2026-10-07T10:00:00Z"):
        book.clock.advance(HOUR)
        book.work_all()

    rows = book.rows("select window_start, window_end, state from duly_run order by window_end")
    assert {state for _, _, state in rows} == {"completed"}
    assert len(rows) == 8  # of 30 September to 7 October
    assert all(earlier[1] == later[0] for earlier, later in pairwise(rows))


def test_a_line_that_begins_when_several_windows_are_due_begins_with_the_oldest(book: Book) -> None:
    book.clock.set("2026-10-12T10:00:00Z")  # a Monday, on which Saturday's and Sunday's fires are due too
    book.job(schedule=FIRES.on(WEEKEND, "next"))

    worked = book.work_all()

    assert [key.partition(":")[2][:10] for key in worked] == ["2026-10-10", "2026-10-11", "2026-10-12"]


def test_of_windows_due_at_one_instant_latest_works_the_newest_and_says_so_of_the_others(book: Book) -> None:
    book.clock.set("2026-10-09T10:00:00Z")
    book.job(schedule=FIRES.on(WEEKEND, "next"), catch_up="latest")
    book.work_all()
    book.clock.set("2026-10-12T10:00:00Z")

    worked = book.work_all()

    assert [key.partition(":")[2][:10] for key in worked] == ["2026-10-12"]
    assert book.ranges() == [("2026-10-10", "2026-10-12")]


def test_windows_due_at_one_instant_are_all_opened_however_many_at_once(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three fires are due on Monday; a poke that opens two at most must not note Monday as opened without the third."""
    monkeypatch.setattr("duly.ledger.policy.OPEN_AT_ONCE", 2)
    book.clock.set("2026-10-09T10:00:00Z")  # a Friday
    schedule = FIRES.on(WEEKEND, "next")
    book.job(schedule=schedule)
    book.work_all()
    book.clock.set("2026-10-13T10:00:00Z")

    worked = book.work_all()

    assert [key.partition(":")[2][:10] for key in worked] == ["2026-10-10", "2026-10-11", "2026-10-12", "2026-10-13"]


def test_after_an_edit_of_the_days_off_the_status_names_all_that_is_missing(book: Book) -> None:
    book.clock.set("2026-10-09T08:00:00Z")  # a Friday
    book.job(schedule=daily("UTC").on(WEEKEND, "next"))
    book.work_all()
    book.write(apply("export", daily("UTC"), by="ops@example", reason="weekends too"))
    book.adopt("export", daily("UTC"))

    book.clock.set("2026-10-12T08:00:00Z")
    seen = book.store.read(status())

    named = [*seen.needs, *(window for unopened in seen.unopened for window in unopened.windows)]
    missing = {window.key.middle[:10] for window in named}
    assert missing == {"2026-10-09", "2026-10-10", "2026-10-11"}
    assert {key.partition(":")[2][:10] for key in book.work_all()} == missing


def test_a_window_that_a_calendar_makes_due_before_its_line_began_is_owed_all_the_same(book: Book) -> None:
    """Sunday's last fire is due on Friday under `previous`; the line began on Sunday morning, and works its time."""
    fires = cron("0 */6 * * *", zone="UTC")
    book.clock.set("2026-10-11T06:10:00Z")
    book.job(schedule=fires)
    book.work_all()
    book.write(apply("export", fires.on(WEEKEND, "previous"), by="ops@example", reason="bank"))
    book.adopt("export", fires.on(WEEKEND, "previous"))
    book.clock.set("2026-10-11T12:10:00Z")

    window = book.store.read(window_of(book.store.read(by_window("export", "", "2026-10-11T18:00")), book.clock.now()))

    assert window.verdict.word == "missing"
    assert "export:2026-10-11T18:00:00Z" in book.work_all()


def test_a_day_off_is_no_newer_window(book: Book) -> None:
    """Friday's run waits for its retry over a weekend of days off: it is the newest, and stays owed under `latest`."""
    book.clock.set("2026-10-10T00:30:00Z")
    book.job(schedule=daily("UTC").on(WEEKEND, "skip"), catch_up="latest")
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim, retry_in=60 * HOUR)
    book.clock.set("2026-10-11T10:00:00Z")
    book.work_all()
    book.write(apply("export", daily("UTC", at="06:00").on(WEEKEND, "skip"), by="ops@example", reason="later"))
    book.adopt("export", daily("UTC", at="06:00").on(WEEKEND, "skip"))

    book.clock.set("2026-10-12T13:00:00Z")

    assert book.work_all() == [str(taken.key)]


def test_opening_on_a_calendar_looks_for_each_window_once(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """A weekend of fires every five minutes is due on Monday: to look each one up by its name took seconds."""
    looked_up: list[int] = []
    found = Schedule.find

    def find(schedule: Schedule, nominal: int) -> Occurrence | None:
        looked_up.append(nominal)
        return found(schedule, nominal)

    book.clock.set("2026-10-09T10:00:00Z")
    schedule = cron("*/5 * * * *", zone="UTC").on(WEEKEND, "next")
    book.job(schedule=schedule)
    book.work_all()
    book.clock.set("2026-10-12T00:01:00Z")
    monkeypatch.setattr(Schedule, "find", find)

    book.poke()

    assert len(looked_up) < 20
