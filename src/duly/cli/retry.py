"""`duly retry`: let a failed run be taken at the next poke."""

from __future__ import annotations

from duly.cli.change import add_change, add_reason, run_change, word_of
from duly.ledger.resolve import Word, retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.ledger.address import Addressed
    from duly.ledger.ask import Operation
    from duly.ledger.records import Run

HELP = "let a failed run be taken at the next poke; runs nothing itself"
EXAMPLE = "duly retry close-day 2026-11-26 --reason 'the disk was full, and is not any more'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_change(parser)
    add_reason(parser)
    parser.add_argument("--new-payload", action="store_true", help="the next claim may bring another payload")


def run(args: argparse.Namespace) -> int:
    def change(found: Addressed, word: Word) -> Operation[Run]:
        return retry(found.run, word, new_payload=args.new_payload)

    return run_change(args, "retry", change, word=word_of(args, "retry"))
