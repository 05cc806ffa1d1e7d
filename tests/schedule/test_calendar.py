"""Business calendars: days off by list and by .ics file, and what becomes of the windows that meet one."""

from __future__ import annotations

import json
from itertools import dropwhile, islice, pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.errors import ScheduleError
from duly.schedule.calendar import Calendar, make_calendar, parse_on_calendar
from duly.schedule.keys import nominal_text
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule, cron, daily, every, from_spec, hourly, monthly, weekly
from duly.times import DAY, HOUR, Zone, civil_days, instant_text, parse_instant

from .strategies import instants, lines, zones
from .test_laws import LAWS

BERLIN = "Europe/Berlin"

# 2026: Friday 25 December, Friday 1 January 2027
DE = make_calendar("de", "sat, sun  # weekends\n1990/10-03\n2026-12-25 2027-01-01\n")


def day(text: str) -> int:
    year, month, day_of_month = (int(part) for part in text.split("-"))
    return civil_days(year, month, day_of_month)


def shown(schedule: Schedule, occurrence: Occurrence) -> str:
    """`name → local due`, as a person reads it."""
    name = nominal_text(schedule.grain, occurrence.nominal, schedule.zone)
    return f"{name} → {Zone(schedule.zone).local(occurrence.due):%a %d %H:%M}"


def since(schedule: Schedule, text: str, many: int) -> list[str]:
    return [shown(schedule, o) for o in islice(schedule.after(parse_instant(text)), many)]


# -- what happens to windows ---------------------------------------------------------------------------------------------


def test_skip_keeps_the_window_and_says_why_it_is_not_worked() -> None:
    schedule = daily(BERLIN, at="02:30").on(DE, "skip")

    found = list(islice(schedule.after(parse_instant("2026-12-24T12:00:00Z")), 6))

    assert [(nominal_text("day", o.nominal, BERLIN), o.off) for o in found] == [
        ("2026-12-24", ""),
        ("2026-12-25", "2026-12-25 is a day off of calendar de"),
        ("2026-12-26", "2026-12-26 is a day off of calendar de"),
        ("2026-12-27", "2026-12-27 is a day off of calendar de"),
        ("2026-12-28", ""),
        ("2026-12-29", ""),
    ]
    assert all(one.end == other.start for one, other in pairwise(found))


def test_next_moves_what_is_due_on_a_day_off_to_the_next_business_day() -> None:
    schedule = daily(BERLIN, at="02:30").on(DE, "next")

    assert since(schedule, "2026-12-22T12:00:00Z", 6) == [
        "2026-12-22 → Wed 23 02:30",
        "2026-12-23 → Thu 24 02:30",
        "2026-12-24 → Mon 28 02:30",  # the 25th, on which it would be due, is Christmas
        "2026-12-25 → Mon 28 02:30",
        "2026-12-26 → Mon 28 02:30",
        "2026-12-27 → Mon 28 02:30",
    ]


def test_the_month_is_closed_on_the_first_business_day_and_stays_the_month() -> None:
    schedule = monthly(BERLIN, at="06:00").on(DE, "next")

    december = next(schedule.after(parse_instant("2026-12-15T00:00:00Z")))

    assert shown(schedule, december) == "2026-12 → Mon 04 06:00"
    assert instant_text(december.end) == "2026-12-31T23:00:00Z"


def test_salaries_are_paid_on_the_25th_or_on_the_business_day_before() -> None:
    schedule = cron("0 9 25 * *", zone=BERLIN).on(DE, "previous")

    assert since(schedule, "2026-09-01T00:00:00Z", 5) == [
        "2026-09-25T09:00:00 → Fri 25 09:00",
        "2026-10-25T09:00:00 → Fri 23 09:00",
        "2026-11-25T09:00:00 → Wed 25 09:00",
        "2026-12-25T09:00:00 → Thu 24 09:00",
        "2027-01-25T09:00:00 → Mon 25 09:00",
    ]


