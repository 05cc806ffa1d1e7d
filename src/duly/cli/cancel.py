"""`duly cancel`: ask the attempt at a run to stop, wherever it is."""

from __future__ import annotations

from duly.cli.change import Changed, add_change, add_reason, run_change, word_of
from duly.evidence.words import span
from duly.ledger import states
from duly.ledger.cancel import cancel
from duly.ledger.resolve import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.records import Run

HELP = "ask the attempt at a run to stop, wherever it is; a run that nobody works is skipped"
EXAMPLE = "duly cancel close-day 2026-11-28 --reason 'it reads the wrong year'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_change(parser)
    add_reason(parser)


def run(args: argparse.Namespace) -> int:
    def change(found: Addressed, word: Word) -> Operation[Run]:
        return cancel(found.known, found.run, found.occurrence, word)

    return run_change(args, "cancel", change, word=word_of(args, "cancel"), then=_then)


def _then(changed: Changed) -> str:
    """What follows: who was asked, or why nobody could be."""
    before, after = changed.before.row, changed.after.row
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
    hears = f"it hears of that within {span(_beat_of(changed))}, with its next heartbeat"
    return f"{which} is asked to stop: {hears}. `duly explain` tells what became of it; nothing tries again by itself"


def _beat_of(changed: Changed) -> int:
    """How long a heartbeat may be away, in microseconds."""
    return changed.after.known.job.lease // 3
