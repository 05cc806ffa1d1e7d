"""Spells as laws: whatever schedule follows another, in whatever night, the windows of a line tile time (I9)."""

from __future__ import annotations

from itertools import islice, pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from duly.errors import NotAllowed
from duly.ledger.spells import Spell, due_after, due_before, find_nominal
from duly.ledger.versions import refuse_same_name
from duly.schedule import spec
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule
from duly.schedule.versions import edited
from tests.schedule.strategies import ats, folds, gaps, instants, lines, passes, shifts, zones


@st.composite
def changes(draw: st.DrawFn) -> tuple[Schedule, Schedule, int]:
    """Two schedules of one zone and grain, and the instant of the change."""
    zone = draw(zones)
    instant = draw(instants(zone))
    if draw(st.booleans()):
        old, new = (spec.cron(draw(lines()), zone=zone, gap=draw(gaps), fold=draw(folds)) for _ in range(2))
    else:
        offset = draw(ats)
        old, new = (
            spec.daily(zone, at=draw(ats), offset=offset, gap=draw(shifts), fold=draw(passes)) for _ in range(2)
        )
    return old, new, instant


def spells_of_change(old: Schedule, new: Schedule, instant: int) -> list[Spell]:
    spells = edited([Spell(old, 1, None, None)], new, instant)
    assume(next(spells[1].after(instant), None) is not None)  # 02:00 on the last Sunday of March is skipped each year
    assume(next(old.before(instant), None) is not None)
    try:
        refuse_same_name(spells)
    except NotAllowed:
        assume(False)
    return spells


@given(changes())
def test_the_windows_of_a_line_tile_time_across_a_change_of_schedule(change: tuple[Schedule, Schedule, int]) -> None:
    spells = spells_of_change(*change)

    windows = around(spells, change[2])

    assert all(earlier.end == later.start for earlier, later in pairwise(windows))
    assert len({window.nominal for window in windows}) == len(windows)


@given(changes())
def test_what_is_listed_forward_is_listed_backward_and_found_by_name(change: tuple[Schedule, Schedule, int]) -> None:
    spells = spells_of_change(*change)

    windows = list(islice(due_after(spells, change[2]), 6))

    newest_first = list(islice(due_before(spells, windows[-1].due), 6))
    assert sorted(newest_first, key=lambda window: window.end)[-len(windows) :] == windows
    assert [find_nominal(spells, window.nominal) for window in windows] == windows


def around(spells: list[Spell], instant: int) -> list[Occurrence]:
    before = list(islice(due_before(spells, instant), 3))
    return [*reversed(before), *islice(due_after(spells, instant), 6)]
