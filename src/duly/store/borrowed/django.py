"""A borrowed transaction of Django: the `atomic` block that a database connection is in.

No commit, no rollback, no savepoint of ours. A claim that is gone marks the block for rollback and closes the connection
under it, as Django does for one that breaks: the whole of the outermost block is lost, and Django connects again after it (I2).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import Error, IntegrityError

from duly.errors import ClaimLost, Conflict, Misuse, NoTransaction
from duly.ledger.ask import drive
from duly.store.borrowed.dialects import Answers, OnPostgres, OnSqlite
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.borrowed.sqlite import WRITE_FIRST, refuse_other_file
from duly.store.postgres_sql import as_pyformat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duly.ledger.ask import Operation, Value
    from duly.store.borrowed import DjangoConnection, Origin
    from duly.store.borrowed.dialects import Rows

T = TypeVar("T")


def in_borrowed(connection: DjangoConnection, operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the connection's `atomic` block. Raises as `run_in`."""
    check_transaction(connection)
    try:
        with _file_as_text(connection):
            return _drive(connection, operation, origin)
    except ClaimLost:
        _end(connection)
        raise


def _drive(connection: DjangoConnection, operation: Operation[T], origin: Origin | None) -> T:
    database = _database_of(connection)
    answers = Answers(database, partial(_run, connection), IntegrityError)
    with _meanings(database):
        if isinstance(database, OnSqlite):
            refuse_other_file(database.path, origin)
            _run(connection, WRITE_FIRST, {})
        database.clock_by_hand = clock_by_hand(answers(FACTS), origin)
        return drive(operation, answers)


def is_open(connection: DjangoConnection) -> bool:
    """Whether an `atomic` block is under way that may still commit."""
    return connection.in_atomic_block and not connection.needs_rollback


def check_transaction(connection: DjangoConnection) -> None:
    """Raise `NoTransaction` outside `atomic`, `Conflict` in a block that can only be rolled back."""
    if not connection.in_atomic_block:
        raise NoTransaction
    if connection.needs_rollback:
        raise Conflict("this transaction has failed already; leave its atomic block, and try the whole of it again")


def _database_of(connection: DjangoConnection) -> OnPostgres | OnSqlite:
    match connection.vendor:
        case "postgresql":
            return OnPostgres(
                f"{connection.settings_dict['NAME']} at {connection.settings_dict['HOST'] or 'localhost'}"
            )
        case "sqlite":
            return OnSqlite(_file_of(connection), was_open=True)
        case other:
            raise Misuse(f"tx: a ledger lies in PostgreSQL or SQLite, not in {other}")


def _file_of(connection: DjangoConnection) -> str:
    """The file of the main database; empty for one in memory. Takes no lock."""
    with connection.cursor() as cursor:
        cursor.execute("pragma database_list")
        return next((file or "" for _, name, file in cursor.fetchall() if name == "main"), "")


@contextmanager
def _file_as_text(connection: DjangoConnection) -> Iterator[None]:
    """Text of SQLite is `str` here: a caller's own factory would make something else of a name or a key."""
    if connection.vendor != "sqlite":
        yield
        return
    driver = connection.connection
    text_factory, driver.text_factory = driver.text_factory, str
    try:
        yield
    finally:
        driver.text_factory = text_factory


@contextmanager
def _meanings(database: OnPostgres | OnSqlite) -> Iterator[None]:
    """Errors of the driver, which Django wraps, are told as what they mean for the ledger."""
    try:
        yield
    except Error as e:
        meaning = database.meaning_of(e.__cause__)
        if meaning is None:
            raise
        raise meaning from e


def _end(connection: DjangoConnection) -> None:
    """See to it that nothing of a block whose claim is gone is committed, whoever takes the mark away again.

    A savepoint of PostgreSQL would survive its end; SQLite would commit what comes after it statement by statement. Django
    keeps the connection of a database in memory open, which would be gone with it.
    """
    connection.set_rollback(True)
    connection.close()


_pyformats: dict[str, str] = {}


def _run(connection: DjangoConnection, sql: str, parameters: Mapping[str, Value]) -> Rows:
    ready = _pyformats.get(sql)
    if ready is None:
        ready = _pyformats[sql] = as_pyformat(sql)
    cursor: Any = connection.cursor()
    cursor.execute(ready, parameters)
    rows: Rows = cursor
    return rows
