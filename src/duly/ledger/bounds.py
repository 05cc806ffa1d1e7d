"""Bounds: where a window starts and where it ends, as it is to be stored.

The rules of the zone on a host name the windows and say where they end; where they start is a stored fact. A line remembers
where the last window that was opened ends, and the next one starts there, around all that is stored already. So the windows
of a line tile time, whatever the rules say today, or said there (I9). Looks only.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, every, one
from duly.ledger.records import Known, RunId, Series
from duly.ledger.spells import spells_of, windows_after
from duly.records import record, replace
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

# How far a new release of a zone's rules may move a time: no zone has ever moved by more than a day.
RULES_MAY_MOVE = 2 * DAY

# In nominals, which are two to a second: how far from a window's name that of another may lie that was opened over its
# time. Each differs from UTC by at most a day, and is moved by new rules by no more.
NEAR = 2 * (2 * RULES_MAY_MOVE) // SECOND

BOUNDS_OF = Statement(
    "bounds_of",
    """
select window_start, window_end
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
 where series = :series and nominal between :first and :last and revision = 1
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
class _Stored:
    """The bounds of a row; None where it has no time of its own."""

    start: int | None
    end: int | None


@record
class Coming:
    """Windows come due, in the order of their bounds. Those in `dropped` are not to be opened. `following` comes next."""

    windows: list[Occurrence]
    dropped: list[Range]
    following: Occurrence | None


# -- windows in order --------------------------------------------------------------------------------------------------


@record
class Opening:
    """Windows to be given their rows, with the bounds to store, and where the next one will start."""

    fresh: list[Occurrence]
    until: int


async def open_in_order(series: Series, opened_until: int, coming: Coming) -> Opening:
    """Those of the windows that have no row and lie in no skipped range, chained to what is stored around them."""
    if not coming.windows:
        return Opening([], opened_until)
    names = [o.nominal for o in (*coming.windows, coming.following) if o is not None]
    near = 0 if series.zone == "UTC" else NEAR  # the rules of UTC never change
    span = {"first": min(names) - near, "last": max(names) + near}
    rows = await every(ROWS_BETWEEN, Row, series=series.id, **span)
    ranges = await every(RANGES_BETWEEN, Range, series=series.id, **span)
    return chain(coming, opened_until, rows, [*ranges, *coming.dropped])


def chain(coming: Coming, opened_until: int, rows: list[Row], ranges: list[Range]) -> Opening:
    """Give windows their bounds: each from where the one before ends as it is stored, around all that is stored. Pure.

    What no time is left for starts where it ends. The last one reaches to the next that has a row, whatever the rules of
    today say in between.
    """
    named = {row.nominal: row for row in rows}
    spans = [(row.start, row.end) for row in rows if row.start is not None and row.end is not None]
    fresh: list[Occurrence] = []
    edge, place = opened_until, 0
    for occurrence in coming.windows:
        row = named.get(occurrence.nominal)
        if row is not None:
            if row.start is not None and row.end is not None:
                _reach(fresh, edge, row.start)
                edge = max(edge, row.end)
            continue
        if any(span.first <= occurrence.nominal < span.beyond for span in ranges):
            edge = max(edge, occurrence.end)
            continue
        while place < len(spans) and spans[place][0] <= edge:
            edge = max(edge, spans[place][1])
            place += 1
        end = max(edge, occurrence.end)
        if place < len(spans):
            end = min(end, spans[place][0])  # what lies beyond it falls to the window after this one
        fresh.append(replace(occurrence, start=edge, end=end))
        edge = end
    ahead = None if coming.following is None else named.get(coming.following.nominal)
    if ahead is not None and ahead.start is not None:
        _reach(fresh, edge, ahead.start)
    return Opening(fresh, max(edge, *(o.end for o in fresh[-1:]), opened_until))


def _reach(fresh: list[Occurrence], edge: int, start: int) -> None:
    """Let the window that was given its bounds just before reach to one that has a row."""
    if fresh and fresh[-1].end == edge < start:
        fresh[-1] = replace(fresh[-1], end=start)


# -- a window that is named --------------------------------------------------------------------------------------------


async def chained(known: Known, run: RunId, occurrence: Occurrence | None) -> Occurrence | None:
    """The window of a run that is named, between its neighbours as they are stored. It starts where it ends if they leave
    it no time.

    Between those that the rules of today name, and around every other that is stored near it: rules of before may have
    named a window that is none today.
    """
    if occurrence is None or known.version is None or known.version.zone == "UTC":
        return occurrence
    assert known.line is not None
    spells = await spells_of(known)
    start, end = occurrence.start, occurrence.end
    before = next(windows_after(spells, start - 1), None)
    while before is not None and (earlier := await _stored(run.series, before.nominal)) is not None:
        if earlier.end is not None:
            start = earlier.end
            break
        # Its name was settled without a time of its own; by the rules of today it has one, which falls to this window.
        start = before.start
        before = next(windows_after(spells, start - 1), None)
        if before is not None and before.start >= start:
            break  # at a seam: by the rules of today nothing ends there
    else:
        opened = known.line.opened_until
        if opened is not None and before is not None and before.end <= opened < end:
            start = opened  # the one before was passed over: this is the first that is not open yet
    after = next(windows_after(spells, end), None)
    later = None if after is None else await _stored(run.series, after.nominal)
    if later is not None and later.start is not None:
        end = later.start
    near = 2 * (max(end - start, 0) + RULES_MAY_MOVE) // SECOND
    span = {"first": run.nominal - near, "last": run.nominal + near, "start": start, "end": end}
    for other in await every(OVERLAPPING, Bounds, series=run.series, nominal=run.nominal, **span):
        if other.start <= start:
            start = max(start, other.end)
        else:
            end = min(end, other.start)  # what lies beyond the other falls to the window after this one
    return replace(occurrence, start=start, end=max(start, end))


async def _stored(series: int, nominal: int) -> _Stored | None:
    return await one(BOUNDS_OF, _Stored, series=series, nominal=nominal)


async def passed_over(known: Known, occurrence: Occurrence) -> bool:
    """Whether a window has no row, lies in no skipped range, and will get none."""
    if not is_passed_over(known, occurrence):
        return False
    assert known.series is not None
    named = {"series": known.series.id, "first": occurrence.nominal, "last": occurrence.nominal}
    return not await every(ROWS_BETWEEN, Row, **named) and not await every(RANGES_BETWEEN, Range, **named)


def is_passed_over(known: Known, occurrence: Occurrence) -> bool:
    """Whether a window that is owed gets no row, if it has none and lies in no skipped range. Pure.

    It ends where windows of other names were opened already: its time is theirs. It takes hosts whose rules for the zone
    differ, or an edit of the schedule in the hours when clocks change.
    """
    assert known.line is not None
    assert known.version is not None
    line = known.line
    if line.opened_until is None or line.starts is None or occurrence.due < line.starts:
        return False
    return occurrence.end <= max(line.opened_until, known.version.effective_from)
