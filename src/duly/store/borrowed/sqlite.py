"""Borrowed transactions: operations in a transaction that the caller began and will commit.

No commit and no rollback is issued here. No transaction, no completion: the marker would commit alone. That is checked
before the first statement, in each of the transaction modes of the sqlite3 module.
"""

from __future__ import annotations

import os
import sqlite3

from duly.errors import NoLedger, NoTransaction, WrongLedger
from duly.ledger.ask import drive
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.sqlite import Answers, cursor_of, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin

    T = TypeVar("T")


# Makes the transaction a writer before it has read anything, and changes nothing.
WRITE_FIRST = "update main.duly_meta set value = value where name is null"


def in_borrowed(connection: sqlite3.Connection, operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the connection's transaction. Raises as `run_in`.

    `Conflict` means that the transaction has read and can no longer write: begin it with BEGIN IMMEDIATE.
    """
    path, was_open = "", False
    # Before the first look: a caller's own factory would make something else of the name of a file.
    text_factory, connection.text_factory = connection.text_factory, str
    try:
        path = _file_of(connection)
        refuse_other_file(path, origin)
        was_open = _join(connection)
        try:
            return drive(operation, _answers(connection, path, origin))
        finally:
            _keep_driver_in_step(connection)
    except sqlite3.Error as e:
        raise meaning_of(e, path=path, was_open=was_open) from e
    finally:
        connection.text_factory = text_factory


def is_open(connection: sqlite3.Connection) -> bool:
    """Whether a transaction is under way."""
    return connection.in_transaction


def meaning_of(error: sqlite3.Error, *, path: str, was_open: bool) -> Exception:
    """What an error means for whoever lent the transaction, which was open before or not."""
    if "no such table: duly_" in str(error) or "no such table: main.duly_" in str(error):
        return NoLedger(
            f"{path or 'this database'} holds no ledger; make one beforehand, once, with duly.sqlite({path!r})"
        )
    return translated(error, path=path, in_transaction=was_open)


def _file_of(connection: sqlite3.Connection) -> str:
    """The file of the main database; empty for one in memory. Takes no lock."""
    cursor = cursor_of(connection)
    path = next((row[2] or "" for row in cursor.execute("pragma database_list") if row[1] == "main"), "")
    return os.path.realpath(path) if path else ""


def refuse_other_file(path: str, origin: Origin | None) -> None:
    """Raise `WrongLedger` where a claim came from another file than this one."""
    if origin is None:
        return
    try:
        same = os.path.samefile(path, origin.path)
    except OSError:
        same = False
    if not same:
        raise WrongLedger(
            f"the claim belongs to the ledger {origin.name}, the connection is to {path or 'a database in memory'}"
        )


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
    cursor_of(connection).execute("begin" if mode is False else "begin immediate")
    return False


def _keep_driver_in_step(connection: sqlite3.Connection) -> None:
    """After a refusal has ended the transaction, a driver in autocommit=False still assumes that one is open."""
    if getattr(connection, "autocommit", None) is False and not connection.in_transaction:
        cursor_of(connection).execute("begin")


def _answers(connection: sqlite3.Connection, path: str, origin: Origin | None) -> Answers:
    """Answers on a caller's connection. A write comes first: whoever has read may be refused when it wants to write."""
    cursor_of(connection).execute(WRITE_FIRST)
    answers = Answers(connection, path)
    answers.clock_by_hand = clock_by_hand(answers(FACTS), origin)
    return answers
