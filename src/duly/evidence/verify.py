"""Verify: what the ledger says of completed runs, to be held against what is there. Whoever asks looks at the files."""

from __future__ import annotations

from duly.evidence.verdict import Window, lines, window_of_row
from duly.ledger import states
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.messages import Tally, tally
from duly.ledger.output import Intent, attempts_at, find_output
from duly.ledger.records import LEASES, RUN_COLUMNS, Run
from duly.ledger.take import run_parameters
from duly.records import record

COMPLETED_OF_LINE = Statement(
    "completed_of_line",
    # What was done outside the schedule has no place in a range of it.
    f"""
select {RUN_COLUMNS}
  from duly_series s
  join duly_run r on r.series = s.id
  {LEASES}
 where s.line = :line and r.state = 'completed'
   and (cast(:first as bigint) is null or (r.nominal >= :first and s.grain <> 'adhoc'))
   and (cast(:beyond as bigint) is null or (r.nominal < :beyond and s.grain <> 'adhoc'))
 order by coalesce(r.due, r.opened_at) desc, r.nominal desc
 limit :limit
""",
)

COMPLETING_ATTEMPT = Statement(
    "completing_attempt",
    """
select count(*)
  from duly_run r
  join duly_attempt a on a.series = r.series and a.nominal = r.nominal and a.revision = r.revision
       and a.number = r.fence and a.attempt_id = r.attempt_id and a.outcome = 'completed'
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
""",
)

SAID_OUTPUT = Statement(
    "said_output",
    """
select t.body
  from duly_text t
  join duly_run r on r.series = t.series and r.nominal = t.nominal and r.revision = t.revision and r.fence = t.number
 where t.series = :series and t.nominal = :nominal and t.revision = :revision and t.kind = 'output'
""",
)


@record
class Claimed:
    """What the ledger says of a run: whether the attempt that completed it is on record, how its messages stand, the file that
    was put in place, where else it says that its output is, and its attempts.
    """

    window: Window
    has_its_attempt: bool
    messages: Tally
    output: Intent | None
    elsewhere: str | None
    attempts: list[bytes]

    @property
    def is_completed(self) -> bool:
        return self.window.row is not None and self.window.row.state == states.COMPLETED


async def claimed_of(window: Window) -> Claimed:
    """What the ledger says of a run that has a row."""
    assert window.row is not None
    of = run_parameters(window.row.id)
    output = await find_output(window.row.id)
    said = await one(SAID_OUTPUT, str, **of)
    return Claimed(
        window,
        await one(COMPLETING_ATTEMPT, bool, **of) is True,
        await tally(window.row.id),
        output,
        None if output is not None and said == output.path else said,
        await attempts_at(window.row.id),
    )


async def completed(
    name: str | None, scope: str | None, *, first: int | None, beyond: int | None, limit: int
) -> list[Claimed]:
    """What the ledger says of its newest completed runs, or of those with a nominal between two."""
    instant = await now()
    found: list[Window] = []
    for known in await lines(name, scope):
        assert known.line is not None
        asked = {"line": known.line.id, "first": first, "beyond": beyond, "limit": limit}
        rows = await every(COMPLETED_OF_LINE, Run, **asked)
        found += [await window_of_row(known, row, instant) for row in rows]
    found.sort(key=lambda window: window.due or (window.row.opened_at if window.row else 0), reverse=True)
    return [await claimed_of(window) for window in found[:limit]]
