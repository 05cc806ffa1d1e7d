"""A ledger made on PostgreSQL: once, by `duly db create`, with a role that may create a schema."""

from __future__ import annotations

import psycopg

from duly.store.migrations import new_facts, script
from duly.store.postgres import facts_of, redacted, translated, trusted

LOCK = 0x64756C79  # two who create at once: the second waits, and finds what the first made


def create(url: str, *, clock: str = "system") -> dict[str, str]:
    """Make the ledger's schema and tables in a database. Answers the ledger's facts. Raises `LedgerUnwritable`."""
    try:
        with psycopg.connect(url) as connection:
            connection.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
            if connection.execute("select to_regclass('duly.meta')").fetchone() == (None,):
                _fill(connection, clock)
            return facts_of(connection)
    except psycopg.Error as e:
        raise translated(e, name=redacted(url)) from e


def _fill(connection: psycopg.Connection[tuple[object, ...]], clock: str) -> None:
    connection.execute(trusted(script("0001_ledger.postgres.sql")))
    with connection.cursor() as cursor:
        cursor.executemany("insert into duly.meta (name, value) values (%s, %s)", list(new_facts(clock).items()))
    if clock == "hand":
        connection.execute("insert into duly.clock (at) values (0)")
