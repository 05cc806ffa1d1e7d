"""Deliver: attempts at messages. Who may send one now, and what became of that.

An attempt names its message, its id and its number in whatever it writes (I2), and holds a lease by the database's clock (I4).
An attempt whose lease is over and that shows no pulse has left the message *unknown*: it may have been delivered. Such a one
is sent again only under the same key, and only while the receiver surely remembers that key from the first sending on. Else
it is looked for by a *probe*, or a person says what happened.

What is surely not sent says that of its own sending alone: after an attempt that is in doubt, the message stays unknown.
"""

from __future__ import annotations

from duly.ledger import message_states
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, alive, count, every, now, one
from duly.ledger.backfill_states import ors
from duly.ledger.events import tell
from duly.ledger.found import TOO_LATE, FoundDone, FoundNot, FoundNothing
from duly.ledger.message_probe import HOLD_PROBE, PUT_OFF, record_finding_of_message
from duly.ledger.message_states import PENDING, SENDING, UNKNOWN, UNSETTLED
from duly.ledger.parcel import (
    THIS_MESSAGE,
    WAKE_NEXT,
    MessageId,
    Parcel,
    SaidDelivered,
    SaidNotSent,
    SaidRefused,
    SaidUnknown,
    place_of_message,
    tell_of,
)
from duly.ledger.take import HOLD_RUN, run_parameters
from duly.records import record, replace
from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duly.ledger.ask import Value
    from duly.ledger.parcel import Limits, Word

FOREVER = 1 << 62  # microseconds that no sum with an instant overflows

_UNSETTLED = ors("m.state", UNSETTLED)

# -- statements ---------------------------------------------------------------------------------------------------------

LAPSED = Statement(
    "lapsed_messages",
    # Not those that somebody is writing of: he may hold them, and wait for what we hold.
    """
select m.series, m.nominal, m.revision, m.number, m.name, m.fence, m.attempt_id, m.started_at, m.owner
  from duly_message m
 where m.destination = :destination and m.state = 'sending' and m.lease_until <= {now} and m.due_at <= {now}
 limit :limit
{free}
""",
)

STAND_BY = Statement(
    "stand_by",
    # Its lease is over and its pulse is not: a relay that was stopped, and may go on. It is looked at again later.
    f"""
update duly_message
   set due_at = {{now}} + :again_in
 where {THIS_MESSAGE}
   and state = 'sending' and attempt_id = :attempt_id and fence = :fence
""",
)

LAPSE_IF_OVER = Statement(
    "lapse_message_if_over",
    # The attempt may yet say what it did: it is superseded by the next one alone.
    f"""
update duly_message
   set state = {{to}}, cause = 'its attempt vanished', lease_until = null, due_at = {{now}}, doubted_at = {{now}}, denials = 0,
       doubt_number = coalesce(doubt_number, fence)
 where {THIS_MESSAGE}
   and state in {{from}} and attempt_id = :attempt_id and fence = :fence and lease_until <= {{now}}
""",
    event="lapse",
    of=message_states,
)

MEET_DESTINATION = Statement(
    "meet_destination", "insert into duly_destination (name, next_at) values (:destination, 0) on conflict do nothing"
)

HOLD_DESTINATION = Statement(
    "hold_destination",
    # Concurrency and rate are for all who send, so they take from it one after the other.
    "select next_at from duly_destination where name = :destination {lock}",
)

SENDING_NOW = Statement(
    "sending_now",
    "select count(*) from duly_message m where m.destination = :destination and m.state = 'sending'",
)

USE_RATE = Statement(
    "use_rate",
    "update duly_destination set next_at = :next_at where name = :destination",
)

NEXT_DUE = Statement(
    "next_due_of_destination",
    # Also the end of a lease: an attempt that is not heard of by then has vanished.
    f"""
select m.due_at
  from duly_message m
 where m.destination = :destination and m.due_at is not null
   and {_UNSETTLED}
 order by m.due_at
 limit 1
""",
)

CLAIMABLE = Statement(
    "claimable_messages",
    # Who comes at the same moment takes others. Only the first unsettled message of a run is ever due.
    f"""
select m.series, m.nominal, m.revision, m.number, m.name, m.destination, m.idempotency_key, m.state, m.fence, m.failures,
       m.first_sent_at, m.doubt_number, m.doubted_at, m.stored, m.denials, m.attempt_id
  from duly_message m
 where m.destination = :destination and m.due_at <= {{now}}
   and (m.state = 'pending' or m.state = 'unknown')
   and {_UNSETTLED}
 order by m.due_at, m.series, m.nominal, m.revision, m.number
 limit :limit
{{free}}
""",
)

