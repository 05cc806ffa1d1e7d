"""A ledger made on SQLite."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

from duly.errors import LedgerUnwritable
from duly.store.lock import WriterLock
from duly.store.migrations import new_facts, script
from duly.store.sqlite import BUSY_SECONDS, begin, commit, connect, facts_of, while_busy


def statements(script: str) -> list[str]:
    """The statements of a script, as SQLite tells where one is complete (a trigger's body holds semicolons)."""
    found, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found


def create(path: str, *, busy_seconds: float = BUSY_SECONDS, clock: str = "system") -> dict[str, str]:
    """Make the ledger's tables in a file, and the file where there is none. Answers the ledger's facts.

    Two processes may try at once: the second finds what the first made. A database that was there before keeps its
    journal mode.
    """
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise LedgerUnwritable(f"there is no folder {folder} to make a ledger in; make it, or name another ledger")
    ours = not os.path.exists(path) or os.path.getsize(path) == 0
    if ours:
        # As SQLite would make it; it is made first, so that the lock beside it is for the same people. Where it cannot
        # be made, connecting says so.
        with suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
    lock = WriterLock(path)
    try:
        connection = connect(path, seconds=busy_seconds)
    except sqlite3.OperationalError as e:
        if e.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN and not os.path.exists(path):
            raise LedgerUnwritable(f"cannot make {path}: {folder} may not be written; name another ledger") from e
        raise
    try:
        if ours:
            _make_wal(connection, lock, busy_seconds)
        begin(connection, lock, path=path, seconds=busy_seconds)
        try:
            if connection.execute("select 1 from sqlite_master where name = 'duly_meta'").fetchone() is None:
                _fill(connection, clock)
            commit(connection, seconds=busy_seconds)
        finally:
            if connection.in_transaction:
                connection.rollback()
            lock.release()
        return facts_of(connection, seconds=busy_seconds)
    finally:
        connection.close()
        lock.close()


def _make_wal(connection: sqlite3.Connection, lock: WriterLock, busy_seconds: float) -> None:
    if lock.acquire(busy_seconds):
        try:
            while_busy(lambda: connection.execute("pragma journal_mode = wal"), seconds=busy_seconds)
        finally:
            lock.release()


def _fill(connection: sqlite3.Connection, clock: str) -> None:
    for statement in statements(script("0001_ledger.sqlite.sql")):
        connection.execute(statement)
    facts = new_facts(clock)
    connection.executemany("insert into duly_meta (name, value) values (?, ?)", facts.items())
    if clock == "hand":
        connection.execute("insert into duly_clock (at) values (0)")
