"""From the wall clock to instants.

A rule names civil seconds; a zone has each of them once, twice, or not at all, and the rule's policies decide. Almost
all all days are quiet: the zone's offset is one number for all of them, so that their instants are a subtraction, in order.
The few days that a transition reaches are taken together: each civil second is resolved by itself, then all are sorted
and those that meet in one instant are merged.
"""

from __future__ import annotations

from duly.records import record
from duly.schedule.cron import FIRST_DAY, LAST_DAY, CronLine
from duly.times import Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GAPS = ("shift_to_transition", "shift_forward", "skip")
FOLDS = ("first", "second", "both")

# Days further apart than this keep their order whatever the zone does between them.
_REACH = 3

# Zones repeat with the calendar, after 400 years: what the clocks have skipped for so long they will always skip, as
# `0 2 * 3 7L` under `skip` in Berlin, the very hour of each last Sunday of March that does not exist.
_CYCLE = 146_097


@record
class Rule:
    """A line with its policies for civil seconds that do not exist (`gap`) and that exist twice (`fold`)."""

    line: CronLine
    gap: str
    fold: str


if TYPE_CHECKING:
    from typing import TypeAlias

    # Where a window begins or ends: its instant in whole seconds, its nominal (see Occurrence), its resolution.
    Boundary: TypeAlias = tuple[int, int, str]

    # A change of a zone's offset: its instant in whole seconds, the offset before it and the one from then on.
    Change: TypeAlias = tuple[int, int, int]


def resolve(zone: Zone, civil: int, gap: str, fold: str) -> list[Boundary]:
    """The instants of one civil second under the policies: none, one, or both passes in order."""
    before, after = zone.offsets_of(civil)
    if before == after:
        return [(civil - before, 2 * civil, "exact")]
    early, late = sorted((civil - before, civil - after))
    return _resolve_near((bisect_change(zone, early, late), before, after), civil, gap, fold)


def _resolve_near(change: Change, civil: int, gap: str, fold: str) -> list[Boundary]:
    """The instants of a civil second so near to a change that no other change matters."""
    second, before, after = change
    early, late = civil - before, civil - after
    if early < second:
        if late < second:
            return [(early, 2 * civil, "exact")]
        if fold == "both":
            return [(early, 2 * civil, "fold-first"), (late, 2 * civil + 1, "fold-second")]
        return [(early, 2 * civil, "fold-first") if fold == "first" else (late, 2 * civil, "fold-second")]
    if late >= second:
        return [(late, 2 * civil, "exact")]
    if gap == "skip":
        return []
    # the first instant that exists, or the offset from before the gap, as RFC 5545 3.3.5 has it
    return [(second if gap == "shift_to_transition" else early, 2 * civil, "gap-shifted")]


def bisect_change(zone: Zone, early: int, late: int) -> int:
    """The first second after `early` with another offset, by bisection: some fall on no minute (Monrovia 1972)."""
    offset = zone.offset_at(early)
    while late - early > 1:
        middle = (early + late) // 2
        if zone.offset_at(middle) == offset:
            early = middle
        else:
            late = middle
    return late


def boundaries_after(zone: Zone, rules: tuple[Rule, ...], second: int) -> Iterator[Boundary]:
    """The rules' boundaries with an instant after this second, ascending."""
    return _boundaries(zone, rules, second, 1)


def boundaries_before(zone: Zone, rules: tuple[Rule, ...], second: int) -> Iterator[Boundary]:
    """The rules' boundaries with an instant before this second, descending."""
    return _boundaries(zone, rules, second, -1)


def _boundaries(zone: Zone, rules: tuple[Rule, ...], second: int, step: int) -> Iterator[Boundary]:
    for offset, base, times, rough in stretches(zone, rules, second, step):
        for time in times:
            yield base + time - offset, 2 * (base + time), "exact"
        yield from rough


def stretches(
    zone: Zone, rules: tuple[Rule, ...], second: int, step: int
) -> Iterator[tuple[int, int, tuple[int, ...], Sequence[Boundary]]]:
    """The boundaries beyond a second, forward (step 1) or back (-1), by stretches of time.

    A quiet day is the zone's offset, the civil second at which it begins, and the times of day, all in order; the rough
    days around a transition are a list of boundaries.
    """
    quiet = _Quiet(zone)
    rough: list[Boundary] = []
    fruitful_day = rough_day = start = quiet.nearest(_civil_day(zone, second), -step)
    for day, found in _days(rules, start, step):
        offset = quiet.offset_of(day)
        if rough and (offset is not None or abs(day - rough_day) > _REACH):
            yield 0, 0, (), _merge(rough, second, step)
            fruitful_day, rough = rough_day, []
        if offset is None:
            if abs(day - fruitful_day) > _CYCLE:
                return
            rough_day = day
            rough += _resolve_day(quiet.change, day, found)
        else:
            fruitful_day = day
            base = day * 86_400
            times = found[0].line.times if len(found) == 1 else _times(found)
            if step < 0 or base - offset <= second:
                times = _beyond(times, second + offset - base, step)
            yield offset, base, times, ()
    yield 0, 0, (), _merge(rough, second, step)


