"""Reading: the one way in which a page comes to the ledger. A page gives an operation, and never a store: nothing that a page
does can write.

Few threads look, so that many readers of the dashboard are no more to the ledger than few. A file is opened anew for each
look: one that was moved, restored or made in the meantime is then seen as it is. A server's connection is kept by its thread,
and made anew when it was lost.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from duly.errors import LedgerBusy, LedgerUnavailable
from duly.store import without_psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    from duly.ledger.ask import Operation
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger

    T = TypeVar("T")
    Open: TypeAlias = Callable[[], Store | RestingLedger]

THREADS = 4
PATIENCE_SECONDS = 30.0


class Reader:
    """Looks into one ledger, in threads of its own. `keeps`: whether a thread goes on with the connection that it has."""

    def __init__(self, open_ledger: Open, *, keeps: bool, threads: int = THREADS) -> None:
        self._open = open_ledger
        self._keeps = keeps
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="duly-web")
        self._here = threading.local()
        self._threads = threads
        self._resting: Store | RestingLedger | None = None  # names the file; nothing of it is open

    async def within(self, work: Callable[[Looker], T]) -> T:
        """Do some work in one of the threads, with something to look with. Raises `LedgerBusy` where that takes too long."""
        working = asyncio.get_running_loop().run_in_executor(self._pool, self._work, work)
        try:
            return await asyncio.wait_for(working, PATIENCE_SECONDS)
        except TimeoutError as e:
            raise LedgerBusy(f"the ledger did not answer within {PATIENCE_SECONDS:.0f} s") from e

    def _work(self, work: Callable[[Looker], T]) -> T:
        return work(Looker(self))

    def look(self, operation: Callable[[], Operation[T]]) -> T:
        """Run an operation in one snapshot, in this thread."""
        return self.with_store(lambda store: store.read(operation()))

    def with_store(self, use: Callable[[Store | RestingLedger], T]) -> T:
        """Use the ledger, in this thread; once more, where a connection that was kept is lost."""
        if not self._keeps:
            store = self._open()
            try:
                return use(store)
            finally:
                store.close()
        if (kept := getattr(self._here, "store", None)) is not None:
            try:
                return use(kept)
            except LedgerUnavailable:
                self._forget()  # the server went away meanwhile; it may be back
        self._here.store = self._open()
        try:
            return use(self._here.store)
        except LedgerUnavailable:
            self._forget()
            raise

    async def stamp(self) -> str:
        """What is another as soon as something was committed to the ledger. Raises `DulyError`."""
        return await self.within(lambda looker: looker.stamp())

    def stamp_here(self) -> str:
        """The same, asked in this thread. Of a file it is known once and for all where it stands: it is not opened again."""
        if not self._keeps:
            if self._resting is None:
                resting = self._open()
                resting.close()
                self._resting = resting
            return self._resting.stamp()
        try:
            return self._kept().stamp()
        except LedgerUnavailable:
            self._forget()
            return self._kept().stamp()

    def _kept(self) -> Store | RestingLedger:
        if (kept := getattr(self._here, "store", None)) is None:
            kept = self._here.store = self._open()
        found: Store | RestingLedger = kept
        return found

    def _forget(self) -> None:
        store = self._here.__dict__.pop("store", None)
        if store is not None:
            store.close()

    def close(self) -> None:
        """Wait for those that look, and close what they keep."""
        together = threading.Barrier(self._threads)

        def leave() -> None:
            with suppress(threading.BrokenBarrierError):
                together.wait(timeout=5)  # each thread takes one of these
            self._forget()

        for _ in range(self._threads):
            self._pool.submit(leave)
        self._pool.shutdown()


class Looker:
    """What a page looks with."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, operation: Callable[[], Operation[T]]) -> T:
        """Run an operation in one snapshot."""
        return self._reader.look(operation)

    def stamp(self) -> str:
        """What is another as soon as something was committed to the ledger."""
        return self._reader.stamp_here()


def reader_of(url: str) -> Reader:
    """A reader of the ledger of a URL, `sqlite:///…`, `postgresql://…`, or a path. Opens nothing yet."""
    if not url.startswith(("postgresql://", "postgres://")):
        from duly.store.reader import open_to_read
        from duly.store.sqlite import ledger_path

        path = ledger_path(url)
        return Reader(lambda: open_to_read(path), keeps=False)
    return Reader(lambda: connected(url), keeps=True)


def connected(url: str) -> Store:
    """The ledger of a PostgreSQL URL. Raises `Misuse` where its driver is not installed."""
    try:
        from duly.store.postgres import PostgresStore
    except ImportError as e:
        raise without_psycopg() from e
    return PostgresStore(url)
