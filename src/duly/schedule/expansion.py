"""Expansion: the due instants of a schedule over a range, as integers, and how many there are.

What counts and draws wants instants by the million and no names. A quiet day of a line is one addition to the line's
times, which are the same each day; only the days around a transition are resolved one by one. Counting adds up the
lengths.
"""

from __future__ import annotations

from itertools import takewhile

from duly.schedule.resolver import boundaries_before, stretches
from duly.schedule.spec import EARLIEST, LATEST, Schedule
from duly.times import SECOND, Zone, clock_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    # Due seconds: a base, and what is to be added to it.
    Stretch: TypeAlias = tuple[int, Sequence[int]]


def instants(schedule: Schedule, after: int, until: int) -> Iterator[int]:
    """The due instants in (after, until], in order."""
    if schedule.calendar is not None and schedule.calendar.policy != "skip":
        yield from takewhile(until.__ge__, (occurrence.due for occurrence in schedule.after(after)))
        return
    for base, steps in _stretches(schedule, after, until):
        for step in steps:
            yield (base + step) * SECOND


def count(schedule: Schedule, after: int, until: int) -> int:
    """How many due instants lie in (after, until]."""
    if schedule.calendar is not None and schedule.calendar.policy != "skip":
        return sum(1 for _ in instants(schedule, after, until))
    return sum(len(steps) for _, steps in _stretches(schedule, after, until))


def _stretches(schedule: Schedule, after: int, until: int) -> Iterator[Stretch]:
    """Everything in whole seconds from here on: a due instant is one."""
    if schedule.kind == "every":
        return iter([(0, _ticks(schedule, after, until))])
    if schedule.at is not None:
        return _wall_clocks(schedule, after // SECOND, until // SECOND)
    return _boundaries(schedule, after // SECOND, until // SECOND)


def _ticks(schedule: Schedule, after: int, until: int) -> range:
    interval, anchor = schedule.interval // SECOND, schedule.anchor // SECOND
    low, high = max(after, EARLIEST - 1) // SECOND, min(until, LATEST) // SECOND
    return range(low + interval - (low - anchor) % interval, high + 1, interval)


def _boundaries(schedule: Schedule, after: int, until: int) -> Iterator[Stretch]:
    """Of fires, and of periods that are due at their end: every boundary but the first of all, which ends nothing."""
    zone = Zone(schedule.zone)
    extra = _has_none_before(schedule, zone, after)
    for offset, begin, times, rough in stretches(zone, schedule.rules, after, 1):
        base, steps = begin - offset, times or [boundary[0] for boundary in rough]
        if not steps:
            continue
        if base + steps[-1] > until:
            yield base, [step for step in steps[extra:] if base + step <= until]
            return
        yield base, steps[extra:] if extra else steps
        extra = 0


def _wall_clocks(schedule: Schedule, after: int, until: int) -> Iterator[Stretch]:
    """Of periods that are worked at a wall clock: up to a day after their end, and later by what the clocks are moved."""
    zone, since = Zone(schedule.zone), after - 3 * 86_400
    extra = _has_none_before(schedule, zone, since)
    clock = clock_seconds(schedule.at or "00:00")
    for offset, begin, times, rough in stretches(zone, schedule.rules, since, 1):
        if times and times[0] <= clock:  # still within the quiet day
            dues = [begin - offset + clock]
        else:
            ends = rough or [(begin - offset + time, 2 * (begin + time), "exact") for time in times]
            dues = [schedule.due_of(zone, end) for end in ends]
        if not dues:
            continue
        if dues[0] > until:
            return
        yield 0, [due for due in dues[extra:] if after < due <= until]
        extra = 0


def _has_none_before(schedule: Schedule, zone: Zone, second: int) -> int:
    """1 if no boundary comes up to a second, else 0: how many of those that follow are the first of all."""
    return int(next(boundaries_before(zone, schedule.rules, second + 1), None) is None)
