"""Cancel: a person asks the attempt at a run to stop, wherever it is.

The request is a note on the run's row: the number of the attempt that is meant. That attempt hears of it with its next
heartbeat, and what it says then is believed: that it completed all the same, or that it ended. No other attempt is meant, and
none follows by policy: the statements that end an attempt, and the one that takes a run over, look for the note themselves. A
run that nobody works is skipped instead.
"""

from __future__ import annotations

from duly.errors import NotAllowed
from duly.ledger import states
from duly.ledger.ask import Statement, count, one
from duly.ledger.events import tell
from duly.ledger.records import Known, Run, RunId
from duly.ledger.resolve import Word, not_allowed, open_named
from duly.ledger.take import end_gone, gone, look, run_parameters, seen_of
from duly.ledger.windows import SKIP_IF_FREE
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

ASKED = "cancel_asked"  # the event
NO_ATTEMPT = "cancelled while no attempt was working it"

LOCK_RUN = Statement(
    "lock_run",
    # An attempt that is ending now is waited for, and one that ends later finds the note: its end looks at this row.
    """
select r.fence
  from duly_run r
 where r.series = :series and r.nominal = :nominal and r.revision = :revision {lock}
""",
)

CANCEL_IF_HELD = Statement(
    "cancel_if_held",
    # I2: the attempt that was seen is meant, and no other.
    """
update duly_run
   set cancel_number = fence
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence and attempt_id = :seen_attempt
""",
    event="cancel",
)

CANCEL_ASKED = Statement(
    "cancel_asked",
    """
select at, by, reason
  from duly_event
 where series = :series and nominal = :nominal and revision = :revision
   and kind = 'cancel_asked' and attempt_id = :attempt_id
 order by id
 limit 1
""",
)


@record
class Request:
    """Who asked an attempt to stop, when and why."""

    at: int
    by: str
    reason: str


async def cancel(known: Known, run: RunId, occurrence: Occurrence | None, word: Word) -> Run:
    """Ask the attempt that works a run to stop. Asking again changes nothing. Without an attempt the run is skipped.

    One that is gone ends by its contract, as one that vanished after it was asked; if it is unknown and alive after all, it
    hears of the request. Raises `NotAllowed` for a run that is settled or unknown, and `Retired` for a window without a row
    that comes due after the line's end.
    """
    before = await look(run)
    if before is None:
        await open_named(known, run, occurrence)
    await one(LOCK_RUN, int, **run_parameters(run))
    seen = await seen_of(run)
    if seen.state == states.RUNNING:
        await _ask(seen, word)
        if await gone(seen):
            await end_gone(await seen_of(run))
        return await seen_of(run)
    if seen.state == states.COMPLETED:
        raise NotAllowed("cannot cancel this run: it is completed, so it is too late; what it did stays done")
    if not await count(SKIP_IF_FREE, **run_parameters(run), cause=word.reason):
        raise not_allowed("cancel", seen)
    changed = (states.ABSENT if before is None else seen.standing, states.SKIPPED)
    await tell("skipped", run=run, by=word.by, reason=word.reason, detail=NO_ATTEMPT, changed=changed)
    return await seen_of(run)


async def _ask(seen: Run, word: Word) -> None:
    if seen.cancel_is_asked:
        return
    await count(CANCEL_IF_HELD, **run_parameters(seen.id), seen_fence=seen.fence, seen_attempt=seen.attempt_id)
    changed = (seen.standing, (await seen_of(seen.id)).standing)
    await tell(ASKED, run=seen.id, attempt_id=seen.attempt_id, by=word.by, reason=word.reason, changed=changed)


async def request_of(run: Run) -> Request | None:
    """Who asked the newest attempt of a run to stop, if anybody did."""
    if not run.cancel_is_asked:
        return None
    return await one(CANCEL_ASKED, Request, **run_parameters(run.id), attempt_id=run.attempt_id)
