"""`duly cancel`: ask the attempt at a run to stop, wherever it is."""

from __future__ import annotations

from duly.cli.change import add_change, add_reason, run_change, word_of
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

    return run_change(args, "cancel", change, word=word_of(args, "cancel"))
