"""Receive: a message of someone else's is applied once, in the transaction of whoever applies it.

A sender who heard nothing sends again, under the same key. The receiver writes the key into its own transaction, beside the
effect: committed, a later delivery finds it and is answered as the first one was; rolled back or killed, nothing ever was. The
primary key is the guard. A lock that is only tried lets two deliveries of a key at once know of each other without a wait.

**What was forgotten is refused, not applied again.** Keys are pruned, and a key has no time in it. So the sender says when it
first sent it, the same word at each delivery; a key that is a UUIDv7 says so itself. The *horizon* of a source is an instant
of that time: only keys first sent before it are ever deleted, and a key that is not on record is applied only if it was first
sent at or after it. Both compare the same number, so no clock has to be right: it decides how long a key is remembered, and
not whether it is applied twice. Of a key without a time nobody can tell a new one from one that was forgotten: once a source
has a horizon, it is refused, whatever is said of the time to come.

Lock order: source, received, answer. A verdict comes from a look after the write.
"""

from __future__ import annotations

from hashlib import sha256

from duly.errors import BelowHorizon, Misuse, PayloadConflict, ReceiptBusy, ReceiptLost, TimeInvalid, UndatedKey
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.events import tell
from duly.ledger.trylock import try_lock
from duly.records import record
from duly.times import DAY, duration_text, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value

REFUSE, APPLY = "refuse", "apply"  # what becomes of a key without a time, where keys are forgotten
AHEAD = DAY  # how far a sender's clock may be ahead: what is dated later would never be forgotten
FOR_EVER = -1  # how long keys are remembered, where that is said; a source's own row has null
LONGEST_KEY = 255
LONGEST_SOURCE = 200

LOOK = Statement(
    "see_received",
    """
select s.id, s.remembers, s.horizon, r.payload, r.receipt, r.received_at, a.answered_at, a.status, a.headers, a.body
  from duly_source s
  left join duly_received r on r.source = s.id and r.key = :key
  left join duly_answer a on a.receipt = r.receipt
 where s.name = :source
""",
)

REGISTER = Statement(
    "register_source",
    """
insert into duly_source (name, remembers, horizon, created_at)
values (:source, :remembers, 0, {now})
    on conflict do nothing
""",
)

REMEMBER = Statement("remember_for", "update duly_source set remembers = :remembers where id = :source")

RECEIVE_IF_NEW = Statement(
    "receive_if_new",
    # I7: the horizon is read under the lock that a prune waits for. A key without a time passes one only where whoever lets
    # it in has said so.
    """
insert into duly_received (source, key, payload, first_sent, counts_from, received_at, receipt)
select s.id, :key, :payload, cast(:first_sent as bigint), coalesce(cast(:first_sent as bigint), {now}), {now}, :receipt
  from duly_source s
 where s.id = :source
   and s.horizon <= case when cast(:first_sent as bigint) is not null then cast(:first_sent as bigint)
                         when cast(:undated as text) = 'apply' then s.horizon else 0 end
   and not exists (select 1 from duly_received r where r.source = s.id and r.key = :key) {share}
    on conflict do nothing
""",
)

ANSWER_OR_RAISE = Statement(
    "answer_or_raise",
    # I2: read back from the receipt's own row. Where that is gone (a savepoint took it), nothing of the transaction is kept.
    """
insert {or_rollback} into duly_answer (receipt, received_at, answered_at, status, headers, body)
values (:receipt,
       (select received_at
          from duly_received
         where source = :source and key = :key and receipt = :receipt),
       {now}, :status, :headers, :body)
""",
    refuses=ReceiptLost,
)


@record
class Delivery:
    """One delivery of a key, as it came.

    `payload` is its hash; `first_sent` the instant at which the sender says that it sent it first. `remembers` is how long the
    source's keys are remembered, `FOR_EVER` or, where nothing is said of it, None: then it is as long as was said last.
    `undated` is what becomes of a key without a time. `receipt` tells this delivery from all others.
    """

    source: str
    key: str
    payload: str
    first_sent: int | None
    remembers: int | None
    undated: str
    receipt: bytes


@record
class Answer:
    """What a delivery was answered: a status where it has one, headers as JSON pairs, and a body."""

    status: int | None
    headers: str
    body: bytes


@record
class Receipt:
    """The key is this delivery's: its effect is to be done in this transaction."""

    source: int
    key: str
    receipt: bytes


@record
class Replay:
    """The key was received before, at `received_at`, by the delivery of that `receipt`. Without `answer` none was stored."""

    receipt: bytes
    received_at: int
    answer: Answer | None


