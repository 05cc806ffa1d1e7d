"""Forget: what may be pruned of a series, and how, so that nothing that was pruned can ever be worked again (I7).

The *horizon* of a series is a name: all that lies below it was settled, and for long enough, when it was set; whoever comes
with such a name later is refused. It only rises. What may be forgotten is computed first, without a lock. Then the series is
held against everything that could create a run below the new horizon, and in a later statement, which sees what those have
committed, it is looked at once more. The rows go after that, a batch in each transaction. Who is killed in between leaves rows
below the horizon, as forgotten as those that are gone; whoever prunes next takes them along.

Of a line the newest window that was opened stays, however old: by it the line is judged. Of a run outside the schedule its id
stays, with the state that it was left in. What is on record of jobs, lines and the ledger itself, and hangs on no run, stays.
"""

from __future__ import annotations

from itertools import takewhile

from duly.ledger import contracts, message_states, states
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, count, do, every, one
from duly.ledger.backfill_states import LIVE, ors
from duly.ledger.events import tell
from duly.ledger.records import SERIES_COLUMNS, Job, Known, RunId, Series
from duly.ledger.register import NO_HORIZON
from duly.ledger.spells import SERIES_OF_LINE, spells_of, windows_after
from duly.ledger.take import look_newest
from duly.records import record
from duly.schedule.catch_up import parse_catch_up
from duly.schedule.keys import nominal_text
from duly.times import DAY, duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value

STATEMENT_MILLIS = 5_000  # how long a statement of a batch may take on a server; a lock timeout does not bound it

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

OLDEST_UNSETTLED = Statement(
    "oldest_unsettled",
    # By the two indexes of what is unsettled, however many rows there are: everybody who would open a run waits meanwhile.
    f"""
select min(nominal)
  from (select min(r.nominal) as nominal
          from duly_run r
         where r.series = :series and r.nominal >= :horizon and r.nominal < :beyond and {{unsettled}}
         union all
        select min(m.nominal)
          from duly_message m
         where m.series = :series and m.nominal >= :horizon and m.nominal < :beyond
           and {ors("m.state", message_states.UNSETTLED)}) unsettled
""",
)