def test_several_a_day_do_not_pass_those_of_the_day_that_they_move_to() -> None:
    schedule = cron("0 8,17 * * *", zone=BERLIN)

    assert since(schedule.on(DE, "next"), "2026-10-09T12:00:00Z", 6) == [
        "2026-10-09T17:00:00 → Fri 09 17:00",
        "2026-10-10T08:00:00 → Mon 12 08:00",
        "2026-10-10T17:00:00 → Mon 12 08:00",
        "2026-10-11T08:00:00 → Mon 12 08:00",
        "2026-10-11T17:00:00 → Mon 12 08:00",
        "2026-10-12T08:00:00 → Mon 12 08:00",
    ]
    assert since(schedule.on(DE, "previous"), "2026-10-09T12:00:00Z", 6) == [
        "2026-10-09T17:00:00 → Fri 09 17:00",
        "2026-10-10T08:00:00 → Fri 09 17:00",
        "2026-10-10T17:00:00 → Fri 09 17:00",
        "2026-10-11T08:00:00 → Fri 09 17:00",
        "2026-10-11T17:00:00 → Fri 09 17:00",
        "2026-10-12T08:00:00 → Mon 12 08:00",
    ]


def test_days_off_without_a_fire_on_the_business_day_keep_their_order() -> None:
    schedule = cron("0 9 * * SAT", "0 7 * * SUN", zone="UTC").on(DE, "next")

    assert since(schedule, "2026-10-10T00:00:00Z", 2) == [
        "2026-10-10T09:00:00Z → Mon 12 07:00",
        "2026-10-11T07:00:00Z → Mon 12 07:00",
    ]


def test_a_wall_clock_that_does_not_exist_on_the_business_day_is_due_at_the_change() -> None:
    """On Sunday 28 March 2027 Berlin has no 02:30."""
    sunday_works = make_calendar("odd", "sat")

    assert since(cron("30 2 * * SAT", zone=BERLIN).on(sunday_works, "next"), "2027-03-27T00:00:00Z", 1) == [
        "2027-03-27T02:30:00 → Sun 28 03:00"
    ]


def test_a_day_whose_noon_a_zone_lacks_is_a_day_all_the_same() -> None:
    """Casablanca set its clocks on at noon of 3 June 1967."""
    hours = cron("0 * * * *", zone="Africa/Casablanca").on(make_calendar("bank", "1967-12-25"), "next")

    day = list(islice(hours.after(parse_instant("1967-06-02T23:30:00Z")), 22))

    assert [o.due for o in day] == [o.end for o in day]
    assert [hours.find(o.nominal) for o in day] == day


def test_a_day_that_a_zone_lacks_is_no_business_day() -> None:
    """Apia had no Friday 30 December 2011."""
    schedule = cron("0 9 31 12 *", zone="Pacific/Apia").on(make_calendar("ws", "sat sun"), "previous")

    assert since(schedule, "2011-06-01T00:00:00Z", 1) == ["2011-12-31T09:00:00 → Thu 29 09:00"]


@pytest.mark.parametrize(
    ("plain", "days_off", "missing"),
    [
        (
            daily("Pacific/Apia", offset="06:00"),
            "wed sun 2011-12-27 2011-12-28 2011-12-29 2011-12-31 2012-01-01 2012-01-03 2012-01-05",
            "2011-12-30",
        ),
        (
            daily("Pacific/Kwajalein", at="02:30"),
            "tue wed thu sun 1993-08-16 1993-08-17 1993-08-20 1993-08-22 1993-08-23 1993-08-26",
            "1993-08-21",
        ),
    ],
    ids=["Apia", "Kwajalein"],
)
def test_next_to_a_day_that_a_zone_lacks_what_comes_does_not_depend_on_where_one_asks(
    plain: Schedule, days_off: str, missing: str
) -> None:
    schedule = plain.on(make_calendar("c", days_off), "next")
    first, last = (parse_instant(f"{missing}T00:00:00Z") + days * DAY for days in (-9, 9))
    whole = list(takewhile(lambda o: o.due <= last, schedule.after(first)))

    for asked in range(first, last, HOUR):
        rest = list(takewhile(lambda o: o.due <= last, schedule.after(asked)))
        assert rest == [o for o in whole if o.due > asked]


