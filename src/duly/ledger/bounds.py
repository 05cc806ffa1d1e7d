"""Bounds: where a window starts and where it ends, as it is to be stored.

The rules of the zone on a host name the windows and say where they end; where they start is a stored fact. A line remembers
where the last window that was opened ends, and the next one starts there, around all that is stored already. So the windows
of a line tile time, whatever the rules say today, or said there (I9). Looks only.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, every, one
from duly.ledger.records import Known, RunId, Series
from duly.ledger.register import FIND_SERIES
from duly.ledger.spells import Placed, Spell, spells_of_line, tiles_after
from duly.records import record, replace
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

# How far a new release of a zone's rules may move a time: no zone has ever moved by more than a day; twice that.
RULES_MAY_MOVE = 2 * DAY

# In nominals, which are two to a second: how far from a window's name that of another may lie that was opened over its
# time. Each of the two names differs from UTC by at most a day, and is moved by new rules by at most one more: four days.
NEAR = 2 * (2 * RULES_MAY_MOVE) // SECOND

BOUNDS_OF = Statement(
    "bounds_of",
    """
select nominal, window_start, window_end
  from duly_run
 where series = :series and nominal = :nominal and revision = 1
""",
)

OVERLAPPING = Statement(
    "overlapping",
    """
select window_start, window_end
  from duly_run
 where series = :series and nominal between :first and :last and nominal <> :nominal and revision = 1
   and window_start < :end and window_end > :start
 order by window_start
""",
)

ROWS_BETWEEN = Statement(
    "rows_between",
    """
select nominal, window_start, window_end
  from duly_run
 where series = :series and nominal between :first - :near and :last + :near and revision = 1
   and (nominal between :first and :last or window_end > :since)
 order by window_start
""",
)

RANGES_BETWEEN = Statement(
    "ranges_between",
    """
select from_nominal, to_nominal
  from duly_skipped
 where series = :series and from_nominal <= :last and to_nominal > :first
""",
)


@record
class Range:
    """Half-open, in nominals."""

    first: int
    beyond: int


@record
class Row:
    """A window that has a row; None where it has no time of its own."""

    nominal: int
    start: int | None
    end: int | None


@record
class Bounds:
    """A window in time, [start, end)."""

    start: int
    end: int


@record
class Coming:
    """Windows come due, in the order of their bounds. Those in `dropped` are not to be opened. `following` comes next."""

    windows: list[Occurrence]
    dropped: list[Range]
    following: Occurrence | None


@record
class Beside:
    """The windows before and after one by the rules of today, by name; and the names from first to last that lie near it."""

    before: int
    after: int
    first: int
    last: int


# -- windows in order --------------------------------------------------------------------------------------------------


@record
class Opening:
    """Windows to be given their rows, with the bounds to store, and where the next one will start."""

    fresh: list[Occurrence]
    until: int


async def open_in_order(series: Series, opened_until: int, coming: Coming) -> Opening:
    """Those of the windows that have no row and lie in no skipped range, chained to what is stored around them.

    The line is held: what is stored of it does not change meanwhile.
    """
    if not coming.windows:
        return Opening([], opened_until)
    names = [o.nominal for o in (*coming.windows, coming.following) if o is not None]
    near = 0 if series.zone == "UTC" else NEAR  # the rules of UTC never change
    span = {"first": min(names), "last": max(names)}
    rows = await every(ROWS_BETWEEN, Row, series=series.id, near=near, since=opened_until, **span)
    ranges = await every(RANGES_BETWEEN, Range, series=series.id, **span)
    return chain(coming, opened_until, rows, [*ranges, *coming.dropped])


def chain(coming: Coming, opened_until: int, rows: list[Row], ranges: list[Range]) -> Opening:
    """Give windows their bounds: each from where the one before ends as it is stored, around all that is stored. Pure.

    What no time is left for starts where it ends. The one before a window that has a row reaches to it, whatever the rules
    of today say in between.
    """
    named = {row.nominal: row for row in rows}
    stored = _Stored(rows)
    fresh: list[Occurrence] = []
    edge = opened_until
    for occurrence in coming.windows:
        row = named.get(occurrence.nominal)
        if row is not None:
            edge = stored.reach(fresh, edge, row)
        elif any(span.first <= occurrence.nominal < span.beyond for span in ranges):
            edge = max(edge, occurrence.end)
        else:
            edge = stored.beyond(edge)
            end = stored.until(max(edge, occurrence.end), edge)
            fresh.append(replace(occurrence, start=edge, end=end))
            edge = end
    ahead = None if coming.following is None else named.get(coming.following.nominal)
    if ahead is not None:
        stored.reach(fresh, edge, ahead)
    return Opening(fresh, max(edge, *(o.end for o in fresh[-1:]), opened_until))


class _Stored:
    """The stored windows of a line in order of time, looked at by somebody who walks along it."""

    def __init__(self, rows: list[Row]) -> None:
        self._spans = [(row.start, row.end) for row in rows if row.start is not None and row.end is not None]
        self._place = 0

    def beyond(self, edge: int) -> int:
        """Where free time begins, from an edge on."""
        while self._place < len(self._spans) and self._spans[self._place][0] <= edge:
            edge = max(edge, self._spans[self._place][1])
            self._place += 1
        return edge

    def until(self, end: int, edge: int) -> int:
        """Where free time that begins at the edge ends, at most at this end. What lies beyond falls to the window after."""
        ahead = (start for start, _ in self._spans[self._place :] if start >= edge)
        return min(end, next(ahead, end))

    def reach(self, fresh: list[Occurrence], edge: int, row: Row) -> int:
        """Let the window that was given its bounds just before reach to one that has a row; the edge after that."""
        if row.start is None or row.end is None:
            return edge
        if fresh and fresh[-1].end == edge < row.start:
            fresh[-1] = replace(fresh[-1], end=self.until(row.start, edge))
        return max(edge, row.end)


# -- a window that is named --------------------------------------------------------------------------------------------


async def chained(known: Known, run: RunId, occurrence: Occurrence | None) -> Occurrence | None:
    """The window of a run that is named, between its neighbours as they are stored. It starts where it ends if they leave
    it no time.

    Between those that the rules of today name, of whichever series, and around every other of its own that is stored near
    it: rules of before may have named a window that is none today.
    """
    if occurrence is None or known.version is None or _has_certain_bounds(known, occurrence):
        return occurrence
    assert known.line is not None
    spells = await spells_of_line(known)
    start, end = occurrence.start, occurrence.end
    before = next(tiles_after(spells, start - 1), None)
    while before is not None and (earlier := await _stored(known, before)) is not None:
        if earlier.end is not None:
            start = earlier.end
            break
        # Its name was settled without a time of its own; by the rules of today it has one, which falls to this window.
        start = before.occurrence.start
        before = next(tiles_after(spells, start - 1), None)
        if before is not None and before.occurrence.start >= start:
            break  # at a seam: by the rules of today nothing ends there
    else:
        opened = known.line.opened_until
        if opened is not None and before is not None and before.occurrence.end <= opened < end:
            start = opened  # the one before was passed over: this is the first that is not open yet
        elif opened is not None and before is not None and before.occurrence == occurrence and opened < end:
            start = opened  # a seam where, by the rules of today, nothing ends: it is where the last one ends as it is stored
    after = next(tiles_after(spells, end), None)
    later = None if after is None else await _stored(known, after)
    if later is not None and later.start is not None:
        end = later.start
    free = await cut(run, start, end)
    return replace(occurrence, start=free.start, end=free.end)


def _has_certain_bounds(known: Known, occurrence: Occurrence) -> bool:
    """Whether a window's neighbours are as its schedule has them: in UTC, but at a seam to a zone whose rules change. Pure."""
    assert known.version is not None
    since = known.version.effective_from
    return known.version.zone == "UTC" and (not since or occurrence.start >= since + RULES_MAY_MOVE)


