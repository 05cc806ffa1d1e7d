"""Take: who may work a run.

The run's row names its current attempt, its number and its lease. A claim is one conditional write of that row; the look
before it only spares a duplicate the write lock, and the write's own guard decides. A holder is *gone* when its lease has
lapsed and it shows no pulse; what becomes of its run then is the contract's word, sealed when it claimed.
"""

from __future__ import annotations

from duly.errors import (
    BelowHorizon,
    Conflict,
    OutcomeUnknown,
    PayloadConflict,
    Refused,
    Retired,
    RunFailed,
    RunPaused,
    RunSkipped,
)
from duly.ledger import contracts, states
from duly.ledger.ask import Statement, alive, count, do, now, one
from duly.ledger.bounds import chained
from duly.ledger.contracts import Ending, Terms
from duly.ledger.events import tell
from duly.ledger.records import (
    BACKFILL_OF,
    LEASES,
    LINE_COLUMNS,
    RUN_COLUMNS,
    AlreadyCompleted,
    Busy,
    Claim,
    Claimer,
    Known,
    Line,
    NotDue,
    Run,
    RunId,
    Series,
    pause_of,
    pause_words,
    pauses_of,
)
from duly.ledger.trylock import lock_of_run
from duly.ledger.windows import notice_drift, open_to_work
from duly.records import record, replace
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.occurrence import Occurrence

LOOK = Statement(
    "look",
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
""",
)

FORGOTTEN_ADHOC = Statement(
    "forgotten_adhoc",
    "select state from duly_adhoc where series = :series and nominal = :nominal and state is not null",
)

LOOK_NEWEST = Statement(
    "look_newest",
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and r.nominal = :nominal
 order by r.revision desc limit 1
""",
)

OLDEST_UNSETTLED = Statement(
    "oldest_unsettled",
    # What a backfill owes is in nobody's way but its own.
    f"""
select {RUN_COLUMNS}
  from duly_series s
  join duly_run r on r.series = s.id
  {LEASES}
 where s.line = :line and r.due is not null and {{unsettled}} and {BACKFILL_OF} is null
 order by r.due limit 1
""",
)

RANGE_OVER = Statement(
    "range_over",
    """
select reason
  from duly_skipped
 where series = :series and from_nominal <= :nominal and to_nominal > :nominal
 limit 1
""",
)

CLAIM_IF_FREE = Statement(
    "claim_if_free",
    # I3: the fence only rises. Guarded by the attempt that was seen, so that two who saw the same free run cannot both
    # have it.
    """
update duly_run
   set state = {to}, fence = fence + 1, payload = coalesce(payload, :payload, 'none'),
       first_started_at = coalesce(first_started_at, {now}), attempt_id = :attempt_id, started_at = {now},
       lease_until = {now} + :lease, contract = :contract, remembers = :remembers, owner = :owner, trigger = :trigger,
       retry_at = null, cause = null, asked_at = case when :named = 1 then {now} else asked_at end
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence
""",
    event="take",
)

TAKE_OVER = Statement(
    "take_over_if_unchanged",
    # I2, I3: the old attempt's number is dead from here on. One that was asked to stop has no successor by policy: it is
    # ended, and its run waits for a person.
    """
update duly_run
   set state = {to}, fence = fence + 1, attempt_id = :attempt_id, started_at = {now},
       lease_until = {now} + :lease, contract = :contract, remembers = :remembers, owner = :owner, trigger = :trigger
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence and attempt_id = :seen_attempt
   and coalesce(cancel_number, 0) < fence
""",
    event="take_over",
)

CLOSE_LOST = Statement(
    "close_lost",
    # Inserted after the fence has risen, never before: the other order deadlocks against complete.
    """
insert into duly_attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome,
       contract, owner, trigger, error)
values (:series, :nominal, :revision, :number, :attempt_id, :started_at, {now}, 'lost',
       :contract, :owner, :trigger, :error)
""",
)

LOSE_IF_UNCHANGED = Statement(
    "lose_if_unchanged",
    # The number need not rise: from failed no attempt can complete, and the next claim raises it. Whatever who looked has
    # seen: what a person asked to stop is not retried by policy.
    """
update duly_run
   set state = {to}, retry_at = case when cancel_number = fence then null else {now} end, cause = :cause
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence and attempt_id = :seen_attempt
""",
    event="lose",
)

LAPSE_IF_UNCHANGED = Statement(
    "lapse_if_unchanged",
    # I5. The fence does not rise: the attempt is the best witness, and may still report.
    """
update duly_run
   set state = {to}, cause = :cause
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence and attempt_id = :seen_attempt
""",
    event="lapse",
)

