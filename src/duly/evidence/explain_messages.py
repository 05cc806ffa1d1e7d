"""The messages of a run in words, in their order: each with its sendings, what it waits for, and what comes next."""

from __future__ import annotations

from duly.evidence.explain import Sent
from duly.evidence.words import printable
from duly.ledger.message_states import DEAD, PENDING, REFUSED, SENDING, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.messages import Message, MessageAttempt

_FEW = 3  # messages that were delivered at the first sending, one after the other, that are told one by one
_SENDINGS = 5  # the last ones, of a message, that are told


def message_sentences(sent: list[Sent], at: Callable[[int], str]) -> list[str]:
    """A sentence for each message; many of which there is nothing to tell are one."""
    said: list[str] = []
    smooth: list[Sent] = []
    for one in [*sent, None]:
        if one is not None and _is_smooth(one):
            smooth.append(one)
            continue
        if len(smooth) > _FEW:
            said.append(_of_many(smooth, at))
        else:
            said += [_of_one(each, sent, at) for each in smooth]
        smooth = []
        if one is not None:
            said.append(_of_one(one, sent, at))
    return said


def _is_smooth(one: Sent) -> bool:
    return one.message.state == "delivered" and one.message.fence <= 1


def _of_many(smooth: list[Sent], at: Callable[[int], str]) -> str:
    first, last = smooth[0].message, smooth[-1].message
    settled = max(one.message.settled_at or 0 for one in smooth)
    return (
        f"Messages {first.number} to {last.number}, {first.name} to {last.name}, were delivered, "
        f"the last of them at {at(settled)}."
    )


def _of_one(one: Sent, sent: list[Sent], at: Callable[[int], str]) -> str:
    message = one.message
    beside = [each.message for each in sent if each.message.revision == message.revision]
    which = f"Message {message.name} to {message.destination}"
    if len(beside) > 1:
        which = f"Message {message.number} of {len(beside)}, {message.name} to {message.destination},"
    return f"{which} {_stands(message, beside, at)}.{_sendings(one.sendings, message, at)}"


def _stands(message: Message, beside: list[Message], at: Callable[[int], str]) -> str:
    cause = f": {printable(message.cause)}" if message.cause else ""
    if message.settled_at is not None:
        return f"was {message.state} at {at(message.settled_at)}{cause if message.state != 'delivered' else ''}"
    match message.state:
        case state if state == SENDING:
            by = f" by {message.owner}" if message.owner else ""
            return f"is being sent{by}" + ("" if message.started_at is None else f" since {at(message.started_at)}")
        case state if state in (REFUSED, DEAD):
            word = "was refused" if state == REFUSED else "was given up"
            others = (
                ", and what comes after it for that" if message.number < max(each.number for each in beside) else ""
            )
            return f"{word}{cause}; it waits for a person{others}"
        case state if state == UNKNOWN:
            again = "" if message.due_at is None else f"; it is looked for again at {at(message.due_at)}"
            return f"may have been delivered, and nobody knows{cause}{again}"
        case state if state == PENDING and message.due_at is None:
            return f"waits for {_before(message, beside)}"
    when = "" if message.due_at is None else f", and is sent from {at(message.due_at)} on"
    return f"is to be delivered{when}{cause}"


def _before(message: Message, beside: list[Message]) -> str:
    before = [each.name for each in beside if each.number < message.number and not each.is_settled]
    return f"{before[0]}, which comes before it" if before else "the one before it"


def _sendings(sendings: list[MessageAttempt], message: Message, at: Callable[[int], str]) -> str:
    """What became of each sending, where there is more to tell than that the first was its end."""
    if not sendings or (len(sendings) == 1 and message.state not in (PENDING, SENDING)):
        return ""
    told = [
        f"at {at(one.ended_at)} {one.outcome.replace('_', ' ')} ({printable(one.said)})"
        for one in sendings[-_SENDINGS:]
    ]
    left_out = "… " if len(sendings) > _SENDINGS else ""
    return f" Sent {len(sendings)} {'time' if len(sendings) == 1 else 'times'}: {left_out}{', '.join(told)}."
