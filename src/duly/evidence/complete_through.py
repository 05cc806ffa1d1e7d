"""Complete through: up to which instant a line is complete, beside the newest window that completed.

*Complete through* T says that of every window of the line that ends by T, from the line's first on, it is known that it is
done: it completed and its messages are delivered, or it was skipped, or it was settled so long ago that its record is
pruned. One window that is failed, unknown, running, undelivered or missing holds it, however many complete after it. Before
anything is done it is where the line's first window starts.

Three places can hold it, and each is found by an index: the oldest run that is not settled, the oldest that has a message
to be delivered, and the first window of which nothing is written down. What lies before that one the line remembers
(`opened_until`); only windows that were worked by name since then are looked at beyond it, and those by their stored
bounds: windows tile time (I9), so that rows whose lengths add up to the time from the first to the last leave no gap.
"""

from __future__ import annotations

from duly.evidence.verdict import lines
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.backfill_states import ors
from duly.ledger.bounds import BOUNDS_OF, RANGES_BETWEEN, Range, Row
from duly.ledger.message_states import UNSETTLED
from duly.ledger.records import Known, Series
from duly.ledger.spells import SERIES_OF_LINE, spell_in_force
from duly.records import record
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

# How many windows, or stretches of them, are looked at one by one beyond where the line's windows were opened.
LOOK_AT_MOST = 1_000

# A name differs from the instant of its window by a zone's offset, of a day at most, and is two to a second.
_NEAR = 2 * 2 * DAY // SECOND

# It came due after the line began, or was opened after it. One that is at work still when its line has ended holds it too.
_OWED = "(r.due >= :starts or r.window_end > :opened_until)"

OLDEST_UNSETTLED = Statement(
    "oldest_unsettled",
    f"""
select min(r.window_start)
  from duly_series s
  join duly_run r on r.series = s.id
 where s.line = :line and {{unsettled}}
   and {_OWED}
""",
)

OLDEST_WITH_MESSAGES = Statement(
    "oldest_with_messages",
    # From the messages that are not settled, which an index holds, to their runs.
    f"""
select min(r.window_start)
  from duly_series s
  join duly_message m on m.series = s.id and {ors("m.state", UNSETTLED)}
  join duly_run r on r.series = m.series and r.nominal = m.nominal and r.revision = m.revision
 where s.line = :line and {_OWED}
""",
)

ROWS_AFTER = Statement(
    "rows_after",
    """
select max(window_end), cast(sum(window_end - window_start) as bigint)
  from duly_run
 where series = :series and nominal between :first and :last and revision = 1
   and window_start >= :since and window_end <= :until
""",
)

LAST_COMPLETED = Statement(
    "last_completed",
    # The last of the newest names: where clocks are set back a name may end after one that is higher. They are taken from the
    # end of the series before anything else is asked, so that no planner thinks of sorting all that ever was.
    f"""
select newest.window_end, a.ended_at - a.started_at
  from (select series, nominal, revision, fence, window_end
          from duly_run
         where series = :series and state = 'completed'
         order by nominal desc limit 200) newest
  left join duly_attempt a
    on a.series = newest.series and a.nominal = newest.nominal and a.revision = newest.revision and a.number = newest.fence
 where newest.window_end is not null
   and not exists (select 1
                     from duly_message m
                    where m.series = newest.series and m.nominal = newest.nominal and m.revision = newest.revision
                      and {ors("m.state", UNSETTLED)})
 order by newest.window_end desc limit 1
""",
)


@record
class _Rows:
    """Some rows of a series: where the last of them ends, and how long they are together."""

    end: int | None
    length: int | None


@record
class LastCompleted:
    """The newest window of a line that is done: when it ends, and how long the attempt took that completed it."""

    window_end: int
    took: int | None


@record
class Completeness:
    """How far a line is complete: without a gap, and at all. None where nothing can be said, or nothing completed yet."""

    through: int | None
    last: LastCompleted | None


@record
class LineComplete:
    """A line, and how far it is complete."""

    known: Known
    completeness: Completeness


async def complete_lines(name: str | None = None, scope: str | None = None) -> list[LineComplete]:
    """How far each line is complete: of the ledger, of one job, or the one."""
    instant = await now()
    return [LineComplete(known, await completeness_of(known, instant)) for known in await lines(name, scope)]


async def completeness_of(known: Known, instant: int) -> Completeness:
    """How far a line is complete, without a gap and at all."""
    return Completeness(await complete_through(known, instant), await last_completed(known))


async def complete_through(known: Known, instant: int) -> int | None:
    """Up to which instant every window of the line is done. None without a schedule, or before one was seen."""
    line = known.line
    if known.version is None or known.series is None or line is None or line.opened_until is None:
        return None
    owed = {"line": line.id, "starts": line.starts, "opened_until": line.opened_until}
    held = (
        await one(OLDEST_UNSETTLED, _maybe, **owed),
        await one(OLDEST_WITH_MESSAGES, _maybe, **owed),
        await _accounted_until(known, instant),
    )
    return min(start for start in held if start is not None)


async def last_completed(known: Known) -> LastCompleted | None:
    """The newest window of a line, in time, that completed with all its messages delivered."""
    assert known.line is not None
    of_line = await every(SERIES_OF_LINE, Series, line=known.line.id)
    found = [await one(LAST_COMPLETED, LastCompleted, series=series.id) for series in of_line]
    return max((last for last in found if last is not None), key=lambda last: last.window_end, default=None)


def _maybe(value: int | None) -> int | None:
    return value


async def _accounted_until(known: Known, instant: int) -> int:
    """Where the first window starts of which nothing is written down: no row, no skipped range, no reason of the schedule."""
    line, series, spell = known.line, known.series, spell_in_force(known)
    assert line is not None
    assert series is not None
    assert line.opened_until is not None
    edge = looked = line.opened_until
    for _ in range(LOOK_AT_MOST):
        window = next(spell.ending_after(looked), None)
        if window is None:
            break
        row = await one(BOUNDS_OF, Row, series=series.id, nominal=window.nominal)
        if row is None:
            if not line.owes(window.due) or not await _is_passed_by(window, series.id, series.horizon, instant):
                break
            edge = max(edge, window.end)
        elif row.end is not None:  # else it was left no time: the window after it starts where it would have
            edge = await _rows_until(series.id, max(edge, row.end), window)
        looked = max(edge, window.end)
    return edge


async def _is_passed_by(window: Occurrence, series: int, horizon: int, instant: int) -> bool:
    """Whether a window without a row is done all the same: it has come due, and is a day off, was dropped, or is pruned."""
    if window.due > instant:
        return False
    if window.off or window.nominal < horizon:
        return True
    return bool(await every(RANGES_BETWEEN, Range, series=series, first=window.nominal, last=window.nominal))


async def _rows_until(series: int, edge: int, window: Occurrence) -> int:
    """Where the windows with rows end that follow one another from an edge on: in leaps, longer while they leave no gap."""
    shortest = max(window.end - window.start, SECOND)
    leap = 32 * shortest
    while leap >= shortest:
        names = {"first": 2 * (edge // SECOND) - _NEAR, "last": 2 * ((edge + leap) // SECOND) + _NEAR}
        rows = await one(ROWS_AFTER, _Rows, series=series, since=edge, until=edge + leap, **names)
        if rows is not None and rows.end is not None and rows.end - edge == rows.length:
            edge, leap = rows.end, 2 * leap
        else:
            leap //= 2
    return edge