LOCK_LINE = Statement(
    "lock_line",
    # Overlap and bounds are judged on the line's row, locked first: what a rival noted there before us is seen, one after
    # us waits.
    f"select {LINE_COLUMNS} from duly_line l where l.id = :line {{lock}}",
)

BEFORE_OPENING = Statement(
    "before_opening",
    """
select {now},
       (select reason
          from duly_skipped
         where series = :series and from_nominal <= :nominal and to_nominal > :nominal limit 1),
       j.version, {lockable}
  from duly_job j
 where j.id = :job
""",
)

HOLD_LINE = Statement(
    "hold_line",
    """
update duly_line
   set holder_series = :series, holder_nominal = :nominal, holder_revision = :revision, live_claims = live_claims + 1
 where id = :line
""",
)

LOCK_LINE_OF = Statement(
    "lock_line_of",
    "select l.id from duly_line l where l.id = (select s.line from duly_series s where s.id = :series) {lock}",
)

RENEW_IF_HELD = Statement(
    "renew_if_held",
    # A heartbeat never touches the run: the lease of a renewed run lives here.
    """
insert into duly_renewal (series, nominal, revision, attempt_id, until)
select r.series, r.nominal, r.revision, r.attempt_id, {now} + :lease
  from duly_run r
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state = 'running' and r.attempt_id = :attempt_id and r.fence = :number
    on conflict (series, nominal, revision) do update set attempt_id = excluded.attempt_id, until = excluded.until
""",
)

RETURN_FROM_UNKNOWN = Statement(
    "return_from_unknown_if_line_notes_it",
    # The line is held: a claim of its next window, which saw this run unknown, may be under way.
    """
update duly_run
   set state = {to}, cause = null
 where series = :series and nominal = :nominal and revision = :revision
   and state = 'unknown' and state in {from} and attempt_id = :attempt_id and fence = :number
   and lease_until is not null
   and exists (
       select 1
         from duly_series s
         join duly_line l on l.id = s.line
         join duly_job j on j.id = l.job
        where s.id = :series
          and (j.overlap = 1 or (l.holder_series = :series and l.holder_nominal = :nominal
                                 and l.holder_revision = :revision)))
""",
    event="renew",
)


HOLD_RUN = Statement(
    "hold_run",
    # Whoever adds a message, settles one, or asks whether all are settled, holds the run first: in the snapshot of a statement
    # that had to wait for a row, other tables are as they were before.
    """
select state
  from duly_run
 where series = :series and nominal = :nominal and revision = :revision {lock}
""",
)

CANCEL_IS_ASKED = Statement(
    "cancel_is_asked",
    """
select 1
  from duly_run
 where series = :series and nominal = :nominal and revision = :revision
   and attempt_id = :attempt_id and fence = :number and cancel_number = :number
""",
)

# What a heartbeat hears.
HELD = "held"
ASKED_TO_STOP = "asked to stop"
LOST = "lost"


@record
class _BeforeOpening:
    """The instant, the reason of the skipped range over a window, the version in force, and whether nobody else's open
    transaction is doing the run.
    """

    instant: int
    skipped: str | None
    version: int | None
    is_free: int


def run_parameters(run: RunId) -> dict[str, int]:
    """A run's identity as the parameters that every statement names it by."""
    return {"series": run.series, "nominal": run.nominal, "revision": run.revision}


async def look(run: RunId) -> Run | None:
    """The run as it is, or None where its window was never opened."""
    return await one(LOOK, Run, **run_parameters(run))


async def seen_of(run: RunId) -> Run:
    """A run that has a row, as it is."""
    seen = await look(run)
    assert seen is not None  # it was seen in this transaction
    return seen


async def look_newest(series: int, nominal: int) -> Run | None:
    """The newest revision of a run, or None where its window was never opened."""
    return await one(LOOK_NEWEST, Run, series=series, nominal=nominal)


async def skipped_by_range(series: int, nominal: int) -> str | None:
    """The reason of the skipped range over a window without a row, or None."""
    return await one(RANGE_OVER, str, series=series, nominal=nominal)


async def gone(run: Run, instant: int | None = None) -> bool:
    """Whether the run's holder is gone: its lease has lapsed and it shows no pulse (I4: by the database's clock).

    `instant`: the database's, where it was read in this very snapshot, and nothing is to be decided but what is shown.
    """
    assert run.attempt_id is not None
    assert run.lease_until is not None
    return run.lease_until <= (await now() if instant is None else instant) and not await alive(run.attempt_id)


