"""Changed: what a person's word made of a run, as it was before and after, and what follows from it."""

from __future__ import annotations

from duly.evidence.verdict import Window, window_of, window_of_row
from duly.evidence.words import span
from duly.ledger import states
from duly.ledger.address import Addressed
from duly.ledger.ask import now
from duly.ledger.resolve import Word
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from duly.ledger.ask import Operation
    from duly.ledger.records import Run

    Change: TypeAlias = Callable[[Addressed, Word], Operation[Run]]


@record
class Changed:
    """A window before and after, as the verb left it."""

    addressed: Addressed
    before: Window
    after: Window


async def changed(found: Addressed, change: Change, word: Word) -> Changed:
    """Change a run, in the transaction that is open, and judge it before and after."""
    before = await window_of(found, await now())
    row = await change(found, word)
    return Changed(found, before, await window_of_row(found.known, row, await now(), found.occurrence))


_FOLLOWS = {
    "retry": "the next poke of the job takes it again",
    "skip": "nothing will run it, unless it is unskipped",
    "unskip": "it is owed again: the next poke of the job works it once it is due",
    "reopen": "the next poke of the job does it again, under a key of its own",
}


def follows(verb: str, made: Changed) -> str:
    """What follows from a change, in a sentence without a full stop. Pure."""
    match verb:
        case "cancel":
            return _of_cancel(made)
        case "resolve":
            state = None if made.after.row is None else made.after.row.state
            if state == states.UNKNOWN:
                return "it is unknown still, and nothing runs it meanwhile"
            return "it is complete" if state == states.COMPLETED else _FOLLOWS["retry"]
    return _FOLLOWS[verb]


def _of_cancel(made: Changed) -> str:
    """Who was asked to stop, or why nobody could be."""
    before, after = made.before.row, made.after.row
    assert after is not None
    if after.state == states.SKIPPED:
        return "nobody was working it, so it is skipped; `duly unskip` takes that back"
    if after.state == states.FAILED:
        return "its attempt has vanished, and nothing happened; nothing tries again by itself: `duly retry` or `duly skip` it"
    if after.state == states.UNKNOWN:
        return "its attempt has vanished, and nobody knows what it did: `duly resolve` it"
    which = f"attempt {after.fence} by {after.owner}"
    if before is not None and before.cancel_is_asked:
        return f"{which} was asked to stop before; nothing more is to be said to it. `duly explain` tells what became of that"
    hears = f"it hears of that within {span(_beat_of(made))}, with its next heartbeat"
    return f"{which} is asked to stop: {hears}. `duly explain` tells what became of it; nothing tries again by itself"


def _beat_of(made: Changed) -> int:
    """How long a heartbeat may be away, in microseconds."""
    return made.after.known.job.lease // 3