def _beyond(times: tuple[int, ...], limit: int, step: int) -> tuple[int, ...]:
    """The times after a limit, ascending, or before it, descending. They are ascending, so halving finds the place."""
    low, high = 0, len(times)
    while low < high:
        middle = (low + high) // 2
        if times[middle] < limit + (step > 0):
            low = middle + 1
        else:
            high = middle
    return times[low:] if step > 0 else times[:low][::-1]


def _civil_day(zone: Zone, second: int) -> int:
    second = min(max(second, FIRST_DAY * 86_400), LAST_DAY * 86_400)
    return (second + zone.offset_at(second)) // 86_400


def _resolve_day(change: Change, day: int, rules: list[Rule]) -> list[Boundary]:
    base = day * 86_400
    return [
        boundary
        for rule in rules
        for time in rule.line.times
        for boundary in _resolve_near(change, base + time, rule.gap, rule.fold)
    ]


def _merge(boundaries: list[Boundary], second: int, step: int) -> list[Boundary]:
    """Those beyond a second in order, one for an instant: a wall time that exists wins over one shifted there, else the
    earliest.
    """
    boundaries.sort(key=lambda boundary: (boundary[0], boundary[2] == "gap-shifted", boundary[1]))
    firsts = [b for place, b in enumerate(boundaries) if place == 0 or boundaries[place - 1][0] != b[0]]
    return [boundary for boundary in firsts[::step] if (boundary[0] - second) * step > 0]


def _times(rules: list[Rule]) -> tuple[int, ...]:
    return tuple(sorted({time for rule in rules for time in rule.line.times}))


def _days(rules: tuple[Rule, ...], day: int, step: int) -> Iterator[tuple[int, list[Rule]]]:
    """The days from this one on that any rule has, each with the rules that have it; step 1 forward, -1 back."""
    if len(rules) == 1:
        only = list(rules)
        yield from ((found, only) for found in rules[0].line.days(day, step))
        return
    ahead = [(rule.line.days(day, step), rule) for rule in rules]
    heads = [(next(days, None), days, rule) for days, rule in ahead]
    while left := [head for head, _, _ in heads if head is not None]:
        nearest = min(left) if step > 0 else max(left)
        yield nearest, [rule for head, _, rule in heads if head == nearest]
        heads = [(next(days, None) if head == nearest else head, days, rule) for head, days, rule in heads]


class _Quiet:
    """Which civil days are quiet: each of their seconds exists once, and comes later than all of the days before.

    The offset is looked at for midnights in UTC, of which a civil day touches no other than those from two days before it
    to three after. No zone of the database has two transitions within six days, so that an offset which is the same three
    days apart was the same between; a test looks.
    """

    __slots__ = ("change", "first", "last", "offset", "zone")

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.first = self.last = (
            FIRST_DAY - 4
        )  # `first` to `last`: midnights known to have the same offset; as yet none
        self.offset = 0
        self.change: Change = (FIRST_DAY * 86_400, 0, 0)  # the one that was last met

    def offset_of(self, day: int) -> int | None:
        """The offset of a quiet day, None for another."""
        if not (self.first <= day <= self.last):
            self.first = self.last = day
            self.offset = self.zone.offset_at(day * 86_400)
        while self.last < day + 3:
            step = self._same(self.last, 1)
            if step == 0:
                return self._offset_near_change(day)
            self.last += step
        while self.first > day - 2:
            step = self._same(self.first, -1)
            if step == 0:
                return self._offset_near_change(day)
            self.first += step
        return self.offset

    def _offset_near_change(self, day: int) -> int | None:
        early, late = (day - 2) * 86_400, (day + 3) * 86_400
        if not (early < self.change[0] <= late):
            self.change = bisect_change(self.zone, early, late), self.zone.offset_at(early), self.zone.offset_at(late)
        second, before, after = self.change
        if (day + 1) * 86_400 <= second + min(before, after):
            return before
        # What does not exist may be shifted by as much as the clocks are, in between what does.
        if day * 86_400 >= second + max(before, after) + abs(after - before):
            return after
        return None

    def _same(self, midnight: int, step: int) -> int:
        """How many days on the offset is still the same: three, or one, or 0 for none."""
        for days in (3 * step, step):
            if self.zone.offset_at((midnight + days) * 86_400) == self.offset:
                return days
        return 0

    def nearest(self, day: int, step: int) -> int:
        """The first quiet day from this one on, looking forward (step 1) or back (-1): from there, order is certain."""
        while FIRST_DAY < day < LAST_DAY and self.offset_of(day) is None:
            day += step
        return day
