"""`duly db`: the ledger as a database. `create` makes its tables, `migrate` brings them up to this release, `sql` prints both;
the other verbs have a file each.

Nothing else migrates a ledger, and nothing else makes one on PostgreSQL: these want rights that a job should not have.
"""

from __future__ import annotations

from duly.cli import codes, db_backup, db_prune, db_verify
from duly.cli.arguments import add_format, add_ledger
from duly.cli.change import add_reason, reason_given
from duly.cli.complain import Unsaid
from duly.cli.ledgers import is_postgres, open_ledger, path_of_ledger, url_of_ledger
from duly.cli.output import iso, note, show, table
from duly.errors import TimeInvalid
from duly.ledger.address import key_of
from duly.ledger.named import TO_FILL_IN
from duly.ledger.resolve import Word
from duly.ledger.restore import doubt_since, whole_until
from duly.redaction import shown_url
from duly.store import without_psycopg
from duly.store.tried import write_or_try
from duly.times import parse_instant
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from duly.cli.output import Json
    from duly.schedule.keys import RunKey
    from duly.store.migrations import Step
    from duly.store.protocol import Store

HELP = "the ledger as a database: create, migrate, copy, verify and prune it, or say that it was restored"
EXAMPLE = (
    "duly db create --ledger postgresql://duly@db.example/shop\n"
    "  duly db migrate --dry-run\n"
    "  duly db sql --from 1 --ledger postgresql://duly@db.example/shop\n"
    f"  {db_backup.EXAMPLE}\n"
    f"  {db_verify.EXAMPLE}\n"
    f"  {db_prune.EXAMPLE}\n"
    "  duly db restored --at 2026-11-29T03:00:00Z --reason 'nightly backup, after the disk failed'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="verb", metavar="create | migrate | sql | backup | verify | prune | restored", required=True
    )
    creating = verbs.add_parser(
        "create",
        help="make the tables",
        description="Make the tables, where there are none. What is there stays as it is.",
    )
    migrating = verbs.add_parser(
        "migrate",
        help="apply what the ledger lacks",
        description="Apply the migrations of this release that the ledger lacks, each in a transaction of its own.",
    )
    migrating.add_argument("--dry-run", action="store_true", help="say what would be applied, and apply nothing")
    add_format(migrating)
    printing = verbs.add_parser(
        "sql",
        help="print what makes the tables",
        description="Print what makes the tables and puts it on record, for whoever would rather run it by hand.",
    )
    printing.add_argument(
        "--from", dest="after", metavar="N", type=int, default=0, help="only what a ledger lacks that has schema N"
    )
    saying = verbs.add_parser(
        "restored",
        help="say that the ledger went back in time",
        description="Say that the ledger has forgotten what happened after an instant: it was restored from a copy, or an "
        "older replica took over. What may have left the database since is then unknown, and not repeated.",
    )
    saying.add_argument(
        "--at",
        metavar="INSTANT",
        help="up to when it is whole, as 2026-11-29T03:00:00Z; a copy that `duly db backup` made knows it",
    )
    saying.add_argument("--dry-run", action="store_true", help="say what would be in doubt, and change nothing")
    add_reason(saying)
    add_format(saying)
    for each in (creating, migrating, printing, saying):
        add_ledger(each)
    for module in (db_backup, db_verify, db_prune):
        module.add_arguments(verbs)


def run(args: argparse.Namespace) -> int:
    match args.verb:
        case "create":
            return _create(args)
        case "migrate":
            return _migrate(args)
        case "backup":
            return db_backup.run(args)
        case "verify":
            return db_verify.run(args)
        case "prune":
            return db_prune.run(args)
        case "restored":
            return _restored(args)
    return _sql(args)


def _create(args: argparse.Namespace) -> int:
    migrations, place = _of(args.ledger)
    facts = migrations.create(place, by=actor())
    note(f"the ledger is there: schema {facts['schema']}, id {facts['ledger_id']}")
    lacking = migrations.pending(place)
    if lacking:
        note(f"it lacks {_names(lacking)}; apply with: duly db migrate")
    return codes.DONE


def _migrate(args: argparse.Namespace) -> int:
    migrations, place = _of(args.ledger)
    steps = migrations.pending(place) if args.dry_run else migrations.migrate(place, by=actor())
    fields: dict[str, Json] = {"ledger": shown_url(place), "dry_run": args.dry_run}
    show(args, "duly.migrations.v1", fields, "migrations", [_as_json(step) for step in steps], lambda: _in_words(steps))
    if not steps:
        note("the ledger has every migration of this release")
    elif args.dry_run:
        note("nothing was applied")
    return codes.DONE


def _sql(args: argparse.Namespace) -> int:
    from duly.store.migrations import POSTGRES, SQLITE, script, steps

    engine = POSTGRES if is_postgres(url_of_ledger(args.ledger)) else SQLITE
    print("\n".join(script(step, by="duly db sql") for step in steps(engine) if step.number > args.after), end="")
    return codes.DONE


def _restored(args: argparse.Namespace) -> int:
    reason = reason_given(args, "restored", "say why the ledger is not younger")
    store = open_ledger(args.ledger)
    at = _whole_until(args.at, store)
    word = Word(actor(), reason)
    doubted = write_or_try(store, _doubted(at, word), dry_run=args.dry_run)
    fields: dict[str, Json] = {"at": iso(at), "dry_run": args.dry_run}
    show(
        args,
        "duly.restored.v1",
        fields,
        "runs",
        [{"key": str(key)} for key in doubted],
        lambda: "\n".join(map(str, doubted)),
    )
    found = f"{len(doubted)} runs are in doubt"
    note(f"{found}; nothing was changed" if args.dry_run else f"{found}; say what happened: duly resolve RUN")
    return codes.DONE


def _whole_until(typed: str | None, store: Store) -> int:
    """Up to when the ledger is whole: as was typed, else as `db backup` has noted in the copy."""
    if typed is None:
        noted = store.read(whole_until())
        if noted is None:
            raise Unsaid(
                "restored: say up to when the ledger is whole with --at; it is no copy that `duly db backup` made",
                ("--at", TO_FILL_IN),
            )
        return noted
    try:
        return parse_instant(typed)
    except TimeInvalid as e:
        raise Unsaid(f"--at: {e}", ("--at", TO_FILL_IN)) from e


async def _doubted(at: int, word: Word) -> list[RunKey]:
    return [await key_of(run.id) for run in await doubt_since(at, word)]


def _in_words(steps: list[Step]) -> str:
    return table([[f"{step.number:04}", step.name, _who_may_write(step)] for step in steps])


def _who_may_write(step: Step) -> str:
    return "" if step.min_writer is None else f"then only releases that know schema {step.min_writer} may write"


def _names(steps: list[Step]) -> str:
    return ", ".join(f"{step.number:04} {step.name}" for step in steps)


def _as_json(step: Step) -> dict[str, Json]:
    return {"key": f"{step.number:04}", "name": step.name, "sha256": step.sha256, "min_writer": step.min_writer}


def _of(flag: str | None) -> tuple[ModuleType, str]:
    """What makes and migrates the ledger that is meant, and where that ledger is."""
    url = url_of_ledger(flag)
    if not is_postgres(url):
        from duly.store.migrations import sqlite

        return sqlite, path_of_ledger(flag)
    try:
        from duly.store.migrations import postgres
    except ImportError as e:
        raise without_psycopg() from e
    return postgres, url
