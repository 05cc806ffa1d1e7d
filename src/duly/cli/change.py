"""Changes: what the verbs of a person have in common. Each says who and why, can be tried without effect, and prints what
it touched.

A dry run is the change itself in a transaction that is given up: what it prints is what the ledger would do, refusals
included.
"""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_run, add_scope
from duly.cli.ledgers import open_ledger, shown
from duly.cli.output import as_json, document, glyph_and_word, line_name, note, table, window_name
from duly.cli.runs_argument import RunArgument, addressed, echo, run_argument
from duly.errors import Misuse, NotAllowed, Retired
from duly.evidence.verdict import Window, window_of, window_of_row
from duly.ledger.address import Addressed
from duly.ledger.ask import now as ledger_now
from duly.ledger.resolve import Word
from duly.records import record
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    from duly.ledger.ask import Operation
    from duly.ledger.records import Run
    from duly.store.protocol import Store

    Change: TypeAlias = Callable[[Addressed, Word], Operation[Run]]
    T = TypeVar("T")


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


class _GivenUp(Exception):
    """Carries the outcome of a dry run out of its transaction."""

    def __init__(self, outcome: object) -> None:
        super().__init__()
        self.outcome = outcome


def write_or_try(store: Store, operation: Operation[T], *, dry_run: bool) -> T:
    """Run an operation that changes the ledger, and commit it unless it is only tried."""

    async def tried() -> T:
        raise _GivenUp(await operation)

    if not dry_run:
        return store.write(operation)
    try:
        return store.write(tried())
    except _GivenUp as given_up:
        outcome: T = given_up.outcome  # type: ignore[assignment]  # what `tried` put there
        return outcome


@record
class Changed:
    """A window before and after, as the verb left it."""

    addressed: Addressed
    before: Window
    after: Window


def run_change(
    args: argparse.Namespace, verb: str, change: Change, *, word: Word, then: str | Callable[[Changed], str]
) -> int:
    """Change the run that the arguments name; `then` says what follows from it."""
    store = open_ledger(args.ledger)
    operation = _changed(run_argument([args.run, args.window], verb), args.scope, change, word)
    try:
        changed = write_or_try(store, operation, dry_run=args.dry_run)
    except NotAllowed as e:
        e.next_step = e.next_step or line("explain", args)
        raise
    except Retired as e:  # to a poke it means that all is well; here nobody got what they asked for
        raise NotAllowed(f"cannot {verb} this run: {e}", next_step=line("explain", args)) from e
    echo(changed.addressed)
    _print(args, verb, changed)
    follows = then if isinstance(then, str) else then(changed)
    note("nothing was changed: this was a dry run" if args.dry_run else follows)
    return codes.DONE


async def _changed(argument: RunArgument, scope: str | None, change: Change, word: Word) -> Changed:
    found = await addressed(argument, scope)
    before = await window_of(found, await ledger_now())
    row = await change(found, word)
    return Changed(found, before, await window_of_row(found.known, row, await ledger_now(), found.occurrence))


def _print(args: argparse.Namespace, verb: str, changed: Changed) -> None:
    if args.format == "table":
        before, after = changed.before.verdict, changed.after.verdict
        names = line_name(changed.after), window_name(changed.after)
        print(table([[*names, glyph_and_word(before.word), "→", glyph_and_word(after.word), after.note]]))
        return
    if args.format == "keys":
        print(changed.after.key)
        return
    fields = {"verb": verb, "dry_run": args.dry_run, "before": as_json(changed.before), "after": as_json(changed.after)}
    print(document("duly.change.v1", fields))


def word_of(args: argparse.Namespace, verb: str) -> Word:
    """Who says it, and why. Raises `Misuse` where no reason is given."""
    if not (args.reason or "").strip():
        raise Misuse(
            f"{verb}: say why with --reason; it is kept in the ledger",
            next_step=line(verb, args, "--reason", "the disk was full, and is not any more"),
        )
    return Word(actor(), args.reason.strip())


def reason_given(args: argparse.Namespace, command: str) -> str:
    """Why something is changed that is no run. Raises `Misuse` where it is not said."""
    if not (args.reason or "").strip():
        raise Misuse(
            f"{command}: say why with --reason; it is kept in the ledger", next_step=f"duly {command} --reason 'why'"
        )
    reason: str = args.reason.strip()
    return reason


def line(verb: str, args: argparse.Namespace, *more: str) -> str:
    """The command as it was typed, with more words."""
    from shlex import join

    scope = ["--scope", args.scope] if args.scope else []
    ledger = ["--ledger", shown(args.ledger)] if args.ledger else []
    return join(["duly", *verb.split(), *filter(None, (args.run, args.window)), *scope, *ledger, *more])
