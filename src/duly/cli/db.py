"""`duly db`: the ledger as a database. `create` makes the tables of a PostgreSQL ledger, which nothing else does."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_ledger
from duly.cli.ledgers import is_postgres, path_of_ledger, url_of_ledger
from duly.cli.output import note
from duly.errors import Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "the ledger as a database: create its tables, or print their SQL"
EXAMPLE = "duly db create --ledger postgresql://duly@db.example/shop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=["create", "sql"], help="create: make the tables; sql: print what makes them")
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    url = url_of_ledger(args.ledger)
    engine = "postgres" if is_postgres(url) else "sqlite"
    if args.verb == "sql":
        from duly.store.migrations import script

        print(script(f"0001_ledger.{engine}.sql"), end="")
        return codes.DONE
    if engine == "postgres":
        facts = _create_postgres(url)
    else:
        from duly.store.migrations.sqlite import create

        facts = create(path_of_ledger(args.ledger))
    note(f"the ledger is there: schema {facts['schema']}, id {facts['ledger_id']}")
    return codes.DONE


def _create_postgres(url: str) -> dict[str, str]:
    try:
        from duly.store.migrations.postgres import create
    except ImportError as e:
        raise Misuse(
            "ledger: a PostgreSQL ledger needs psycopg, which is not installed",
            next_step="pip install 'duly[postgres]'",
        ) from e
    return create(url)
