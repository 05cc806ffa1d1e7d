"""A run's transaction through SQLAlchemy: `run.tx` is a Connection of the user's engine, or a Session of their maker on one.

Each run takes a connection from the engine's pool and gives it back. Methods that would end the transaction are refused by
overriding them, so that it stays whole whoever swallows the refusal; a commit by another way (a transaction's own) is refused
by an event, before the driver sees it. A rollback by another way, as after a flush that failed, is let through: nothing of it
is kept, and nothing more can be written.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from duly.errors import Misuse, TransactionOwned
from duly.store.owned.library import ENDED, Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine, NestedTransaction, RootTransaction
    from sqlalchemy.orm import SessionTransaction, sessionmaker

    from duly.store.owned.turns import Turn

    Lend = Callable[["OwnedConnection"], "Connection | Session"]

ROLLBACK = "duly owns this transaction; raise an exception, and nothing of it is kept"


class OwnedConnection(Connection):
    """A connection whose transaction belongs to duly."""

    def __init__(self, engine: Engine, guard: Guard) -> None:
        self.guard = guard
        super().__init__(engine)
        event.listen(self, "commit", _refuse_commit)
        event.listen(self, "before_cursor_execute", _check_statement)

    def begin(self) -> RootTransaction:
        self.guard.refuse_end()
        return super().begin()

    def commit(self) -> None:
        self.guard.refuse_end()
        super().commit()

    def rollback(self) -> None:
        raise TransactionOwned(ROLLBACK)

    def close(self) -> None:
        self.guard.refuse_end()
        super().close()

    def __enter__(self) -> NoReturn:
        raise TransactionOwned


def _refuse_commit(connection: OwnedConnection) -> None:
    connection.guard.refuse_end()
    connection.guard.refuse_failed(connection.connection.driver_connection)  # a hook may have swallowed an error


def _check_statement(connection: OwnedConnection, cursor: Any, statement: str, *_: object) -> None:
    connection.guard.check(connection.connection.driver_connection, statement)


class OwnedSession(Session):
    """A session on an owned connection: what a session can do to its transaction is refused here, the rest there."""

    _guard: Guard

    def begin(self, nested: bool = False) -> SessionTransaction:
        if not nested:
            self._guard.refuse_end()
        return super().begin(nested)

    def commit(self) -> None:
        self._guard.refuse_end()
        super().commit()

    def rollback(self) -> None:
        raise TransactionOwned(ROLLBACK)

    def close(self) -> None:
        self._guard.refuse_end()
        super().close()

    def reset(self) -> None:
        self._guard.refuse_end()
        super().reset()

    def __enter__(self) -> NoReturn:
        raise TransactionOwned


def itself(connection: OwnedConnection) -> Connection:
    """A connection is lent as it is."""
    return connection


# The connection is the only database that a session has, and the session's end is the end of the connection's transaction.
ALONE = {"join_transaction_mode": "control_fully"}


def sessions_of(maker: sessionmaker[Any]) -> Lend:
    """What makes a session of a maker's class, with its settings, on an owned connection."""
    kind = owned_kind(maker.class_)

    def session_on(connection: OwnedConnection) -> Session:
        return guarded(kind(**{**maker.kw, **ALONE, "bind": connection}), connection)

    return session_on


def owned_kind(kind: type[Session]) -> type[OwnedSession]:
    """The class of those sessions of a user's class whose transaction belongs to duly."""
    return type("OwnedSession", (OwnedSession, kind), {})


def guarded(session: OwnedSession, connection: OwnedConnection) -> OwnedSession:
    """A session that was made on an owned connection, in its transaction."""
    session._guard = connection.guard
    event.listen(session, "after_begin", _refuse_others)
    session.connection()
    return session


def _refuse_others(session: Session, transaction: SessionTransaction, connection: Connection) -> None:
    if connection is not session.bind:
        raise Misuse(
            "run.tx: this session has another database besides the ledger's, which would not commit with the completion"
        )


class ThroughSqlalchemy:
    """Transactions on connections of an engine, lent as `lend` makes of them."""

    def __init__(self, engine: Engine, guard: Guard, turn: Turn, lend: Lend) -> None:
        self._engine = engine
        self._guard = guard
        self._turn = turn
        self._lend = lend
        self._connection: OwnedConnection | None = None
        self._root: RootTransaction | None = None
        self.lent: Connection | Session | None = None

    @property
    def driver(self) -> Any:
        return self._owned.connection.driver_connection

    @property
    def _owned(self) -> OwnedConnection:
        assert self._connection is not None  # it has begun
        return self._connection

    def begin(self) -> None:
        self._connection = OwnedConnection(self._engine, self._guard)
        self._root = self._connection.begin()
        self.lent = self._lend(self._connection)

    def fetch(self, sql: str) -> Any:
        return self._owned.exec_driver_sql(sql).fetchone()

    def refuse_ended(self) -> None:
        if self._root is None or not self._root.is_active or self._owned.invalidated:
            raise TransactionOwned(ENDED)

    def leave_savepoints(self) -> None:
        if isinstance(self.lent, Session):
            while (inner := self.lent.get_nested_transaction()) is not None:
                inner.commit()
        savepoint: NestedTransaction | None
        while (savepoint := self._owned.get_nested_transaction()) is not None:
            savepoint.commit()

    def commit(self) -> None:
        assert self.lent is not None  # it has begun
        self.lent.commit()

    def drop(self) -> None:
        connection, self._connection, self._root = self._connection, None, None
        lent, self.lent = self.lent, None
        if connection is None:
            return
        try:
            with suppress(SQLAlchemyError, OSError):  # it is broken, or another task is in the midst of a statement
                if isinstance(lent, Session):
                    lent.close()
            with suppress(SQLAlchemyError, OSError):
                if (root := connection.get_transaction()) is not None:
                    root.close()
        finally:
            self._discard_if_open(connection)
            connection.close()

    def _discard_if_open(self, connection: OwnedConnection) -> None:
        """SQLAlchemy's pool may take a connection back that was not rolled back, and give it to whoever comes next."""
        if connection.closed or connection.invalidated:
            return
        driver = connection.connection.driver_connection
        if self._turn.is_open(driver):
            self._turn.discard(driver)
            connection.invalidate()

    def cause_of(self, error: Exception) -> BaseException | None:
        return error.orig if isinstance(error, DBAPIError) else None
