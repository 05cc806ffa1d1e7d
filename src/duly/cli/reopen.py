"""`duly reopen`: deliberately do a completed run again, as its next revision."""

from __future__ import annotations

from duly.cli.change import add_change, add_reason, run_change, word_of
from duly.ledger.resolve import Word, reopen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.records import Run

HELP = "deliberately do a completed run again, as a new revision"
EXAMPLE = "duly reopen invoice-export 2026-10-05 --reason 'the VAT rate was wrong'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_change(parser)
    add_reason(parser)


def run(args: argparse.Namespace) -> int:
    def change(found: Addressed, word: Word) -> Operation[Run]:
        return reopen(found.run, word)

    return run_change(args, "reopen", change, word=word_of(args, "reopen"))
