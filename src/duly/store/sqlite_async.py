"""The ledger on SQLite for an event loop: `sqlite`, in a thread of its own, since its files are waited for, not polled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from typing import TYPE_CHECKING, TypeVar

from duly.store import BUSY_SECONDS
from duly.store.owned.sqlite import OwnedTransaction as Owned
from duly.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.owned.aiosqlite import OwnedTransaction

T = TypeVar("T")

_KEPT = 8  # connections that wait for another run


def _thread() -> ThreadPoolExecutor:
    """One: the transactions of one process wait for each other anyway, and a connection belongs to its thread."""
    return ThreadPoolExecutor(1, thread_name_prefix="duly-ledger")


class AsyncSqliteStore:
    """One ledger in one SQLite file, used by the tasks of one event loop. As `SqliteStore`; `open` raises what that does."""

    def __init__(self, path: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self.busy_seconds = busy_seconds
        self.clock_by_hand = False
        self.ledger_id = self.namespace = ""
        self._pid = os.getpid()
        self._thread = _thread()
        self._store: SqliteStore | None = None
        self._free_owned: list[Owned] = []  # connections of runs that are over

    def __del__(self) -> None:
        self._close_owned()

    async def open(self) -> None:
        """Open the ledger, and make it if it is not there; again is a no-op."""
        if self._store is not None:
            return
        store = await self._in_thread(partial(SqliteStore, self.path, busy_seconds=self.busy_seconds))
        self.path, self.clock_by_hand = store.path, store.clock_by_hand
        self.ledger_id, self.namespace = store.ledger_id, store.namespace
        self._store = store

    @property
    def store(self) -> SqliteStore:
        """The store that the thread works on."""
        assert self._store is not None  # it was opened
        return self._store

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._pid != os.getpid():  # a forked child has no thread but the one that forked
            self._pid, self._thread = os.getpid(), _thread()
            self._close_owned()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit."""
        return await self._operate(operation, partial(self.store.read, operation))

    async def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself."""
        return await self._operate(operation, partial(self.store.glance, operation))

    async def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it, as `SqliteStore.write`."""
        write = partial(self.store.write, operation, durable=durable, busy_seconds=busy_seconds)
        return await self._operate(operation, write)

    claim_looks = False

    async def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """As `write`: there is no wire between."""
        return await self.write(claim, durable=durable)

    async def _operate(self, operation: Operation[T], work: Callable[[], T]) -> T:
        try:
            return await self._in_thread(work)
        finally:
            if getcoroutinestate(operation) == CORO_CREATED:  # cancelled before its turn in the thread came
                operation.close()

    async def now(self) -> int:
        """The ledger's instant."""
        return await self._in_thread(self.store.now) if self.clock_by_hand else self.store.now()

    async def owned(self) -> OwnedTransaction:
        """A transaction for a run's own effect: a connection of aiosqlite."""
        from duly.store.owned.aiosqlite import OwnedTransaction

        while self._free_owned:
            owned = self._free_owned.pop()
            if owned.is_fresh:
                return OwnedTransaction(owned, self)
            await asyncio.to_thread(owned.close)
        return OwnedTransaction(await asyncio.to_thread(Owned, self.store), self)

    async def keep_owned(self, owned: Owned) -> None:
        """Keep a connection for another run, whose run is over. One on which a run has failed is closed."""
        if owned.is_fresh and len(self._free_owned) < _KEPT:
            self._free_owned.append(owned)
        else:
            await asyncio.to_thread(owned.close)

    def _close_owned(self) -> None:
        while self._free_owned:
            self._free_owned.pop().close()

    def begin_pulse(self, attempt_id: bytes) -> int:
        """Show a pulse for an attempt; the answer is the descriptor that holds it, to be closed at its end."""
        return self.store.begin_pulse(attempt_id)

    async def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        from duly.store.borrowed import run_in_async

        return await run_in_async(tx, operation, self.store.origin)

    async def close(self) -> None:
        """Close the connections. The store may be used again."""
        await asyncio.to_thread(self._close_owned)
        if self._store is not None:
            await self._in_thread(self._store.close)
