"""Scopes: which a job has, and which of them may have work."""

from __future__ import annotations

from duly.ledger.ask import Statement, every
from duly.ledger.backfill_states import LIVE, ors

SCOPES_OF = Statement(
    "scopes_of",
    """
select l.scope
  from duly_line l
  join duly_job j on j.id = l.job
 where j.name = :name
 order by l.scope
""",
)

SCOPES_TO_WORK = Statement(
    "scopes_to_work",
    f"""
select l.scope
  from duly_line l
  join duly_job j on j.id = l.job
 where j.name = :name
   and (l.ends is null or l.next_due is not null
        or exists (select 1 from duly_series s join duly_run r on r.series = s.id where s.line = l.id and {{unsettled}})
        or exists (select 1 from duly_series s join duly_backfill f on f.series = s.id
                    where s.line = l.id and {ors("f.state", LIVE)}))
 order by l.scope
""",
)


async def scopes_of(name: str) -> list[str]:
    """The roster of a job; empty for a job never registered."""
    return await every(SCOPES_OF, str, name=name)


async def scopes_to_work(name: str) -> list[str]:
    """The scopes of a job of which anything is owed, or may come to be; the empty one for a job never registered.

    One that was retired is left out when it owes nothing any more and no backfill of it goes on: a poke of all need not look
    at it for ever.
    """
    return await every(SCOPES_TO_WORK, str, name=name) or ([] if await scopes_of(name) else [""])
