"""Pieces: an axis as the windows of many lines are laid on it. What lines of one schedule or zone share is worked out once.

A window lies where its name does: a period where it begins, a fire where it is due. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise, takewhile

from duly.ledger.register import schedule_of
from duly.ledger.spells import spell_in_force
from duly.records import replace
from duly.times import HOUR, SECOND, Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import Known
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

_FEW_IN_ALL = 1_000  # windows that are worked out once for all lines of a schedule


class Pieces:
    """Where pieces of time begin, and what of the schedules of many lines lies in each."""

    def __init__(self, starts: list[int], end: int) -> None:
        self.starts = starts
        self.edges = [*starts, end]
        self._instants: dict[tuple[object, ...], list[int]] = {}
        self._expected: dict[tuple[object, ...], list[int]] = {}
        self._occurrences: dict[tuple[object, ...], list[Occurrence]] = {}
        self._places: dict[str, dict[tuple[int, int], int]] = {}

    def place(self, instant: int) -> int:
        return len(self.starts) if instant >= self.edges[-1] else bisect_right(self.starts, instant) - 1

    def edge(self, instant: int) -> int:
        """The edge between pieces that an instant is nearest to."""
        after = bisect_left(self.edges, instant)
        if after == 0:
            return 0
        if after == len(self.edges):
            return len(self.starts)
        is_nearer_before = instant - self.edges[after - 1] < self.edges[after] - instant
        return after - 1 if is_nearer_before else after

    def expected(self, known: Known) -> list[int]:
        """How many windows of the schedule in force lie in each piece."""
        what, version = _schedule_of(known), known.version
        assert version is not None
        found = self._expected.get(what)
        if found is None:
            instants = self._instants.get(what)
            if instants is None:
                found_in = _bare(schedule_of(version)).instants(self.edges[0] - 1, self.edges[-1] - 1)
                instants = self._instants[what] = list(found_in)
            before = [bisect_left(instants, edge) for edge in self.edges]
            found = self._expected[what] = [after - first for first, after in pairwise(before)]
        return found

    def occurrences(self, known: Known, places: list[int]) -> list[Occurrence]:
        """The windows of the schedule in force that lie in pieces from the first to the last of these."""
        since, until = self.starts[places[0]], self.edges[places[-1] + 1]
        if sum(self.expected(known)) > _FEW_IN_ALL:
            return _occurrences(known, since, until)
        what = (*_schedule_of(known), known.version and known.version.at)
        found = self._occurrences.get(what)
        if found is None:
            found = self._occurrences[what] = _occurrences(known, self.starts[0], self.edges[-1])
        return [occurrence for occurrence in found if since <= lies_at(known, occurrence) < until]

    def place_of_name(self, zone: str, unit: int, part: int, second: int) -> int:
        """The piece that a part of civil time in a zone begins in."""
        places = self._places.setdefault(zone, {})
        found = places.get((part, second))
        if found is None:
            civil = part * unit // 2
            offsets = Zone(zone).offsets_of(civil)
            found = places[part, second] = self.place((civil - offsets[second]) * SECOND)
        return found

    def hours(self) -> Pieces:
        """The same time in hours, of which each lies in one of these pieces."""
        starts = [hour for start, end in pairwise(self.edges) for hour in range(start, end, HOUR)]
        hours = Pieces(starts, self.edges[-1])
        hours._instants = self._instants  # of the same time
        return hours


def _schedule_of(known: Known) -> tuple[object, ...]:
    """What of a version says where its windows lie."""
    version = known.version
    assert version is not None
    names = ("kind", "zone", "grain", "gap", "fold", "lines", "interval", "anchor")
    return tuple(getattr(version, name) for name in names)


def _occurrences(known: Known, since: int, until: int) -> list[Occurrence]:
    """The windows of the schedule in force that lie in [since, until)."""
    from_then_on = spell_in_force(known).ending_after(since - 1)
    found = takewhile(lambda occurrence: lies_at(known, occurrence) < until, from_then_on)
    return [occurrence for occurrence in found if lies_at(known, occurrence) >= since]


def _bare(schedule: Schedule) -> Schedule:
    """The schedule with the same windows, due where they end."""
    return schedule if schedule.at is None else replace(schedule, at=None)


def lies_at(known: Known, occurrence: Occurrence) -> int:
    """Where a window lies: a period where it begins, a fire where it is due."""
    assert known.version is not None
    return occurrence.end if known.version.kind in ("cron", "every") else occurrence.start
