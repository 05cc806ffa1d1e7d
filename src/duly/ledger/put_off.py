"""Put off: a person has looked, and cannot tell yet what became of a run or a message. It stays unknown, and is asked about
again later: no probe asks meanwhile, and whoever looks next reads who looked last and what they found.
"""

from __future__ import annotations

from duly.ledger import message_states, states
from duly.ledger.ask import Statement, alive, count, now, one
from duly.ledger.events import tell
from duly.ledger.messages import message_named, not_allowed_of_message
from duly.ledger.parcel import THIS_MESSAGE, place_of_message
from duly.ledger.probe import DOUBT, Doubt
from duly.ledger.resolve import end_left, not_allowed, refuse_pruned
from duly.ledger.take import HOLD_RUN, look, run_parameters
from duly.times import HOUR, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.ledger.messages import Message
    from duly.ledger.records import Run, RunId
    from duly.ledger.resolve import Word

LATER = HOUR  # when somebody is to look again, where nobody says when

PUT_OFF_RUN = Statement(
    "put_off_run",
    # Whoever is asking a probe at this moment may still write down what it found: that is worth more than a later look.
    """
insert into duly_probe (series, nominal, revision, number, doubt, probe_id, next_at, asked, denials)
select r.series, r.nominal, r.revision, r.fence, :doubt, :nobody, {now} + :again_in, 0, 0
  from duly_run r
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state = 'unknown' and r.fence = :number
    on conflict (series, nominal, revision) do update
   set number = excluded.number, doubt = excluded.doubt, next_at = excluded.next_at,
       probe_id = case when duly_probe.number = excluded.number and duly_probe.doubt = excluded.doubt
                       then duly_probe.probe_id else excluded.probe_id end,
       asked = case when duly_probe.number = excluded.number and duly_probe.doubt = excluded.doubt
                    then duly_probe.asked else 0 end,
       denials = case when duly_probe.number = excluded.number and duly_probe.doubt = excluded.doubt
                      then duly_probe.denials else 0 end,
       said = case when duly_probe.number = excluded.number and duly_probe.doubt = excluded.doubt
                   then duly_probe.said end
""",
)

PUT_OFF_MESSAGE = Statement(
    "put_off_message",
    f"""
update duly_message
   set due_at = {{now}} + :again_in, cause = :cause
 where {THIS_MESSAGE}
   and state in {{from}} and fence = :seen_fence
""",
    event="probe",
    of=message_states,
)

_NOBODY = b"\0" * 16  # no probe has this id


async def put_off(run: RunId, word: Word, *, again_in: int) -> Run:
    """Leave a run unknown, with who looked and what they say of it; it is asked about again in `again_in` microseconds.

    One whose holder has vanished while nobody looked is judged first. Raises `NotAllowed` for a run that is not unknown.
    """
    await end_left(run)
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await look(run)
    if seen is None or seen.state != states.UNKNOWN:
        await refuse_pruned(run, seen)
        raise not_allowed("put off", seen)
    doubt = await one(DOUBT, Doubt, **run_parameters(run)) or Doubt()
    place: dict[str, Value] = {**run_parameters(run), "number": seen.fence, "doubt": doubt.id, "nobody": _NOBODY}
    await count(PUT_OFF_RUN, **place, again_in=again_in)
    await tell(
        "put_off",
        run=run,
        attempt_id=seen.attempt_id,
        by=word.by,
        reason=word.reason,
        detail=f"not asked again before {instant_text(await now() + again_in)}",
    )
    return seen


async def put_off_message(run: RunId, name: str, word: Word, *, again_in: int) -> Message:
    """Leave a message unknown, as `put_off`; neither is it sent again nor its probe asked before. Raises `NotAllowed`."""
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await message_named(run, name)
    if seen.attempt_id is not None and await alive(seen.attempt_id):
        raise not_allowed_of_message("put off", seen)
    cause = f"{word.by} cannot tell yet: {word.reason}"
    if not await count(
        PUT_OFF_MESSAGE, **place_of_message(seen.id), seen_fence=seen.fence, again_in=again_in, cause=cause
    ):
        raise not_allowed_of_message("put off", seen)
    await tell(
        "message_put_off",
        run=run,
        attempt_id=seen.attempt_id,
        by=word.by,
        reason=word.reason,
        detail=f"message {name} to {seen.destination}: not asked again before {instant_text(await now() + again_in)}",
    )
    return await message_named(run, name)
