"""Whether the database of a ledger is sound, as far as it can say so itself: what SQLite finds when it reads every page, what
PostgreSQL knows to be damaged or unfinished, and whether the tables were made by the migrations of this release.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import quote

from duly.errors import LedgerTooNew, MigrationDiffers
from duly.ledger.ask import Statement, every, one
from duly.store.migrations import SQLITE, missing, steps
from duly.store.sqlite import connect, translated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duly.store.migrations import Step

# A page whose checksum was wrong is counted by the server, if its cluster has checksums. An index that was being built when
# something failed, and a constraint that was added without a look at the rows, say so themselves.
DAMAGED = Statement(
    "damaged",
    """
select 'pages with a wrong checksum were read in this database: ' || checksum_failures
  from pg_stat_database
 where datname = current_database() and checksum_failures > 0
union all
select 'the index ' || c.relname || ' is not valid; reindex it'
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'duly' and not (i.indisvalid and i.indisready)
union all
select 'the constraint ' || k.conname || ' was never validated'
  from pg_constraint k
  join pg_namespace n on n.oid = k.connamespace
 where n.nspname = 'duly' and not k.convalidated
""",
)

# What there is of a ledger, by name; on SQLite also how it was made.
MADE_IN_FILE = Statement(
    "made_in_file", "select name, sql from sqlite_master where name like 'duly@_%' escape '@' and sql is not null"
)

MADE_ON_SERVER = Statement(
    "made_on_server",
    """
select relname from pg_class where relnamespace = 'duly'::regnamespace
union
select proname from pg_proc where pronamespace = 'duly'::regnamespace
union
select tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = 'duly'::regnamespace
""",
)

_CREATES = re.compile(
    r"^create (?:unique |constraint )?(?:table|index|view|function|trigger) (?:duly\.)?(\w+)", re.MULTILINE
)

APPLIED = Statement("applied", "select number, sha256 from duly_migration")

MIN_WRITER = Statement("min_writer", "select value from duly_meta where name = 'min_writer'")


def of_ledger(path: str) -> list[str]:
    """What is wrong with the file of a ledger that others may be working on; empty where nothing is."""
    try:
        with closing(connect(path)) as connection:
            return faults(connection)
    except sqlite3.Error as e:
        raise translated(e, path=path) from e


def at_rest(path: str) -> list[str]:
    """What is wrong with a file that nobody has open; it is read without a trace."""
    with closing(sqlite3.connect(f"file:{quote(path)}?immutable=1", uri=True, isolation_level=None)) as connection:
        return faults(connection)


def faults(connection: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with a database that holds a ledger."""
    try:
        return list(_faults(connection))
    except sqlite3.DatabaseError as e:
        if e.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise  # busy, or not to be opened: nothing is known of it
        return [f"it cannot be read: {e}"]


def _faults(connection: sqlite3.Connection) -> Iterable[str]:
    checked = [str(text) for (text,) in connection.execute("pragma integrity_check(10)")]
    if checked != ["ok"]:
        yield from checked
        return
    for table, row, parent, _ in connection.execute("pragma foreign_key_check"):
        if str(table).startswith("duly_"):  # of the other tables in the database we know nothing
            where = "a row" if row is None else f"row {row}"
            yield f"{where} of {table} names one of {parent} that is not there"


async def on_server() -> list[str]:
    """What PostgreSQL knows to be wrong with the tables of a ledger. Looks only."""
    return await every(DAMAGED, str)


async def of_migrations(engine: str, *, ledger: str) -> list[str]:
    """Why the tables are not those that the migrations of this release make. Looks only.

    What the ledger lacks it may take, so that is no fault of it.
    """
    applied = await every(APPLIED, lambda number, digest: (number, digest))
    try:
        missing(applied, steps(engine), min_writer=await one(MIN_WRITER, int) or 0, ledger=ledger)
    except (MigrationDiffers, LedgerTooNew) as e:
        return [str(e)]
    known = [step for step in steps(engine) if step.number in {number for number, _ in applied}]
    return await (_of_file(known) if engine == SQLITE else _of_server(known))


async def _of_file(known: list[Step]) -> list[str]:
    """What of a file is not as the migrations make it."""
    with closing(sqlite3.connect(":memory:")) as made:
        for step in known:
            made.executescript(step.sql)
        rows = made.execute(
            "select name, sql from sqlite_master where name like 'duly%' and sql is not null"
        ).fetchall()
    wanted = {name: _plain(sql) for name, sql in rows}
    there = {name: _plain(sql) for name, sql in await every(MADE_IN_FILE, lambda *row: row)}
    missed = [f"{name} is not there" for name in sorted(wanted.keys() - there.keys())]
    changed = [f"{name} was changed" for name in sorted(wanted.keys() & there.keys()) if wanted[name] != there[name]]
    return [*missed, *changed]


async def _of_server(known: list[Step]) -> list[str]:
    """What of the schema is not there that the migrations make."""
    wanted = {name for step in known for name in _CREATES.findall(step.sql)}
    return [f"duly.{name} is not there" for name in sorted(wanted - set(await every(MADE_ON_SERVER, str)))]


def _plain(sql: str) -> str:
    """A statement but for how it is laid out."""
    return " ".join(sql.split())
