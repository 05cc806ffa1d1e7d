"""The transaction that a run owns on SQLite in an event loop: the connection of `sqlite`, through aiosqlite.

The guarded connection of `sqlite` does its work in the thread that aiosqlite has for it; the methods of aiosqlite that would
end the transaction or the connection are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

import aiosqlite

from duly.errors import TransactionOwned
from duly.store.owned.sqlite import OwnedTransaction as Owned

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.sqlite_async import AsyncSqliteStore

T = TypeVar("T")


class OwnedConnection(aiosqlite.Connection):
    """A connection whose transaction belongs to duly."""

    async def commit(self) -> None:
        raise TransactionOwned

    async def rollback(self) -> None:
        raise TransactionOwned("duly owns this transaction; raise an exception, and nothing of it is kept")

    async def close(self) -> None:
        raise TransactionOwned

    async def __aenter__(self) -> NoReturn:
        raise TransactionOwned


class OwnedTransaction:
    """A run's own connection: begun by `begin`, ended by `complete`, `commit` or `abandon`. SQLite's is kept for the next run,
    which knows the schema then, and has its statements; aiosqlite's, and its thread, are of this run alone.
    """

    def __init__(self, owned: Owned, store: AsyncSqliteStore) -> None:
        self._owned = owned
        self._store = store
        self._connection = OwnedConnection(lambda: owned.connection, iter_chunk_size=64)
        # aiosqlite's, which runs from `begin` to the end and can be asked nothing outside of that.
        self._has_thread = False

    @property
    def connection(self) -> OwnedConnection:
        """The connection, for the run's effect."""
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._owned.is_open

    async def begin(self) -> OwnedConnection:
        """Begin the transaction. Raises `LedgerBusy` when its turn does not come."""
        await self._connect()
        try:
            await self._in_thread(self._owned.begin)
        except BaseException:
            await self._close()
            raise
        return self._connection

    async def _connect(self) -> None:
        _ = await self._connection  # it is itself what it answers
        self._has_thread = True

    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises."""
        if not self._has_thread:
            operation.close()
            raise TransactionOwned("this run is over: nothing can be written through its run.tx any more")
        return await self._in_thread(partial(self._owned.drive, operation))

    async def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        if not self._has_thread:
            return await self.drive(operation)  # which refuses
        try:
            return await self._in_thread(partial(self._owned.complete, operation))
        finally:
            await self._close()

    async def commit(self) -> None:
        """Commit the transaction."""
        try:
            await self._in_thread(self._owned.commit)
        finally:
            await self._close()

    async def abandon(self) -> None:
        """End the transaction and keep nothing of it; a no-op once it has ended, and before it has begun."""
        if self._has_thread:
            await self._in_thread(self._owned.abandon)
        await self._close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        result: T = await self._connection._execute(work)  # type: ignore[no-untyped-call]
        return result

    async def _close(self) -> None:
        self._has_thread = False
        with self._owned.connection.left_open():
            await aiosqlite.Connection.close(self._connection)
        await self._store.keep_owned(self._owned)
