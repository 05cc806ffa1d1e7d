"""Resolve: what a person may say of a run.

Each is one guarded change of the run's row with an event that names who and why. A change that the table of states does
not allow is refused with the state that stood in its way.
"""

from __future__ import annotations

from duly.errors import BelowHorizon, NotAllowed
from duly.ledger import states
from duly.ledger.ask import Statement, alive, count, now, one
from duly.ledger.bounds import chained, passed_over
from duly.ledger.complete import RECORD_END_OR_RAISE, keep_text
from duly.ledger.events import tell
from duly.ledger.records import Known, Run, RunId
from duly.ledger.register import NO_HORIZON
from duly.ledger.take import (
    HOLD_RUN,
    end_gone,
    hold_line,
    look,
    look_newest,
    retired,
    run_parameters,
    seen_of,
    skipped_by_range,
)
from duly.ledger.windows import NO_TIME_LEFT, SKIP_IF_FREE, open_window
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

RESOLVE_DONE = Statement(
    "resolve_done_if_unknown",
    """
update duly_run
   set state = {to}, settled_at = {now}, cause = null
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence
""",
    event="resolve_done",
)

RESOLVE_NOT_DONE = Statement(
    "resolve_not_done_if_unknown",
    # What a person asked to stop is not begun anew because another says how far it came.
    """
update duly_run
   set state = {to}, retry_at = case when cancel_number = fence then null else {now} end, asked_at = {now},
       cause = 'resolved as not done'
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence
""",
    event="resolve_not_done",
)

RETRY_IF_FAILED = Statement(
    "retry_if_failed",
    """
update duly_run
   set state = {to}, retry_at = {now}, asked_at = {now}, failures = 0,
       payload = case when :new_payload = 1 then null else payload end
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from}
""",
    event="retry",
)

UNSKIP_IF_SKIPPED = Statement(
    "unskip_if_skipped",
    # It becomes what it was; a failed run is due for retry at once, for a person asked for it. I7: not below the horizon.
    """
update duly_run
   set state = was, was = null, settled_at = null, cause = null, asked_at = {now},
       retry_at = case when was = 'failed' then {now} end
 where series = :series and nominal = :nominal and revision = :revision
   and state = 'skipped'
   and exists (select 1 from duly_series s where s.id = :series and s.horizon <= :nominal {share})
""",
)

HORIZON = Statement("horizon_of_series", "select horizon from duly_series where id = :series")

CUT_RANGE = Statement(
    "cut_range",
    """
insert into duly_skipped (series, from_nominal, to_nominal, reason, at, by)
select series, :nominal + 1, to_nominal, reason, at, by
  from duly_skipped
 where series = :series and from_nominal <= :nominal and to_nominal > :nominal + 1
    on conflict do nothing
""",
)

END_RANGE_BEFORE = Statement(
    "end_range_before",
    """
update duly_skipped
   set to_nominal = :nominal
 where series = :series and from_nominal <= :nominal and to_nominal > :nominal
""",
)

DROP_EMPTY_RANGES = Statement(
    "drop_empty_ranges", "delete from duly_skipped where series = :series and from_nominal >= to_nominal"
)

REPLACE_IF_COMPLETED = Statement(
    "replace_if_completed",
    # I3: the old row is written too, else a late attempt and a new revision would both live.
    """
update duly_run
   set state = {to}, fence = fence + 1
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence
""",
    event="reopen",
)

OPEN_REVISION = Statement(
    "open_revision",
    # I7: the series is held, as for whatever creates a run.
    """
insert into duly_run (series, nominal, revision, state, fence, due, window_start, window_end, resolution, version,
       opened_at, failures, asked_at)
select r.series, r.nominal, r.revision + 1, 'open', 0, r.due, r.window_start, r.window_end, r.resolution, r.version,
       {now}, 0, {now}
  from duly_run r
  join duly_series s on s.id = r.series and s.horizon <= r.nominal
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state = 'replaced' and r.fence = :seen_fence + 1 {share}
    on conflict do nothing
""",
)


@record
class Word:
    """Who says it and why; `evidence` is the longer text of a resolution."""

    by: str
    reason: str
    evidence: str = ""


def standing(seen: Run | None) -> str:
    """How a run stands, as events say it; also of one that has no row yet."""
    return states.ABSENT if seen is None else seen.standing


