"""Races of those who receive: every key of theirs is applied once, whatever the order of their steps.

Actors are receivers, whose transaction is their own, and those who forget. An effect is a row in the kit's table, under the
receipt whose delivery it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from duly.errors import BelowHorizon, Conflict, PayloadConflict, ReceiptBusy, UndatedKey
from duly.ledger.receive import (
    REFUSE,
    Answer,
    Delivery,
    Entered,
    Receipt,
    Replay,
    answer_or_raise,
    enter,
    forget_received_batch,
    leave,
    raise_source_horizon,
    receive,
)
from duly.testing.histories import READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, Hand, History, Race, Script, Stage
from duly.times import DAY, MINUTE, parse_instant

MORNING = parse_instant("2026-10-06T03:00:00Z")
OLD = MORNING - 31 * DAY  # what is forgotten at the first opportunity
GIVEN = b"g000000000000001"  # the receipt of what was received before

Act = Callable[[Hand, Any], Script]


def delivery_by(
    hand: Hand, key: str = "order-1", *, payload: str = "json1:aa", at: int = OLD, remembers: int = 30 * DAY
) -> Delivery:
    """A delivery of this actor's; its receipt is the same whenever the history is told again."""
    return Delivery("orders", key, payload, at, remembers, REFUSE, hand.claimer().attempt_id)


def receives(isolation: str = READ_COMMITTED, *, twice: bool = False, **described: Any) -> Act:
    """Receive a key and, if it is the first time, have its effect and answer; with `twice` try again where one may."""

    async def once(hand: Hand) -> object:
        delivery = delivery_by(hand, **described)
        try:
            async with hand.transaction(isolation):
                answer = await hand.carry_out(receive(delivery))
                if isinstance(answer, Receipt):
                    await hand.effect(delivery.receipt)
                    await hand.carry_out(answer_or_raise(answer, Answer(200, "[]", delivery.receipt)))
        except (ReceiptBusy, BelowHorizon, PayloadConflict, UndatedKey, Conflict) as e:
            return e
        return answer

    async def script(hand: Hand, given: object) -> object:
        answer = await once(hand)
        if twice and isinstance(answer, ReceiptBusy):
            answer = await once(hand)
        hand.told.append(answer)
        return answer

    return script


async def forgets(hand: Hand, given: object) -> object:
    """Raise the horizon, and delete what is below it."""
    await hand.write(raise_source_horizon("orders", by=hand.name, reason="old"))
    return await hand.write(forget_received_batch("orders", 10))


async def serves(hand: Hand, given: object) -> object:
    """What a server with the middleware does: mark the key, work it in the application's own transaction, and leave."""
    delivery = delivery_by(hand)
    try:
        entered = await hand.write(enter(delivery, lease=MINUTE))
        if not isinstance(entered, Entered):
            return entered
        async with hand.transaction():
            answer = await hand.carry_out(receive(delivery))
            if isinstance(answer, Receipt):
                await hand.effect(delivery.receipt)
        await hand.write(leave(delivery, Answer(200, "[]", delivery.receipt)))
    except (ReceiptBusy, BelowHorizon) as e:
        return e
    return answer


def nothing(stage: Stage) -> None:
    """A ledger that has never heard of the source."""


def known(stage: Stage) -> None:
    """A source that has received a key, of which it remembers everything so far."""
    stage.write(receive(Delivery("orders", "first", "json1:aa", MORNING, 30 * DAY, REFUSE, GIVEN)))


def received(stage: Stage) -> None:
    """A source that has received the key, and may forget it."""
    stage.write(receive(Delivery("orders", "order-1", "json1:aa", OLD, 30 * DAY, REFUSE, GIVEN)))


_ALIKE = receives()
_ANOTHER = receives(payload="json1:bb")