@record
class _Look:
    """A source and, if it is there, a key of it."""

    source: int
    remembers: int | None
    horizon: int
    payload: str | None
    receipt: bytes | None
    received_at: int | None
    answered_at: int | None
    status: int | None
    headers: str | None
    body: bytes | None


async def receive(delivery: Delivery) -> Receipt | Replay:
    """Write the key into this transaction, before its effect; or say that it was received before, and how it was answered.

    Raises `PayloadConflict`, `BelowHorizon`, `UndatedKey`, `TimeInvalid` and, where another transaction is at the same key,
    `ReceiptBusy`; none of them breaks the caller's transaction.
    """
    seen = await _look(delivery)
    if (replay := replay_of(seen, delivery)) is not None:
        return replay
    await _refuse_untimely(seen, delivery)
    if not await _is_free(delivery.source, delivery.key):
        raise ReceiptBusy
    source = await _registered(seen, delivery)
    await count(RECEIVE_IF_NEW, source=source, **_written(delivery))
    seen = await _look(delivery)
    if seen is None or seen.receipt is None:
        raise UndatedKey if delivery.first_sent is None else below_horizon(delivery)
    if bytes(seen.receipt) == delivery.receipt:
        return Receipt(source, delivery.key, delivery.receipt)
    replay = replay_of(seen, delivery)
    assert replay is not None  # it has a receipt
    return replay


async def answer_or_raise(receipt: Receipt, answer: Answer) -> None:
    """Store what the delivery is answered, in the transaction that is open. Raises `ReceiptLost`, which ends it."""
    await count(
        ANSWER_OR_RAISE,
        source=receipt.source,
        key=receipt.key,
        receipt=receipt.receipt,
        status=answer.status,
        headers=answer.headers,
        body=answer.body,
    )


async def _look(delivery: Delivery) -> _Look | None:
    return await one(LOOK, _Look, source=delivery.source, key=delivery.key)


def replay_of(seen: _Look | None, delivery: Delivery) -> Replay | None:
    """How a key that is on record was answered; None where it is not. Raises `PayloadConflict`. Pure."""
    if seen is None or seen.receipt is None:
        return None
    assert seen.received_at is not None
    if seen.payload != delivery.payload:
        raise payload_conflict(delivery)
    if seen.answered_at is None or seen.headers is None or seen.body is None:
        return Replay(bytes(seen.receipt), seen.received_at, None)
    return Replay(bytes(seen.receipt), seen.received_at, Answer(seen.status, seen.headers, bytes(seen.body)))


async def _refuse_untimely(seen: _Look | None, delivery: Delivery) -> None:
    """Raise where the time of a key, or that it has none, does not allow to apply it."""
    if delivery.first_sent is None:
        forgets = _remembers(seen, delivery) is not None
        has_forgotten = seen is not None and seen.horizon > 0
        if (forgets or has_forgotten) and delivery.undated != APPLY:
            raise UndatedKey
    elif delivery.first_sent > await now() + AHEAD:
        raise TimeInvalid(
            f"first_sent: {instant_text(delivery.first_sent)} is more than {duration_text(AHEAD)} ahead of the ledger's clock"
        )


def payload_conflict(delivery: Delivery) -> PayloadConflict:
    """The error of a key that came with something else before."""
    return PayloadConflict(
        f"the key {delivery.key!r} of {delivery.source} came with another payload; nothing was applied"
    )


def below_horizon(delivery: Delivery) -> BelowHorizon:
    """The error of a key that may have been received, and forgotten."""
    return BelowHorizon(
        f"the key {delivery.key!r} of {delivery.source} was first sent so long ago that keys of then have been forgotten; "
        "it may have been applied, and is not applied again"
    )


async def _is_free(*names: str) -> bool:
    return await try_lock(lock_of(*names))


def lock_of(*names: str) -> int:
    """The number of a lock, of 64 bits, for what is named so. Two names that share one by chance only look busy. Pure."""
    text = "\0".join(("duly", *names))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


async def _registered(seen: _Look | None, delivery: Delivery) -> int:
    """The source, which is made if it is not there. How long it remembers is what was said last."""
    remembers = _remembers(seen, delivery)
    if seen is not None:
        # Whoever says so at the same moment is not waited for.
        if seen.remembers != remembers and await _is_free(delivery.source):
            await count(REMEMBER, source=seen.source, remembers=remembers)
        return seen.source
    if not await _is_free(delivery.source):
        raise ReceiptBusy("another transaction receives the first key of this source, and has not ended; come again")
    await count(REGISTER, source=delivery.source, remembers=remembers)
    made = await _look(delivery)
    assert made is not None  # a source is never deleted
    return made.source


