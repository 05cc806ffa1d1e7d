"""Peek: what a plain look says of a poke, without a lock and without a commit.

Most pokes find nothing to do: this is all that they import, and what only a claim needs is imported where one is near.
"""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.ask import now
from duly.ledger.owed import next_of_backlog, owed
from duly.ledger.records import pause_of
from duly.ledger.register import find, is_complete, refused
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from duly.errors import Misuse, Refused
    from duly.ledger.owed import Owed
    from duly.ledger.records import Known, Pause, Run, RunId
    from duly.ledger.register import Declaration


@record
class Idle:
    """Nothing to work now. `standing` is the newest run that is due but unsettled, or the one that blocks it.

    While the job is paused nothing is worked, and nothing stands in the way of anything. `live`: of a backfill nothing,
    because what its line owes goes first.
    """

    known: Known | None
    standing: Run | None
    next_due: int | None
    writes: bool = False  # there is something to claim or to record: a look cannot settle this poke
    paused: Pause | None = None
    live: bool = False


async def peek(declared: Declaration, *, as_of: int | None, tried: Container[RunId]) -> Idle | Refused | Misuse:
    """What a plain look says of a poke: nothing to do, and why; or that a claim has to be tried (`writes`).

    No lock, no commit: this is all that a duplicate costs.
    """
    known = await find(declared.job, declared.scope)
    refusal = await refused(known, declared)
    if refusal is not None:
        return refusal
    if known is None or not is_complete(known, declared):
        return Idle(known, None, None, writes=True)
    instant = await now()
    paused = pause_of(known, instant)
    if paused is not None:
        return Idle(known, None, None, paused=paused)
    as_of = instant if as_of is None else as_of
    if await next_of_backlog(known, as_of, tried) is not None:
        holder = await holder_in_the_way(known)
        return Idle(known, holder, noted_next_due(known), writes=holder is None)
    due = await owed(known, as_of=as_of)
    workable = [run for run in in_order(known, due.rows) if run.id not in tried and await is_workable(run, instant)]
    if not workable and not due.changes_the_ledger:
        return Idle(known, standing_of(known, due.rows, due), due.next_due)
    holder = await holder_in_the_way(known)
    if holder is not None:
        return Idle(known, holder, due.next_due)
    return Idle(known, None, due.next_due, writes=True)


def standing_of(known: Known, rows: list[Run], due: Owed) -> Run | None:
    """The unsettled run that a poke has to answer for: the newest due, or of an ordered job the oldest, which blocks it."""
    if not rows:
        return None
    if known.job.ordered:
        return rows[0]
    from duly.ledger.policy import is_of

    return rows[-1] if is_of(rows[-1], due.newest) else None


async def holder_in_the_way(known: Known) -> Run | None:
    """The run that holds the line, where runs may not overlap and its holder is not gone."""
    if known.job.overlap or known.line is None or known.line.holder is None:
        return None
    from duly.ledger.take import gone, look

    held = await look(known.line.holder)
    if held is None or held.state != states.RUNNING or await gone(held):
        return None
    return held


def in_order(known: Known, rows: list[Run]) -> list[Run]:
    """The runs that may be worked: all, or of an ordered job the oldest unsettled one."""
    return rows[:1] if known.job.ordered else rows


async def is_workable(run: Run, instant: int) -> bool:
    """Whether a claim of this run could succeed now, or would find its holder gone."""
    match run.state:
        case states.OPEN:
            return True
        case states.FAILED:
            return run.retry_at is not None and run.retry_at <= instant
        case states.RUNNING:
            from duly.ledger.take import gone

            return await gone(run)
    return False


def noted_next_due(known: Known) -> int | None:
    """When the line's next window comes due, by its own note."""
    return None if known.line is None else known.line.next_due
