"""Message probes: asking whether an unknown message was delivered, and what is believed of the answer (`ledger.probe`)."""

from __future__ import annotations

from duly.ledger import message_states
from duly.ledger.ask import Statement, count
from duly.ledger.found import TOO_LATE, FoundDone, FoundNot, FoundNothing, is_believed
from duly.ledger.message_states import PENDING, UNKNOWN
from duly.ledger.parcel import THIS_MESSAGE, WAKE_NEXT, place_of_message, tell_of
from duly.ledger.take import run_parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.ledger.parcel import Parcel

HOLD_PROBE = Statement(
    "hold_probe",
    # Two who ask at once would count one answer as two.
    f"""
update duly_message
   set probe_id = :probe_id, probe_until = {{now}} + :lease, due_at = {{now}} + :lease
 where {THIS_MESSAGE}
   and state in {{from}} and fence = :seen_fence and coalesce(probe_until, 0) <= {{now}}
   and doubted_at + :probe_after <= {{now}}
""",
    event="probe",
    of=message_states,
)

PUT_OFF = Statement(
    "put_off",
    # Neither to be sent again nor to be looked for yet.
    f"""
update duly_message
   set due_at = case when doubted_at + :probe_after > {{now}} then doubted_at + :probe_after else {{now}} + :again_in end
 where {THIS_MESSAGE}
   and state in {{from}} and fence = :seen_fence
""",
    event="probe",
    of=message_states,
)

# What an unknown message becomes when it is known what happened: the same, whether a probe or a person says so. What was
# doubted, and whoever could not tell, is no sending that surely failed.
AS_DONE = """state = {to}, settled_at = {now}, due_at = null, cause = null, doubt_number = null, doubted_at = null,
       probe_until = null"""
AS_NOT_DONE = """state = {to}, due_at = {now}, cause = :cause, doubt_number = null, doubted_at = null, stored = 0,
       denials = 0, failures = 0, probe_until = null"""

_ASKED = f"""
 where {THIS_MESSAGE}
   and state in {{from}} and probe_id = :probe_id and fence = :fence and doubted_at = :doubted_at
"""

FOUND = Statement(
    "found",
    f"""
update duly_message
   set {AS_DONE}
{_ASKED}""",
    event="resolve_done",
    of=message_states,
)

NOT_FOUND = Statement(
    "not_found",
    f"""
update duly_message
   set {AS_NOT_DONE}
{_ASKED}""",
    event="resolve_not_done",
    of=message_states,
)

ASK_AGAIN = Statement(
    "ask_again",
    f"""
update duly_message
   set due_at = {{now}} + :again_in, cause = :cause, denials = denials + :denied, failures = failures + 1 - :denied,
       probe_until = null
{_ASKED}""",
    event="probe",
    of=message_states,
)


async def record_finding_of_message(parcel: Parcel, word: FoundDone | FoundNot | FoundNothing) -> str:
    """What a probe found. A "did not" is believed twice in one doubt, or once from a destination that reads its own writes."""
    asked: dict[str, Value] = {**place_of_message(parcel.id), "probe_id": parcel.attempt_id, "fence": parcel.fence}
    asked["doubted_at"] = parcel.doubted_at
    match word:
        case FoundDone(said):
            if await count(FOUND, **asked):
                changed = (UNKNOWN, message_states.DELIVERED)
                await tell_of(parcel, "message_resolved", f"done: a probe says {said}", changed)
                await count(WAKE_NEXT, **run_parameters(parcel.id.run))
                return message_states.DELIVERED
        case FoundNot(said, _, again_in):
            if is_believed(word, parcel.denials):
                if await count(NOT_FOUND, **asked, cause="a probe says that it was not done"):
                    await tell_of(parcel, "message_resolved", f"not done: a probe says {said}", (UNKNOWN, PENDING))
                    return PENDING
            elif await count(
                ASK_AGAIN, **asked, again_in=again_in, cause="a probe says once that it was not done", denied=1
            ):
                await tell_of(parcel, "message_probed", f"a probe says once that it was not done: {said}")
                return UNKNOWN
        case FoundNothing(said, again_in):
            cause = f"a probe cannot tell: {said}"
            if await count(ASK_AGAIN, **asked, again_in=again_in, cause=cause, denied=0):
                return UNKNOWN
    return TOO_LATE
