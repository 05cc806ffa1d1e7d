"""From the wall clock to instants.

A rule names civil seconds; a zone has each of them once, twice, or not at all, and the rule's policies decide. Almost
all days are quiet: the zone's offset does not change near them, so that their instants are a subtraction, in order.
The few days around a transition are taken together: each civil second is resolved by itself, then all are sorted and
those that meet in one instant are merged.
"""

from __future__ import annotations

from duly.records import record
from duly.schedule.cron import FIRST_DAY, LAST_DAY, CronLine
from duly.times import Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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


# A boundary, where a window begins or ends: its instant in whole seconds, its nominal (see Occurrence), its resolution.
if TYPE_CHECKING:
    from typing import TypeAlias

    Boundary: TypeAlias = tuple[int, int, str]


def resolve(zone: Zone, civil: int, gap: str, fold: str) -> list[Boundary]:
    """The instants of one civil second under the policies: none, one, or both passes in order."""
    before, after = zone.offsets_of(civil)
    if before == after:
        return [(civil - before, 2 * civil, "exact")]
    if before < after:
        return _resolve_gap(zone, civil, before, after, gap)
    first, second = (civil - before, 2 * civil, "fold-first"), (civil - after, 2 * civil, "fold-second")
    if fold == "both":
        return [first, (civil - after, 2 * civil + 1, "fold-second")]
    return [first if fold == "first" else second]


def _resolve_gap(zone: Zone, civil: int, before: int, after: int, gap: str) -> list[Boundary]:
    if gap == "skip":
        return []
    if gap == "shift_forward":  # the offset before the gap, RFC 5545 3.3.5
        return [(civil - before, 2 * civil, "gap-shifted")]
    return [(_transition(zone, civil - after, civil - before), 2 * civil, "gap-shifted")]


def _transition(zone: Zone, early: int, late: int) -> int:
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
    """Those beyond a second, forward (step 1) or back (-1): quiet days one by one, rough ones together."""
    quiet = _Quiet(zone)
    rough: list[Boundary] = []
    fruitful_day = rough_day = start = quiet.nearest(_civil_day(zone, second), -step)
    for day, found in _days(rules, start, step):
        offset = quiet.offset_of(day)
        if rough and (offset is not None or abs(day - rough_day) > _REACH):
            yield from _merge(rough, second, step)
            fruitful_day, rough = rough_day, []
        if offset is None:
            if abs(day - fruitful_day) > _CYCLE:
                return
            rough_day = day
            rough += _resolve_day(zone, day, found)
        else:
            fruitful_day = day
            base = day * 86_400
            for time in _beyond(_times(found), second + offset - base, step):
                yield base + time - offset, 2 * (base + time), "exact"
    yield from _merge(rough, second, step)


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


def _resolve_day(zone: Zone, day: int, rules: list[Rule]) -> list[Boundary]:
    base = day * 86_400
    return [
        boundary
        for rule in rules
        for time in rule.line.times
        for boundary in resolve(zone, base + time, rule.gap, rule.fold)
    ]


def _merge(boundaries: list[Boundary], second: int, step: int) -> Iterator[Boundary]:
    """Those beyond a second in order, one for an instant: a wall time that exists wins over one shifted there, else the
    earliest.
    """
    boundaries.sort(key=lambda boundary: (boundary[0], boundary[2] == "gap-shifted", boundary[1]))
    firsts = [b for place, b in enumerate(boundaries) if place == 0 or boundaries[place - 1][0] != b[0]]
    return (boundary for boundary in firsts[::step] if (boundary[0] - second) * step > 0)


def _times(rules: list[Rule]) -> tuple[int, ...]:
    if len(rules) == 1:
        return rules[0].line.times
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
    """Which civil days are quiet: the offset is the same at each midnight in UTC from two days before to three after.

    A civil day covers instants of up to three UTC days, and a shift or a repeated hour reaches up to a day further
    (Apia 2011, Kwajalein 1969). The zones of the database have no two transitions within a day that cancel each other
    out; a test looks.
    """

    __slots__ = ("first", "last", "offset", "zone")

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.first = self.last = self.offset = 0
        self._begin(FIRST_DAY)

    def _begin(self, day: int) -> None:
        """Know one midnight; `first` to `last` are midnights known to have the same offset."""
        self.first = self.last = day
        self.offset = self.zone.offset_at(day * 86_400)

    def offset_of(self, day: int) -> int | None:
        """The offset of a quiet day, None for another."""
        if not (self.first <= day <= self.last):
            self._begin(day)
        while self.last < day + 3:
            if self.zone.offset_at((self.last + 1) * 86_400) != self.offset:
                return None
            self.last += 1
        while self.first > day - 2:
            if self.zone.offset_at((self.first - 1) * 86_400) != self.offset:
                return None
            self.first -= 1
        return self.offset

    def nearest(self, day: int, step: int) -> int:
        """The first quiet day from this one on, looking forward (step 1) or back (-1): from there, order is certain."""
        while FIRST_DAY < day < LAST_DAY and self.offset_of(day) is None:
            day += step
        return day
