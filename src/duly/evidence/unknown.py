"""Unknown: runs of which nobody knows what became of them, or of a message; each with what was sent, and who looked.

Of a run whose holder is gone nobody may know either: what is so is said by the judgement that every view rests on, and not by
the row, which whoever takes it next will change.
"""

from __future__ import annotations

from duly.evidence.explain import Explanation, explain
from duly.evidence.verdict import UNKNOWN
from duly.ledger.address import by_key, key_of
from duly.ledger.ask import Statement, every, now
from duly.ledger.messages import IS_UNSETTLED
from duly.ledger.records import LEASES, RunId
from duly.records import record

# Both by the indexes of what is unsettled: what is settled is never looked at.
UNKNOWN_RUNS = Statement(
    "unknown_runs",
    f"""
select r.series, r.nominal, r.revision
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  {LEASES}
 where {{unsettled}}
   and (r.state = 'unknown' or (r.state = 'running' and coalesce(n.until, r.lease_until) <= {{now}}))
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by r.due, r.series, r.nominal, r.revision
 limit :limit
""",
)

WITH_UNKNOWN_MESSAGES = Statement(
    "runs_with_unknown_messages",
    f"""
select m.series, m.nominal, m.revision
  from duly_message m
  join duly_series s on s.id = m.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where {IS_UNSETTLED} and m.state = 'unknown'
   and (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 group by m.series, m.nominal, m.revision
 order by min(m.noted_at), m.series, m.nominal, m.revision
 limit :limit
""",
)


@record
class Unknown:
    """The runs in doubt, the oldest first; `more` if there may be others."""

    as_of: int
    told: list[Explanation]
    more: bool


async def unknown(name: str | None = None, scope: str | None = None, *, limit: int) -> Unknown:
    """What is unknown, of the whole ledger, one job or one line."""
    asked = {"name": name, "scope": scope, "limit": limit + 1}
    found = await every(UNKNOWN_RUNS, RunId, **asked)
    beside = await every(WITH_UNKNOWN_MESSAGES, RunId, **asked)
    runs = list(dict.fromkeys([*found, *beside]))
    told = [await explain(await by_key(await key_of(run))) for run in runs[:limit]]
    in_doubt = [each for each in told if each.window.verdict.word == UNKNOWN or each.window.run in beside]
    return Unknown(await now(), in_doubt, len(runs) > limit)
