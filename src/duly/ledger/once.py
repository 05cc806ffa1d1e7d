"""Once: claim, effect and completion in one transaction, the caller's.

The run and its attempt are written before the caller's effect: committed, there is one completed attempt on record; rolled
back or killed, nothing ever was. Never seen as running. The first statement is a write: a transaction of SQLite that has
read and then wants to write may be refused at once, whatever its time-out.
"""

from __future__ import annotations

from duly.errors import (
    BelowHorizon,
    Misuse,
    NotAllowed,
    OutcomeUnknown,
    PayloadConflict,
    Refused,
    RunBusy,
    RunFailed,
    RunPaused,
    RunSkipped,
)
from duly.ledger import states
from duly.ledger.address import find_revision
from duly.ledger.ask import Statement, count, now
from duly.ledger.bounds import chained
from duly.ledger.complete import RECORD_END_OR_RAISE
from duly.ledger.named import about, place_of
from duly.ledger.records import Claimer, Known, Run, RunId, pause_of, pause_words, pauses_of
from duly.ledger.register import Declaration, declare
from duly.ledger.take import (
    close_lost,
    ending_when_gone,
    gone,
    look,
    payload_differs,
    refusal_when_gone,
    retired,
    run_parameters,
    skipped_by_range,
)
from duly.ledger.trylock import lock_of_run, try_lock
from duly.ledger.windows import notice_drift, open_to_work
from duly.schedule.keys import RunKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.occurrence import Occurrence

ONCE_IF_UNCHANGED = Statement(
    "once_if_unchanged",
    """
update duly_run
   set state = {to}, fence = fence + 1, payload = coalesce(payload, :payload, 'none'), settled_at = {now},
       first_started_at = coalesce(first_started_at, {now}), attempt_id = :attempt_id, started_at = {now},
       lease_until = {now}, contract = 'transactional', owner = :owner, trigger = :trigger,
       retry_at = null, cause = null
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence
   and (state <> 'running' or coalesce(cancel_number, 0) < fence)
""",
    event="once",
)


async def once(key: RunKey, claimer: Claimer) -> bool:
    """Complete the run of a key in the caller's transaction, before the caller's effect. False: it was complete already.

    A job never seen before is registered without a schedule. It ignores overlap and due time. Raises `RunBusy`,
    `OutcomeUnknown`, `RunFailed`, `RunSkipped`, `RunPaused`, `PayloadConflict`, `BelowHorizon` or, where a schedule is known,
    `WindowInvalid`; none of them breaks the caller's transaction.
    """
    try:
        return await _once_by_key(key, claimer)
    except Refused as refusal:
        raise about(key, refusal) from None


async def _once_by_key(key: RunKey, claimer: Claimer) -> bool:
    known = await declare(Declaration(key.job, key.scope, by=claimer.owner), unscheduled=True)
    if isinstance(known, (Refused, Misuse)):
        raise known
    place = await place_of(known, key)
    run, seen = await find_revision(place.series, place.nominal, key.revision)
    return await _once(place.known, run, seen, claimer, occurrence=place.occurrence, horizon=place.series.horizon)


async def _once(
    known: Known, run: RunId, seen: Run | None, claimer: Claimer, *, occurrence: Occurrence | None, horizon: int
) -> bool:
    if seen is None:
        if run.nominal < horizon:
            raise BelowHorizon
        if (reason := await skipped_by_range(run.series, run.nominal)) is not None:
            raise RunSkipped(f"this window was skipped ({reason}); `duly unskip` it to run it")
        ended = retired(known, await now() if occurrence is None else occurrence.due)
        if ended is not None:
            raise ended
    elif await _complete_or_refuse(seen, claimer):
        return False
    else:
        await notice_drift(known, seen, claimer.owner)
    if pauses_of(known) and (paused := pause_of(known, await now())) is not None:
        raise RunPaused(f"{known.job.name} is {pause_words(paused)}; nothing was run")
    if not await try_lock(lock_of_run(run)):
        raise RunBusy(
            "another transaction is doing this run, and has not ended yet; nothing was run. Try again when it has"
        )
    written: dict[str, Value] = {
        **run_parameters(run),
        "attempt_id": claimer.attempt_id,
        "owner": claimer.owner,
        "trigger": claimer.trigger,
    }
    if seen is None:
        if occurrence is not None and occurrence.off:
            raise RunSkipped(f"this window is skipped ({occurrence.off})")
        if (cause := await open_to_work(known, run, await chained(known, run, occurrence), claimer.owner)) is not None:
            raise RunSkipped(f"this window is skipped ({cause})")
    seen_fence = 0 if seen is None else seen.fence
    won = await count(ONCE_IF_UNCHANGED, **written, payload=claimer.payload, seen_fence=seen_fence)
    if won and seen is not None and seen.state == states.RUNNING:
        await close_lost(seen)
    mine = await look(run)
    if mine is None:
        raise BelowHorizon
    if mine.attempt_id != claimer.attempt_id:  # another transaction was first: the verdict is what it made
        if await _complete_or_refuse(mine, claimer):
            return False
        raise RunBusy
    await count(
        RECORD_END_OR_RAISE,
        **run_parameters(run),
        attempt_id=claimer.attempt_id,
        number=mine.fence,
        state=states.COMPLETED,
        outcome="completed",
        contract="transactional",
        owner=claimer.owner,
        trigger=claimer.trigger,
        error=None,
    )
    return True


async def _complete_or_refuse(seen: Run, claimer: Claimer) -> bool:
    """Whether the run is complete already. Raises where the caller's effect must not run."""
    if payload_differs(seen, claimer.payload):
        raise PayloadConflict
    match seen.state:
        case states.COMPLETED | states.REPLACED:
            return True
        case states.UNKNOWN:
            raise OutcomeUnknown
        case states.SKIPPED:
            raise RunSkipped(f"this run was skipped ({seen.cause}); `duly unskip` it if it is to run after all")
        case states.FAILED if seen.retry_at is None:
            raise RunFailed
        case states.RUNNING:
            if not await gone(seen):
                raise RunBusy
            ending = ending_when_gone(seen, await now())
            if not ending.retry:
                raise refusal_when_gone(seen, ending)
    if not states.allowed("once", seen.state):
        raise NotAllowed
    return False
