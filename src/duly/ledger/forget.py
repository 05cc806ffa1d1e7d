"""Forget: what may be pruned of a series, and how, so that nothing that was pruned can ever be worked again (I7).

The *horizon* of a series is a name: all that lies below it was settled, and for long enough, when it was set; whoever comes
with such a name later is refused. It only rises. What may be forgotten is computed first, without a lock. Then the series is
held against everything that could create a run below the new horizon, and in a later statement, which sees what those have
committed, it is looked at once more. The rows go after that, a batch in each transaction: runs before their attempts.
"""

from __future__ import annotations

from itertools import takewhile

from duly.ledger.ask import Statement, count, one
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.events import tell
from duly.ledger.records import SERIES_COLUMNS, Known, RunId, Series
from duly.ledger.spells import spells_of, windows_after
from duly.records import record
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value

OLDEST_KEPT = Statement(
    "oldest_kept",
    # A run is settled when its messages are: one that is to be delivered yet, or was a moment ago, keeps it.
    """
select min(nominal)
  from duly_run r
 where series = :series and nominal >= :horizon and nominal < :beyond
   and ({unsettled} or settled_at is null or settled_at > :settled_by
        or exists (select 1
                     from duly_message m
                    where m.series = r.series and m.nominal = r.nominal and m.revision = r.revision
                      and (m.settled_at is null or m.settled_at > :settled_by)))
""",
)

OLDEST_ASKED_FOR = Statement(
    "oldest_asked_for",
    # A backfill that is not over owes the windows of its range, with rows or without.
    f"""
select min(f.from_nominal)
  from duly_backfill f
 where f.series = :series and f.from_nominal < :beyond and {ors("f.state", LIVE)}
""",
)

BEYOND_ROWS = Statement(
    "beyond_rows",
    # Not what a person skipped ahead of time: the series may be in force again by then.
    """
select max(nominal) + 1
  from duly_run
 where series = :series and nominal >= :horizon and (due is null or due <= :instant)
""",
)

HOLD_SERIES = Statement(
    "hold_series",
    # Whatever creates a run holds the series with {share}: those that have begun are waited for, those to come wait.
    f"select {SERIES_COLUMNS} from duly_series s where s.id = :series {{alone}}",
)

RAISE_HORIZON = Statement(
    "raise_horizon_if_higher",
    "update duly_series set horizon = :horizon where id = :series and horizon < :horizon",
)

END_OF_BATCH = Statement(
    "end_of_batch",
    """
select max(nominal)
  from (select nominal
          from duly_run
         where series = :series and nominal < :horizon
         order by nominal limit :many) batch
""",
)

FORGET_RUNS = Statement(
    "forget_runs",
    # A run that is not settled is below no horizon; were it, it would stay.
    """
delete from duly_run
 where series = :series and nominal < :horizon and nominal <= :last and state in {settled}
""",
)

# What hangs on runs that are gone.
_BELOW = """
 where series = :series and nominal < :horizon and nominal <= :last
   and not exists (select 1 from duly_run r where r.series = :series and r.nominal = {table}.nominal)
"""
FORGET_THEIRS = tuple(
    Statement(f"forget_{name}", f"delete from duly_{name}" + _BELOW.replace("{table}", f"duly_{name}"))
    for name in (
        *("attempt", "text", "renewal", "progress", "output", "event", "backfill_run"),
        *("message", "message_body", "message_attempt"),
    )
)

FORGET_RANGES = Statement("forget_ranges", "delete from duly_skipped where series = :series and to_nominal <= :horizon")


@record
class Forgettable:
    """What may be forgotten of a series: all below `horizon`, as long as it is settled since `settled_by`."""

    series: Series
    horizon: int
    settled_by: int


async def forgettable(known: Known, series: Series, *, settled_by: int) -> Forgettable | None:
    """What of a series was settled by an instant, in one piece from its beginning; None if nothing more than was forgotten.

    Looks only. Windows that are not open yet are not settled, and neither is what is failed, unknown, running or open.
    """
    beyond = await _first_after(known, series, settled_by)
    if beyond is None:
        return None
    horizon = await _lowest_kept(series, beyond, settled_by)
    return Forgettable(series, horizon, settled_by) if horizon > series.horizon else None


async def _lowest_kept(series: Series, beyond: int, settled_by: int) -> int:
    """The lowest name that is to be kept below another, or that other: of a run that is not settled long enough, or of
    the range of a backfill."""
    bounds: dict[str, Value] = {"horizon": series.horizon, "beyond": beyond, "settled_by": settled_by}
    kept = await one(OLDEST_KEPT, _maybe, series=series.id, **bounds)
    asked_for = await one(OLDEST_ASKED_FOR, _maybe, series=series.id, beyond=beyond)
    return min(name for name in (beyond, kept, asked_for) if name is not None)


def _maybe(value: int | None) -> int | None:
    return value


async def _first_after(known: Known, series: Series, instant: int) -> int | None:
    """The lowest name of a window that ends after an instant, or is not open yet; of a series without windows, of its rows."""
    line = known.line
    if known.series is None or series.id != known.series.id or line is None or line.opened_until is None:
        return await one(BEYOND_ROWS, _maybe, series=series.id, horizon=series.horizon, instant=instant)
    edge = min(instant, line.opened_until)
    # Where clocks are set back a window may have a lower name than one that ends before it.
    ahead = takewhile(lambda o: o.start < edge + 2 * DAY, windows_after(await spells_of(known), edge))
    return min((o.nominal for o in ahead), default=None)


async def raise_horizon(found: Forgettable, *, by: str, reason: str) -> int:
    """Raise the horizon of a series as far as it may rise now, which may be less than was found; where it is then."""
    series = await one(HOLD_SERIES, Series, series=found.series.id)
    assert series is not None  # a series is never deleted
    horizon = await _lowest_kept(series, found.horizon, found.settled_by)
    if not await count(RAISE_HORIZON, series=series.id, horizon=horizon):
        return series.horizon
    await tell("horizon_raised", run=RunId(series.id, horizon), by=by, reason=reason)
    return horizon


async def forget_batch(series: Series, many: int) -> int:
    """Delete at most so many runs below the horizon with what hangs on them, oldest first; how many there were."""
    last = await one(END_OF_BATCH, _maybe, series=series.id, horizon=series.horizon, many=many)
    if last is None:
        await count(FORGET_RANGES, series=series.id, horizon=series.horizon)
        return 0
    batch = {"series": series.id, "horizon": series.horizon, "last": last}
    gone = await count(FORGET_RUNS, **batch)
    for statement in FORGET_THEIRS:
        await count(statement, **batch)
    return gone
