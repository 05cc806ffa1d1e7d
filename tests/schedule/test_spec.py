"""Schedules: what they say of themselves, what they take from a person, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice

import pytest

import duly
from duly.errors import KeyInvalid, ScheduleError, TimeInvalid, WindowInvalid
from duly.schedule.keys import nominal_text
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import (
    Schedule,
    cron,
    daily,
    every,
    from_spec,
    hourly,
    monthly,
    quarterly,
    weekly,
    yearly,
)
from duly.times import HOUR, MINUTE, SECOND, instant_text, parse_instant

BERLIN = "Europe/Berlin"


def name(schedule: Schedule, occurrence: Occurrence) -> str:
    return nominal_text(schedule.grain, occurrence.nominal, schedule.zone)


def next_after(schedule: Schedule, moment: str) -> Occurrence:
    return next(schedule.after(parse_instant(moment)))


# -- due -------------------------------------------------------------------------------------------------------------


def test_a_day_is_due_at_its_end() -> None:
    day = next_after(daily(BERLIN), "2026-10-25T12:00:00Z")

    assert (instant_text(day.start), instant_text(day.end)) == ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
    assert day.due == day.end
    assert (day.end - day.start) // HOUR == 25


def test_a_day_worked_at_half_past_two_is_due_the_next_morning() -> None:
    schedule = daily(BERLIN, at="02:30")

    day = schedule.lookup("2026-10-23")

    assert instant_text(day.end) == "2026-10-23T22:00:00Z"
    assert instant_text(day.due) == "2026-10-24T00:30:00Z"


def test_the_work_of_the_day_before_a_gap_is_due_at_the_change() -> None:
    assert instant_text(daily(BERLIN, at="02:30").lookup("2026-03-28").due) == "2026-03-29T01:00:00Z"
    assert (
        instant_text(daily(BERLIN, at="02:30", gap="shift_forward").lookup("2026-03-28").due) == "2026-03-29T01:30:00Z"
    )


def test_the_work_of_the_day_before_a_repeated_hour_is_due_in_the_pass_that_was_chosen() -> None:
    assert instant_text(daily(BERLIN, at="02:30").lookup("2026-10-24").due) == "2026-10-25T00:30:00Z"
    assert instant_text(daily(BERLIN, at="02:30", fold="second").lookup("2026-10-24").due) == "2026-10-25T01:30:00Z"


def test_work_at_the_very_end_is_due_at_the_end() -> None:
    day = daily(BERLIN, at="06:00", offset="06:00").lookup("2026-10-05")

    assert day.due == day.end


def test_a_day_from_six_worked_at_two_is_due_when_the_clock_next_shows_two_after_its_end() -> None:
    day = daily(BERLIN, at="02:00", offset="06:00").lookup("2026-10-05")

    assert instant_text(day.end) == "2026-10-06T04:00:00Z"
    assert instant_text(day.due) == "2026-10-07T00:00:00Z"


def test_a_month_worked_at_six_is_due_on_the_first_of_the_next() -> None:
    assert instant_text(monthly("UTC", at="06:00").lookup("2026-10").due) == "2026-11-01T06:00:00Z"


def test_the_day_that_samoa_left_out_has_no_window_and_the_day_before_it_ends_where_it_would_have_begun() -> None:
    schedule = daily("Pacific/Apia", at="02:30")

    before = schedule.lookup("2011-12-29")

    assert instant_text(before.end) == "2011-12-30T10:00:00Z"
    assert instant_text(before.due) == "2011-12-30T12:30:00Z"
    with pytest.raises(WindowInvalid, match="the nearest are 2011-12-29 and 2011-12-31"):
        schedule.lookup("2011-12-30")


def test_what_is_due_now_is_before_and_not_after() -> None:
    schedule = daily("UTC")
    now = parse_instant("2026-11-29T00:00:00Z")

    assert name(schedule, next(schedule.before(now))) == "2026-11-28"
    assert name(schedule, next(schedule.after(now))) == "2026-11-29"
    assert name(schedule, next(schedule.after(now - 1))) == "2026-11-28"
    assert name(schedule, next(schedule.before(now - 1))) == "2026-11-27"


# -- what a person writes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "text", "means"),
    [
        (daily(BERLIN), "2026-10-05", "2026-10-05"),
        (daily(BERLIN), " 2026-10-05 ", "2026-10-05"),
        (daily(BERLIN), "2026-10-05[Europe/Berlin]", "2026-10-05"),
        (daily(BERLIN), "2026-10-04T22:00:00Z", "2026-10-05"),
        (daily(BERLIN, offset="06:00"), "2026-10-05", "2026-10-05@06:00"),
        (weekly("UTC"), "2026-W41", "2026-W41"),
        (weekly("UTC", offset="sun"), "2026-W41", "2026-W41@sun"),
        (monthly("UTC"), "2026-11", "2026-11"),
        (quarterly("UTC", offset="feb"), "2026-Q4", "2026-Q4@feb"),
        (yearly("UTC", offset="apr"), "2026", "2026@apr"),
        (hourly(BERLIN), "2026-11-28T14", "2026-11-28T14"),
        (hourly(BERLIN), "2026-11-28T14:00", "2026-11-28T14"),
        (hourly(BERLIN), "2026-10-25T02", "2026-10-25T02"),
        (hourly(BERLIN), "2026-10-25T02~2", "2026-10-25T02~2"),
        (hourly(BERLIN), "2026-10-25T02:00+01:00", "2026-10-25T02~2"),
        (hourly("UTC"), "2026-11-28T14Z", "2026-11-28T14"),
        (cron("30 2 * * *", zone=BERLIN), "2026-10-25T02:30", "2026-10-25T02:30:00"),
        (cron("30 2 * * *", zone=BERLIN), "2026-10-25", "2026-10-25T02:30:00"),
        (cron("30 2 * * *", zone=BERLIN), "2026-03-29", "2026-03-29T02:30:00"),
        (cron("30 2 * * *", zone=BERLIN), "2026-03-29T03:00:00+02:00", "2026-03-29T02:30:00"),
        (cron("0 14 * * *", zone=BERLIN), "2026-11-28T14", "2026-11-28T14:00:00"),
        (cron("*/30 * * * *", zone=BERLIN), "2026-10-25T02:30~2", "2026-10-25T02:30:00~2"),
        (cron("*/30 * * * *", zone=BERLIN), "2026-10-25T01:30:00Z", "2026-10-25T02:30:00~2"),
        (every("12h"), "2026-09-13T00:00Z", "2026-09-13T00:00:00Z"),
        (every("12h"), "2026-09-13T00:00", "2026-09-13T00:00:00Z"),
        (every("12h"), "2026-09-13T02:00+02:00", "2026-09-13T00:00:00Z"),
        (every("1d"), "2026-09-13", "2026-09-13T00:00:00Z"),
    ],
)
def test_a_window_is_found_by_what_a_person_writes(schedule: Schedule, text: str, means: str) -> None:
    assert name(schedule, schedule.lookup(text)) == means


@pytest.mark.parametrize(
    ("schedule", "text", "nearest"),
    [
        (daily(BERLIN), "2026-10", "2026-10-01 and 2026-10-02"),
        (daily(BERLIN), "2026-10-05T02:30", "2026-10-05 and 2026-10-06"),
        (daily(BERLIN), "2026-10-05@06:00", "2026-10-05 and 2026-10-06"),
        (weekly("UTC"), "2026-10-07", "2026-W41 and 2026-W42"),
        (hourly(BERLIN), "2026-03-29T02", "2026-03-29T01 and 2026-03-29T03"),
        (hourly(BERLIN), "2026-10-24T02~2", "2026-10-24T02 and 2026-10-24T03"),
        (hourly(BERLIN, fold="first"), "2026-10-25T02~2", "2026-10-25T02 and 2026-10-25T03"),
        (cron("30 2 * * *", zone=BERLIN), "2026-10-25T02:00", "2026-10-24T02:30:00 and 2026-10-25T02:30:00"),
        (cron("30 2 * * *", zone=BERLIN), "2026-10-25T00:30:01Z", "2026-10-25T02:30:00 and 2026-10-26T02:30:00"),
        (cron("0 */12 * * *", zone="UTC"), "2026-10-25", "2026-10-25T00:00:00Z and 2026-10-25T12:00:00Z"),
        (cron("0 1,13 * * 1-5", zone="UTC"), "2026-10-25", "2026-10-23T13:00:00Z and 2026-10-26T01:00:00Z"),
        (every("12h"), "2026-09-13T01:00", "2026-09-13T00:00:00Z and 2026-09-13T12:00:00Z"),
        (every("7h", anchor=HOUR), "1970-01-01T00:00Z", "1969-12-31T18:00:00Z and 1970-01-01T01:00:00Z"),
        (daily(BERLIN), "9999-12-31", "9999-12-24"),
    ],
)
def test_a_window_that_the_schedule_has_not_is_refused_with_the_nearest(
    schedule: Schedule, text: str, nearest: str
) -> None:
    with pytest.raises(WindowInvalid) as refused:
        schedule.lookup(text)

    assert str(refused.value).startswith(f"{text} is no window of a schedule that is ")
    assert str(refused.value).endswith(f"the nearest are {nearest}")


def test_a_window_in_another_zone_is_refused() -> None:
    with pytest.raises(WindowInvalid, match="is not in Europe/Berlin, the schedule's zone"):
        daily(BERLIN).lookup("2026-10-05[UTC]")


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(KeyInvalid, match="there is no 2026-02-30"):
        daily(BERLIN).lookup("2026-02-30")
    with pytest.raises(TimeInvalid):
        daily(BERLIN).lookup("2026-02-30T00:00Z")


# -- words -----------------------------------------------------------------------------------------------------------

FIRST = "a time that the clocks skip counts at the change, one that they repeat counts the first time"
BOTH = "a time that the clocks skip counts at the change, one that they repeat counts both times"
WILD = "a time that the clocks skip does not count, one that they repeat counts both times"


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (daily("UTC"), "daily in UTC"),
        (daily(BERLIN, at="02:30"), f"daily in Europe/Berlin, worked at 02:30 the next morning; {FIRST}"),
        (daily("UTC", at="18:00:30"), "daily in UTC, worked at 18:00:30 the next day"),
        (daily("UTC", at="02:30", offset="06:00"), "daily from 06:00 in UTC, worked at 02:30 after its end"),
        (hourly("UTC"), "hourly in UTC"),
        (hourly(BERLIN), f"hourly in Europe/Berlin; {BOTH}"),
        (weekly("UTC", offset="sun"), "weekly from sun in UTC"),
        (yearly("UTC", offset="apr", at="06:00"), "yearly from apr in UTC, worked at 06:00 after its end"),
        (cron("30 2 * * *", zone=BERLIN), f"cron 30 2 * * * in Europe/Berlin; {FIRST}"),
        (cron("@hourly", zone="UTC"), "cron 0 * * * * in UTC"),
        (
            cron("30 2 * * *", "15 * * * *", zone=BERLIN),
            f"cron 30 2 * * * and 15 * * * * in Europe/Berlin; for 30 2 * * * {FIRST}; for 15 * * * * {WILD}",
        ),
        (every("15m"), "every 15m, counted from 1970-01-01T00:00:00Z"),
    ],
)
def test_a_schedule_says_what_it_is(schedule: Schedule, words: str) -> None:
    assert schedule.words() == words


# -- values ----------------------------------------------------------------------------------------------------------


def test_the_spec_spells_every_policy_out() -> None:
    assert daily(BERLIN, at="02:30:00").spec() == {
        "kind": "daily",
        "zone": "Europe/Berlin",
        "gap": "shift_to_transition",
        "fold": "first",
        "at": "02:30",
        "offset": None,
    }
    assert cron("TZ=UTC  */5 * * * *  # often", "0 0 * * *").spec() == {
        "kind": "cron",
        "zone": "UTC",
        "lines": [
            {"cron": "*/5 * * * *", "gap": "skip", "fold": "both"},
            {"cron": "0 0 * * *", "gap": "shift_to_transition", "fold": "first"},
        ],
    }
    assert every("PT90M").spec() == {"kind": "every", "interval": "1h30m", "anchor": "1970-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (daily("UTC"), daily("UTC", offset="00:00", gap="shift_to_transition", fold="first")),
        (daily("UTC", at="02:30"), daily("UTC", at="02:30:00")),
        (weekly("UTC"), weekly("UTC", offset="MON")),
        (yearly("UTC", offset="APR"), yearly("UTC", offset="apr")),
        (cron("@daily", zone="UTC"), cron("CRON_TZ=UTC 0 0 * * *")),
        (cron("TZ=UTC 0 0 * * *", zone="UTC"), cron("0\t0  * * * # nightly", zone="UTC", fold="first")),
        (every("90m"), every(90 * MINUTE)),
        (every("PT90M"), every("1h30m")),
    ],
)
def test_two_ways_to_write_one_schedule_are_equal(one: Schedule, other: Schedule) -> None:
    assert one == other
    assert one.spec() == other.spec()
    assert hash(one) == hash(other)


def test_a_zone_is_kept_as_it_was_written() -> None:
    assert daily("Europe/Kiev") != daily("Europe/Kyiv")
    assert daily("Europe/Kiev").spec()["zone"] == "Europe/Kiev"


def test_seconds_are_a_sixth_field_that_is_asked_for_and_come_back_from_the_spec() -> None:
    schedule = cron("30 0 12 * * *", zone="UTC", seconds_field=True)

    assert from_spec(schedule.spec()) == schedule
    assert name(schedule, next_after(schedule, "2026-01-01T00:00:00Z")) == "2026-01-01T12:00:30Z"


def test_an_interval_counts_both_ways_from_its_anchor() -> None:
    schedule = every("7h", anchor=parse_instant("2026-01-01T01:00:00Z"))

    assert instant_text(next_after(schedule, "2026-01-01T00:59:59Z").due) == "2026-01-01T01:00:00Z"
    assert instant_text(next(schedule.before(parse_instant("2026-01-01T00:00:00Z"))).due) == "2025-12-31T18:00:00Z"


@pytest.mark.parametrize("schedule", [daily(BERLIN), hourly("UTC"), cron("0 0 * * *", zone=BERLIN), every("1d")])
def test_time_ends_with_the_year_9999_and_begins_with_the_year_1(schedule: Schedule) -> None:
    last, first = next(schedule.before(10**30)), next(schedule.after(-(10**30)))

    assert instant_text(last.due).startswith("9999-12-2")
    assert instant_text(first.due).startswith("0001-01-0")
    assert list(schedule.after(10**30)) == []
    assert list(schedule.before(-(10**30))) == []
    assert list(schedule.instants(-(10**30), first.due)) == [first.due]
    assert list(schedule.instants(last.due - 1, 10**30)) == [last.due]
    assert schedule.count(last.due, 10**30) == schedule.count(-(10**30), first.due - 1) == 0


def test_what_the_clocks_skip_each_time_never_comes_and_is_not_looked_for_for_ever() -> None:
    """The last Sunday of March at two is, since 1981, an hour that Berlin's clocks skip."""
    schedule = cron("0 2 * 3 7L", zone=BERLIN, gap="skip")

    assert list(islice(schedule.after(parse_instant("2026-01-01T00:00:00Z")), 1)) == []
    assert instant_text(next(schedule.before(parse_instant("2026-01-01T00:00:00Z"))).due) == "1980-03-30T01:00:00Z"