# -- laws ----------------------------------------------------------------------------------------------------------------

calendars = st.builds(
    make_calendar,
    st.just("any"),
    st.lists(
        st.sampled_from(
            ("sat", "sun", "mon", "1970/12-25", "1970/01-01", "1970/11-thu#4", "1970/03-sun#L", "2011-12-31")
        ),
        max_size=5,
    ).map(" ".join),
)


@st.composite
def schedules_on_calendars(draw: st.DrawFn) -> tuple[Schedule, int]:
    zone = draw(zones)
    policy = draw(st.sampled_from(("skip", "next", "previous")))
    fires = cron(*draw(st.lists(lines(), min_size=1, max_size=2)), zone=zone)
    days = daily(zone, at=draw(st.sampled_from((None, "02:30", "18:00"))))
    schedule = draw(st.sampled_from((fires, days, hourly(zone)))) if policy != "previous" else fires
    return schedule.on(draw(calendars), policy), draw(instants(zone))


@LAWS
@given(schedules_on_calendars())
def test_windows_are_those_without_the_calendar_and_due_times_stay_in_order(given: tuple[Schedule, int]) -> None:
    schedule, instant = given

    found = list(islice(schedule.after(instant), 30))
    plain = [from_spec({k: v for k, v in schedule.spec().items() if k != "calendar"}).find(o.nominal) for o in found]

    assert [(o.nominal, o.start, o.end) for o in found] == [(p.nominal, p.start, p.end) for p in plain if p]
    assert all(instant < one.due <= other.due for one, other in pairwise(found))
    assert all(one.end == other.start for one, other in pairwise(found))


@LAWS
@given(schedules_on_calendars())
def test_what_is_due_is_due_on_a_business_day(given: tuple[Schedule, int]) -> None:
    schedule, instant = given
    assert schedule.calendar is not None
    calendar, zone = schedule.calendar.calendar, Zone(schedule.zone)

    for occurrence in islice(schedule.after(instant), 10):
        second = occurrence.due // 10**6
        work, name = (second + zone.offset_at(second)) // 86_400, occurrence.nominal // 172_800
        if schedule.calendar.policy == "skip":
            assert bool(occurrence.off) == calendar.is_off(name)
        else:
            assert not calendar.is_off(work)


@LAWS
@given(schedules_on_calendars())
def test_before_is_after_read_backwards_and_each_is_found_by_name(given: tuple[Schedule, int]) -> None:
    schedule, instant = given

    later = list(islice(schedule.after(instant), 12))
    if not later:
        return

    # more may be due at the last instant: they come after those that were taken
    back = dropwhile(lambda o: o != later[-1], schedule.before(later[-1].due))
    assert list(islice(back, len(later))) == later[::-1]
    assert [schedule.find(o.nominal) for o in later] == later
    assert list(islice(schedule.instants(instant, later[-1].due), 12)) == [o.due for o in later]


@LAWS
@given(schedules_on_calendars())
def test_a_schedule_on_a_calendar_comes_back_from_its_spec(given: tuple[Schedule, int]) -> None:
    schedule, _ = given
    assert schedule.calendar is not None

    assert from_spec(json.loads(json.dumps(schedule.spec()))) == schedule
    assert parse_on_calendar(str(schedule.calendar)) == schedule.calendar


# -- lists ---------------------------------------------------------------------------------------------------------------


def test_days_off_are_written_in_one_way() -> None:
    calendar = make_calendar("us", "SUN sat\n2026-07-03, 2021/06-19\r\n1942/11-thu#4 1971/05-MON#l")

    assert calendar.days == "sat sun 1942/11-thu#4 1971/05-mon#L 2021/06-19 2026-07-03"
    assert make_calendar("us", calendar.days) == calendar
    assert calendar.digest == make_calendar("other", calendar.days).digest != DE.digest


