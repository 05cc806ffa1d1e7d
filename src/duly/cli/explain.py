"""`duly explain`: why a run ran, did not, or will."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_run, add_scope
from duly.cli.ledgers import open_to_look
from duly.cli.output import document, glyph_and_word, note, table, typed, when, zone_of
from duly.cli.runs_argument import RunArgument, addressed, echo, run_argument
from duly.errors import Misuse
from duly.evidence.documents.explanation import explanation_as_json
from duly.evidence.explain import Explanation, explain
from duly.evidence.explain_words import sentences
from duly.ledger.address import Addressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "why it ran, did not, or will; also for a period that never ran"
EXAMPLE = "duly explain close-day 2026-11-26\n  duly explain 'invoice-export:2026-10-05[Europe/Berlin]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    if args.format in ("jsonl", "csv"):
        raise Misuse(f"explain: sentences make no {args.format}; use table or json", next_step="duly explain --help")
    argument = run_argument([args.run, args.window], "explain")
    found, told = open_to_look(args.ledger).read(_explained(argument, args.scope))
    echo(found)
    zone, now = zone_of(told.window), told.as_of
    said = sentences(told, lambda instant: when(instant, zone, time=args.time, now=now))
    if args.format == "keys":
        print(told.window.key)
    elif args.format == "json":
        print(document("duly.explain.v1", {**explanation_as_json(told, args.ledger), "sentences": [*said]}))
    else:
        print(table([[str(told.window.key), glyph_and_word(told.window.verdict.word)]]))
        print("\n".join(said))
        if told.window.verdict.verb not in ("", "explain"):
            note(f"next: {typed(told.window.verdict.verb, told.window, args.ledger)}")
    return codes.DONE


async def _explained(argument: RunArgument, scope: str | None) -> tuple[Addressed, Explanation]:
    found = await addressed(argument, scope)
    return found, await explain(found)