BEGIN_IF_PENDING = Statement(
    "begin_if_pending",
    # What an earlier sending told the receiver it may still know, and then it counts from that one.
    f"""
update duly_message
   set state = {{to}}, fence = fence + 1, attempt_id = :attempt_id, started_at = :instant, lease_until = :instant + :lease,
       due_at = :instant + :lease, owner = :owner,
       first_sent_at = case when first_sent_at + :remembers > :instant then first_sent_at else :instant end
 where {THIS_MESSAGE}
   and state in {{from}} and due_at <= {{now}} and fence = :seen_fence
""",
    event="begin",
    of=message_states,
)

BEGIN_AGAIN_IF_REMEMBERED = Statement(
    "begin_again_if_remembered",
    # I5: an unknown message is sent again only while the receiver knows the key of its first sending, to the end of this one.
    f"""
update duly_message
   set state = {{to}}, fence = fence + 1, attempt_id = :attempt_id, started_at = :instant, lease_until = :instant + :lease,
       due_at = :instant + :lease, owner = :owner
 where {THIS_MESSAGE}
   and state in {{from}} and due_at <= {{now}} and fence = :seen_fence
   and stored = 0 and first_sent_at + :remembers > :instant + :lease
""",
    event="begin_again",
    of=message_states,
)

BODY = Statement("body", f"select content_type, body from duly_message_body where {THIS_MESSAGE}")

# What an attempt says. Each is by its id and its number, from while it had the message, or after its lease.
_HELD = f"""
 where {THIS_MESSAGE}
   and state in {{from}} and attempt_id = :attempt_id and fence = :fence
"""
_NO_EARLIER_DOUBT = "   and coalesce(doubt_number, fence) = fence\n"

DELIVER_IF_HELD = Statement(
    "deliver_if_held",
    f"""
update duly_message
   set state = {{to}}, settled_at = {{now}}, due_at = null, lease_until = null, cause = null, doubt_number = null,
       doubted_at = null
{_HELD}""",
    event="deliver",
    of=message_states,
)

FALL_BACK_IF_HELD = Statement(
    "fall_back_if_held",
    # Surely not sent, and nothing before it is in doubt: the receiver has not heard of this one.
    f"""
update duly_message
   set state = {{to}}, due_at = {{now}} + :retry_in, lease_until = null, cause = :cause, failures = failures + 1,
       first_sent_at = case when first_sent_at < started_at then first_sent_at end, doubt_number = null, doubted_at = null
{_HELD}{_NO_EARLIER_DOUBT}""",
    event="fall_back",
    of=message_states,
)

DIE_IF_HELD = Statement(
    "die_if_held",
    f"""
update duly_message
   set state = {{to}}, due_at = null, lease_until = null, cause = :cause, failures = failures + 1,
       first_sent_at = case when first_sent_at < started_at then first_sent_at end, doubt_number = null, doubted_at = null
{_HELD}{_NO_EARLIER_DOUBT}""",
    event="die",
    of=message_states,
)

REFUSE_IF_HELD = Statement(
    "refuse_if_held",
    f"""
update duly_message
   set state = {{to}}, due_at = null, lease_until = null, cause = :cause, failures = failures + 1,
       doubt_number = null, doubted_at = null
{_HELD}{_NO_EARLIER_DOUBT}""",
    event="refuse",
    of=message_states,
)

DOUBT_IF_SENDING = Statement(
    "doubt_message_if_held",
    # The receiver remembers from the first sending that may have reached it: that instant stays.
    f"""
update duly_message
   set state = {{to}}, due_at = {{now}} + :retry_in, lease_until = null, cause = :cause, failures = failures + 1,
       doubt_number = coalesce(doubt_number, fence), doubted_at = {{now}}, denials = 0,
       stored = case when :stored = 1 then 1 else stored end
{_HELD}""",
    event="doubt",
    of=message_states,
)

RECORD_MESSAGE_ATTEMPT = Statement(
    "record_message_attempt",
    # Once, or twice by the same attempt: it was said to be lost, and came back.
    """
insert into duly_message_attempt (series, nominal, revision, number, fence, attempt_id, started_at, ended_at, outcome, owner,
       said)
values (:series, :nominal, :revision, :number, :fence, :attempt_id, :started_at, {now}, :outcome, :owner, :said)
    on conflict (series, nominal, revision, number, fence)
    do update set ended_at = excluded.ended_at, outcome = excluded.outcome, said = excluded.said
""",
)

HAS_ENDED = Statement(
    "message_attempt_ended_as",
    f"select outcome from duly_message_attempt where {THIS_MESSAGE} and attempt_id = :attempt_id and fence = :fence",
)


@record
class _Lapsed:
    series: int
    nominal: int
    revision: int
    number: int
    name: str
    fence: int
    attempt_id: bytes
    started_at: int
    owner: str