def not_allowed(what: str, seen: Run | None) -> NotAllowed:
    """The refusal of a change that the run's state does not allow."""
    state = "has no row yet" if seen is None else f"is {seen.state}"
    advice = {
        states.RUNNING: "wait for its attempt",
        states.UNKNOWN: "`duly resolve` it first",
        states.COMPLETED: "`duly reopen` it to do it again on purpose",
        states.SKIPPED: "`duly unskip` it first",
        states.FAILED: "`duly retry` or `duly skip` it",
        states.OPEN: "the next poke works it; `duly skip` it to leave it out",
        states.REPLACED: "address its newest revision",
    }
    hint = "" if seen is None else f"; {advice[seen.state]}"
    return NotAllowed(f"cannot {what} this run: it {state}{hint}")


async def refuse_pruned(run: RunId, seen: Run | None) -> None:
    """Raise `BelowHorizon` for a run that has no row because it was pruned."""
    if seen is None and run.nominal < (await one(HORIZON, int, series=run.series) or NO_HORIZON):
        raise BelowHorizon


async def resolve(run: RunId, word: Word, *, done: bool, attempt_is_dead: bool = False) -> Run:
    """Say what happened to an unknown run: it was done (completed), or it was not (failed, to be retried now; one that was
    cancelled waits for a person).

    Raises `NotAllowed` for a run that is not unknown, or whose attempt still shows a pulse: it may yet report. That
    another process merely kept its file lock can be overridden, on the record.
    """
    seen = await look(run)
    if seen is None or seen.state != states.UNKNOWN:
        await refuse_pruned(run, seen)
        raise not_allowed("resolve", seen)
    assert seen.attempt_id is not None
    if (seen.lease_until or 0) > await now():
        raise NotAllowed("cannot resolve this run: its attempt renewed its lease a moment ago; ask it, or wait")
    if not attempt_is_dead and await alive(seen.attempt_id):
        raise NotAllowed(f"cannot resolve this run: its attempt still holds its lock (it began as {seen.owner})")
    statement, state = (RESOLVE_DONE, states.COMPLETED) if done else (RESOLVE_NOT_DONE, states.FAILED)
    await count(statement, **run_parameters(run), seen_fence=seen.fence)
    await count(
        RECORD_END_OR_RAISE,
        **run_parameters(run),
        attempt_id=seen.attempt_id,
        number=seen.fence,
        state=state,
        outcome="completed" if done else "failed",
        contract=seen.contract,
        owner=seen.owner,
        trigger=seen.trigger,
        error=f"unknown ({seen.cause}); resolved by {word.by}",
    )
    await keep_text(run, seen.fence, "evidence", word.evidence)
    detail = ("done" if done else "not done") + (", attempt said to be dead" if attempt_is_dead else "")
    found = await seen_of(run)
    await tell(
        "resolved",
        run=run,
        attempt_id=seen.attempt_id,
        by=word.by,
        reason=word.reason,
        detail=detail,
        changed=(seen.standing, found.standing),
    )
    return found


async def resolve_left(run: RunId, word: Word, *, done: bool, attempt_is_dead: bool = False) -> Run:
    """`resolve`, also of a run whose holder has vanished while nobody looked: that is judged first."""
    await end_left(run, attempt_is_dead=attempt_is_dead)
    return await resolve(run, word, done=done, attempt_is_dead=attempt_is_dead)


async def end_left(run: RunId, *, attempt_is_dead: bool = False) -> None:
    """End the attempt of a run whose holder has vanished while nobody looked, as whoever takes it next would."""
    seen = await look(run)
    if seen is not None and seen.state == states.RUNNING and (seen.lease_until or 0) <= await now():
        assert seen.attempt_id is not None
        if attempt_is_dead or not await alive(seen.attempt_id):
            await end_gone(seen)


async def retry(run: RunId, word: Word, *, new_payload: bool = False) -> Run:
    """Let a failed run be taken at the next poke, whatever its retry time and the catch-up policy. Runs nothing.

    With `new_payload` the next claim fixes the payload anew (I6).
    """
    await one(HOLD_RUN, str, **run_parameters(run))  # what it was before is on record: nobody changes it meanwhile
    seen = await look(run)
    if not await count(RETRY_IF_FAILED, **run_parameters(run), new_payload=int(new_payload)):
        await refuse_pruned(run, seen)
        raise not_allowed("retry", seen)
    found = await seen_of(run)
    detail, changed = "new payload" if new_payload else "", (standing(seen), found.standing)
    await tell("retried", run=run, by=word.by, reason=word.reason, detail=detail, changed=changed)
    return found