def _remembers(seen: _Look | None, delivery: Delivery) -> int | None:
    """How long the source remembers its keys with this delivery, as its row has it: null is for ever."""
    if delivery.remembers is None:
        return None if seen is None else seen.remembers
    return None if delivery.remembers == FOR_EVER else delivery.remembers


def _written(delivery: Delivery) -> dict[str, Value]:
    return {
        "key": delivery.key,
        "payload": delivery.payload,
        "first_sent": delivery.first_sent,
        "undated": delivery.undated,
        "receipt": delivery.receipt,
    }


# -- what a delivery says of itself -------------------------------------------------------------------------------------


def first_sent_of(key: str, stated: int | None) -> int | None:
    """When a key was first sent: as it says itself, if it is a UUIDv7, or else as was stated. Pure.

    Its own word goes first: it is the same at each delivery, also where something on the way dropped what was stated.
    """
    own = time_of_uuid7(key)
    return stated if own is None else own


def time_of_uuid7(key: str) -> int | None:
    """The instant in a UUIDv7 as text (RFC 9562: its first 48 bits are milliseconds); None for every other key. Pure."""
    if len(key) != 36 or [key[8], key[13], key[18], key[23]] != ["-"] * 4 or key[14] != "7" or key[19] not in "89abAB":
        return None
    digits = key.replace("-", "")
    if len(digits) != 32 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        return None
    return int(digits[:12], 16) * 1000


def checked_name(what: str, text: object, longest: int) -> str:
    """A key or the name of a source, if it can be one. Raises `Misuse`. Pure."""
    if not isinstance(text, str):
        raise Misuse(f"{what}: give text, not {type(text).__name__}")
    if not text or len(text) > longest or not text.isprintable() or text != text.strip():
        raise Misuse(f"{what}: give 1 to {longest} printable characters without blanks at the ends")
    return text


# -- beside a server's own code: a courtesy to duplicates that come meanwhile ----------------------------------------------

LOOK_MARK = Statement(
    "see_mark", "select holder, payload, until from duly_receiving where source = :source and key = :key"
)

MARK_IF_FREE = Statement(
    "mark_if_free",
    # I4: by the database's clock, so that a mark whose server was killed is somebody's again.
    """
insert into duly_receiving (source, key, payload, holder, until)
values (:source, :key, :payload, :holder, {now} + :lease)
    on conflict (source, key) do update
   set payload = excluded.payload, holder = excluded.holder, until = excluded.until
 where duly_receiving.until <= {now}
""",
)

UNMARK = Statement("unmark", "delete from duly_receiving where source = :source and key = :key and holder = :holder")

ANSWER_IF_COMMITTED = Statement(
    "answer_if_committed",
    # Another one's answer was first, or the effect was rolled back: then there is nothing to store. I2: where the key was
    # rolled back and somebody else's delivery has committed it since, the answer is not of that one.
    """
insert into duly_answer (receipt, received_at, answered_at, status, headers, body)
select r.receipt, r.received_at, {now}, cast(:status as bigint), :headers, :body
  from duly_received r
 where r.source = :source and r.key = :key and r.receipt = :receipt
    on conflict do nothing
""",
)


@record
class InProgress:
    """Another delivery of this key is being worked; who comes again in `again_in` microseconds may find it over."""

    again_in: int


@record
class Entered:
    """The key is to be worked: nobody has received it, or nobody has answered it."""


@record
class _Mark:
    holder: bytes
    payload: str
    until: int


async def peek(delivery: Delivery) -> Replay | InProgress | None:
    """How a key was answered, or that it is being worked; None: `enter`. Looks only, so that no writer is waited for.

    Raises `PayloadConflict`.
    """
    seen = await _look(delivery)
    replay = replay_of(seen, delivery)
    if replay is not None and replay.answer is not None:
        return replay
    mark = None if seen is None else await one(LOOK_MARK, _Mark, source=seen.source, key=delivery.key)
    if mark is None or mark.until <= await now():
        return None
    return _in_progress(mark, await now(), delivery)


async def enter(delivery: Delivery, *, lease: int) -> Replay | InProgress | Entered:
    """Mark a key as being worked by this delivery, for so long, unless it was answered or another one is at it.

    In a transaction of its own, which ends before the work begins. Raises as `receive`.
    """
    seen = await _look(delivery)
    replay = replay_of(seen, delivery)
    if replay is not None and replay.answer is not None:
        return replay
    if replay is None:
        await _refuse_untimely(seen, delivery)
    source = await _registered(seen, delivery)
    if replay is None and seen is not None and delivery.first_sent is not None and delivery.first_sent < seen.horizon:
        raise below_horizon(delivery)
    await count(
        MARK_IF_FREE,
        source=source,
        key=delivery.key,
        payload=delivery.payload,
        holder=delivery.receipt,
        lease=lease,
    )
    mark = await one(LOOK_MARK, _Mark, source=source, key=delivery.key)
    if mark is None or bytes(mark.holder) == delivery.receipt:
        return Entered()
    return _in_progress(mark, await now(), delivery)


