"""The grid over time: what is counted says what is judged, a day is as long as it was, and nothing is green that nobody
recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from duly.errors import Misuse, ScheduleError
from duly.evidence import verdict
from duly.evidence.axis import Axis, axis_from, axis_until
from duly.evidence.over_time import WORST_FIRST, LineOverTime, over_time
from duly.evidence.proof import Proof, proof
from duly.evidence.verdict import lines, windows_of_line
from duly.ledger.ask import now
from duly.ledger.spells import placed_after, spells_of_line
from duly.schedule.spec import Schedule, cron, daily, every, hourly, monthly, weekly
from duly.times import DAY, HOUR, MINUTE, parse_instant
from tests.books import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "ledger.db", at="2026-10-23T00:05:00Z")


def seen(book: Book, axis: Callable[[int], Axis]) -> list[LineOverTime]:
    async def look() -> list[LineOverTime]:
        instant = await now()
        return await over_time(await lines(), axis(instant), instant)

    return book.store.read(look())


def of_days(zone: str, first: str, count: int) -> Callable[[int], Axis]:
    return lambda _: axis_from("day", zone, parse_instant(f"{first}T12:00:00Z"), count)


def words(line: LineOverTime) -> list[tuple[int, int, str, int, int]]:
    return [(cell.place, cell.span, cell.word, cell.done, cell.total) for cell in line.cells]


# -- the axis -----------------------------------------------------------------------------------------------------------


def test_days_are_as_long_as_they_were() -> None:
    # Berlin's clocks go back on 25 October 2026 and forward on 28 March 2027.
    autumn = axis_from("day", "Europe/Berlin", parse_instant("2026-10-24T12:00:00Z"), 3)
    spring = axis_from("day", "Europe/Berlin", parse_instant("2027-03-27T12:00:00Z"), 3)

    assert [(p.end - p.start) // HOUR for p in autumn.pieces] == [24, 25, 24]
    assert [(p.end - p.start) // HOUR for p in spring.pieces] == [24, 23, 24]
    assert autumn.clocks(1) == "25 hours long: the clocks are set back"
    assert spring.clocks(1) == "23 hours long: the clocks are set forward"
    assert autumn.clocks(0) == ""


def test_a_day_may_begin_where_there_is_no_midnight() -> None:
    # Beirut went from 00:00 to 01:00 on 29 March 2026.
    axis = axis_from("day", "Asia/Beirut", parse_instant("2026-03-28T12:00:00Z"), 2)

    assert [axis.name(place) for place in (0, 1)] == ["2026-03-28", "2026-03-29"]
    assert axis.pieces[0].end == axis.pieces[1].start == parse_instant("2026-03-28T22:00:00Z")
    assert axis.moved(1) == -HOUR


def test_an_axis_ends_a_little_after_now() -> None:
    instant = parse_instant("2026-10-26T03:06:00Z")

    axis = axis_until("hour", "Europe/Berlin", instant, 6, 2)

    assert [axis.name(place) for place in range(6)] == [f"2026-10-26T{hour:02}" for hour in range(1, 7)]
    assert axis.place_of(instant) == 3


def test_pieces_follow_one_another_without_a_gap() -> None:
    for unit in ("hour", "day", "week"):
        axis = axis_from(unit, "America/New_York", parse_instant("2026-10-20T12:00:00Z"), 40)
        assert [p.end for p in axis.pieces[:-1]] == [p.start for p in axis.pieces[1:]]


def test_an_axis_that_cannot_be_is_refused() -> None:
    with pytest.raises(Misuse, match="unit: 'month' is none of hour, day, week"):
        axis_from("month", "UTC", 0, 1)
    with pytest.raises(ScheduleError):
        axis_from("day", "Europe/Berln", 0, 1)


# -- cells --------------------------------------------------------------------------------------------------------------


def test_a_piece_counts_what_its_windows_are_and_the_worst_gives_it_its_word(book: Book) -> None:
    book.job("rates", hourly("UTC"))
    book.work_all("rates")
    book.clock.set("2026-10-24T00:05:00Z")
    for _ in range(5):
        book.poke("rates")
        book.lapse()
    book.clock.set("2026-10-25T00:05:00Z")

    (line,) = seen(book, of_days("UTC", "2026-10-22", 4))

    kinds = {cell.place: cell for cell in line.cells}
    assert kinds[0].done == kinds[0].total == 1, "before its first window it was none of the ledger's"
    assert kinds[1].word == verdict.MISSING or kinds[1].word == verdict.LATE
    assert kinds[2].total == 24
    assert kinds[2].done == 0
    assert kinds[3].word == verdict.COMING


def test_a_period_longer_than_a_piece_spans_them(book: Book) -> None:
    book.job("report", weekly("UTC"))
    book.job("close", monthly("UTC"))

    report, close = sorted(
        seen(book, of_days("UTC", "2026-10-12", 21)), key=lambda each: each.known.job.name, reverse=True
    )

    assert [(cell.place, cell.span) for cell in report.cells] == [(0, 7), (7, 7), (14, 7)]
    assert [(cell.place, cell.span) for cell in close.cells] == [(0, 20), (20, 1)]


def test_a_fire_lies_where_it_is_due_and_nothing_else_does(book: Book) -> None:
    book.job("backup", cron("30 2 * * 1", zone="UTC"))

    (line,) = seen(book, of_days("UTC", "2026-10-18", 9))

    assert [cell.place for cell in line.cells] == [1, 8]  # Mondays


def test_what_was_before_a_line_or_was_pruned_is_not_recorded(book: Book) -> None:
    book.job("export", daily("UTC"))
    book.work_all()

    (line,) = seen(book, of_days("UTC", "2026-10-01", 10))

    assert {cell.word for cell in line.cells} == {verdict.NOT_OWED}
    assert not any(cell.is_recorded for cell in line.cells)


def test_a_day_of_another_zone_lies_where_it_begins(book: Book) -> None:
    book.job("positions", daily("America/New_York"))

    (line,) = seen(book, of_days("Europe/Berlin", "2026-10-22", 3))

    # New York's day begins at 06:00 in Berlin.
    assert [cell.place for cell in line.cells] == [0, 1, 2]


def test_a_completed_run_with_a_message_to_deliver_is_not_counted_as_well(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.job("export", daily("UTC"))
    book.work_all()
    book.amend(
        "insert into duly_message (series, nominal, revision, number, name, destination, idempotency_key, digest,"
        " state, fence, failures, noted_at, due_at, stored, denials)"
        " select series, nominal, revision, 1, 'm', 'hook', 'k', 'd', 'pending', 0, 0, 0, 0, 0, 0 from duly_run"
    )

    (line,) = seen(book, of_days("UTC", "2026-10-22", 1))
    assert words(line) == [(0, 1, verdict.UNDELIVERED, 0, 1)]

    monkeypatch.setattr("duly.evidence.over_time._RUNS_AT_MOST", 0)  # so many that not all are known

    (line,) = seen(book, of_days("UTC", "2026-10-22", 1))
    assert words(line) == [(0, 1, verdict.UNDELIVERED, 0, 1)]


SCHEDULES: list[Schedule] = [
    daily("Europe/Berlin"),
    daily("Europe/Berlin", at="02:30"),
    hourly("Europe/Berlin"),
    hourly("Australia/Lord_Howe"),
    hourly("Europe/Berlin", fold="second"),
    cron("30 2 * * *", zone="Europe/Berlin"),
    cron("*/20 * * * *", zone="Europe/Berlin"),
    cron("30 2 * * *", zone="Europe/Berlin", fold="second"),
    every("90m"),
    weekly("Europe/Berlin"),
    daily("Asia/Kolkata"),
]


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """Two days of every kind of schedule, over the night on which clocks are set back; some of it complete, some of it not."""
    book = Book(tmp_path_factory.mktemp("varied") / "ledger.db", at="2026-10-24T19:05:00Z")
    for number, schedule in enumerate(SCHEDULES):
        book.job(f"job-{number:02}", schedule, overlap=1)
        book.work_all(f"job-{number:02}")
    book.clock.set("2026-10-25T03:10:00Z")
    for number in range(len(SCHEDULES)):
        book.work_all(f"job-{number:02}")
    book.clock.set("2026-10-25T06:10:00Z")
    for number in range(len(SCHEDULES)):
        book.poke(f"job-{number:02}")
    book.work_all("job-02")
    book.clock.set("2026-10-25T09:10:00Z")
    return book


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("unit", ["hour", "day", "week"])
def test_what_is_counted_says_what_is_judged(varied: Book, unit: str, zone: str) -> None:
    """The quick way and the slow one."""
    laid = axis_until(unit, zone, varied.clock.now(), {"hour": 60, "day": 6, "week": 3}[unit], 2)

    for line in seen(varied, lambda _: laid):
        _says_what_is_judged(varied, line, laid, unit)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """Lines that come due every few minutes, over the night on which clocks are set back; some windows are not complete."""
    book = Book(tmp_path_factory.mktemp("dense") / "ledger.db", at="2026-10-24T19:05:00Z")
    schedules = [
        cron("*/10 * * * *", zone="Europe/Berlin"),
        cron("*/7 * * * *", zone="Australia/Lord_Howe"),
        every("5m"),
        daily("Europe/Berlin"),
    ]
    for number, schedule in enumerate(schedules):
        book.job(f"job-{number}", schedule, overlap=1)
        book.work_all(f"job-{number}")
    for instant in ("2026-10-24T23:32:00Z", "2026-10-25T03:10:00Z"):
        book.clock.set(instant)
        for number in range(len(schedules)):
            book.poke(f"job-{number}")  # one that is never ended
            book.work_all(f"job-{number}")
    book.clock.set("2026-10-25T09:10:00Z")
    book.poke("job-0")
    book.clock.set("2026-10-26T09:10:00Z")
    return book


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "Asia/Kolkata", "Australia/Lord_Howe"])
@pytest.mark.parametrize("unit", ["day", "week"])
def test_what_is_counted_by_the_hour_says_what_is_judged(dense: Book, unit: str, zone: str) -> None:
    laid = axis_until(unit, zone, dense.clock.now(), {"day": 6, "week": 3}[unit], 2)

    for line in seen(dense, lambda _: laid):
        _says_what_is_judged(dense, line, laid, unit)


def test_of_a_dense_line_only_the_hours_are_judged_that_are_not_whole(dense: Book) -> None:
    laid = axis_until("day", "UTC", dense.clock.now(), 6, 2)

    line = next(line for line in seen(dense, lambda _: laid) if line.known.job.name == "job-2")

    night = next(cell for cell in line.cells if laid.name(cell.place) == "2026-10-24")
    assert (night.total, night.done) == (59, 58)
    owed = [window for window in night.windows if window.verdict.word != verdict.NOT_OWED]
    assert len(owed) == 11, "those of the hour in which the line began, of which the first was never ended"


def _says_what_is_judged(book: Book, line: LineOverTime, laid: Axis, unit: str) -> None:
    told = _judged_one_by_one(book, line, laid)
    for cell in filter(lambda cell: cell.is_recorded, line.cells):
        if cell.span > 1 or (line.known.job.name == "job-09" and unit != "week"):  # one window, which was judged
            assert {window.key: window.verdict for window in told}[cell.windows[0].key].word == cell.word
            continue
        mine = [window.verdict.word for window in told if _within(window, cell.place, laid)]
        of = [word for word in mine if word not in (verdict.NOT_OWED, verdict.PRUNED)]
        said = (line.known.job.name, laid.name(cell.place), of, cell)
        assert len(of) == cell.total, said
        assert of.count(verdict.COMPLETE) + of.count(verdict.SKIPPED) == cell.done, said
        assert cell.word == min(of, key=WORST_FIRST.index), said


def _judged_one_by_one(book: Book, line: LineOverTime, axis: Axis) -> list[verdict.Window]:
    async def look() -> list[verdict.Window]:
        placed = []
        for each in placed_after(await spells_of_line(line.known), axis.start - 8 * DAY):
            if each.occurrence.due > axis.end + 8 * DAY:
                break
            placed.append(each)
        return await windows_of_line(line.known, placed, await now())

    return book.store.read(look())


def _lies(window: verdict.Window) -> int | None:
    assert window.occurrence is not None
    return window.occurrence.due if window.key.grain == "fire" else window.occurrence.start


def _within(window: verdict.Window, place: int, axis: Axis) -> bool:
    at = _lies(window)
    return at is not None and axis.pieces[place].start <= at < axis.pieces[place].end


# -- proof --------------------------------------------------------------------------------------------------------------


def _proof(book: Book, length: int = DAY) -> Proof:
    return book.store.read(proof(length))


def test_what_came_due_is_counted_from_the_schedules_and_not_from_the_rows(book: Book) -> None:
    book.job("rates", hourly("UTC"))
    book.job("export", daily("UTC"))
    book.clock.set("2026-10-25T00:05:00Z")
    book.work_all("rates")

    seen = _proof(book)

    assert (seen.due, seen.complete, seen.skipped) == (25, 24, 0)


def test_a_night_of_25_hours_has_25_periods(book: Book) -> None:
    book.job("rates", hourly("Europe/Berlin"))
    book.clock.set("2026-10-25T23:00:00Z")
    book.work_all("rates")

    seen = _proof(book, 25 * HOUR)

    assert (seen.due, seen.complete) == (25, 25)


def test_what_was_skipped_is_told_apart_and_what_came_before_a_line_is_not_counted(book: Book) -> None:
    book.job("export", daily("UTC"))
    book.work_all()
    book.clock.set("2026-10-24T00:05:00Z")
    book.skip("2026-10-23")

    assert (_proof(book).due, _proof(book).complete, _proof(book).skipped) == (1, 0, 1)
    assert _proof(book, 30 * DAY).due == 2


def test_a_period_that_is_due_is_not_proven_before_it_is_complete(book: Book) -> None:
    book.job("export", daily("UTC"))
    book.poke()
    book.clock.advance(MINUTE)

    assert (_proof(book).due, _proof(book).complete) == (1, 0)


# -- more windows than are looked at ------------------------------------------------------------------------------------


def test_a_line_of_very_many_windows_leaves_the_others_theirs(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that came due every few minutes, and was never poked, stands before the one that has failed."""
    monkeypatch.setattr("duly.evidence.over_time.JUDGE_AT_MOST", 100)
    book.job("beat", every("5m"))
    book.job("charge", daily("UTC"), contract="external", retries=0)
    book.doubt(book.poke("charge").claim)  # type: ignore[union-attr]
    book.clock.advance(DAY)

    beat, charge = seen(book, of_days("UTC", "2026-10-22", 2))

    assert any(cell.unseen for cell in beat.cells)
    assert words(charge)[0][2] == verdict.UNKNOWN
    assert not any(cell.unseen for cell in charge.cells)