async def skip(known: Known, run: RunId, occurrence: Occurrence | None, word: Word) -> Run:
    """Settle a run without doing it. A window without a row is given one: a person's skip is never a range.

    Raises `NotAllowed`, and `Retired` for a window without a row that comes due after the line's end.
    """
    await one(HOLD_RUN, str, **run_parameters(run))
    before = await look(run)
    seen = before or await open_named(known, run, occurrence)
    if not await count(SKIP_IF_FREE, **run_parameters(run), cause=word.reason):
        raise not_allowed("skip", seen)
    await tell("skipped", run=run, by=word.by, reason=word.reason, changed=(standing(before), states.SKIPPED))
    return await seen_of(run)


async def unskip(known: Known, run: RunId, occurrence: Occurrence | None, word: Word) -> Run:
    """Make a skipped run what it was before, and owed whatever the catch-up policy. Cuts it out of a skipped range.

    Raises `NotAllowed` for a run that is not skipped, and for a window without a time of its own; `Retired` as `skip`.
    """
    seen = await look(run)
    if seen is not None and seen.state == states.SKIPPED and seen.due is not None and seen.window_start is None:
        raise NotAllowed(f"nothing is left to work: {NO_TIME_LEFT}")
    if seen is None and occurrence is not None and await passed_over(known, occurrence):
        raise NotAllowed(f"nothing is left to work: {NO_TIME_LEFT}")
    if seen is None and await skipped_by_range(run.series, run.nominal) is not None:
        seen = await open_named(known, run, occurrence)
        if await skipped_by_range(run.series, run.nominal) is not None:  # else somebody cut it out a moment ago
            await _cut_out(run)
            if occurrence is not None and seen.window_start is None:
                raise NotAllowed(f"nothing is left to work: {NO_TIME_LEFT}")
            await count(SKIP_IF_FREE, **run_parameters(run), cause="was in a skipped range")
    if not await count(UNSKIP_IF_SKIPPED, **run_parameters(run)):
        if seen is not None and seen.state == states.SKIPPED:
            raise BelowHorizon
        raise not_allowed("unskip", seen)
    found = await seen_of(run)
    await tell("unskipped", run=run, by=word.by, reason=word.reason, changed=(states.SKIPPED, found.standing))
    return found


async def reopen(run: RunId, word: Word) -> Run:
    """Deliberately do a completed run again, as its next revision, under a key of its own; its messages come first."""
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await look_newest(run.series, run.nominal)
    if seen is not None and seen.id == run and seen.state == states.COMPLETED:
        from duly.ledger.messages import refuse_undelivered

        await refuse_undelivered(run, "reopen")
    if (
        seen is None
        or seen.id != run
        or not await count(REPLACE_IF_COMPLETED, **run_parameters(run), seen_fence=seen.fence)
    ):
        await refuse_pruned(run, seen)
        raise not_allowed("reopen", seen)
    if not await count(OPEN_REVISION, **run_parameters(run), seen_fence=seen.fence):
        raise BelowHorizon
    again = RunId(run.series, run.nominal, run.revision + 1)
    found = await seen_of(again)
    await tell("reopened", run=again, by=word.by, reason=word.reason, changed=(seen.standing, found.standing))
    return found


async def open_named(known: Known, run: RunId, occurrence: Occurrence | None) -> Run:
    """Give a window that was seen without a row the row that a person's word needs; the row, also where a rival was first.

    The line is held from here on. What comes due after its end gets no row, by whatever way somebody asks.
    """
    known = await hold_line(known)
    if (opened := await look(run)) is not None:
        return opened
    ended = retired(known, await now() if occurrence is None else occurrence.due)
    if ended is not None:
        raise ended
    await open_window(known, run, await chained(known, run, occurrence))
    if (opened := await look(run)) is None:
        raise BelowHorizon
    return opened


async def cut_out(run: RunId, word: Word) -> None:
    """Take a window without a row out of the skipped range that it lies in. The line is held."""
    await _cut_out(run)
    detail = "was in a skipped range"
    await tell(
        "unskipped", run=run, by=word.by, reason=word.reason, detail=detail, changed=(states.SKIPPED, states.ABSENT)
    )


async def _cut_out(run: RunId) -> None:
    bounds = {"series": run.series, "nominal": run.nominal}
    await count(CUT_RANGE, **bounds)
    await count(END_RANGE_BEFORE, **bounds)
    await count(DROP_EMPTY_RANGES, series=run.series)