def _in_progress(mark: _Mark, instant: int, delivery: Delivery) -> InProgress:
    if mark.payload != delivery.payload:
        raise payload_conflict(delivery)
    return InProgress(max(mark.until - instant, 0))


async def leave(delivery: Delivery, answer: Answer | None, of: bytes | None = None) -> bool:
    """Take the mark away and, if an answer is given, store it for a key that was committed and has none. Whether it was.

    `of` is the receipt of the delivery that the answer is of: this one, or the one that it is a replay of.
    """
    seen = await _look(delivery)
    if seen is None:
        return False
    of_key: dict[str, Value] = {"source": seen.source, "key": delivery.key}
    stored = answer is not None and await count(
        ANSWER_IF_COMMITTED,
        **of_key,
        receipt=delivery.receipt if of is None else of,
        status=answer.status,
        headers=answer.headers,
        body=answer.body,
    )
    await count(UNMARK, **of_key, holder=delivery.receipt)
    return bool(stored)


# -- forgetting ---------------------------------------------------------------------------------------------------------

HOLD_SOURCE = Statement(
    "hold_source",
    # Whatever receives a key holds the source with {share}: those that have begun are waited for, those to come wait.
    "select id, remembers, horizon from duly_source where name = :source {alone}",
)

TURN_OF_SOURCE = Statement(
    "turn_of_source",
    # One prune at a time, beside those who receive.
    "select id, remembers, horizon from duly_source where name = :source {lock}",
)

RAISE_HORIZON = Statement(
    "raise_source_horizon_if_higher",
    "update duly_source set horizon = :horizon where id = :source and horizon < :horizon",
)

# I7: nothing at or above the horizon.
_BATCH = """
       (select {column}
          from duly_received
         where source = :source and counts_from < :horizon
         order by counts_from, key limit :many)
"""

FORGET_ANSWERS = Statement(
    "forget_answers", "delete from duly_answer\n where receipt in" + _BATCH.replace("{column}", "receipt")
)

FORGET_RECEIVED = Statement(
    "forget_received",
    "delete from duly_received\n where source = :source and key in" + _BATCH.replace("{column}", "key"),
)

FORGETFUL = Statement(
    "forgetful_sources",
    """
select s.name, s.remembers, s.horizon,
       (select count(*)
          from duly_received r
         where r.source = s.id
           and (r.counts_from < s.horizon or (s.remembers is not null and r.counts_from < {now} - s.remembers)))
  from duly_source s
 where cast(:source as text) is null or s.name = :source
 order by s.name
""",
)

FORGET_MARKS = Statement("forget_marks", "delete from duly_receiving where source = :source and until < :horizon")


@record
class _Source:
    id: int
    remembers: int | None
    horizon: int


@record
class Forgetful:
    """A source, how long it remembers its keys (null: for ever), and how many of them may be forgotten."""

    name: str
    remembers: int | None
    horizon: int
    keys: int


async def forgetful(source: str | None) -> list[Forgetful]:
    """What may be forgotten of a source, or of every one. Looks only."""
    return await every(FORGETFUL, Forgetful, source=source)


async def raise_source_horizon(source: str, *, by: str, reason: str) -> int | None:
    """Raise the horizon of a source as far as what it remembers allows; where it is then. None: it forgets nothing.

    Keys first sent before it are refused from now on, unless they are on record.
    """
    held = await one(HOLD_SOURCE, _Source, source=source)
    if held is None or held.remembers is None:
        return None
    horizon = await now() - held.remembers
    if not await count(RAISE_HORIZON, source=held.id, horizon=horizon):
        return held.horizon
    detail, changed = f"{source}: {instant_text(horizon)}", (instant_text(held.horizon), instant_text(horizon))
    await tell("keys_horizon_raised", by=by, reason=reason, detail=detail, changed=changed)
    return horizon


async def forget_received_batch(source: str, many: int) -> int:
    """Delete at most so many keys below the horizon of a source, oldest first, with their answers; how many there were."""
    held = await one(TURN_OF_SOURCE, _Source, source=source)
    if held is None:
        return 0
    batch: dict[str, Value] = {"source": held.id, "horizon": held.horizon, "many": many}
    await count(FORGET_ANSWERS, **batch)
    gone = await count(FORGET_RECEIVED, **batch)
    if not gone:
        await count(FORGET_MARKS, source=held.id, horizon=held.horizon)
    return gone
