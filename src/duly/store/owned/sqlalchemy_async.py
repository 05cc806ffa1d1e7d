"""A run's transaction through SQLAlchemy's asyncio: that of `sqlalchemy`, which its bridge runs beside the event loop.

An AsyncConnection and an AsyncSession do nothing themselves: what they are asked is done by a Connection or a Session that
stands behind them, in a greenlet that awaits the driver. So the owned ones of `sqlalchemy` stand behind the ones that are lent
here, and refuse what they refuse there. What would stop the event loop while it waits is done in a thread.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.util import concurrency

from duly.errors import Misuse, TransactionOwned
from duly.store.owned.library import Guard, OwnedThrough
from duly.store.owned.sqlalchemy import ALONE, OwnedConnection, ThroughSqlalchemy, guarded, owned_kind
from duly.store.owned.turns import PostgresTurn, SqliteTurn
from duly.store.sqlite_async import AsyncSqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiosqlite
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker

    from duly.ledger.ask import Operation
    from duly.store.owned.turns import Fetch
    from duly.store.typed_async import Kept

    Lend = Callable[[OwnedConnection], "AsyncConnection | AsyncSession"]

T = TypeVar("T")

in_greenlet = concurrency.greenlet_spawn  # runs a function that awaits by `await_`
await_: Any = getattr(concurrency, "await_", None) or concurrency.await_only  # its name before 2.1


# -- what is lent -------------------------------------------------------------------------------------------------------


class OwnedAsyncConnection(AsyncConnection):
    """An AsyncConnection whose transaction belongs to duly: an `OwnedConnection` stands behind it, and refuses."""

    async def start(self, is_ctxmanager: bool = False) -> NoReturn:  # `async with` begins with it
        raise TransactionOwned


class OwnedAsyncSession(AsyncSession):
    """An AsyncSession whose transaction belongs to duly: an `OwnedSession` stands behind it, and refuses."""

    async def __aenter__(self) -> NoReturn:
        raise TransactionOwned


def connections_of(engine: AsyncEngine) -> Lend:
    """What makes an AsyncConnection of an engine, of an owned connection of it."""
    return partial(OwnedAsyncConnection, engine)


def sessions_of(maker: async_sessionmaker[Any]) -> Lend:
    """What makes a session of a maker's class, with its settings, on an owned connection. Raises `Misuse`."""
    kind: type[AsyncSession] = type("OwnedAsyncSession", (OwnedAsyncSession, maker.class_), {})
    behind: Any = maker.kw.get("sync_session_class") or maker.class_.sync_session_class
    settings = {**maker.kw, **ALONE}
    if isinstance(behind, sessionmaker):  # which has events, as SQLAlchemy's manual shows
        behind, settings = behind.class_, {**behind.kw, **settings}
    if not isinstance(behind, type) or not issubclass(behind, Session):
        raise Misuse("source: the sync_session_class has to be a class of sessions or a sessionmaker")
    settings["sync_session_class"] = owned_kind(behind)

    def session_on(connection: OwnedConnection) -> AsyncSession:
        session = kind(**{**settings, "bind": AsyncConnection(maker.kw["bind"], connection)})
        guarded(session.sync_session, connection)  # type: ignore[arg-type]  # it is of that class
        return session

    return session_on


# -- turns --------------------------------------------------------------------------------------------------------------


class AsyncSqliteTurn(SqliteTurn):
    """The lock is waited for in a thread, and the transaction begun in the one that aiosqlite has."""

    def take(self) -> None:
        await_(self._taken_in_thread(super().take))

    async def _taken_in_thread(self, take: Callable[[], None]) -> None:
        # A thread of its own: where many wait, those of the loop would all be taken, and the one who has the lock want one.
        thread = ThreadPoolExecutor(1, thread_name_prefix="duly-turn")
        taking = thread.submit(take)
        thread.shutdown(wait=False)
        try:
            await asyncio.wrap_future(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda _: self.close())  # what comes too late is let go
            raise

    def begin(self, driver: aiosqlite.Connection, fetch: Fetch) -> None:  # type: ignore[override]
        # The one way that aiosqlite has for this is a method of its own.
        await_(driver._execute(partial(super().begin, driver._conn, fetch)))  # type: ignore[no-untyped-call]

    def is_open(self, driver: aiosqlite.Connection) -> bool:  # type: ignore[override]
        return driver._connection is not None and driver.in_transaction


class AsyncPostgresTurn(PostgresTurn):
    """What became of a COMMIT is looked up in a thread."""

    def judge(self, error: BaseException | None) -> Exception | None:
        found: Exception | None = await_(asyncio.to_thread(super().judge, error))
        return found


# -- the transaction ----------------------------------------------------------------------------------------------------


class OwnedTransaction:
    """A run's own transaction: begun by `begin`, ended by `complete`, `commit` or `abandon`."""

    def __init__(self, engine: AsyncEngine, lend: Lend, ledger: Kept) -> None:
        self._turn: AsyncSqliteTurn | AsyncPostgresTurn
        if isinstance(ledger, AsyncSqliteStore):
            self._turn, origin = AsyncSqliteTurn(ledger.store), ledger.store.origin
        else:
            self._turn, origin = AsyncPostgresTurn(ledger), ledger.origin
        self._lend = lend
        self._lent: AsyncConnection | AsyncSession | None = None
        guard = Guard(self._turn)
        library = ThroughSqlalchemy(engine.sync_engine, guard, self._turn, self._behind)
        self._owned = OwnedThrough(library, guard, self._turn, origin)

    def _behind(self, connection: OwnedConnection) -> Connection | Session:
        self._lent = self._lend(connection)
        return self._lent.sync_session if isinstance(self._lent, AsyncSession) else connection

    @property
    def connection(self) -> AsyncConnection | AsyncSession | None:
        """What the run's effect is written through; None before it has begun."""
        return self._lent

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._owned.is_open

    async def begin(self) -> AsyncConnection | AsyncSession | None:
        """Begin the transaction. Raises `LedgerBusy`, `LedgerTooNew`, `WrongLedger`, and what SQLAlchemy raises."""
        try:
            await in_greenlet(self._owned.begin)
        except BaseException:
            self._turn.close()
            raise
        return self._lent

    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises."""
        return await in_greenlet(self._owned.drive, operation)

    async def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            return await in_greenlet(self._owned.complete, operation)
        finally:
            self._turn.close()

    async def commit(self) -> None:
        """Commit the transaction. Raises `Conflict` where it was rolled back instead."""
        try:
            await in_greenlet(self._owned.commit)
        finally:
            self._turn.close()

    async def abandon(self) -> None:
        """End the transaction and keep nothing of it; a no-op once it has ended, and before it has begun."""
        await in_greenlet(self._owned.close)