async def take(
    known: Known,
    series: Series,
    occurrence: Occurrence | None,
    run: RunId,
    seen: Run | None,
    claimer: Claimer,
    *,
    heed_retry_time: bool = False,
    line_is_held: bool = False,
) -> Claim | AlreadyCompleted | Busy | NotDue | Refused:
    """Take the run if it is free, or if its holder is gone and its contract allows. `seen`: its row, as it just was.

    A claim of the same attempt is told again: the reply to it was lost. A refusal is returned, not raised: what was found on
    the way (a holder gone, a run unknown) is to be committed first.
    A named window ignores a retry time, a poke heeds it. A window without a row is opened first. `line_is_held`: by this
    transaction, and `known` is from after that.
    """
    answer: AlreadyCompleted | Busy | NotDue | Refused | None
    if seen is not None and seen.state == states.RUNNING and seen.attempt_id == claimer.attempt_id:
        return claim_of(seen, known.job.lease)
    if seen is None:
        due = None if occurrence is None else occurrence.due
        known = await hold_line(known)
        answer = await _answer_absent(known, series, run, due, claimer)
    else:
        due = seen.due
        answer = await _answer_seen(seen, claimer, heed_retry_time=heed_retry_time)
        if answer is None and seen.backfill is not None:
            from duly.ledger.backfill_claim import admit  # few runs have one

            answer = await admit(seen, heed_pause=heed_retry_time)
        if answer is None and not known.job.overlap and not line_is_held:
            known = await hold_line(known)
    if answer is not None:  # not by its truth: some are falsy
        return answer
    if pauses_of(known) and (paused := pause_of(known, await now())) is not None:
        return RunPaused(f"{known.job.name} is {pause_words(paused)}; nothing was run")
    in_the_way = await _in_the_way(known, run, due)
    if in_the_way is not None:
        return in_the_way
    if seen is not None and seen.state == states.RUNNING:
        if not await gone(seen):
            return _busy(seen)
        ending = ending_when_gone(seen, await now())
        if not ending.retry:
            await end_gone(seen)
            return refusal_when_gone(seen, ending)
    if seen is None:
        cause = await open_to_work(known, run, await chained(known, run, occurrence), claimer.owner)
        if cause is not None:
            return RunSkipped(f"this window was skipped ({cause}); `duly unskip` it to run it")
    else:
        await notice_drift(known, seen, claimer.owner)
    return await _claim(known, run, seen, claimer, named=not heed_retry_time)


async def answer_first(seen: Run | None, claimer: Claimer) -> AlreadyCompleted | Busy | None:
    """What a plain look can answer without a lock or a commit; None where a claim has to be tried."""
    if seen is None or seen.attempt_id == claimer.attempt_id or payload_differs(seen, claimer.payload):
        return None
    if seen.state == states.COMPLETED:
        return AlreadyCompleted(seen.id, seen.settled_at or 0, seen.fence)
    if seen.state == states.RUNNING and not await gone(seen):
        return _busy(seen)
    return None


async def _answer_absent(
    known: Known, series: Series, run: RunId, due: int | None, claimer: Claimer
) -> Busy | NotDue | Refused | None:
    """What a window without a row answers; None where it may be opened. The line is held.

    Raises `Conflict` where the schedule changed between the look and the lock: the window may be none any more.
    """
    if run.nominal < series.horizon:
        await tell("below_horizon", run=run, by=claimer.owner)
        was = await one(FORGOTTEN_ADHOC, str, series=run.series, nominal=run.nominal)
        if was is None:
            return BelowHorizon()
        return BelowHorizon(f"this run was {was}, and its record was pruned; it is never executed again")
    found = await one(
        BEFORE_OPENING,
        _BeforeOpening,
        job=known.job.id,
        series=run.series,
        nominal=run.nominal,
        lock=lock_of_run(run),
    )
    assert found is not None  # a job is never deleted
    if known.version is not None and found.version != known.job.version:
        raise Conflict("the job's schedule changed just now; nothing was run. Try again")
    if found.skipped is not None:
        return RunSkipped(f"this window was skipped ({found.skipped}); `duly unskip` it to run it")
    if (ended := retired(known, found.instant if due is None else due)) is not None:
        return ended
    if due is not None and due > found.instant:
        return NotDue(run, due)
    # Else the claim would wait for a stranger's commit; where that comes, the run is complete.
    return None if found.is_free else Busy(run, found.instant, "another transaction")


