"""Which window a scheduler elsewhere meant: looked up in the job's own schedule, and never made of what the scheduler says."""

from __future__ import annotations

import pytest

import duly
from duly.errors import WindowInvalid
from duly.schedule.meant import Meant, window_meant
from duly.schedule.spells import Spell
from duly.times import HOUR, MINUTE, parse_instant

BERLIN = "Europe/Berlin"


def named(schedule: duly.Schedule, at: str, *, start: str | None = None, zone: str = "", exact: bool = True) -> str:
    meant = Meant(parse_instant(at), None if start is None else parse_instant(start), zone, exact)
    return window_meant([Spell(schedule, 1, None, None)], meant).name


# Clocks in Berlin: 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
@pytest.mark.parametrize(
    ("schedule", "at", "name"),
    [
        (duly.cron("30 1 * * *", zone=BERLIN), "2026-03-29T00:30:00Z", "2026-03-29T01:30:00[Europe/Berlin]"),
        (duly.cron("30 2 * * *", zone=BERLIN), "2026-03-29T01:00:00Z", "2026-03-29T02:30:00[Europe/Berlin]"),
        (duly.cron("30 3 * * *", zone=BERLIN), "2026-03-29T01:30:00Z", "2026-03-29T03:30:00[Europe/Berlin]"),
        (duly.cron("30 2 * * *", zone=BERLIN), "2026-10-25T00:30:00Z", "2026-10-25T02:30:00[Europe/Berlin]"),
        (
            duly.cron("30 * * * *", zone=BERLIN, fold="both"),
            "2026-10-25T00:30:00Z",
            "2026-10-25T02:30:00[Europe/Berlin]",
        ),
        (
            duly.cron("30 * * * *", zone=BERLIN, fold="both"),
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:30:00~2[Europe/Berlin]",
        ),
        (duly.hourly(BERLIN), "2026-10-25T01:00:00Z", "2026-10-25T02[Europe/Berlin]"),
        (duly.hourly(BERLIN), "2026-10-25T02:00:00Z", "2026-10-25T02~2[Europe/Berlin]"),
        (duly.daily(BERLIN, at="02:30"), "2026-10-25T00:30:00Z", "2026-10-24[Europe/Berlin]"),
        (duly.daily(BERLIN, at="02:30"), "2026-10-26T01:30:00Z", "2026-10-25[Europe/Berlin]"),
        (duly.daily("UTC"), "2026-10-26T00:00:00Z", "2026-10-25[UTC]"),
        (duly.every("15m"), "2026-10-26T00:15:00Z", "2026-10-26T00:15:00Z"),
    ],
)
def test_the_window_that_is_due_at_the_time_is_meant(schedule: duly.Schedule, at: str, name: str) -> None:
    assert named(schedule, at) == name


@pytest.mark.parametrize("at", ["2026-10-25T01:30:00Z", "2026-10-25T00:29:00Z", "2026-10-25T00:30:01Z"])
def test_a_time_that_is_none_of_the_schedule_is_refused_and_not_rounded(at: str) -> None:
    with pytest.raises(WindowInvalid, match=r"2026-10-25T02:30:00\[Europe"):
        named(duly.cron("30 2 * * *", zone=BERLIN), at)


def test_an_interval_names_the_window_with_its_bounds_whenever_that_is_due() -> None:
    monthly = duly.monthly(BERLIN, at="06:00")

    assert named(monthly, "2026-10-31T23:00:00Z", start="2026-09-30T22:00:00Z") == "2026-10[Europe/Berlin]"


def test_an_interval_with_other_bounds_is_told_by_its_end() -> None:
    late = duly.daily("UTC", at="03:00")

    assert named(late, "2026-10-26T03:00:00Z", start="2026-10-25T03:00:00Z") == "2026-10-25[UTC]"
    with pytest.raises(WindowInvalid):
        named(late, "2026-10-26T00:00:00Z", start="2026-10-25T12:00:00Z")


