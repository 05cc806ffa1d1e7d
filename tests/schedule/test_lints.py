"""Lints: what a schedule says that its author may not have meant."""

from __future__ import annotations

import pytest

from duly.schedule.lints import Lint, lints_of
from duly.schedule.spec import Schedule, cron, daily, every, hourly, monthly
from duly.times import parse_instant

BERLIN = "Europe/Berlin"
NOW = parse_instant("2026-11-29T12:00:00Z")


def codes(schedule: Schedule) -> list[str]:
    return [lint.code for lint in lints_of(schedule, NOW)]


def lint(schedule: Schedule, code: str) -> Lint:
    (found,) = [lint for lint in lints_of(schedule, NOW) if lint.code == code]
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (cron("0 4 * * 1-5", zone="UTC"), []),
        (cron("0 0 13 * 5", zone="UTC"), ["both_day_fields"]),
        (cron("0 0 */2 * MON", zone="UTC"), ["both_day_fields", "uneven_steps"]),
        (cron("0 4 ? * MON", zone="UTC"), []),
        (cron("*/7 * * * *", zone="UTC"), ["uneven_steps"]),
        (cron("*/15 */6 * */3 *", zone="UTC"), []),
        (cron("0 */5 * * *", zone="UTC"), ["uneven_steps"]),
        (cron("0 0 1 */5 *", zone="UTC"), ["uneven_steps"]),
        (cron("*/45 0 0 1 * *", zone="UTC", seconds_field=True), ["uneven_steps"]),
        (cron("0 0-23 * * *", zone=BERLIN), ["hidden_hour", "cron_for_period"]),
        (cron("0 0-23 * * *", zone=BERLIN, fold="both"), ["cron_for_period"]),
        (cron("0 0-23 * * *", zone="UTC"), ["cron_for_period"]),
        (cron("0 0-5 * * MON-SUN", zone=BERLIN), ["skipped_time", "hidden_hour"]),
        (cron("0 2,3 * * MON", zone=BERLIN), []),
        (cron("*/5 * * * *", zone=BERLIN), []),
        (cron("*/5 2 * * *", zone=BERLIN), ["skipped_time", "repeated_time"]),
        (cron("30 2 * * *", zone=BERLIN), ["cron_for_period", "skipped_time", "repeated_time"]),
        (cron("30 2 * * SAT", zone=BERLIN), []),
        (cron("0 0 * * 1-5", zone="Asia/Beirut"), []),
        (cron("15 0 * * SUN", zone="Asia/Beirut"), ["midnight_gap"]),
        (cron("30 23 * * *", zone="America/Nuuk"), ["cron_for_period", "midnight_gap", "repeated_time"]),
        (daily(BERLIN), []),
        (daily(BERLIN, at="02:30"), ["skipped_time", "repeated_time"]),
        (daily(BERLIN, offset="02:30"), ["skipped_time", "repeated_time"]),
        (daily("Asia/Beirut"), []),
        (hourly(BERLIN), []),
        (every("7m"), []),
    ],
    ids=lambda value: value.words()[:60] if isinstance(value, Schedule) else "",
)
def test_a_schedule_has_these_lints(schedule: Schedule, expected: list[str]) -> None:
    assert sorted(codes(schedule)) == sorted(expected)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("0 * * * *", "--period hourly"),
        ("@daily", "--period daily"),
        ("0 0 * * 1", "--period weekly"),
        ("0 0 * * SUN", "--period weekly --offset sun"),
        ("0 0 1 * *", "--period monthly"),
        ("0 0 1 */3 *", "--period quarterly"),
        ("@yearly", "--period yearly"),
        ("15 6 * * *", "--period daily --at 06:15"),
    ],
)
def test_a_line_that_should_be_a_period_says_which(line: str, instead: str) -> None:
    assert lint(cron(line, zone="UTC"), "cron_for_period").instead == instead


def test_and_and_or_of_the_day_fields_are_said_in_words() -> None:
    either = lint(cron("0 0 13 * 5", zone="UTC"), "both_day_fields")
    both = lint(cron("0 0 */2 * MON", zone="UTC"), "both_day_fields")

    assert either.says == "both day fields are set, and a day that fits either fires: day-of-month 13 or day-of-week 5"
    assert both.says == "both day fields are set and one starts with *, so only a day that fits both fires: */2 and MON"


def test_a_night_is_named_with_what_becomes_of_the_time() -> None:
    shifted = cron("30 2 * * *", zone=BERLIN)
    skipped = cron("*/5 2 * * *", zone=BERLIN)
    nuuk = cron("30 23 * * *", zone="America/Nuuk")

    assert lint(shifted, "skipped_time").says == (
        "02:30 does not exist on 2027-03-28, when clocks go from 02:00 to 03:00; it counts at 03:00"
    )
    assert lint(shifted, "repeated_time").says == "02:30 comes twice on 2027-10-31; the first counts"
    assert lint(skipped, "skipped_time").says.endswith("; it does not count that day")
    assert lint(nuuk, "midnight_gap").says == (
        "23:30 does not exist on 2027-03-27, when clocks go from 23:00 to 00:00; it counts at 00:00 of the next date, "
        "and keeps its name"
    )


def test_a_list_of_hours_hides_the_repeated_one() -> None:
    found = lint(cron("0 0-23 * * *", zone=BERLIN), "hidden_hour")

    assert found.says == (
        "its hours are a list, so on 2027-10-31, when 02:00 to 03:00 comes twice, only the first pass fires: "
        "one window is 1h longer"
    )
    assert found.instead == "0 * * * *, or --fold both"


def test_every_line_is_looked_at() -> None:
    schedule = cron("0 4 13 * 5", "*/7 * * * *", zone="UTC")

    assert [(found.line, found.code) for found in lints_of(schedule, NOW)] == [
        ("0 4 13 * 5", "both_day_fields"),
        ("*/7 * * * *", "uneven_steps"),
    ]


def test_a_month_at_a_time_that_its_zone_skips_is_not_linted_where_it_never_meets_the_night() -> None:
    """Berlin's clocks change on the last Sunday of March; the month's work comes on the first."""
    assert codes(monthly(BERLIN, at="04:00")) == []
