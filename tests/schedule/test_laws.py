"""What holds for every schedule, in every zone, on the days on which clocks are changed most of all."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duly.schedule import spec
from duly.schedule.keys import RunKey, nominal_text, parse_key
from duly.schedule.resolver import boundaries_after
from duly.schedule.spec import Schedule, from_spec
from duly.times import SECOND, Zone

from .strategies import clocks, hours, instants, minutes, schedules_and_instants, zones

LAWS = settings(max_examples=250, deadline=None)


@LAWS
@given(schedules_and_instants())
def test_windows_tile_time_and_come_in_order(given: tuple[Schedule, int]) -> None:
    schedule, instant = given

    found = list(islice(schedule.after(instant), 12))
    assume(found)  # what falls into the gap of each year and is skipped has none

    assert instant < found[0].due
    for one, next_one in pairwise(found):
        assert one.start < one.end == next_one.start
        assert one.end <= one.due <= next_one.due


@LAWS
@given(schedules_and_instants())
def test_each_window_has_a_name_of_its_own(given: tuple[Schedule, int]) -> None:
    schedule, instant = given

    names = [nominal_text(schedule.grain, o.nominal, schedule.zone) for o in islice(schedule.after(instant), 60)]

    assert len(set(names)) == len(names)


@LAWS
@given(schedules_and_instants())
def test_before_is_after_read_backwards(given: tuple[Schedule, int]) -> None:
    schedule, instant = given

    later = list(islice(schedule.after(instant), 9))
    earlier = list(islice(schedule.before(instant), 3))
    assume(later)
    assume(earlier)

    assert list(islice(schedule.before(later[-1].due), 12)) == later[::-1] + earlier
    assert list(islice(schedule.after(earlier[-1].due - 1), 12)) == earlier[::-1] + later


@LAWS
@given(schedules_and_instants(), st.integers(0, 50), st.lists(st.integers(0, 2 * 10**12), max_size=3))
def test_expansion_in_pieces_is_expansion_at_once(given: tuple[Schedule, int], many: int, cuts: list[int]) -> None:
    schedule, instant = given
    found = [o.due for o in islice(schedule.after(instant), many)]
    until = found[-1] if found else instant

    at_once = list(schedule.instants(instant, until))
    ends = sorted(min(instant + cut, until) for cut in cuts)
    pieces = [list(schedule.instants(*piece)) for piece in pairwise([instant, *ends, until])]
    counts = [schedule.count(*piece) for piece in pairwise([instant, *ends, until])]

    assert at_once == found
    assert [due for piece in pieces for due in piece] == found
    assert counts == [len(piece) for piece in pieces]


@LAWS
@given(schedules_and_instants())
def test_an_occurrence_is_found_by_its_nominal_and_by_its_name(given: tuple[Schedule, int]) -> None:
    schedule, instant = given

    for occurrence in islice(schedule.after(instant), 6):
        assert schedule.find(occurrence.nominal) == occurrence
        assert schedule.lookup(nominal_text(schedule.grain, occurrence.nominal, schedule.zone)) == occurrence


@LAWS
@given(schedules_and_instants(), st.sampled_from(("", "acme", "a/b [1]")))
def test_a_key_names_its_occurrence_and_the_occurrence_its_key(given: tuple[Schedule, int], scope: str) -> None:
    schedule, instant = given

    for occurrence in islice(schedule.after(instant), 6):
        text = str(RunKey("export", scope, schedule.grain, occurrence.nominal, schedule.zone))
        key = parse_key(text)
        assert schedule.find(key.nominal) == occurrence
        assert str(key) == text
        assert (key.job, key.scope, key.grain, key.zone) == ("export", scope, schedule.grain, schedule.zone)


@LAWS
@given(schedules_and_instants(), st.integers(-86_400, 86_400))
def test_what_is_found_by_nominal_is_an_occurrence(given: tuple[Schedule, int], shift: int) -> None:
    schedule, instant = given
    nominal = 2 * (instant // SECOND) + shift

    found = schedule.find(nominal)

    if found is not None:
        assert found.nominal == nominal
        assert found in list(islice(schedule.after(found.due - 1), 2))


@LAWS
@given(schedules_and_instants())
def test_a_schedule_comes_back_from_its_spec(given: tuple[Schedule, int]) -> None:
    schedule, _ = given

    stored = json.dumps(schedule.spec())

    assert from_spec(json.loads(stored)) == schedule
    assert json.dumps(from_spec(json.loads(stored)).spec()) == stored


def clock_of(zone: str, instant: int, *, hours_before: int = 18) -> list[tuple[int, datetime]]:
    """Each half minute around an instant, to 18 hours after, with what clocks show (Monrovia's were changed on a half)."""
    info = ZoneInfo(zone)
    middle = instant // SECOND // 30 * 30
    utc = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        (second, (utc + timedelta(seconds=second)).astimezone(info))
        for second in range(middle - hours_before * 3600, middle + 18 * 3600, 30)
    ]


@settings(max_examples=60, deadline=None)
@given(st.data(), zones, clocks)
def test_a_day_begins_when_the_clock_first_shows_its_beginning_or_later(
    data: st.DataObject, zone: str, offset: str
) -> None:
    instant = data.draw(instants(zone))
    clock = clock_of(zone, instant, hours_before=42)  # a day more: what it has shown before decides what is new
    begin = clock[24 * 120][0]
    days = spec.daily(zone, offset=offset).rules
    hour, minute = (int(part) for part in offset.split(":"))

    boundaries = boundaries_after(Zone(zone), days, begin)
    found = [boundary[0] for boundary in boundaries_until(boundaries, clock[-1][0])]

    expected: list[int] = []
    high = clock[0][1].replace(tzinfo=None)
    for second, local in clock[1:]:
        shown = local.replace(tzinfo=None)
        if shown > high:
            begins = shown.replace(hour=hour, minute=minute, second=0)
            if high < begins <= shown or high < begins - timedelta(days=1) <= shown:
                expected.append(second)
            high = shown
    assert found == [second for second in expected if second > begin]


@settings(max_examples=60, deadline=None)
@given(st.data(), zones, minutes, hours)
def test_a_wildcard_line_fires_whenever_the_clock_shows_it(
    data: st.DataObject, zone: str, minute: str, hour: str
) -> None:
    instant = data.draw(instants(zone))
    clock = clock_of(zone, instant)
    schedule = spec.cron(f"{minute} {hour} * * *", zone=zone, gap="skip", fold="both")
    line = schedule.lines[0]

    boundaries = boundaries_after(Zone(zone), schedule.rules, clock[0][0] - 1)
    found = [(second, nominal) for second, nominal, _ in boundaries_until(boundaries, clock[-1][0])]

    civil = datetime(1970, 1, 1)
    assert found == [
        (second, 2 * ((local.replace(tzinfo=None) - civil) // timedelta(seconds=1)) + local.fold)
        for second, local in clock
        if local.second == 0 and local.hour in line.hour and local.minute in line.minute
    ]


def boundaries_until(boundaries: object, last: int) -> list[tuple[int, int, str]]:
    found = []
    for boundary in boundaries:  # type: ignore[attr-defined]
        if boundary[0] > last:
            break
        found.append(boundary)
    return found