UNSETTLED_MESSAGES = Statement(
    "unsettled_messages",
    "select 1 from duly_message where series = :series and nominal = :nominal and settled_at is null limit 1",
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

OLDEST_SKIPPED_SINCE = Statement(
    "oldest_skipped_since",
    # Windows that were dropped only yesterday were settled only then, however old they are.
    """
select min(from_nominal)
  from duly_skipped
 where series = :series and to_nominal > :horizon and from_nominal < :beyond and at > :settled_by
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

TURN_OF_SERIES = Statement(
    "turn_of_series",
    # One prune at a time, beside those who claim.
    f"select {SERIES_COLUMNS} from duly_series s where s.id = :series {{lock}}",
)

BOUND_STATEMENTS = Statement(
    "bound_statements",
    "select set_config('statement_timeout', cast(:millis as text), true)",
    only_locks=True,  # where one writer works at a time a batch is bounded by its size alone
)

BELOW = Statement(
    "below",
    """
select count(distinct nominal),
       count(*),
       (select count(*) from duly_attempt where series = :series and nominal < :horizon),
       (select count(*) from duly_message where series = :series and nominal < :horizon),
       (select count(*) from duly_skipped where series = :series and to_nominal <= :horizon)
  from duly_run
 where series = :series and nominal < :horizon
""",
)

END_OF_BATCH = Statement(
    "end_of_batch",
    # A run that is not settled is below no horizon; were it, it would stay, and be passed over.
    """
select min(nominal), max(nominal), count(distinct nominal)
  from (select nominal
          from duly_run
         where series = :series and nominal > :after and nominal < :horizon and state in {settled}
           and settled_at <= :settled_by
         order by nominal limit :many) batch
""",
)

KEEP_ADHOC_STATE = Statement(
    "keep_adhoc_state",
    # Unless its run stays, for it was settled only since.
    """
update duly_adhoc
   set state = (select r.state
                  from duly_run r
                 where r.series = duly_adhoc.series and r.nominal = duly_adhoc.nominal
                 order by r.revision desc limit 1)
 where series = :series and {beside}nominal < :horizon and nominal between :first and :last and state is null
   and not exists (select 1
                     from duly_run r
                    where r.series = duly_adhoc.series and r.nominal = duly_adhoc.nominal
                      and (r.state not in {settled} or r.settled_at > :settled_by))
""",
)

FORGET_RUNS = Statement(
    "forget_runs",
    # The horizon is a guard here, and no bound to read by: SQLite takes one, and would read all below it for each batch.
    """
delete from duly_run
 where series = :series and {beside}nominal < :horizon and nominal between :first and :last and state in {settled}
   and settled_at <= :settled_by
""",
)

# What hangs on runs that are gone.
_BELOW = """
 where series = :series and {beside}nominal < :horizon and nominal between :first and :last
   and not exists (select 1 from duly_run r where r.series = :series and r.nominal = {table}.nominal)
"""


def _forget(name: str) -> Statement:
    return Statement(f"forget_{name}", f"delete from duly_{name}" + _BELOW.replace("{table}", f"duly_{name}"))


FORGET_ATTEMPTS, FORGET_MESSAGES = _forget("attempt"), _forget("message")
FORGET_THEIRS = tuple(
    map(_forget, ("text", "renewal", "progress", "probe", "output", "backfill_run", "message_body", "message_attempt"))
)

FORGET_EVENTS = Statement(
    "forget_events",
    # They go by their own age: a late retry that was refused yesterday is on record for as long as anything.
    """
delete from duly_event
 where id in (select id
                from duly_event e
               where e.series = :series and e.nominal < :horizon and e.at <= :settled_by
                 and not exists (select 1 from duly_run r where r.series = :series and r.nominal = e.nominal)
               order by e.nominal limit :many)
""",
)

FORGET_RANGES = Statement(
    "forget_ranges",
    "delete from duly_skipped where series = :series and to_nominal <= :horizon and at <= :settled_by",
)


_ABOVE_ALL = (1 << 63) - 1


@record
class Forgettable:
    """What may be forgotten of a series: all below `horizon` that was settled by `settled_by`."""

    series: Series
    horizon: int
    settled_by: int


@record
class Below:
    """What there is below a horizon: windows with rows, their runs (a reopened window has several), what hangs on them, and
    skipped ranges of windows without rows.
    """

    windows: int = 0
    runs: int = 0
    attempts: int = 0
    messages: int = 0
    ranges: int = 0

    def __add__(self, other: Below) -> Below:
        return Below(
            self.windows + other.windows,
            self.runs + other.runs,
            self.attempts + other.attempts,
            self.messages + other.messages,
            self.ranges + other.ranges,
        )


@record
class Batch:
    """What one transaction has deleted, up to which name, and whether nothing was left after it."""

    gone: Below
    is_last: bool
    last: int | None = None


@record
class Prospect:
    """What may be forgotten of a series: all below `horizon`, where rows may be left that were forgotten before.

    `found` is what its horizon can rise by, if it can; `held` what keeps it from rising further, though it is old enough.
    """

    known: Known
    series: Series
    settled_by: int
    found: Forgettable | None
    below: Below
    held: str

    @property
    def horizon(self) -> int:
        return self.series.horizon if self.found is None else self.found.horizon


def undercut(job: Job, retain: int) -> str | None:
    """What of a job has to be remembered for longer than `retain` microseconds, in words; None where nothing has. Pure."""
    max_age = parse_catch_up(job.catch_up, once=True).max_age
    if max_age is not None and retain < max_age:
        return f"its catch-up policy works windows that came due up to {duration_text(max_age)} ago"
    if job.contract == contracts.IDEMPOTENT and job.remembers is not None and retain < job.remembers:
        return f"its destination remembers what it was sent for {duration_text(job.remembers)}"
    return None


async def prospects(known: Known, *, settled_by: int) -> list[Prospect]:
    """What of each series of a line was settled by an instant. Looks only."""
    assert known.line is not None
    series = await every(SERIES_OF_LINE, Series, line=known.line.id)
    return [await _prospect(known, each, settled_by) for each in series]


async def _prospect(known: Known, series: Series, settled_by: int) -> Prospect:
    opened_until = None if known.line is None or series.grain == "adhoc" else known.line.opened_until
    before_newest = None if opened_until is None else opened_until - 1
    found = await forgettable(known, series, settled_by=settled_by, ended_by=before_newest)
    horizon = series.horizon if found is None else found.horizon
    below = await one(BELOW, Below, series=series.id, horizon=horizon)
    assert below is not None  # an aggregate has a row
    if not below.runs and not below.ranges:  # what was never on record may yet be asked for, however old it is
        found, horizon = None, series.horizon
    return Prospect(known, series, settled_by, found, below, await _held(known, series, horizon, settled_by))


async def _held(known: Known, series: Series, horizon: int, settled_by: int) -> str:
    """What keeps a horizon where it would be, though it is as old as an instant; empty where nothing does."""
    kept = await one(OLDEST_KEPT, _maybe, series=series.id, horizon=horizon, beyond=_ABOVE_ALL, settled_by=settled_by)
    asked_for = await one(OLDEST_ASKED_FOR, _maybe, series=series.id, beyond=_ABOVE_ALL)
    if asked_for is not None and asked_for <= horizon:
        return f"a backfill that is not over owes windows from {await key_of(RunId(series.id, asked_for))} on"
    run = None if kept is None else await look_newest(series.id, kept)
    if run is not None and run.nominal <= horizon and (run.due or run.opened_at) <= settled_by:
        key = await key_of(run.id)
        if run.state in states.UNSETTLED:
            return f"{key} is {run.state}"
        if await one(UNSETTLED_MESSAGES, int, series=run.series, nominal=run.nominal):
            return f"{key} has messages that are not settled"
    line = known.line
    is_in_force = known.series is not None and series.id == known.series.id
    if is_in_force and line is not None and line.next_due is not None and line.next_due <= settled_by:
        return "windows that came due since are not open yet: they are owed, until somebody works the job or skips them"
    return ""


async def forgettable(
    known: Known, series: Series, *, settled_by: int, ended_by: int | None = None
) -> Forgettable | None:
    """What of a series was settled by an instant, in one piece from its beginning; None if nothing more than was forgotten.

    Looks only. Windows that are not open yet are not settled, and neither is what is failed, unknown, running or open. A
    window that has not ended by `ended_by`, if that is given, is kept though it was settled.
    """
    beyond = await _first_after(known, series, settled_by if ended_by is None else min(settled_by, ended_by))
    if beyond is None:
        return None
    bounds: dict[str, Value] = {"horizon": series.horizon, "beyond": beyond, "settled_by": settled_by}
    kept = await one(OLDEST_KEPT, _maybe, series=series.id, **bounds)
    horizon = await _lowest_kept(kept, series, beyond, settled_by)
    return Forgettable(series, horizon, settled_by) if horizon > series.horizon else None


async def _lowest_kept(kept: int | None, series: Series, beyond: int, settled_by: int) -> int:
    """The lowest name that is to be kept below another, or that other: of a run, or of a skipped range that is not settled
    long enough, or of the range of a backfill."""
    bounds: dict[str, Value] = {"horizon": series.horizon, "beyond": beyond, "settled_by": settled_by}
    skipped = await one(OLDEST_SKIPPED_SINCE, _maybe, series=series.id, **bounds)
    asked_for = await one(OLDEST_ASKED_FOR, _maybe, series=series.id, beyond=beyond)
    return min(name for name in (beyond, kept, skipped, asked_for) if name is not None)


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
    # What was settled since it was looked for is below the horizon then, and its row stays until it is old enough.
    unsettled = await one(OLDEST_UNSETTLED, _maybe, series=series.id, horizon=series.horizon, beyond=found.horizon)
    horizon = await _lowest_kept(unsettled, series, found.horizon, found.settled_by)
    if not await count(RAISE_HORIZON, series=series.id, horizon=horizon):
        return series.horizon
    changed = (_name(series, series.horizon), _name(series, horizon))
    await tell("horizon_raised", series=series.id, by=by, reason=reason, changed=changed)
    return horizon


def _name(series: Series, horizon: int) -> str:
    if horizon == NO_HORIZON:
        return "nothing was forgotten"
    return f"run {horizon}" if series.grain == "adhoc" else nominal_text(series.grain, horizon, series.zone)


async def forget_batch(series: Series, many: int, *, settled_by: int, after: int | None = None) -> Batch:
    """Delete at most so many runs below the horizon with what hangs on them, oldest first.

    `after` is the last name of the batch before it: what was deleted there stands in PostgreSQL's indexes until it is vacuumed,
    and whoever begins at the beginning passes over all of it with each batch.
    Of what was refused there, and hangs on no run any more, goes what was on record by an instant.
    """
    await do(BOUND_STATEMENTS, millis=STATEMENT_MILLIS)
    # I7: the horizon that the series has now, which only rises; not the one that somebody meant to set.
    turn = await one(TURN_OF_SERIES, Series, series=series.id)
    assert turn is not None  # a series is never deleted
    below: dict[str, Value] = {"series": turn.id, "horizon": turn.horizon, "settled_by": settled_by}
    seen = after if after is not None else NO_HORIZON - 1
    end = await one(END_OF_BATCH, lambda *row: row, **below, many=many, after=seen)
    first, last, windows = end or (None, None, 0)
    if last is None:
        ranges = await count(FORGET_RANGES, **below)
        events = await count(FORGET_EVENTS, **below, many=many)
        return Batch(Below(ranges=ranges), is_last=events < many)
    batch = {**below, "first": first, "last": last}
    if turn.grain == "adhoc":
        await count(KEEP_ADHOC_STATE, **batch)
    runs = await count(FORGET_RUNS, **batch)
    attempts, messages = await count(FORGET_ATTEMPTS, **batch), await count(FORGET_MESSAGES, **batch)
    for statement in FORGET_THEIRS:
        await do(statement, **batch)
    return Batch(Below(windows, runs, attempts, messages), is_last=False, last=last)
