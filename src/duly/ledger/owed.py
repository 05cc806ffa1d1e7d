"""Owed: what is owed of a line, and what its catch-up policy drops (DESIGN §5). Looks only.

Windows are opened in the order of their bounds, each from where the one before was left as it is stored, whatever the
rules of the zone say today, or said there (I9). The line remembers that place. So what is owed are the windows that end
after it and have come due, and the runs that are unsettled, less what the policy drops. The same function answers for
`exec`, for `catch_up()` and for a daemon.
"""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.ask import Statement, every
from duly.ledger.records import BACKFILL_OF, LEASES, RUN_COLUMNS, Known, Run, RunId
from duly.records import record
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from duly.ledger.policy import DroppedRange, DroppedRun
    from duly.schedule.occurrence import Occurrence

UNSETTLED_OF_LINE = Statement(
    "unsettled_of_line",
    f"""
select {RUN_COLUMNS}
  from duly_series s
  join duly_run r on r.series = s.id
  {LEASES}
 where s.line = :line and {{unsettled}}
 order by r.due, r.series, r.nominal
""",
)

_WORKABLE = f"""{{unsettled}} and r.due <= :as_of
   and (r.state = 'open' or (r.state = 'failed' and r.retry_at <= {{now}})
        or (r.state = 'running' and coalesce(n.until, r.lease_until) <= {{now}}))
   and {BACKFILL_OF} is null"""

# Of the line's series of now only the first runs are read, in the order of its index, and those after them that clocks which
# are put back could make due before them (`spread`): who catches up run by run asks for each, and would else sort all that is
# left each time. Of its earlier series, which few lines have, little is left to work, if anything; without the question whether
# there are any PostgreSQL may read all runs that are open to find none.
WORKABLE_OF_LINE = Statement(
    "workable_of_line",
    f"""
select * from (
    select {RUN_COLUMNS}
      from duly_run r
      {LEASES}
     where r.series = :series and {_WORKABLE}
       and r.nominal <= :spread + coalesce(
             (select r.nominal from duly_run r {LEASES} where r.series = :series and {_WORKABLE}
               order by r.nominal limit 1 offset :most - 1), {1 << 62})
     order by r.due, r.nominal
     limit :most) of_series
union all
select * from (
    select {RUN_COLUMNS}
      from duly_series s
      join duly_run r on r.series = s.id
      {LEASES}
     where exists (select 1 from duly_series o where o.line = :line and o.id <> :series)
       and s.line = :line and s.id <> :series and {{beside}}r.series <> :series and {_WORKABLE}
     order by r.due, r.series, r.nominal
     limit :most) of_others
 order by due, series, nominal
 limit :most
""",
)

# In nominals, which are two to a second: no clock was ever put back by more than a day.
PUT_BACK = 2 * DAY // SECOND

# Among so many that can be worked the oldest one that was not tried yet is looked for.
TRIED_AT_MOST = 50


@record
class Owed:
    """What is owed at an instant: runs with a row, windows without one, what is dropped, and when more comes due.

    `fresh` have the bounds that they are to be stored with. `opened_until` is where the next window will start.
    """

    rows: list[Run]
    fresh: list[Occurrence]
    dropped_rows: list[DroppedRun]
    dropped: list[DroppedRange]
    opened_until: int
    next_due: int | None
    moved: list[Run]  # opened ahead of time, not sealed yet, and the zone's rules mean something else now
    more: bool = False  # windows have come due beyond those that one transaction opens
    newest: RunId | None = None  # the newest window that is due, where anything is unsettled or new

    @property
    def changes_the_ledger(self) -> bool:
        return bool(self.fresh or self.dropped_rows or self.dropped or self.moved or self.more)