@record
class _Due:
    series: int
    nominal: int
    revision: int
    number: int
    name: str
    destination: str
    key: str
    state: str
    fence: int
    failures: int
    first_sent_at: int | None
    doubt_number: int | None
    doubted_at: int | None
    stored: int
    denials: int
    attempt_id: bytes | None


# -- taking -------------------------------------------------------------------------------------------------------------


def at_once_by_rate(next_at: int, instant: int, interval: int, many: int) -> tuple[int, int]:
    """How many may begin now by the rate, of so many at most, and when the next may. Pure.

    What was not used is kept for a second at most: a relay looks at a destination now and then, and not for each message.
    """
    if interval <= 0:
        return many, next_at
    kept = max(SECOND - interval, 0)
    begins = max(next_at, instant - kept)
    allowed = min(max((instant - begins) // interval + 1, 0), many)
    return allowed, begins + allowed * interval if allowed else next_at


async def next_due(destination: str) -> int | None:
    """When there is something to do for a destination; None where nothing waits that a relay could send."""
    return await one(NEXT_DUE, int, destination=destination)


async def lapse(destination: str, *, stand_by: int, many: int = 100) -> int:
    """Find attempts at messages whose lease is over and that show no pulse: what they did is not known. How many there were.

    One that shows a pulse is looked at again after `stand_by`.
    """
    found = 0
    for gone in await every(LAPSED, _Lapsed, destination=destination, limit=many):
        message = MessageId(gone.series, gone.nominal, gone.revision, gone.number)
        held: dict[str, Value] = {
            **place_of_message(message),
            "attempt_id": gone.attempt_id,
            "fence": gone.fence,
        }
        if await alive(gone.attempt_id):
            await count(STAND_BY, **held, again_in=stand_by)
            continue
        if await count(LAPSE_IF_OVER, **held):
            found += 1
            await count(
                RECORD_MESSAGE_ATTEMPT,
                **held,
                started_at=gone.started_at,
                outcome="lost",
                owner=gone.owner,
                said="its attempt vanished",
            )
            detail = f"message {gone.name} to {destination}: its attempt vanished"
            await tell(
                "message_unknown",
                run=message.run,
                attempt_id=gone.attempt_id,
                by=gone.owner,
                detail=detail,
                changed=(SENDING, UNKNOWN),
            )
    return found


async def take_messages(
    limits: Limits, attempts: Sequence[bytes], *, owner: str, put_off_by: Callable[[int], int]
) -> list[Parcel]:
    """Take what is due of a destination, at most one for each attempt id: to be sent, or, where it is unknown and its key not
    surely remembered, to be looked for.

    `put_off_by` says in how many microseconds after so many failures what can be neither is looked at again.
    """
    if not attempts:
        return []
    await count(MEET_DESTINATION, destination=limits.destination)
    next_at = await one(HOLD_DESTINATION, int, destination=limits.destination)
    assert next_at is not None
    await lapse(limits.destination, stand_by=limits.lease)
    sending = await one(SENDING_NOW, int, destination=limits.destination)
    assert sending is not None
    free = min(limits.at_once - sending, len(attempts))
    free, next_at = at_once_by_rate(next_at, await now(), limits.interval, free)
    if free <= 0:
        return []
    due = await every(CLAIMABLE, _Due, destination=limits.destination, limit=free)
    taken = []
    for seen, attempt_id in zip(due, attempts, strict=False):
        parcel = await _take(seen, attempt_id, limits, owner, put_off_by)
        taken += [] if parcel is None else [parcel]
    if limits.interval and taken:
        unused = free - len(taken)
        await count(USE_RATE, destination=limits.destination, next_at=next_at - unused * limits.interval)
    return taken


async def _take(
    seen: _Due, attempt_id: bytes, limits: Limits, owner: str, put_off_by: Callable[[int], int]
) -> Parcel | None:
    message = MessageId(seen.series, seen.nominal, seen.revision, seen.number)
    place = {**place_of_message(message), "seen_fence": seen.fence}
    instant = await now()
    begin: dict[str, Value] = {
        **place,
        "attempt_id": attempt_id,
        "instant": instant,
        "lease": limits.lease,
        "owner": owner,
        "remembers": limits.remembers,
    }
    if seen.state == PENDING:
        if not await count(BEGIN_IF_PENDING, **begin):
            return None
        first = seen.first_sent_at
        if first is None or first + limits.remembers <= instant:
            first = instant  # as it stands in the row now
        return await _parcel(message, replace(seen, first_sent_at=first), attempt_id, owner, instant, probing=False)
    if await count(BEGIN_AGAIN_IF_REMEMBERED, **begin):
        return await _parcel(message, seen, attempt_id, owner, instant, probing=False)
    gone = seen.attempt_id is None or not await alive(seen.attempt_id)
    probe = {**place, "probe_after": limits.probe_after}
    if gone and await count(HOLD_PROBE, **probe, probe_id=attempt_id, lease=limits.lease):
        return await _parcel(message, seen, attempt_id, owner, instant, probing=True)
    await count(PUT_OFF, **probe, again_in=put_off_by(seen.failures))
    return None


async def _parcel(
    message: MessageId, seen: _Due, attempt_id: bytes, owner: str, instant: int, *, probing: bool
) -> Parcel:
    said = await one(BODY, lambda kind, body: (kind, bytes(body)), **place_of_message(message))
    assert said is not None  # it is written with its message
    content_type, body = said
    return Parcel(
        message,
        str(await key_of(message.run)),
        seen.name,
        seen.destination,
        seen.key,
        content_type,
        body,
        attempt_id,
        seen.fence if probing else seen.fence + 1,
        seen.failures,
        instant,
        owner,
        seen.first_sent_at,
        seen.doubted_at,
        seen.denials,
        probing,
    )


# -- what became of it --------------------------------------------------------------------------------------------------


async def record_words(words: Sequence[tuple[Parcel, Word]]) -> list[str]:
    """Write down what became of these messages; the state of each, or `too late` where an attempt's word came after another's.

    In the order of their runs: whoever writes of several holds them in one order.
    """
    became: dict[int, str] = {}
    for place, (parcel, word) in sorted(enumerate(words), key=lambda each: each[1][0].id.order):
        became[place] = await record_word(parcel, word)
    return [became[place] for place in range(len(words))]


async def record_word(parcel: Parcel, word: Word) -> str:
    """Write down what became of a message. Answers its state, or `too late`."""
    message = parcel.id
    await one(HOLD_RUN, str, **run_parameters(message.run))
    if isinstance(word, FoundDone | FoundNot | FoundNothing):
        return await record_finding_of_message(parcel, word)
    state = await _record_saying(parcel, word)
    outcome = {SaidDelivered: "delivered", SaidNotSent: "not sent", SaidRefused: "refused", SaidUnknown: "unknown"}
    if state == TOO_LATE:
        if (
            await one(HAS_ENDED, str, **place_of_message(message), attempt_id=parcel.attempt_id, fence=parcel.fence)
            == (outcome[type(word)])
        ):
            return state  # it is on record: the reply to that was lost
        detail = f"message {parcel.name}: {outcome[type(word)]}, after another attempt or a person: {word.said}"
        await tell("message_late_word", run=message.run, attempt_id=parcel.attempt_id, by=parcel.owner, detail=detail)
        return state
    await count(
        RECORD_MESSAGE_ATTEMPT,
        **place_of_message(message),
        fence=parcel.fence,
        attempt_id=parcel.attempt_id,
        started_at=parcel.started_at,
        outcome=outcome[type(word)],
        owner=parcel.owner,
        said=word.said,
    )
    if state in message_states.SETTLED:
        await count(WAKE_NEXT, **run_parameters(message.run))
    return state


_AFTER_DOUBT = ", after a sending whose outcome is not known"


async def _record_saying(parcel: Parcel, word: SaidDelivered | SaidNotSent | SaidRefused | SaidUnknown) -> str:
    held: dict[str, Value] = {**place_of_message(parcel.id), "attempt_id": parcel.attempt_id, "fence": parcel.fence}
    match word:
        case SaidDelivered():
            return message_states.DELIVERED if await count(DELIVER_IF_HELD, **held) else TOO_LATE
        case SaidNotSent(said, retry_in):
            if retry_in is not None and await count(FALL_BACK_IF_HELD, **held, cause=said, retry_in=retry_in):
                return PENDING
            if retry_in is None and await count(DIE_IF_HELD, **held, cause=said):
                await tell_of(parcel, "message_dead", said, (SENDING, message_states.DEAD))
                return message_states.DEAD
            return await _doubt(parcel, held, f"{said}{_AFTER_DOUBT}", word.again_in, stored=False)
        case SaidRefused(said):
            if await count(REFUSE_IF_HELD, **held, cause=said):
                await tell_of(parcel, "message_refused", said, (SENDING, message_states.REFUSED))
                return message_states.REFUSED
            # It refuses a second sending: that says nothing of the first, and would be said again. A probe may be asked now.
            return await _doubt(parcel, held, f"{said}{_AFTER_DOUBT}", 0, stored=True)
        case SaidUnknown(said):
            return await _doubt(parcel, held, said, word.again_in, stored=word.stored)


async def _doubt(parcel: Parcel, held: dict[str, Value], cause: str, again_in: int, *, stored: bool) -> str:
    if not await count(DOUBT_IF_SENDING, **held, cause=cause, retry_in=again_in, stored=int(stored)):
        return TOO_LATE
    await tell_of(parcel, "message_unknown", cause, (SENDING, UNKNOWN))
    return UNKNOWN
