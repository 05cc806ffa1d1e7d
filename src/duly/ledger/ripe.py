"""Ripe: which lines of the ledger have something to work now, and when the next one will. One look for all of them.

It is a hint, and may be wrong either way: a poke of the line decides. A window of a zone whose rules changed on this host
may have come due unseen; so each line is poked now and then, whatever the look says.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, every, one
from duly.ledger.records import BACKFILL_OF
from duly.records import record, replace

# Of a backfill it is not counted how much is left, and whatever is owed was due before it.
MANY, LAST = 1_000, 1 << 62

_NOT_PAUSED = """(j.paused_at is null or (j.paused_until is not null and j.paused_until <= {now}))
   and (l.paused_at is null or (l.paused_until is not null and l.paused_until <= {now}))"""

COME_DUE = Statement(
    "come_due",
    f"""
select j.name, l.scope, j.overlap, l.next_due
  from duly_line l
  join duly_job j on j.id = l.job
 where l.next_due <= {{now}} and {_NOT_PAUSED}
""",
)

# When a run that has a row may be worked: null where that is not for a poke to do.
_READY_AT = """case r.state when 'open' then r.due when 'failed' then r.retry_at
            when 'running' then coalesce(n.until, r.lease_until) end"""

WAITING = Statement(
    "waiting",
    f"""
select name, scope, overlap, count(*), min(due)
  from (select j.name, l.scope, j.overlap, r.due, {_READY_AT} as ready_at
          from duly_run r
          join duly_series s on s.id = r.series
          join duly_line l on l.id = s.line
          join duly_job j on j.id = l.job
          left join duly_renewal n
            on n.series = r.series and n.nominal = r.nominal and n.revision = r.revision
           and n.attempt_id = r.attempt_id
         where {{unsettled}} and {BACKFILL_OF} is null and {_NOT_PAUSED}) runs
 where ready_at <= {{now}} and due is not null
 group by name, scope, overlap
""",
)

NEXT_AT = Statement(
    "next_at",
    f"""
select min(at)
  from (select min(next_due) as at from duly_line where next_due > {{now}}
        union all
        select min({_READY_AT})
          from duly_run r
          left join duly_renewal n
            on n.series = r.series and n.nominal = r.nominal and n.revision = r.revision
           and n.attempt_id = r.attempt_id
         where {{unsettled}} and {_READY_AT} > {{now}}
        union all
        select min(paused_until) from duly_job where paused_until > {{now}}
        union all
        select min(paused_until) from duly_line where paused_until > {{now}}) instants
""",
)


ASKED_FOR = Statement(
    "asked_for",
    f"""
select distinct j.name, l.scope, j.overlap
  from duly_backfill b
  join duly_series s on s.id = b.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where b.state = 'active' and {_NOT_PAUSED}
""",
)


HELD = Statement(
    "held",
    """
select j.name, l.scope, count(*)
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  left join duly_renewal n
    on n.series = r.series and n.nominal = r.nominal and n.revision = r.revision
   and n.attempt_id = r.attempt_id
 where {unsettled} and r.state = 'running' and coalesce(n.until, r.lease_until) > {now}
 group by j.name, l.scope
""",
)


@record
class Ripe:
    """A line with something to work: so many runs that wait, or a window that has come due. `due`: of the oldest.

    `overlap`: 1 where several may be worked at once. `backfill`: it is a backfill that may have something.
    """

    job: str
    scope: str
    overlap: int
    waiting: int
    due: int
    backfill: bool = False


@record
class Outlook:
    """The lines that are ripe, the oldest first, and when the next one will be, as far as the ledger can tell."""

    ripe: list[Ripe]
    next_at: int | None


async def outlook() -> Outlook:
    """Look at all lines."""
    found = {(ripe.job, ripe.scope): ripe for ripe in await every(WAITING, Ripe)}
    for job, scope, overlap, due in await every(COME_DUE, lambda *cells: cells):
        other = found.get((job, scope))
        come = Ripe(job, scope, overlap, 1, due)
        found[job, scope] = come if other is None else replace(other, waiting=other.waiting + 1)
    asked_for = await every(ASKED_FOR, lambda job, scope, overlap: Ripe(job, scope, overlap, MANY, LAST, backfill=True))
    ripe = sorted((*found.values(), *asked_for), key=lambda ripe: ripe.due)
    return Outlook(ripe, await one(NEXT_AT, lambda at: at))


async def held() -> dict[tuple[str, str], int]:
    """How many runs of each line, by job and scope, are in hands whose lease is not over."""
    return {(job, scope): count for job, scope, count in await every(HELD, lambda *cells: cells)}