async def owed(known: Known, *, as_of: int) -> Owed:
    """What is owed of a line at an instant. Raises `NoSchedule` for a job without one."""
    line, series = known.line, known.series
    assert line is not None
    unsettled_of_line = await every(UNSETTLED_OF_LINE, Run, line=line.id)
    open_ones = [run for run in unsettled_of_line if run.backfill is None]
    unsettled = [run for run in open_ones if _due_by(run, as_of)]
    if not open_ones and line.opened_until is not None and nothing_due_yet(known, as_of):
        # The common case of a duplicate: settled, and nothing new. The schedule need not even be understood.
        return Owed([], [], [], [], line.opened_until, line.next_due, [])
    from duly.ledger.bounds import open_in_order
    from duly.ledger.policy import admit
    from duly.ledger.spells import spell_in_force
    from duly.ledger.windows import has_moved, is_sealed

    spell = spell_in_force(known)
    assert series is not None
    assert line.opened_until is not None  # it was seen under its schedule
    moved = [run for run in open_ones if not is_sealed(run, as_of) and await has_moved(run)]
    admitted = await admit(known, spell, unsettled, as_of)
    opening = await open_in_order(series, line.opened_until, admitted.coming)
    following = admitted.coming.following
    next_due = None if following is None else following.due
    more = next_due is not None and next_due <= as_of
    dropped_rows, dropped = admitted.dropped_rows, admitted.dropped
    return Owed(
        admitted.rows, opening.fresh, dropped_rows, dropped, opening.until, next_due, moved, more, admitted.newest
    )


@record
class Backlog:
    """The oldest run of a line that can be worked, and whether there are more of them."""

    first: Run
    more: bool


async def next_of_backlog(known: Known, as_of: int, tried: Container[RunId]) -> Backlog | None:
    """The oldest run with a row that can be worked, where nothing that came due since can change that; None: look at all.

    Where each window is worked, the rows that there are come before the windows that have none. So who catches up need not
    look at all that is left for each run.
    """
    if known.job.catch_up != "each" or known.job.ordered:
        return None
    for most in (2, TRIED_AT_MOST):  # few of those that were tried can be worked still
        found = await workable(known, as_of, most)
        free = [run for run in found if run.id not in tried]
        if free:  # is its holder gone? Then it comes first
            return (
                None if free[0].state == states.RUNNING else Backlog(free[0], more=len(free) > 1 or len(found) == most)
            )
        if len(found) < most:
            break
    return None


async def workable(known: Known, as_of: int, most: int) -> list[Run]:
    """The oldest runs of a line that can be worked, or whose holders' leases are over, so many at most."""
    line, series = known.line, known.series
    assert line is not None
    assert series is not None
    spread = 0 if series.zone == "UTC" else PUT_BACK
    return await every(WORKABLE_OF_LINE, Run, line=line.id, series=series.id, spread=spread, as_of=as_of, most=most)


async def dropped_next(known: Known, as_of: int) -> Callable[[RunId], str | None]:
    """Why the next poke will skip a run of the line that is due, by its identity; None where it will not."""
    assert known.line is not None
    if known.version is None or known.series is None or known.line.opened_until is None:
        return lambda run: None
    from duly.schedule.catch_up import EACH

    if (
        known.job.catch_up == str(EACH) and not known.version.calendar
    ):  # it drops nothing, and need not be walked through
        return lambda run: None
    series, due = known.series.id, await owed(known, as_of=as_of)
    by_run = {each.run.id: each.cause for each in due.dropped_rows}

    def cause_of(run: RunId) -> str | None:
        spans = due.dropped if run.series == series and run.revision == 1 else []
        inside = (each.cause for each in spans if each.range.first <= run.nominal < each.range.beyond)
        return by_run.get(run) or next(inside, None)

    return cause_of


def nothing_due_yet(known: Known, as_of: int) -> bool:
    """Whether the line's own note says that no window has come due since its windows were opened.

    It was made under the zone's rules of then, on some host: where rules may change it is believed only from afar.
    """
    assert known.line is not None
    if known.line.next_due is None:
        return True
    if known.version is None or known.version.zone == "UTC":
        return known.line.next_due > as_of
    from duly.ledger.bounds import RULES_MAY_MOVE

    return known.line.next_due > as_of + RULES_MAY_MOVE


def _due_by(run: Run, as_of: int) -> bool:
    return run.due is not None and run.due <= as_of
