"""Schedule versions: an edit fires nothing twice and loses nothing (scenarios 47, 48, 51), and is shown before it is made."""

from __future__ import annotations

from itertools import islice, pairwise, takewhile

from hypothesis import assume, given
from hypothesis import strategies as st

from duly.schedule.calendar import make_calendar
from duly.schedule.keys import nominal_text
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule, cron, daily, every, hourly, monthly, yearly
from duly.schedule.spells import Spell, due_after, due_before, find_nominal, windows_after
from duly.schedule.versions import edited, is_one_series, preview, repeated_name, seam_of
from duly.times import DAY, HOUR, duration_text, instant_text, parse_instant

from .strategies import fires, instants, periods, zones
from .test_laws import LAWS

BERLIN = "Europe/Berlin"
NOON = parse_instant("2026-10-20T12:00:00Z")


def forever(schedule: Schedule) -> list[Spell]:
    return [Spell(schedule, 1, None, None)]


def names(spells: list[Spell], instant: int, many: int) -> list[str]:
    """`name (length)` of the windows that end after an instant."""
    found = []
    for spell in spells:
        for o in islice(windows_after([spell], instant), many):
            name = nominal_text(spell.schedule.grain, o.nominal, spell.schedule.zone)
            found.append(f"{name} ({duration_text(o.end - o.start)})")
    return found[:many]


# -- the seam ------------------------------------------------------------------------------------------------------------


def test_what_has_begun_is_kept_and_the_new_schedule_starts_at_its_end() -> None:
    old, new = cron("0 2 * * *", zone="UTC"), cron("0 14 * * *", zone="UTC")

    spells = edited(forever(old), new, NOON)

    assert instant_text(seam_of(forever(old)[0], NOON).since) == "2026-10-21T02:00:00Z"
    assert names(spells, NOON, 3) == [
        "2026-10-21T02:00:00Z (1d)",
        "2026-10-21T14:00:00Z (12h)",
        "2026-10-22T14:00:00Z (1d)",
    ]


def test_another_zone_begins_where_the_old_one_ends() -> None:
    """Scenario 48: a change of zone is an edit like another, and no window is run again or lost."""
    spells = edited(forever(daily(BERLIN)), daily("America/New_York"), NOON)

    assert names(spells, NOON, 3) == ["2026-10-20 (1d)", "2026-10-20 (6h)", "2026-10-21 (1d)"]
    assert not is_one_series(spells[0].schedule, spells[1].schedule)


def test_another_grain_begins_where_the_old_one_ends() -> None:
    spells = edited(forever(monthly("UTC")), hourly("UTC"), NOON)

    assert names(spells, NOON, 2) == ["2026-10 (31d)", "2026-11-01T00 (1h)"]


def test_a_second_edit_before_the_first_one_has_come_into_force_takes_its_place() -> None:
    spells = edited(forever(daily("UTC")), cron("0 14 * * *", zone="UTC"), NOON)
    spells = edited(spells, cron("0 15 * * *", zone="UTC"), NOON + HOUR)

    assert names(spells, NOON, 3) == ["2026-10-20 (1d)", "2026-10-21T15:00:00Z (15h)", "2026-10-22T15:00:00Z (1d)"]