def retired(known: Known, due: int) -> Retired | None:
    """The refusal of a window without a row that comes due after its line has ended; None where it has not. Pure.

    A run that has a row was owed before, and stays so. Outside a schedule what counts is when it is asked for.
    """
    line = known.line
    if line is None or line.ends is None or line.owes(due):
        return None
    who = "job" if known.job.retired_at is not None else "scope" if line.scope else "line"
    return Retired(f"the {who} was retired at {instant_text(line.ends)}: what comes due from then on is not owed")


async def _answer_seen(
    seen: Run, claimer: Claimer, *, heed_retry_time: bool
) -> AlreadyCompleted | Busy | NotDue | Refused | None:
    """What a run that has a row answers; None where it may be claimed."""
    settled = await _answer_without_claim(seen, claimer, heed_retry_time=heed_retry_time)
    if settled is not None:
        return settled
    return NotDue(seen.id, seen.due) if seen.due is not None and seen.due > await now() else None


async def _answer_without_claim(
    seen: Run, claimer: Claimer, *, heed_retry_time: bool
) -> AlreadyCompleted | Busy | Refused | None:
    """What a settled, unknown or waiting run answers; None where it may be claimed."""
    if payload_differs(seen, claimer.payload):
        await tell("payload_refused", run=seen.id, by=claimer.owner, detail=f"claimed first with {seen.payload}")
        return PayloadConflict()
    match seen.state:
        case states.COMPLETED | states.REPLACED:
            return AlreadyCompleted(seen.id, seen.settled_at or 0, seen.fence)
        case states.SKIPPED:
            return RunSkipped(f"this run was skipped ({seen.cause}); `duly unskip` it if it is to run after all")
        case states.UNKNOWN:
            return OutcomeUnknown()
        case states.FAILED if seen.retry_at is None:
            return RunFailed()
        case states.FAILED if heed_retry_time and seen.retry_at is not None and seen.retry_at > await now():
            return Busy(seen.id, seen.retry_at, "its retry time has not come")
    return None


def payload_differs(seen: Run, payload: str | None) -> bool:
    """I6: the payload hash is fixed by the first claim; a claim without one adopts it."""
    return payload is not None and seen.payload is not None and payload != seen.payload


def _busy(seen: Run) -> Busy:
    return Busy(seen.id, seen.lease_until or 0, seen.owner or "")


async def _in_the_way(known: Known, run: RunId, due: int | None) -> Busy | None:
    """The run that this one has to wait for: the one before it of an ordered job, or the one that holds the line."""
    if known.job.ordered and due is not None:
        assert known.line is not None
        first = await one(OLDEST_UNSETTLED, Run, line=known.line.id)
        if first is not None and first.due is not None and first.due < due and first.id != run:
            return Busy(first.id, first.lease_until or first.retry_at or due, "the run before it is not settled")
        from duly.ledger.messages import undelivered_before  # few jobs are ordered

        undelivered = await undelivered_before(known.line.id, due)
        if undelivered is not None:
            return Busy(undelivered, due, "the messages of the run before it are not delivered")
    return None if known.job.overlap else await _end_or_respect_holder(known, run)


async def hold_line(known: Known) -> Known:
    """Hold the line's row to the end of the transaction; what is known, with the line as it is now."""
    assert known.line is not None
    line = await one(LOCK_LINE, Line, line=known.line.id)
    assert line is not None  # a line is never deleted
    return replace(known, line=line)


async def _end_or_respect_holder(known: Known, run: RunId) -> Busy | None:
    """Overlap is off: the run noted on the line must not be running, or its holder is gone and ends here."""
    assert known.line is not None
    holder = known.line.holder
    if holder is None or holder == run:
        return None
    held = await look(holder)
    if held is None or held.state != states.RUNNING:
        return None
    if not await gone(held):
        return _busy(held)
    await end_gone(held)
    return None


def ending_when_gone(held: Run, instant: int) -> Ending:
    """What becomes of a run whose holder is gone, by the contract that was sealed with its attempt."""
    terms = Terms(held.contract or contracts.EXTERNAL, held.remembers)
    elapsed = instant - (held.first_started_at or instant)
    if held.cancel_is_asked:
        return contracts.after_cancel(terms, elapsed=elapsed)
    return contracts.after_vanishing(terms, elapsed=elapsed, cause="its attempt vanished")


def refusal_when_gone(held: Run, ending: Ending) -> Refused:
    """What a claim of a run whose holder is gone is answered where that leaves nothing to take."""
    if ending.state == states.UNKNOWN:
        return OutcomeUnknown(f"the attempt that held this run vanished and its contract is {held.contract}")
    return RunFailed("the attempt that held this run was asked to stop, and is gone: `duly retry` or `duly skip` it")