# -- refusals --------------------------------------------------------------------------------------------------------


def two_lines(**policy: str) -> dict[str, object]:
    """A spec that nobody but a person with an editor makes: lines that send one wall time to two instants."""
    lines = [{"cron": "0 2 * * *", "gap": "shift_to_transition", "fold": "both"}]
    return {"kind": "cron", "zone": BERLIN, "lines": [*lines, lines[0] | policy]}


@pytest.mark.parametrize(
    ("make", "code", "field"),
    [
        (lambda: daily("Europe/Berlim"), "bad_zone", None),
        (lambda: daily(""), "bad_zone", None),
        (lambda: daily("UTC", fold="both"), "bad_value", "fold"),
        (lambda: weekly("UTC", fold="both"), "bad_value", "fold"),
        (lambda: daily("UTC", gap="ignore"), "bad_value", "gap"),
        (lambda: daily("UTC", at="02:30", gap="skip"), "bad_value", "gap"),
        (lambda: daily("UTC", at="24:00"), "bad_value", "at"),
        (lambda: daily("UTC", at="2:30"), "bad_value", "at"),
        (lambda: daily("UTC", at="٠2:30"), "bad_value", "at"),
        (lambda: daily("UTC", offset="06:00:30"), "bad_value", "offset"),
        (lambda: daily("UTC", offset="sun"), "bad_value", "offset"),
        (lambda: weekly("UTC", offset="apr"), "bad_value", "offset"),
        (lambda: yearly("UTC", offset="april"), "bad_value", "offset"),
        (lambda: cron(zone="UTC"), "field_count", None),
        (lambda: cron("0 0 * * *"), "bad_zone", None),
        (lambda: cron("TZ=UTC 0 0 * * *", "TZ=Etc/UTC 0 0 * * *"), "zone_conflict", None),
        (lambda: cron("0 0 * * *", zone="UTC", fold="none"), "bad_value", "fold"),
        (lambda: every("0s"), "bad_value", "interval"),
        (lambda: every("soon"), "bad_value", "interval"),
        (lambda: every(-1), "bad_value", "interval"),
        (lambda: every(SECOND + 1), "bad_value", "interval"),
        (lambda: every("1h", anchor=1), "bad_value", "anchor"),
        (lambda: from_spec({}), "bad_value", None),
        (lambda: from_spec({"kind": "lunar"}), "bad_value", None),
        (lambda: from_spec({"kind": "cron", "zone": "UTC", "lines": []}), "bad_value", None),
        (lambda: from_spec({"kind": "cron", "zone": "UTC", "lines": ["0 0 * * *"]}), "bad_value", None),
        (lambda: from_spec(two_lines(fold="second")), "bad_value", None),
        (lambda: from_spec(two_lines(gap="shift_forward")), "bad_value", None),
        (lambda: from_spec(daily("UTC").spec() | {"holidays": "skip"}), "bad_value", None),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(make: object, code: str, field: str | None) -> None:
    with pytest.raises(ScheduleError) as refused:
        make()  # type: ignore[operator]

    assert (refused.value.code, refused.value.field) == (code, field)


def test_a_cron_schedule_without_a_zone_says_why_it_needs_one() -> None:
    with pytest.raises(
        ScheduleError, match="needs one, or it changes with the host; write zone='Europe/Berlin' or 'UTC'"
    ):
        cron("30 2 * * *")


# -- the start of the wrapper ----------------------------------------------------------------------------------------


def test_the_room_imports_nothing_that_costs_the_wrapper_its_start() -> None:
    """A schedule in UTC is made and asked without the zone database, regular expressions or dataclasses."""
    code = """
import sys
bare = set(sys.modules)
from duly.schedule import catch_up, cron, keys, occurrence, resolver, spec
schedule = spec.daily("UTC")
schedule.lookup("2026-10-05"), next(schedule.before(0)), keys.parse_key("a/x:2026-10-05[UTC]")
print(*sorted(set(sys.modules) - bare))
"""
    # Without site, whose own imports would hide ours; so the package is found by its path.
    home = os.path.dirname(os.path.dirname(duly.__file__))
    told = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": home}
    )

    others = {name for name in told.stdout.split() if name.split(".")[0] != "duly"}
    assert others <= {"__future__", "datetime", "_datetime", "_collections", "math"}