@pytest.mark.parametrize("start", ["2026-11-16T00:00:00Z", "2026-11-22T23:00:00Z", "2026-11-21T00:00:00Z"])
def test_an_interval_of_another_length_is_refused_though_a_window_is_due_at_its_end(start: str) -> None:
    assert named(duly.daily("UTC"), "2026-11-23T00:00:00Z", start="2026-11-22T00:00:00Z") == "2026-11-22[UTC]"

    with pytest.raises(WindowInvalid, match=r"no window is .*\.\.2026-11-23T00:00:00Z"):
        named(duly.daily("UTC"), "2026-11-23T00:00:00Z", start=start)


def test_an_interval_of_no_length_is_a_fire() -> None:
    at = "2026-11-23T00:00:00Z"

    assert named(duly.daily("UTC"), at, start=at) == "2026-11-22[UTC]"


def test_where_only_the_firing_is_known_the_newest_window_due_by_then_is_meant() -> None:
    nightly = duly.cron("30 2 * * *", zone=BERLIN)

    assert named(nightly, "2026-10-25T00:30:00.000001Z", exact=False) == "2026-10-25T02:30:00[Europe/Berlin]"
    assert named(nightly, "2026-10-26T01:29:59Z", exact=False) == "2026-10-25T02:30:00[Europe/Berlin]"
    assert named(nightly, "2026-10-26T01:30:00Z", exact=False) == "2026-10-26T02:30:00[Europe/Berlin]"


def test_a_scheduler_that_counts_in_another_zone_is_refused_before_the_clocks_part_them() -> None:
    nightly = duly.cron("30 2 * * *", zone=BERLIN)

    with pytest.raises(WindowInvalid, match="zone: what fired this counts in UTC, and the job in Europe/Berlin"):
        named(nightly, "2026-11-01T01:30:00Z", zone="UTC")


def test_a_firing_of_before_the_job_moved_to_another_zone_is_judged_by_the_zone_of_then() -> None:
    seam = parse_instant("2026-11-27T23:00:00Z")  # midnight of the 28th in Berlin
    spells = [Spell(duly.daily(BERLIN), 1, None, seam), Spell(duly.daily("America/New_York"), 2, seam, None)]

    assert window_meant(spells, Meant(seam, zone=BERLIN)).name == "2026-11-27[Europe/Berlin]"
    with pytest.raises(WindowInvalid, match="zone"):
        window_meant(spells, Meant(parse_instant("2026-11-29T05:00:00Z"), zone=BERLIN))


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [(duly.daily("UTC"), "Etc/UTC"), (duly.daily("Europe/Kyiv"), "Europe/Kiev"), (duly.every("1d"), BERLIN)],
)
def test_another_name_of_the_same_rules_is_well(schedule: duly.Schedule, zone: str) -> None:
    due = next(schedule.before(parse_instant("2026-10-26T12:00:00Z"))).due

    assert window_meant([Spell(schedule, 1, None, None)], Meant(due, zone=zone)).occurrence.due == due


def test_two_windows_that_are_due_at_once_are_not_guessed_between() -> None:
    weekends = duly.make_calendar("weekends", "sat sun")
    moved = duly.daily("UTC", at="06:00").on(weekends, "next")

    with pytest.raises(WindowInvalid, match="are both due at 2026-10-26T06:00:00Z"):
        named(moved, "2026-10-26T06:00:00Z")


def test_the_version_that_answers_for_the_time_is_asked() -> None:
    seam = parse_instant("2026-10-10T00:00:00Z")
    before, after = duly.daily("UTC"), duly.hourly("UTC")
    spells = [Spell(before, 1, None, seam), Spell(after, 2, seam, None)]

    assert window_meant(spells, Meant(seam)).name == "2026-10-09[UTC]"
    assert window_meant(spells, Meant(seam + HOUR)).name == "2026-10-10T00[UTC]"
    with pytest.raises(WindowInvalid):
        window_meant(spells, Meant(seam - HOUR))
    with pytest.raises(WindowInvalid):
        window_meant(spells, Meant(seam + MINUTE))
