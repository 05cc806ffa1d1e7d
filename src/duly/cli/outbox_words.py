"""How a message is shown, wherever it is: never with its body."""

from __future__ import annotations

from duly.cli.output import Cell, iso
from duly.evidence import verdict
from duly.ledger import message_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.cli.output import Json
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


def state_cell(message: Message) -> Cell:
    """A message's state as a glyph and a word."""
    glyph, word = GLYPHS[message.state]
    return Cell(f"{glyph} {message.state}", word)


def message_row(message: Message, at: Callable[[int], str]) -> list[str | Cell]:
    """A message as the columns of a table, without its name."""
    return [state_cell(message), f"to {message.destination}", f"attempts {message.fence}", what(message, at)]


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


def message_as_json(run: str, message: Message) -> dict[str, Json]:
    """A message for programs."""
    return {
        "key": run,
        "name": message.name,
        "revision": message.revision,
        "number": message.number,
        "destination": message.destination,
        "idempotency_key": message.key,
        "state": message.state,
        "cause": message.cause,
        "attempts": message.fence,
        "in_doubt": message.doubt_number is not None,
        "noted_at": iso(message.noted_at),
        "first_sent_at": iso(message.first_sent_at),
        "next_at": iso(message.due_at),
        "settled_at": iso(message.settled_at),
    }
