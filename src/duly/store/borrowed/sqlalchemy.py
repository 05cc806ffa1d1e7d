"""A borrowed transaction of SQLAlchemy: a Connection's or a Session's, over whichever driver of PostgreSQL or SQLite.

Statements go through SQLAlchemy's own execution, so that its events, its log and its bridge to async drivers see them. No
commit, no rollback, no savepoint of ours. A Session is flushed first: what the caller did with its objects is in the database
before the guard. A claim that is gone invalidates the connection, so that SQLAlchemy refuses whatever would still be
committed of the transaction, from inside a savepoint too (I2).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import BigInteger, Connection, LargeBinary, String, TextClause, bindparam, text
from sqlalchemy.exc import DBAPIError, IntegrityError, PendingRollbackError, UnboundExecutionError
from sqlalchemy.orm import scoped_session
from sqlalchemy.types import NullType

from duly.errors import ClaimLost, Conflict, Misuse, NoTransaction
from duly.ledger.ask import drive
from duly.store.borrowed.dialects import Answers, OnPostgres, OnSqlite
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.borrowed.sqlite import WRITE_FIRST, refuse_other_file
from duly.store.postgres_sql import PARAMETER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy.engine import CursorResult
    from sqlalchemy.orm import Session
    from sqlalchemy.types import TypeEngine

    from duly.ledger.ask import Operation, Value
    from duly.store.borrowed import Origin

T = TypeVar("T")


def in_borrowed(tx: Connection | Session | scoped_session[Any], operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the transaction of a Connection or Session. Raises as `run_in`, and what a flush raises."""
    try:
        return _drive(tx() if isinstance(tx, scoped_session) else tx, operation, origin)
    except PendingRollbackError as e:
        raise Conflict("this transaction has failed already; roll back, and try the whole of it again") from e


def _drive(lent: Connection | Session, operation: Operation[T], origin: Origin | None) -> T:
    connection = _connection_of(lent)
    with _file_as_text(connection):
        database = _join(connection, origin)
        answers = Answers(database, partial(_run, connection), IntegrityError)
        with _meanings(database):
            if isinstance(database, OnSqlite):
                _run(connection, WRITE_FIRST, {})
            database.clock_by_hand = clock_by_hand(answers(FACTS), origin)
    if not isinstance(lent, Connection):
        lent.flush()
    try:
        with _file_as_text(connection), _meanings(database):
            return drive(operation, answers)
    except ClaimLost as lost:
        connection.invalidate(lost)
        raise


def is_open(tx: Connection | Session | scoped_session[Any]) -> bool:
    """Whether a transaction is under way."""
    lent = tx() if isinstance(tx, scoped_session) else tx
    return lent.in_transaction()


def _connection_of(lent: Connection | Session) -> Connection:
    """The connection, in a transaction: SQLAlchemy begins one at the first statement, and so it does here."""
    try:
        connection = lent if isinstance(lent, Connection) else lent.connection()
    except UnboundExecutionError as e:
        raise Misuse(
            "tx: this session has no database of its own; flush it, and give the connection of the one that holds the "
            "ledger, session.connection(bind_arguments=…)"
        ) from e
    if not connection.in_transaction():
        connection.begin()
    return connection


def _join(connection: Connection, origin: Origin | None) -> OnPostgres | OnSqlite:
    """The database, seen to have a transaction that the caller's commit will end. Raises `NoTransaction`."""
    match connection.dialect.name:
        case "postgresql":
            # PoolProxiedConnection.dbapi_connection is None only after it was given back.
            driver = connection.connection.dbapi_connection
            if driver is not None and connection.dialect.detect_autocommit_setting(driver):
                raise NoTransaction
            return OnPostgres(connection.engine.url.set(query={}).render_as_string(hide_password=True))
        case "sqlite":
            _refuse_lone_statements(connection)
            was_open = connection.connection.driver_connection.in_transaction  # type: ignore[union-attr]
            database = OnSqlite(_file_of(connection), was_open=was_open)
            refuse_other_file(database.path, origin)
            return database
        case other:
            raise Misuse(f"tx: a ledger lies in PostgreSQL or SQLite, not in {other}")


def _refuse_lone_statements(connection: Connection) -> None:
    """Raise `NoTransaction` where the driver of SQLite would not commit with the caller's transaction, but before it.

    In the modes of old the driver begins at the first write, and a savepoint before that is the whole transaction: its
    release commits. Whether a write came before the savepoint cannot be seen, so every savepoint is refused there.
    """
    driver: Any = connection.connection.driver_connection
    # From Python 3.12 on; aiosqlite keeps the connection that has it under another name.
    mode = getattr(driver, "autocommit", getattr(getattr(driver, "_conn", None), "autocommit", None))
    if mode is False:  # a transaction is always open
        return
    begins_none = mode is True or driver.isolation_level is None
    if begins_none and not driver.in_transaction:
        raise NoTransaction
    # Whoever lets the driver begin none begins by an event of SQLAlchemy; without that, AUTOCOMMIT was asked for.
    if connection.in_nested_transaction() and not (begins_none and connection.dispatch.begin):
        raise NoTransaction(
            "begin_nested() over this mode of sqlite3 may commit by itself; call this outside of the savepoint, or let "
            'SQLAlchemy emit BEGIN as "SQLite: Serializable isolation / Savepoints / Transactional DDL" in its manual says'
        )


def _file_of(connection: Connection) -> str:
    """The file of the main database; empty for one in memory. Takes no lock."""
    databases = connection.exec_driver_sql("pragma database_list").fetchall()
    return next((file or "" for _, name, file in databases if name == "main"), "")


@contextmanager
def _file_as_text(connection: Connection) -> Iterator[None]:
    """Text of SQLite is `str` here: a caller's own factory would make something else of a name or a key."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    text_factory, driver.text_factory = driver.text_factory, str
    try:
        yield
    finally:
        driver.text_factory = text_factory


@contextmanager
def _meanings(database: OnPostgres | OnSqlite) -> Iterator[None]:
    """Errors of the driver are told as what they mean for the ledger."""
    try:
        yield
    except DBAPIError as e:
        meaning = database.meaning_of(e.orig)
        if meaning is None:
            raise
        raise meaning from e


# -- statements ---------------------------------------------------------------------------------------------------------

# A server-side cursor, which a connection's own options may ask for, declares a query; an update is none.
_WHOLE = {"stream_results": False, "yield_per": None}

_texts: dict[tuple[str, tuple[type, ...]], TextClause] = {}


def _run(connection: Connection, sql: str, parameters: Mapping[str, Value]) -> CursorResult[Any]:
    return connection.execute(_text(sql, parameters), parameters, execution_options=_WHOLE)


def _text(sql: str, parameters: Mapping[str, Value]) -> TextClause:
    """The statement with its parameters typed by their values: asyncpg and psycopg bind on the server, which wants types."""
    kinds = tuple(map(type, parameters.values()))
    ready = _texts.get((sql, kinds))
    if ready is None:
        named = set(PARAMETER.findall(sql))
        typed = [bindparam(name, type_=_type_of(value)) for name, value in parameters.items() if name in named]
        ready = _texts[sql, kinds] = text(sql).bindparams(*typed)
    return ready


def _type_of(value: Value) -> TypeEngine[Any]:
    match value:
        case int():
            return BigInteger()
        case str():
            return String()
        case bytes():
            return LargeBinary()
        case None:
            return NullType()