def test_a_zone_that_returns_finds_its_windows_of_meanwhile_off_the_grid() -> None:
    spells = edited(forever(daily("UTC")), daily(BERLIN), NOON)
    spells = edited(spells, daily("UTC"), NOON + 7 * DAY)
    in_utc = [spell for spell in spells if spell.schedule.zone == "UTC"]

    def found(date: str) -> Occurrence | None:
        return find_nominal(in_utc, 2 * (parse_instant(f"{date}T00:00:00Z") // 10**6))

    assert found("2026-10-20") is not None
    assert found("2026-10-23") is None, "Berlin answered for that time"
    assert found("2026-10-28") is not None
    assert repeated_name(spells) is None


def test_a_window_that_a_calendar_made_due_early_is_kept() -> None:
    """On Friday the fire of Sunday is due already; the new schedule starts after it."""
    calendar = make_calendar("weekends", "sat sun")
    old = cron("0 9 * * SUN", zone="UTC").on(calendar, "previous")
    friday = parse_instant("2026-10-23T12:00:00Z")

    spells = edited(forever(old), cron("0 9 * * *", zone="UTC"), friday)

    assert names(spells, friday, 2) == ["2026-10-25T09:00:00Z (7d)", "2026-10-26T09:00:00Z (1d)"]


def test_a_name_of_the_repeated_hour_is_noticed() -> None:
    """At 02:20 CEST on 25 October, `*/15` with both passes becomes the second pass only: 02:15 would come again."""
    old = cron("*/15 * * * *", zone=BERLIN)
    new = cron("*/15 * * * *", zone=BERLIN, fold="second")
    instant = parse_instant("2026-10-25T00:50:00Z")

    repeated = repeated_name(edited(forever(old), new, instant))

    assert repeated is not None
    assert nominal_text("fire", repeated.nominal, BERLIN) == "2026-10-25T02:15:00"
    assert repeated_name(edited(forever(old), new, instant + 2 * HOUR)) is None


def test_a_version_that_begins_in_a_year_is_not_looked_for_second_by_second() -> None:
    spells = edited(forever(yearly("UTC")), every("1s"), NOON)

    assert next(due_after(spells[1:], NOON)).due == parse_instant("2027-01-01T00:00:01Z")
    spells = edited(spells, yearly("UTC"), NOON + 100 * DAY)
    assert next(due_before(spells[1:2], NOON + 40_000 * DAY)).due == NOON + 100 * DAY + 10**6


# -- laws ----------------------------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Spell], int]:
    """The spells of a line after a few edits, each of any schedule in any zone, and an instant shortly before the first."""
    zone = draw(zones)
    instant = begin = draw(instants(zone))
    spells = forever(draw(st.one_of(periods(zone), fires(zone))))
    for _ in range(draw(st.integers(1, 3))):
        zone = draw(st.one_of(st.just(zone), zones))
        instant += draw(st.integers(0, 3 * DAY))
        spells = edited(spells, draw(st.one_of(periods(zone), fires(zone))), instant)
    return spells, begin - draw(st.integers(0, 2 * DAY))


@LAWS
@given(histories())
def test_windows_tile_time_across_any_edits(history: tuple[list[Spell], int]) -> None:
    spells, since = history
    assume(all(ever_fires_around(spell.schedule, since) for spell in spells))

    for spell in spells:
        begin = since if spell.since is None else spell.since
        windows = list(islice(windows_after([spell], begin), 20))

        assert all(one.start < one.end == other.start for one, other in pairwise(windows))
        if windows and spell.since is not None:
            assert windows[0].start == spell.since
        if spell.until is not None and spell.until != spell.since:
            last = next(spell.before(spell.until + 3 * DAY))
            assert last.end == spell.until


def ever_fires_around(schedule: Schedule, instant: int) -> bool:
    """Whether it has windows on both sides: what the clocks skip each year has none."""
    return next(schedule.before(instant), None) is not None and next(schedule.after(instant), None) is not None


@LAWS
@given(histories())
def test_each_name_is_used_once(history: tuple[list[Spell], int]) -> None:
    spells, since = history
    assume(all(repeated_name(spells[: n + 1]) is None for n in range(1, len(spells))))

    found = [
        (spell.schedule.zone, spell.schedule.grain, o.nominal)
        for spell in spells
        for o in islice(windows_after([spell], since), 100)
    ]

    assert len(set(found)) == len(found)


@LAWS
@given(histories())
def test_what_comes_due_comes_in_order_forwards_and_backwards(history: tuple[list[Spell], int]) -> None:
    spells, since = history

    later = list(islice(due_after(spells, since), 12))
    assume(later)
    # more may be due at the last instant than were taken
    back = list(takewhile(lambda o: o.due > since, due_before(spells, later[-1].due)))

    assert [o.due for o in later] == sorted(o.due for o in later)
    assert [o.due for o in back] == sorted((o.due for o in back), reverse=True)
    assert set(later) <= set(back)
    assert all(o.due == later[-1].due for o in set(back) - set(later))


# -- preview -------------------------------------------------------------------------------------------------------------


def preview_of(old: Schedule, new: Schedule, *, days: int = 3) -> list[str]:
    """`name what (into how many)` of each window that an edit at noon changes."""
    found = []
    for change in preview(forever(old), new, NOON, NOON, NOON + days * DAY):
        named = change.after or change.before
        assert named is not None
        found.append(f"{named.middle} {change.kind}{f' into {len(change.into)}' if change.into else ''}")
    return found


def test_a_preview_of_another_time_of_day() -> None:
    assert preview_of(cron("0 2 * * *", zone="UTC"), cron("0 14 * * *", zone="UTC")) == [
        "2026-10-21T14:00:00Z appears",
        "2026-10-22T02:00:00Z split into 2",
        "2026-10-22T14:00:00Z appears",
        "2026-10-23T02:00:00Z split into 2",
        "2026-10-23T14:00:00Z appears",
        "2026-10-24T02:00:00Z split into 2",
    ]


def test_a_preview_of_the_same_schedule_is_empty() -> None:
    assert preview_of(daily(BERLIN), daily(BERLIN)) == []


def test_a_preview_of_a_later_hour_of_work_shifts_what_is_due() -> None:
    assert preview_of(daily(BERLIN), daily(BERLIN, at="02:30"), days=2) == ["2026-10-21 shifts", "2026-10-22 shifts"]


def test_a_preview_of_half_the_fires() -> None:
    assert preview_of(cron("0 */6 * * *", zone="UTC"), cron("0 */12 * * *", zone="UTC"), days=1) == [
        "2026-10-21T06:00:00Z vanishes",
        "2026-10-21T12:00:00Z shifts",
    ]


def test_a_preview_of_hours_instead_of_days() -> None:
    found = preview_of(daily("UTC"), hourly("UTC"), days=1)

    assert sorted(found)[0] == "2026-10-21 split into 24"
    assert sorted(found)[1:] == [f"2026-10-21T{hour:02d} appears" for hour in range(12)]


def test_a_preview_of_another_zone() -> None:
    assert preview_of(daily(BERLIN), daily("America/New_York"), days=1) == [
        "2026-10-20 appears",  # six hours at the seam: New York's rest of its day
        "2026-10-21 split into 2",
        "2026-10-21 appears",
    ]
