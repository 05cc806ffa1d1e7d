"""`duly db verify`: is the ledger what a ledger is? Its file, its migrations, and what holds of every ledger; of a copy too."""

from __future__ import annotations

import os

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger
from duly.cli.complain import look_at
from duly.cli.ledgers import is_postgres, open_to_look, path_of_ledger, url_of_ledger
from duly.cli.output import note, paint, show
from duly.errors import NoLedger
from duly.evidence import verdict
from duly.ledger.address import SERIES_BY_ID, key_of
from duly.ledger.ask import one
from duly.ledger.truths import Untrue, findings
from duly.records import record
from duly.redaction import shown_url
from duly.store.migrations import POSTGRES, SQLITE
from duly.store.reader import RestingLedger
from duly.store.sound import at_rest, of_ledger, of_migrations, on_server
from duly.store.sqlite import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from duly.cli.output import Json
    from duly.store.protocol import Store

EXAMPLE = "duly db verify /backups/ledger.db"


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`verify`, as a verb of `duly db`."""
    verifying = verbs.add_parser(
        "verify",
        help="look whether a ledger, or a copy of one, is whole",
        description="Look at every row of a ledger: whether the database is sound, the migrations are those of this "
        "release, and what holds of every ledger holds. Changes nothing. Exits with 1 where anything is wrong.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    verifying.add_argument("file", metavar="FILE", nargs="?", help="a copy that nobody has open; else the ledger")
    add_format(verifying)
    add_ledger(verifying)


@record
class Check:
    """One thing that was looked at: what holds if all is well, of how many rows it does not, and some of them in words."""

    name: str
    says: str
    times: int
    examples: list[str]


def run(args: argparse.Namespace) -> int:
    where, checks = _looked_at(args)
    wrong = [check for check in checks if check.times]
    facts: dict[str, Json] = {"ledger": where, "holds": not wrong}
    show(args, "duly.verify.v1", facts, "checks", [_as_json(check) for check in checks], lambda: _in_words(wrong))
    if wrong:
        note(f"{where}: {len(wrong)} of {len(checks)} things that hold of every ledger do not hold of it")
        return 1
    note(f"{where}: {len(checks)} things looked at, and all of them hold")
    return codes.DONE


def _looked_at(args: argparse.Namespace) -> tuple[str, list[Check]]:
    """What is looked at, by name, and what was found."""
    if args.file:
        _refuse_absent(args.file)
        if os.path.exists(f"{args.file}-wal"):  # somebody has it open, or was killed: that is a part of it
            return args.file, _of_file(args.file, of_ledger, lambda: SqliteStore(args.file, create=False))
        return args.file, _of_file(args.file, at_rest, lambda: RestingLedger(args.file))
    url = url_of_ledger(args.ledger)
    if is_postgres(url):
        store = open_to_look(args.ledger)
        return shown_url(url), [_database(store.read(on_server())), *store.read(_truths(POSTGRES, shown_url(url)))]
    path = path_of_ledger(args.ledger)
    _refuse_absent(path)
    return path, _of_file(path, of_ledger, lambda: open_to_look(args.ledger))


def _refuse_absent(path: str) -> None:
    if not os.path.isfile(path):
        raise NoLedger(f"there is no file {path}", next_step=look_at(path))


def _of_file(path: str, look: Callable[[str], list[str]], opened: Callable[[], Store | RestingLedger]) -> list[Check]:
    found = look(path)
    # Of a file that is damaged what would be read says nothing.
    return [_database(found), *([] if found else opened().read(_truths(SQLITE, path)))]


def _database(found: list[str]) -> Check:
    return Check("database", "the database itself is sound", len(found), found)


async def _truths(engine: str, ledger: str) -> list[Check]:
    differ = await of_migrations(engine, ledger=ledger)
    made = Check("migrations", "the tables are those that the migrations of this release make", len(differ), differ)
    if any(each.endswith("is not there") for each in differ):
        return [made]  # what should be read is not there to be read
    return [
        made,
        *[
            Check(
                found.truth.name, found.truth.says, found.times, [await _named(example) for example in found.examples]
            )
            for found in await findings()
        ],
    ]


async def _named(example: Untrue) -> str:
    run = example.run
    if run is None:
        return example.what
    if await one(SERIES_BY_ID, lambda *row: row, series=run.series) is None:
        return f"{example.what} of series {run.series}, nominal {run.nominal}, revision {run.revision}"
    return f"{await key_of(run)}: {example.what}"


def _in_words(wrong: list[Check]) -> str:
    return "\n".join(line for check in wrong for line in _lines(check))


def _lines(check: Check) -> list[str]:
    more = check.times - len(check.examples)
    examples = [f"    {example}" for example in check.examples] + ([f"    and {more} more"] if more > 0 else [])
    return [f"{paint('✗', verdict.FAILED)} {check.name}: not so: {check.says}", *examples]


def _as_json(check: Check) -> dict[str, Json]:
    examples: list[Json] = [*check.examples]
    return {
        "key": check.name,
        "holds": not check.times,
        "says": check.says,
        "times": check.times,
        "examples": examples,
    }
