"""`duly db backup`: a copy of the ledger while it is worked on. Of PostgreSQL its own tool makes one."""

from __future__ import annotations

import os

from duly.cli import codes
from duly.cli.arguments import add_ledger, add_quiet
from duly.cli.bar import Bar
from duly.cli.ledgers import is_postgres, open_ledger, path_of_ledger, url_of_ledger
from duly.cli.output import document, iso, note
from duly.errors import Misuse
from duly.records import replace
from duly.redaction import shown_url
from duly.store.backup import backup

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

EXAMPLE = "duly db backup /backups/ledger.db --replace"


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`backup`, as a verb of `duly db`."""
    copying = verbs.add_parser(
        "backup",
        help="copy the ledger while it is worked on",
        description="Copy an SQLite ledger, and the database that it is in, to a file that is there only if it is whole. "
        "Whoever works on it goes on meanwhile.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    copying.add_argument("file", metavar="FILE")
    copying.add_argument("--replace", action="store_true", help="take the place of a file of that name")
    copying.add_argument("--json", action="store_true", help="say what was made as one JSON document")
    add_quiet(copying, "do not say how far it is")
    add_ledger(copying)


def run(args: argparse.Namespace) -> int:
    url = url_of_ledger(args.ledger)
    if is_postgres(url):
        from shlex import quote

        raise Misuse(
            "backup: a ledger on PostgreSQL is in your database, and pg_dump copies both as they are at one instant",
            next_step=f"pg_dump --format=custom --file={quote(args.file)} {quote(shown_url(url))}",
        )
    store = open_ledger(args.ledger)
    with Bar(os.path.basename(args.file), "pages copied", quiet=args.quiet) as bar:
        made = backup(path_of_ledger(args.ledger), args.file, may_replace=args.replace, now=store.now, tell=bar)
    made = replace(made, path=os.path.abspath(made.path))
    if args.json:
        print(document("duly.backup.v1", {"file": made.path, "bytes": made.size, "at": iso(made.at)}))
    else:
        print(f"{made.path}: {made.size} bytes, whole up to {iso(made.at)}")
    note("after it was put in place of the ledger: duly db restored --reason '…'")
    return codes.DONE
