"""How a message is shown, wherever it is: never with its body."""

from __future__ import annotations

from duly.cli.output import Cell
from duly.evidence.message_words import GLYPHS, what

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.messages import Message


def state_cell(message: Message) -> Cell:
    """A message's state as a glyph and a word."""
    glyph, word = GLYPHS[message.state]
    return Cell(f"{glyph} {message.state}", word)


def message_row(message: Message, at: Callable[[int], str]) -> list[str | Cell]:
    """A message as the columns of a table, without its name."""
    return [state_cell(message), f"to {message.destination}", f"attempts {message.fence}", what(message, at)]
