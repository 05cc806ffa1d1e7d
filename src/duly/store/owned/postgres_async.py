"""The transaction that a run owns on PostgreSQL in an event loop: as `postgres`, a real `psycopg.AsyncConnection`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import psycopg

from duly.errors import TransactionOwned
from duly.ledger.ask import drive_async
from duly.store.owned.postgres import CURRENT, refuse_ending, text_of
from duly.store.postgres import Begun, beginning, translated
from duly.store.postgres_async import AsyncAnswers, begin, commit

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.postgres_async import AsyncPostgresStore

T = TypeVar("T")


class OwnedCursor(psycopg.AsyncCursor[Any]):
    """A cursor that writes only while the run's transaction is open, and does not end it."""

    async def execute(self, query: Any, params: Any = None, **kwargs: Any) -> OwnedCursor:
        _owner(self).check(query)
        return await super().execute(query, params, **kwargs)

    async def executemany(self, query: Any, params_seq: Iterable[Any], **kwargs: Any) -> None:
        _owner(self).check(query)
        await super().executemany(query, params_seq, **kwargs)


def _owner(cursor: OwnedCursor) -> OwnedConnection:
    connection = cursor.connection
    assert isinstance(connection, OwnedConnection)
    return connection


class OwnedConnection(psycopg.AsyncConnection[Any]):
    """A connection whose transaction belongs to duly."""

    _open = False
    _owner_pid = 0

    def check(self, query: Any) -> None:
        """Raise `TransactionOwned` unless the run's transaction is open here, and the query leaves it so."""
        refuse_ending(self, text_of(self, query), is_open=self._open, owner_pid=self._owner_pid)

    async def commit(self) -> None:
        raise TransactionOwned

    async def rollback(self) -> None:
        raise TransactionOwned("duly owns this transaction; raise an exception, and nothing of it is kept")

    async def close(self) -> None:
        raise TransactionOwned

    async def __aenter__(self) -> NoReturn:
        raise TransactionOwned


class OwnedTransaction:
    """A run's own connection: begun by `begin`, ended by `complete` or `abandon`, then closed."""

    def __init__(self, connection: OwnedConnection, store: AsyncPostgresStore) -> None:
        self._past = store.past
        self._name = store.path
        self._busy_seconds = store.busy_seconds
        self._connection = connection
        self._answers = AsyncAnswers(connection, clock_by_hand=store.clock_by_hand)
        self._begun: Begun | None = None

    @classmethod
    async def open(cls, store: AsyncPostgresStore) -> OwnedTransaction:
        """A connection for one run. Raises `LedgerUnavailable`."""
        try:
            connection = await OwnedConnection.connect(
                store.url,
                autocommit=True,
                application_name="duly run",
                prepare_threshold=store.prepare_threshold,
                cursor_factory=OwnedCursor,
            )
        except psycopg.Error as e:
            raise translated(e, name=store.path) from e
        connection._owner_pid = os.getpid()
        return cls(connection, store)

    @property
    def connection(self) -> OwnedConnection:
        """The connection, for the run's effect."""
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._connection._open

    async def begin(self) -> OwnedConnection:
        """Begin the transaction."""
        try:
            self._begun = await begin(self._connection, beginning(self._busy_seconds), self._past)
        except psycopg.Error as e:
            await self.abandon()
            raise translated(e, name=self._name) from e
        except BaseException:
            await self.abandon()
            raise
        self._connection._open = True
        return self._connection

    async def commit(self) -> None:
        """Commit the transaction. Raises `Conflict` where it was rolled back instead."""
        try:
            await self._commit()
        finally:
            await self.abandon()

    async def _commit(self) -> None:
        assert self._begun is not None
        try:
            await commit(self._connection, self._past, self._begun)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e

    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises."""
        try:
            self._connection.check("")
            return await drive_async(operation, self._answers)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            operation.close()

    async def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            self._connection.check("")
            assert self._begun is not None
            if await self._current() != self._begun.xid:
                raise TransactionOwned("the run's transaction was ended and another one begun; nothing more is kept")
            result = await self.drive(operation)
            await self._commit()
            return result
        finally:
            operation.close()
            await self.abandon()

    async def abandon(self) -> None:
        """End the transaction, and keep nothing of it if it has not committed: the connection is closed at the driver."""
        self._connection._open = False
        self._connection.pgconn.finish()

    async def _current(self) -> str:
        try:
            cursor = psycopg.AsyncCursor(self._connection, row_factory=psycopg.rows.tuple_row)
            await cursor.execute(CURRENT)
            row = await cursor.fetchone()
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        assert row is not None
        return str(row[0])
