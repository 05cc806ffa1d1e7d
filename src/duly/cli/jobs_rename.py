"""`duly jobs rename`: another name for a job, with all its runs."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger
from duly.cli.change import add_reason, reason_given
from duly.cli.ledgers import open_ledger
from duly.cli.output import note, show
from duly.ledger.rename import rename
from duly.ledger.resolve import Word
from duly.store.tried import write_or_try
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json

EXAMPLE = "duly jobs rename close-day close-books --reason 'it closes the books of all shops now'"


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`rename`, as a verb of `duly jobs`."""
    renaming = verbs.add_parser(
        "rename",
        help="give a job another name, with all its runs",
        description="Give a job another name. Its runs move with it; who still declares the old name is refused.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    renaming.add_argument("job", metavar="OLD")
    renaming.add_argument("name", metavar="NEW")
    add_reason(renaming)
    renaming.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    add_format(renaming)
    add_ledger(renaming)


def run(args: argparse.Namespace) -> int:
    word = Word(actor(), reason_given(args, f"jobs rename {args.job} {args.name}"))
    names = write_or_try(open_ledger(args.ledger), rename(args.job, args.name, word), dry_run=args.dry_run)
    records: list[dict[str, Json]] = [{"key": names.after, "before": names.before, "after": names.after}]
    show(
        args,
        "duly.rename.v1",
        {"dry_run": args.dry_run},
        "jobs",
        records,
        lambda: f"{names.before} → {names.after}",
    )
    if args.dry_run:
        note("nothing was changed: this was a dry run")
    else:
        note(f"declare it as {names.after} from now on: by the name {names.before} nothing is run any more")
    return codes.DONE
