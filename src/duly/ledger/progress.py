"""Progress: how far an attempt says that it is.

A row of its own beside the lease, so that whoever tells of it touches neither the run nor anybody's transaction. Nothing is
decided by it. It stays when the attempt has ended, and says how far that came, until the next one tells of its own.
"""

from __future__ import annotations

from duly.ledger.ask import Statement, count, one
from duly.ledger.records import Claim, Run
from duly.ledger.take import claim_parameters, run_parameters
from duly.records import record

REPORT_IF_HELD = Statement(
    "report_if_held",
    """
insert into duly_progress (series, nominal, revision, attempt_id, done, total, at)
select r.series, r.nominal, r.revision, r.attempt_id, cast(:done as bigint), cast(:total as bigint), {now}
  from duly_run r
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state = 'running' and r.attempt_id = :attempt_id and r.fence = :number
    on conflict (series, nominal, revision)
    do update set attempt_id = excluded.attempt_id, done = excluded.done, total = excluded.total, at = excluded.at
""",
)

PROGRESS_OF = Statement(
    "progress_of",
    """
select done, total, at
  from duly_progress
 where series = :series and nominal = :nominal and revision = :revision and attempt_id = :attempt_id
""",
)


@record
class Progress:
    """So many are done, of so many if that is known; told at an instant."""

    done: int
    total: int | None
    at: int = 0

    @property
    def words(self) -> str:
        """As `14/20, 70 %`; `14 done` where nobody said of how many."""
        if self.total is None:
            return f"{self.done} done"
        return f"{self.done}/{self.total}, {self.done * 100 // self.total} %"


async def report(claim: Claim, progress: Progress) -> bool:
    """Say how far an attempt is. False: it is not being made any more, and nothing was written."""
    return bool(await count(REPORT_IF_HELD, **claim_parameters(claim), done=progress.done, total=progress.total))


async def progress_of(run: Run) -> Progress | None:
    """How far the newest attempt of a run said that it is, if it did."""
    if run.attempt_id is None:
        return None
    return await one(PROGRESS_OF, Progress, **run_parameters(run.id), attempt_id=run.attempt_id)