async def end_gone(held: Run) -> Ending:
    """End a run whose holder is gone: unknown, or failed with its attempt lost and due for retry at once.

    What a person asked to stop waits for a person.
    """
    ending = ending_when_gone(held, await now())
    guard: dict[str, Value] = {**run_parameters(held.id), "seen_fence": held.fence, "seen_attempt": held.attempt_id}
    if ending.state == states.UNKNOWN:
        if await count(LAPSE_IF_UNCHANGED, **guard, cause=ending.cause):
            changed = (held.standing, states.UNKNOWN)
            await tell(
                "unknown", run=held.id, attempt_id=held.attempt_id, by="duly", detail=ending.cause, changed=changed
            )
    elif await count(LOSE_IF_UNCHANGED, **guard, cause=ending.cause):
        await close_lost(held)
    return ending


async def close_lost(held: Run) -> None:
    """Write the row of an attempt that vanished, from the values that its run held before the fence rose."""
    await count(
        CLOSE_LOST,
        **run_parameters(held.id),
        number=held.fence,
        attempt_id=held.attempt_id,
        started_at=held.started_at,
        contract=held.contract,
        owner=held.owner,
        trigger=held.trigger,
        error="vanished",
    )


async def _claim(
    known: Known, run: RunId, seen: Run | None, claimer: Claimer, *, named: bool
) -> Claim | Busy | AlreadyCompleted | Refused:
    """Write the claim, then tell from a fresh look who has it."""
    job = known.job
    claim: dict[str, Value] = {
        **run_parameters(run),
        "attempt_id": claimer.attempt_id,
        "owner": claimer.owner,
        "trigger": claimer.trigger,
        "lease": job.lease,
        "contract": job.contract,
        "remembers": job.remembers,
    }
    if not job.overlap:
        assert known.line is not None
        await do(HOLD_LINE, **run_parameters(run), line=known.line.id)
    if seen is not None and seen.state == states.RUNNING:
        if await count(TAKE_OVER, **claim, seen_fence=seen.fence, seen_attempt=seen.attempt_id):
            await close_lost(seen)
    else:
        seen_fence = 0 if seen is None else seen.fence
        await do(CLAIM_IF_FREE, **claim, payload=claimer.payload, seen_fence=seen_fence, named=int(named))
    won = await look(run)
    if won is None:
        return BelowHorizon()
    if won.attempt_id != claimer.attempt_id:
        return AlreadyCompleted(won.id, won.settled_at or 0, won.fence) if won.state in states.SETTLED else _busy(won)
    return claim_of(won, job.lease)


def claim_of(run: Run, lease: int) -> Claim:
    """The claim that the run's row describes."""
    assert run.attempt_id is not None
    assert run.started_at is not None
    return Claim(
        run.id,
        run.attempt_id,
        run.fence,
        run.started_at,
        run.lease_until or 0,
        lease,
        run.contract or contracts.EXTERNAL,
        run.owner or "",
        run.trigger or "",
        run.failures,
        run.first_started_at or run.started_at,
        run.remembers,
        run,
    )


def claim_parameters(claim: Claim) -> dict[str, int | bytes]:
    """What every write of an attempt names: key, attempt and number (I2)."""
    return {**run_parameters(claim.run), "attempt_id": claim.attempt_id, "number": claim.number}


async def renew(claim: Claim) -> bool:
    """Prolong the lease by its length from now. False: another attempt took the run over, or it has ended."""
    held = claim_parameters(claim)
    if await count(RENEW_IF_HELD, **held, lease=claim.lease):
        return True
    seen = await look(claim.run)
    if seen is not None and seen.backfill is not None:
        from duly.ledger.backfill_claim import admit

        if await admit(seen, heed_pause=False) is not None:
            return False  # another has its slot
    await one(LOCK_LINE_OF, int, series=claim.run.series)
    if not await count(RETURN_FROM_UNKNOWN, **held):
        return False
    await count(RENEW_IF_HELD, **held, lease=claim.lease)
    return True


async def beat(claim: Claim) -> str:
    """A heartbeat: renew the lease, and hear whether the attempt is still `HELD`, is `ASKED_TO_STOP`, or is `LOST`."""
    if not await renew(claim):
        seen = await look(claim.run)
        is_in_doubt = seen is not None and seen.state == states.UNKNOWN and seen.attempt_id == claim.attempt_id
        if not is_in_doubt:
            return LOST
        # Its line went on without it, and nobody else has its run: it may still say what it did.
    return HELD if await one(CANCEL_IS_ASKED, int, **claim_parameters(claim)) is None else ASKED_TO_STOP
