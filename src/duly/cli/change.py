"""Changes: what the verbs of a person have in common. Each says who and why, can be tried without effect, and prints what
it touched.

A dry run is the change itself in a transaction that is given up: what it prints is what the ledger would do, refusals
included.
"""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_run, add_scope
from duly.cli.complain import Unsaid
from duly.cli.ledgers import open_ledger
from duly.cli.output import document, glyph_and_word, line_name, note, table, window_name
from duly.cli.runs_argument import RunArgument, addressed, echo, run_argument
from duly.errors import NotAllowed, Retired
from duly.evidence.changed import Changed, changed, follows
from duly.evidence.documents.change import CHANGE, change_as_json
from duly.ledger.named import TO_FILL_IN
from duly.ledger.resolve import Word
from duly.redaction import shown_url
from duly.store.tried import write_or_try
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.evidence.changed import Change


def add_change(parser: argparse.ArgumentParser) -> None:
    """RUN, `--dry-run` and what every command takes."""
    add_run(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def add_reason(parser: argparse.ArgumentParser) -> None:
    """`--reason`, kept in the ledger."""
    parser.add_argument("--reason", metavar="WHY", help="why, for whoever reads the ledger later; required")


def run_change(args: argparse.Namespace, verb: str, change: Change, *, word: Word) -> int:
    """Change the run that the arguments name, and say what follows from it."""
    store = open_ledger(args.ledger)
    operation = _changed(run_argument([args.run, args.window], verb), args.scope, change, word)
    try:
        made = write_or_try(store, operation, dry_run=args.dry_run)
    except NotAllowed as e:
        e.next_step = e.next_step or line("explain", args)
        raise
    except Retired as e:  # to a poke it means that all is well; here nobody got what they asked for
        raise NotAllowed(f"cannot {verb} this run: {e}", next_step=line("explain", args)) from e
    echo(made.addressed)
    _print(args, verb, made)
    note("nothing was changed: this was a dry run" if args.dry_run else follows(verb, made))
    return codes.DONE


async def _changed(argument: RunArgument, scope: str | None, change: Change, word: Word) -> Changed:
    return await changed(await addressed(argument, scope), change, word)


def _print(args: argparse.Namespace, verb: str, made: Changed) -> None:
    if args.format == "table":
        before, after = made.before.verdict, made.after.verdict
        names = line_name(made.after), window_name(made.after)
        print(table([[*names, glyph_and_word(before.word), "→", glyph_and_word(after.word), after.note]]))
        return
    if args.format == "keys":
        print(made.after.key)
        return
    print(document(CHANGE, change_as_json(verb, made, dry_run=args.dry_run)))


def word_of(args: argparse.Namespace, verb: str) -> Word:
    """Who says it, and why. Raises `Unsaid` where no reason is given."""
    return Word(actor(), reason_given(args, verb))


def reason_given(args: argparse.Namespace, command: str, why: str = "say why") -> str:
    """Why something is changed. Raises `Unsaid` where it is not said."""
    if reason := said(args.reason):
        return reason
    raise Unsaid(f"{command}: {why} with --reason; it is kept in the ledger", ("--reason", TO_FILL_IN))


def said(text: str | None) -> str:
    """What a person said; empty where that is nothing, or what a next step has in its place."""
    words = (text or "").strip()
    return "" if words == TO_FILL_IN else words


def line(verb: str, args: argparse.Namespace, *more: str) -> str:
    """The command as it was typed, with more words."""
    from shlex import join

    scope = ["--scope", args.scope] if args.scope else []
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    return join(["duly", *verb.split(), *filter(None, (args.run, args.window)), *scope, *ledger, *more])
