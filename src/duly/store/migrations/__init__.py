"""Migrations: numbered SQL, one file a step and engine. A new ledger takes all of them."""

from __future__ import annotations

import os
import sqlite3

from duly.errors import LedgerUnwritable
from duly.store.lock import WriterLock
from duly.store.sqlite import SCHEMA, SqliteStore, begin, commit

MIN_WRITER = 1


def statements(script: str) -> list[str]:
    """The statements of a script, as SQLite tells where one is complete (a trigger's body holds semicolons)."""
    found, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found


def script(name: str) -> str:
    """The text of a migration in this folder."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as f:
        return f.read()


def create(store: SqliteStore, *, clock: str = "system") -> dict[str, str]:
    """Make the ledger's tables in the store's file, and the file where there is none. Answers the ledger's facts.

    Two processes may try at once: the second finds what the first made.
    """
    folder = os.path.dirname(store.path)
    if not os.path.isdir(folder):
        raise LedgerUnwritable(f"there is no folder {folder} to make a ledger in; make it, or name another ledger")
    lock = WriterLock(store.path)
    connection = store.connect()
    try:
        if (
            not os.path.exists(store.path) or os.path.getsize(store.path) == 0
        ):  # ours: a database that was there before keeps its journal mode
            _make_wal(connection, lock, store)
        begin(connection, lock, path=store.path, seconds=store.busy_seconds)
        try:
            if connection.execute("select 1 from sqlite_master where name = 'duly_meta'").fetchone() is None:
                _fill(connection, clock)
            commit(connection, seconds=store.busy_seconds)
        finally:
            if connection.in_transaction:
                connection.rollback()
            lock.release()
        return dict(connection.execute("select name, value from duly_meta").fetchall())
    finally:
        connection.close()
        lock.close()


def _make_wal(connection: sqlite3.Connection, lock: WriterLock, store: SqliteStore) -> None:
    if lock.acquire(store.busy_seconds):
        try:
            connection.execute("pragma journal_mode = wal")
        finally:
            lock.release()


def _fill(connection: sqlite3.Connection, clock: str) -> None:
    for statement in statements(script("0001_ledger.sqlite.sql")):
        connection.execute(statement)
    ledger_id = os.urandom(16).hex()
    facts = {
        "schema": str(SCHEMA),
        "min_writer": str(MIN_WRITER),
        "ledger_id": ledger_id,
        "namespace": ledger_id,
        "clock": clock,
    }
    connection.executemany("insert into duly_meta (name, value) values (?, ?)", facts.items())
    if clock == "hand":
        connection.execute("insert into duly_clock (at) values (0)")
