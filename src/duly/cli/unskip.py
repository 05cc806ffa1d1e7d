"""`duly unskip`: make a skipped run what it was before."""

from __future__ import annotations

from duly.cli.change import add_change, add_reason, run_change, word_of
from duly.ledger.resolve import Word, unskip

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.records import Run

HELP = "make a skipped run what it was before, and owed"
EXAMPLE = "duly unskip fx-rates 2026-11-28T14 --reason 'the rates were published late'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_change(parser)
    add_reason(parser)


def run(args: argparse.Namespace) -> int:
    def change(found: Addressed, word: Word) -> Operation[Run]:
        return unskip(found.known, found.run, found.occurrence, word)

    return run_change(args, "unskip", change, word=word_of(args, "unskip"))
