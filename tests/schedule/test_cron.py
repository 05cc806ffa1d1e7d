"""The evaluator of cron lines, against cronsim on plain dates, against the calendar, and at its ends."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import cache
from itertools import islice

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duly.errors import ScheduleError
from duly.records import replace
from duly.schedule.cron import CronLine, parse_cron
from duly.times import civil_text

EPOCH = datetime(1970, 1, 1)
NO_YEAR = "comes in no year; name a day that exists, or L for the month's last"


# -- against cronsim -------------------------------------------------------------------------------------------------


@st.composite
def elements(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...]) -> str:
    """One element of a list in the part of the dialect that cronsim shares: no `a/n`, no step as wide as its field, and
    no `5-5/2`, which it reads as `5/2`.
    """
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, (high - low + 1) // 2))
    forms = ["*", str(first), f"{first}-{last}", f"*/{step}"]
    if first < last:
        forms.append(f"{first}-{last}/{step}")
    return draw(st.sampled_from([*forms, draw(st.sampled_from(names))] if names else forms))


def field(low: int, high: int, *names: str) -> st.SearchStrategy[str]:
    return st.lists(elements(low, high, names), min_size=1, max_size=2).map(",".join)


any_days = st.just("*")
expressions = st.tuples(
    field(0, 59),
    field(0, 23),
    st.one_of(any_days, field(1, 31, "L", "LW")),
    st.one_of(any_days, field(1, 12, "JAN", "feb", "Jun")),
    st.one_of(any_days, field(0, 7, "MON", "sun", "5L", "1#2", "0#5")),
).map(" ".join)


@settings(max_examples=250, deadline=None)
@given(expressions, st.datetimes(datetime(1950, 1, 1), datetime(2150, 1, 1)))
def test_plain_dates_are_the_same_as_cronsims(expression: str, start: datetime) -> None:
    try:
        line = parse_cron(expression)
    except ScheduleError as refused:
        assume(refused.code != "never_fires")
        raise
    civil = int((start - EPOCH).total_seconds() // 1)

    ours = list(islice(line.after(civil), 8))
    back = list(islice(line.before(civil), 8))

    start = EPOCH + timedelta(seconds=civil)
    theirs = [(moment - EPOCH) // timedelta(seconds=1) for moment in islice(CronSim(expression, start), 8)]
    theirs_back = [(m - EPOCH) // timedelta(seconds=1) for m in islice(CronSim(expression, start, reverse=True), 8)]
    assert theirs == ours[: len(theirs)]  # cronsim gives up after 50 years
    assert theirs_back == back[: len(theirs_back)]
    assert all(line.fires_at(second) for second in ours)
    assert not any(line.fires_at(second + 1) for second in ours)


# -- against the calendar --------------------------------------------------------------------------------------------


@cache
def calendar() -> set[tuple[int, int, int, int]]:
    """Month, day, weekday (Sunday is 0) and length of the month, as they come up in 400 years."""
    days = [date(2000, 1, 1) + timedelta(days=n) for n in range(146_097)]
    lengths = {(day.year, day.month): day.day for day in days}
    return {(d.month, d.day, d.isoweekday() % 7, lengths[d.year, d.month]) for d in days}


def has_day(line: CronLine, month: int, day: int, weekday: int, length: int) -> bool:
    by_date = (
        day in line.dom
        or length - day in line.last_days
        or any(is_nearest(day, weekday, length, wanted or length) for wanted in line.near_days if wanted <= length)
    )
    by_weekday = weekday in line.dow or any(
        weekday == wanted and ((day - 1) // 7 + 1 == which if which else day + 7 > length)
        for wanted, which in line.nth_days
    )
    both, one = by_date and by_weekday, by_date or by_weekday
    return month in line.month and (both if line.day_rule == "and" else one)


def is_nearest(day: int, weekday: int, length: int, wanted: int) -> bool:
    """Whether of the month's weekdays, Monday to Friday, this one is the nearest to the wanted day."""

    def is_working(other: int) -> bool:
        return (weekday + other - day) % 7 in range(1, 6)

    return day == min((d for d in range(1, length + 1) if is_working(d)), key=lambda d: abs(d - wanted))


odd_days = st.tuples(
    st.sampled_from(
        ("*", "?", "L", "LW", "L-2", "L-29", "15W", "1W", "31W", "30W", "29-31", "30", "31", "*/30", "L,1W")
    ),
    st.sampled_from(("*", "2", "4", "2,4", "FEB", "6-9", "9,11")),
    st.sampled_from(("*", "?", "0", "6L", "MON#5", "1#1", "7L,2#3", "*/7", "SAT-SUN")),
)


@settings(max_examples=150, deadline=None)
@given(odd_days)
def test_a_line_is_refused_exactly_if_no_day_in_400_years_has_it(days: tuple[str, str, str]) -> None:
    ever = any(has_day(unchecked(*days), *shape) for shape in calendar())
    text = "0 0 {} {} {}".format(*days)

    if ever:
        assert parse_cron(text).ever_fires()
    else:
        with pytest.raises(ScheduleError, match="comes in no year"):
            parse_cron(text)


