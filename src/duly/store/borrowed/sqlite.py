"""Borrowed transactions: operations in a transaction that the caller began and will commit.

No commit and no rollback is issued here. No transaction, no completion: the marker would commit alone. That is checked
before the first statement, in each of the transaction modes of the sqlite3 module.
"""

from __future__ import annotations

import os
import sqlite3

from duly.errors import LedgerTooNew, NoLedger, NoTransaction, WrongLedger
from duly.ledger.ask import drive
from duly.store import SCHEMA
from duly.store.sqlite import Answers, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from duly.ledger.ask import Operation

    T = TypeVar("T")


def in_borrowed(
    connection: sqlite3.Connection,
    operation: Operation[T],
    *,
    ledger_path: str | None = None,
    ledger_id: str | None = None,
) -> T:
    """Run an operation in the connection's transaction.

    `ledger_path` and `ledger_id` name the ledger that a claim came from. Raises
    `NoTransaction`, `WrongLedger`, `NoLedger`, `Conflict` (the
    transaction has read and can no longer write: begin it with BEGIN IMMEDIATE) and what the operation raises.
    """
    path, was_open = "", False
    # Before the first look: a caller's own factory would make something else of the name of a file.
    text_factory, connection.text_factory = connection.text_factory, str
    try:
        path = _file_of(connection)
        if ledger_path is not None and not _same_file(path, ledger_path):
            raise WrongLedger(
                f"the claim belongs to the ledger {ledger_path}, the connection is to {path or 'a database in memory'}"
            )
        was_open = _join(connection)
        try:
            return drive(operation, _answers(connection, path, ledger_id))
        finally:
            _keep_driver_in_step(connection)
    except sqlite3.Error as e:
        if "no such table: duly_" in str(e) or "no such table: main.duly_" in str(e):
            raise NoLedger(
                f"{path or 'this database'} holds no ledger; make one beforehand, once, with duly.sqlite({path!r})"
            ) from e
        raise translated(e, path=path, in_transaction=was_open) from e
    finally:
        connection.text_factory = text_factory
        operation.close()


def _file_of(connection: sqlite3.Connection) -> str:
    """The file of the main database; empty for one in memory. Takes no lock."""
    cursor = sqlite3.Cursor(connection)
    path = next((row[2] or "" for row in cursor.execute("pragma database_list") if row[1] == "main"), "")
    return os.path.realpath(path) if path else ""


def _same_file(path: str, ledger_path: str) -> bool:
    try:
        return os.path.samefile(path, ledger_path)
    except OSError:
        return False


def _join(connection: sqlite3.Connection) -> bool:
    """See to it that a transaction is open: the caller's, or the one its driver would begin at the first write.

    Answers whether it was open before. Raises `NoTransaction` where the driver commits each statement by itself.
    """
    if connection.in_transaction:
        return True
    mode = getattr(connection, "autocommit", None)  # from Python 3.12 on; -1 is the mode of old
    if mode is True or (mode is not False and connection.isolation_level is None):
        raise NoTransaction
    # A transaction that begins by reading may not become a writer later; under autocommit=False the driver assumes BEGIN.
    sqlite3.Cursor(connection).execute("begin" if mode is False else "begin immediate")
    return False


def _keep_driver_in_step(connection: sqlite3.Connection) -> None:
    """After a refusal has ended the transaction, a driver in autocommit=False still assumes that one is open."""
    if getattr(connection, "autocommit", None) is False and not connection.in_transaction:
        sqlite3.Cursor(connection).execute("begin")


def _answers(connection: sqlite3.Connection, path: str, ledger_id: str | None) -> Answers:
    """Answers on a caller's connection. A write comes first: whoever has read may be refused when it wants to write."""
    cursor = sqlite3.Cursor(connection)
    cursor.execute("update main.duly_meta set value = value where name is null")
    facts = dict(cursor.execute("select name, value from main.duly_meta").fetchall())
    if int(facts["min_writer"]) > SCHEMA:
        raise LedgerTooNew
    if ledger_id not in (None, facts["ledger_id"]):  # another file was put in its place
        raise WrongLedger(f"{path} is not the ledger that the claim was made in")
    return Answers(connection, path, clock_by_hand=facts["clock"] == "hand")
