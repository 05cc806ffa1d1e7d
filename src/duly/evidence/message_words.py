"""How a message is shown, wherever it is: the sign of its state, and what comes next of it."""

from __future__ import annotations

from duly.evidence import verdict
from duly.ledger import message_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.messages import Message

GLYPHS = {
    message_states.PENDING: ("○", verdict.DUE),
    message_states.SENDING: ("▶", verdict.RUNNING),
    message_states.DELIVERED: ("✓", verdict.COMPLETE),
    message_states.UNKNOWN: ("?", verdict.UNKNOWN),
    message_states.REFUSED: ("✗", verdict.FAILED),
    message_states.DEAD: ("✗", verdict.FAILED),
    message_states.SKIPPED: ("»", verdict.SKIPPED),
}


def what(message: Message, at: Callable[[int], str]) -> str:
    """Why it is what it is, and what comes next."""
    parts = [message.cause] if message.cause else []
    if message.settled_at is not None:
        parts.append(at(message.settled_at))
    elif message.due_at is not None and message.state in (message_states.PENDING, message_states.UNKNOWN):
        parts.append(f"next {at(message.due_at)}")
    elif message.state == message_states.PENDING:
        parts.append("after the one before it")
    return "; ".join(parts)