def unchecked(day_of_month: str, month: str, day_of_week: str) -> CronLine:
    """A line with these fields, put together from lines that do fire."""
    by_date = parse_cron(f"0 0 {day_of_month} * ?") if day_of_month not in ("*", "?") else parse_cron("0 0 * * *")
    by_weekday = parse_cron(f"0 0 * {month} {day_of_week}")
    day_rule = "and" if day_of_month[0] in "*?" or day_of_week[0] in "*?" else "or"
    return replace(by_date, month=by_weekday.month, dow=by_weekday.dow, nth_days=by_weekday.nth_days, day_rule=day_rule)


@settings(max_examples=150, deadline=None)
@given(odd_days, st.integers(1, 9999))
def test_the_days_of_a_year_are_those_that_the_calendar_says(days: tuple[str, str, str], year: int) -> None:
    try:
        line = parse_cron("0 0 {} {} {}".format(*days))
    except ScheduleError:
        assume(False)
        raise
    year = min(max(year, 2), 9998)
    first = date(year, 1, 1)
    all_days = [first + timedelta(days=n) for n in range(366 if is_leap(year) else 365)]
    lengths = {day.month: day.day for day in all_days}

    start = (datetime(year, 1, 1) - EPOCH) // timedelta(seconds=1)
    found = [EPOCH.date() + timedelta(days=s // 86_400) for s in islice(line.after(start - 1), 370)]

    expected = [d for d in all_days if has_day(line, d.month, d.day, d.isoweekday() % 7, lengths[d.month])]
    assert [day for day in found if day.year == year] == expected


def is_leap(year: int) -> bool:
    return (date(year, 3, 1) - date(year, 2, 28)).days == 2


# -- its ends --------------------------------------------------------------------------------------------------------


def test_a_line_ends_with_the_year_9999_and_begins_with_the_year_1() -> None:
    line = parse_cron("0 0 29 2 *")
    late = (datetime(9990, 1, 1) - EPOCH) // timedelta(seconds=1)
    early = (datetime(9, 1, 1) - EPOCH) // timedelta(seconds=1)

    assert [civil_text(c) for c in line.after(late)] == ["9992-02-29T00:00:00", "9996-02-29T00:00:00"]
    assert [civil_text(c) for c in line.before(early)] == ["0008-02-29T00:00:00", "0004-02-29T00:00:00"]
    assert list(line.after(10**15)) == []
    assert list(line.before(-(10**15))) == []


def test_the_leap_day_of_a_century_is_waited_for_without_looking_at_each_day() -> None:
    line = parse_cron("0 0 * 2 MON#5")
    start = (datetime(2080, 1, 1) - EPOCH) // timedelta(seconds=1)

    assert civil_text(next(line.after(start))) == "2112-02-29T00:00:00"


# -- what is said ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 24 * * *", "hour: '24': 24 is not from 0 to 23"),
        ("0 */24 * * *", "hour: '*/24': a step of 24 is as wide as the field, so it never steps"),
        ("0 22-2 * * *", "hour: '22-2': 22-2 runs backwards; write two ranges, 22-23,0-2"),
        ("0 MON * * *", "hour: 'MON': 'MON' is not a value; write for example 2, */6 or 8-17"),
        ("0 0 * * MON#6", "day-of-week: 'MON#6': write which one in the month, 1 to 5, as in MON#2"),
        ("0 0 L-31 * *", "day-of-month: 'L-31': count back 1 to 30 days from the month's last"),
        ("0 0 L-0 * *", "day-of-month: 'L-0': count back 1 to 30 days from the month's last"),
        ("1//2 * * * *", "minute: '1//2': '/2' is not a step; write a number from 1 on"),
        ("*/0 * * * *", "minute: '*/0': '0' is not a step; write a number from 1 on"),
        ("*/00 * * * *", "minute: '*/00': '00' is not a step; write a number from 1 on"),
        (
            "*/10000000000 * * * *",
            "minute: '*/10000000000': a step of 10000000000 is as wide as the field, so it never steps",
        ),
        ("@every 90m", "'@every 90m' is an interval, not a time of day; write every(\"90m\")"),
        ("@daily 5", "'@daily 5' has 2 fields, not 1; an alias stands alone"),
        ("* * * *", "'* * * *' has 4 fields, not 5; write minute hour day-of-month month day-of-week"),
        ("0 0 30 2 *", f"day-of-month: '30' with month '2' and day-of-week '*' {NO_YEAR}"),
    ],
)
def test_a_refusal_names_field_and_token_and_what_to_write_instead(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_cron(text)

    assert str(refused.value) == message


def test_six_fields_are_seconds_only_if_asked_for() -> None:
    with pytest.raises(ScheduleError, match="seconds_field=True"):
        parse_cron("0 0 0 1 1 *")

    assert parse_cron("30 0 0 1 1 *", seconds_field=True).second == (30,)


def test_lines_that_differ_in_blanks_and_comment_are_equal() -> None:
    plain = parse_cron("30 2 * * *")

    assert parse_cron("  30\t2 * *   * # nightly") == plain
    assert hash(parse_cron("30 2 * * *")) == hash(plain)
    assert parse_cron("30 2 * * 1") != plain
    assert parse_cron("TZ=UTC 30 2 * * *") != plain
    assert repr(plain) == "CronLine('30 2 * * *', zone=None)"


def test_no_break_space_is_no_blank() -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_cron("30\u00a02 * * * *")

    assert refused.value.field == "minute"