async def _stored(known: Known, placed: Placed) -> Row | None:
    """The row of a window of the line, in the series that it lies in."""
    assert known.line is not None
    zone, grain = placed.series
    series = known.series
    if series is None or (series.zone, series.grain) != (zone, grain):
        series = await one(FIND_SERIES, Series, line=known.line.id, zone=zone, grain=grain)
    return None if series is None else await _stored_row(series.id, placed.occurrence.nominal)


async def cut(run: RunId, start: int, end: int) -> Bounds:
    """What is left of a time for a run between all other windows that are stored near it; empty if nothing is."""
    near = _near(start, end)
    span = {"first": run.nominal - near, "last": run.nominal + near, "start": start, "end": end}
    for other in await every(OVERLAPPING, Bounds, series=run.series, nominal=run.nominal, **span):
        if other.start <= start:
            start = max(start, other.end)
        else:
            end = min(end, other.start)  # what lies beyond the other falls to the window after this one
    return Bounds(start, max(start, end))


def _near(start: int, end: int) -> int:
    """How far from a window's name that of another may lie that was opened over its time, in nominals."""
    return 2 * (max(end - start, 0) + RULES_MAY_MOVE) // SECOND


def beside(spell: Spell, occurrence: Occurrence) -> Beside | None:
    """What `chained` looks at for a window that lies well inside the spell in force; None where it is not plainly so. Pure."""
    around = spell.ending_after(occurrence.start - 1)
    before, same, after = next(around, None), next(around, None), next(around, None)
    if before is None or same != occurrence or after is None or before.end != occurrence.start:
        return None
    near = _near(occurrence.start, occurrence.end)
    names = before.nominal, occurrence.nominal - near, occurrence.nominal + near, after.nominal
    return Beside(before.nominal, after.nominal, min(names), max(names))


async def _stored_row(series: int, nominal: int) -> Row | None:
    return await one(BOUNDS_OF, Row, series=series, nominal=nominal)


async def passed_over(known: Known, occurrence: Occurrence) -> bool:
    """Whether a window is owed, has no row, lies in no skipped range, and will get none."""
    if is_before_start(known, occurrence) or not is_passed_over(known, occurrence):
        return False
    assert known.series is not None
    series, nominal = known.series.id, occurrence.nominal
    if await _stored_row(series, nominal) is not None:
        return False
    return not await every(RANGES_BETWEEN, Range, series=series, first=nominal, last=nominal)


def is_passed_over(known: Known, occurrence: Occurrence) -> bool:
    """Whether a window that is not before its start gets no row, if it has none and lies in no skipped range. Pure.

    It ends where windows of other names were opened already: its time is theirs. It takes hosts whose rules for the zone
    differ, or an edit of the schedule in the hours when clocks change.
    """
    assert known.version is not None
    assert known.line is not None
    assert known.line.opened_until is not None
    return occurrence.end <= max(known.line.opened_until, known.version.effective_from)


def is_before_start(known: Known, occurrence: Occurrence) -> bool:
    """Whether a window was due before its line began. One that ends after those that are open is not, whenever it is due:
    a calendar may make a window due long before it ends. Pure.
    """
    assert known.line is not None
    line = known.line
    if line.starts is None or line.opened_until is None:
        return True
    return occurrence.due < line.starts and occurrence.end <= line.opened_until