RECEIVING: dict[str, Race[Any]] = {
    name: Race(name, given, actors)
    for name, given, actors in (
        ("receive-receive", known, (_ALIKE, _ALIKE)),
        ("receive-receive-new-source", nothing, (_ALIKE, _ALIKE)),
        ("receive-receive-again", known, (receives(twice=True), receives(twice=True))),
        ("receive-receive-payload", known, (_ALIKE, _ANOTHER)),
        ("receive-receive-declared", known, (receives(remembers=DAY), receives(remembers=2 * DAY))),
        ("receive-forget", known, (_ALIKE, forgets)),
        ("replay-forget", received, (_ALIKE, forgets)),
        ("forget-forget", received, (forgets, forgets)),
        ("serve-serve", known, (serves, serves)),
        ("serve-receive", known, (serves, _ALIKE)),
        ("serve-forget", known, (serves, forgets)),
    )
}
ISOLATED: dict[str, Race[Any]] = {
    f"{name}-{isolation}": Race(f"{name}-{isolation}", given, actors)
    for isolation in (REPEATABLE_READ, SERIALIZABLE)
    for name, given, actors in (
        ("receive-receive", known, (receives(isolation), receives(isolation))),
        ("receive-forget", known, (receives(isolation), forgets)),
        ("replay-forget", received, (receives(isolation), forgets)),
    )
}


# -- what must hold -------------------------------------------------------------------------------------------------------


class Left:
    """What is on record of the key when all have ended."""

    def __init__(self, stage: Stage, history: History) -> None:
        prefix = "duly." if stage.name == "postgres" else "duly_"
        self.given = history.race.startswith(("replay", "forget"))
        self.effects = [bytes(receipt) for receipt in history.effects]
        self.receipts = {
            bytes(receipt) for (receipt,) in stage.rows(f"select receipt from {prefix}received where key = 'order-1'")
        }
        self.answered = {bytes(receipt) for (receipt,) in stage.rows(f"select receipt from {prefix}answer")}
        self.horizon = stage.rows(f"select max(horizon) from {prefix}source")[0][0]

    @property
    def times_applied(self) -> int:
        return len(self.effects) + self.given


def complaints(stage: Stage, history: History) -> Iterator[str]:
    """Whatever is not as it must be: a key is applied once, on record as long as it may come again, and told as it is."""
    left = Left(stage, history)
    forgets_too = "forget" in history.race
    if left.times_applied > 1 or (left.times_applied < 1 and not forgets_too):
        yield f"the key was applied {left.times_applied} times"
    if not left.receipts <= {*left.effects, GIVEN}:
        yield f"{left.receipts - {*left.effects, GIVEN}} received it without an effect"
    if left.times_applied and not left.receipts and left.horizon <= OLD:
        yield "it was applied and is not on record, nor below the horizon"
    if "forget" not in history.race and left.answered != left.receipts:
        yield f"the answers are of {left.answered}, the key was received by {left.receipts}"
    for actor in history.actors:
        yield from _told_wrongly(actor, left, history.race)
    if not forgets_too and not history.race.startswith("serve"):
        # Those who forget, and the mark of a server, are short transactions: they may be waited for.
        yield from (f"{line.actor} waited at {line.what}" for line in history.lines if "waits" in line.answer)


def _told_wrongly(actor: Any, left: Left, race: str) -> Iterator[str]:
    match actor.answer:
        case Receipt(receipt=receipt) if receipt not in left.effects:
            yield f"{actor.name} was told that it is the first, and its effect is not there"
        case Replay() if not left.times_applied:
            yield f"{actor.name} was told of a delivery before it, and there was none"
        case PayloadConflict() if "payload" not in race:
            yield f"{actor.name} was told that its payload differs"
        case BelowHorizon() if left.horizon <= OLD:
            yield f"{actor.name} was told of a horizon that there is not"
        case Conflict() if not race.endswith((REPEATABLE_READ, SERIALIZABLE)):
            yield f"{actor.name} was told of a conflict"
    if actor.error is not None:
        yield f"{actor.name} {actor.fate}: {actor.error}"