@pytest.mark.parametrize(
    ("date", "off"),
    [
        ("2026-10-03", True),
        ("2020-06-19", False),
        ("2021-06-19", True),
        ("2026-11-26", True),
        ("2026-11-19", False),
        ("2026-05-25", True),
        ("2026-05-18", False),
        ("2028-02-29", True),
        ("2026-07-03", True),
        ("2027-07-03", False),
    ],
)
def test_a_day_is_off_by_date_by_year_or_by_weekday_of_a_month(date: str, off: bool) -> None:
    calendar = make_calendar("us", "1990/10-03 2026-07-03 2021/06-19 1942/11-thu#4 1971/05-mon#L 2000/02-29")

    assert calendar.is_off(day(date)) == off


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sat\n2026-02-30", "calendar: '2026-02-30': line 2: it is no day off; write sat, 2026-12-28 or 2021/06-19"),
        ("2026-2-3", "line 1: it is no day off"),
        ("caturday", "line 1: it is no day off"),
        ("2021/13-01", "line 1: it is no day off"),
        ("2021/06-31", "line 1: it is no day off"),
        ("2021/06-fri#6", "line 1: it is no day off"),
        ("0000/06-01", "line 1: it is no day off"),
        ("٢٠٢٦-01-01", "line 1: it is no day off"),
        ("mon tue wed thu fri sat sun", "every weekday is off"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        make_calendar("x", text)

    assert message in str(refused.value)
    assert refused.value.field == "calendar"


def test_a_year_without_a_business_day_is_no_endless_loop() -> None:
    all_year = " ".join(f"2000/{month:02d}-{d:02d}" for month in range(1, 13) for d in range(1, 29))
    weekdays = "mon tue wed thu fri sat"
    calendar = make_calendar("none", f"{all_year} {weekdays} 2000/01-sun#5")
    never = make_calendar(
        "never",
        " ".join(f"2000/{m:02d}-{w}#{n}" for m in range(1, 13) for w in ("sun",) for n in "12345") + " " + weekdays,
    )

    assert calendar.is_off(day("2026-06-01"))
    with pytest.raises(ScheduleError, match="no business day within 400 days"):
        next(daily("UTC").on(never, "next").after(parse_instant("2026-06-01T00:00:00Z")))


@pytest.mark.parametrize(
    ("schedule", "policy", "why"),
    [
        (every("1d"), "next", "an interval is counted in UTC"),
        (weekly("UTC"), "skip", "a week has business days in it"),
        (daily("UTC"), "previous", "a period is not due before it has ended"),
        (daily("UTC"), "ignore", "write one of skip, previous, next"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(schedule: Schedule, policy: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        schedule.on(DE, policy)


def test_the_words_name_the_calendar() -> None:
    assert daily("UTC").on(DE, "skip").words() == "daily in UTC; skipped on days off of calendar de"
    assert daily("UTC").on(DE, "next").words() == "daily in UTC; moved to the next business day of calendar de"


def test_another_day_off_is_another_schedule() -> None:
    other = make_calendar("de", f"{DE.days} 2027-12-24")

    assert daily("UTC").on(DE, "skip") != daily("UTC").on(other, "skip")
    assert daily("UTC").on(DE, "skip").spec() != daily("UTC").on(other, "skip").spec()


# -- .ics ----------------------------------------------------------------------------------------------------------------


def ics(*events: str) -> str:
    """A file as calendars export it, with lines ended by CR LF."""
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Example//Holidays//EN"]
    body = [line for event in events for line in ("BEGIN:VEVENT", *event.split("\n"), "END:VEVENT")]
    return "\r\n".join([*head, *body, "END:VCALENDAR", ""])


def test_an_ics_file_of_days_once_and_each_year() -> None:
    text = ics(
        "UID:1\nDTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227\nSUMMARY:Christmas\\, three days",
        "DTSTART;VALUE=DATE:19901003\nRRULE:FREQ=YEARLY\nSUMMARY:A name that goes on\n  in the next line: folded",
        "DTSTART;VALUE=DATE:19421126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
        "DTSTART;VALUE=DATE:19710531\nRRULE:FREQ=YEARLY;BYDAY=-1MO;BYMONTH=5",
        "DTSTART;VALUE=DATE:20240501\nRRULE:FREQ=YEARLY;COUNT=3\nEXDATE;VALUE=DATE:20250501",
        "DTSTART;VALUE=DATE:20240601\nRRULE:FREQ=YEARLY;UNTIL=20260530",
        "DTSTART;VALUE=DATE:20260707\nSTATUS:CANCELLED",
        "DTSTART:20260808\nBEGIN:VALARM\nTRIGGER:-PT15M\nEND:VALARM",
    )

    calendar = make_calendar("de", text)

    assert calendar.days == (
        "1942/11-thu#4 1971/05-mon#L 1990/10-03 "
        "2024-05-01 2024-06-01 2025-06-01 2026-05-01 2026-08-08 2026-12-24 2026-12-25 2026-12-26"
    )


def test_a_rule_that_begins_beside_itself_counts_its_first_day_too() -> None:
    calendar = make_calendar("x", ics("DTSTART;VALUE=DATE:20260301\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=14"))

    assert calendar.days == "2027/02-14 2026-03-01"


@pytest.mark.parametrize(
    ("event", "line", "why"),
    [
        ("DTSTART:20261224T090000Z", 5, "only whole days can be read"),
        ("DTSTART;TZID=Europe/Berlin:20261224T000000", 5, "only whole days can be read"),
        ("DTSTART;VALUE=DATE:20260230", 5, "there is no 20260230"),
        ("SUMMARY:x", 6, "the event has no DTSTART"),
        ("DTSTART;VALUE=DATE:20261224\nDTSTART;VALUE=DATE:20261225", 6, "a DTSTART already"),
        ("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261224", 6, "ends before it begins"),
        ("DTSTART;VALUE=DATE:20261224\nRRULE:FREQ=WEEKLY;BYDAY=SA", 6, "only FREQ=YEARLY can be read"),
        ("DTSTART;VALUE=DATE:20261224\nRRULE:FREQ=YEARLY;INTERVAL=2", 6, "only FREQ=YEARLY can be read"),
        ("DTSTART;VALUE=DATE:20261224\nRRULE:FREQ=YEARLY;BYEASTER=1", 6, "only FREQ=YEARLY can be read"),
        ("DTSTART;VALUE=DATE:20261224\nRRULE:FREQ=YEARLY;BYDAY=4TH", 6, "BYMONTH=11;BYDAY=4TH"),
        ("DTSTART;VALUE=DATE:20261224\nRRULE:FREQ=YEARLY;BYMONTH=1,2", 6, "is not one number from 1 to 12"),
        ("DTSTART;VALUE=DATE:20261224\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20271224", 6, "exceptions"),
        ("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261226\nRRULE:FREQ=YEARLY", 7, "several days each year"),
        ("DTSTART;VALUE=DATE:20261224\nRDATE;VALUE=DATE:20261225", 6, "this cannot be read"),
        ("DTSTART;VALUE=DATE:20261224\nnonsense", 6, "it is no line of an .ics file"),
        ("DTSTART;VALUE=DATE:20261224\nEND:VCALENDAR", 6, "it ends nothing that is open, which is VEVENT"),
        ("BEGIN:VTODO", 5, "only events of whole days can be read"),
    ],
)
def test_what_an_ics_file_has_that_cannot_be_read_is_refused_with_its_line(event: str, line: int, why: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        make_calendar("x", ics(event))

    assert str(refused.value).startswith(f"calendar: line {line}: ")
    assert why in str(refused.value)


def test_a_file_that_is_cut_off_is_refused() -> None:
    with pytest.raises(ScheduleError, match="the file ends inside VEVENT"):
        make_calendar("x", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224")


def test_a_calendars_name_has_no_blanks() -> None:
    with pytest.raises(ScheduleError, match="letters, digits, dots"):
        make_calendar("our days", "sat")
    assert isinstance(make_calendar("our-days", "sat"), Calendar)