def test_what_nobody_looked_at_is_told_no_better_than_it_is(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.job("charge", daily("UTC"), contract="external", retries=0)
    book.doubt(book.poke("charge").claim)  # type: ignore[union-attr]
    monkeypatch.setattr("duly.evidence.over_time.JUDGE_AT_MOST", 0)

    (charge,) = seen(book, of_days("UTC", "2026-10-22", 1))

    assert [(cell.word, cell.unseen) for cell in charge.cells] == [(verdict.UNKNOWN, True)]


def test_where_no_window_was_looked_at_it_is_not_said_that_none_comes_due(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.job("report", weekly("UTC"))
    book.work_all("report")
    (whole,) = seen(book, of_days("UTC", "2026-10-12", 28))
    monkeypatch.setattr("duly.evidence.over_time.JUDGE_AT_MOST", 1)

    (cut,) = seen(book, of_days("UTC", "2026-10-12", 28))

    assert cut.cells[0] == whole.cells[0]
    assert [cell.place for cell in cut.cells[1:]] == list(range(7, 28))
    assert all(cell.unseen or cell.word == verdict.COMING for cell in cut.cells[1:])
    assert cut.cells[1].unseen


def test_an_axis_ends_where_the_calendar_does() -> None:
    last = parse_instant("9999-12-31T12:00:00Z")

    with pytest.raises(Misuse, match="from: the calendar ends before that"):
        axis_from("day", "UTC", last, 3)
