"""Turns: what each database wants of a run's transaction that another library begins and commits.

SQLAlchemy and Django speak to either database in one voice. So here is what they do not do: on SQLite, wait behind the
writer lock, as duly's own writers do, and begin as a writer; on PostgreSQL, note the transaction's id, which tells what
became of it where the reply to its COMMIT is lost. A turn is one thread's, and is used for one run after the other.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from duly.errors import Conflict, LedgerBusy, Misuse
from duly.store.lock import WriterLock
from duly.store.owned.words import ends_transaction, statement_ends_transaction
from duly.store.sqlstate import INTEGRITY, leaves_open, meaning_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from duly.store.postgres import Begun, PostgresStore
    from duly.store.postgres_async import AsyncPostgresStore
    from duly.store.sqlite import SqliteStore

    Fetch = Callable[[str], Any]  # runs a statement in the transaction, and answers its first row


class Turn(Protocol):
    """One run's turn to write, from before its transaction begins until after it has ended."""

    def take(self) -> None:
        """Wait until this thread may write. Raises `LedgerBusy`."""

    def begin(self, driver: Any, fetch: Fetch) -> None:
        """Make the transaction that the library has begun one that writes. Raises `LedgerBusy`, `LedgerTooNew`, `Misuse`."""

    def is_open(self, driver: Any) -> bool:
        """Whether the driver is in a transaction. Asks nothing of the database."""

    def has_failed(self, driver: Any) -> bool:
        """Whether a COMMIT would keep nothing, and say so to nobody. Asks nothing of the database."""

    def is_same(self, fetch: Fetch) -> bool:
        """Whether the transaction is still the one that was begun."""

    def ends(self, sql: str) -> bool:
        """Whether a text would end or begin a transaction."""

    def meaning_of(self, error: BaseException | None) -> Exception | None:
        """What an error of the driver means for the ledger; None for one that is the caller's own."""

    def judge(self, error: BaseException | None) -> Exception | None:
        """What an error of the driver at the COMMIT means; `Committed` where it has committed all the same.

        Raises `CommitUnknown` or `LedgerUnavailable` where that cannot be told.
        """

    def discard(self, driver: Any) -> None:
        """Close the driver's connection, whatever it is in the midst of: nothing that it wrote commits."""

    def committed(self) -> None:
        """The transaction has committed."""

    def give_up(self) -> None:
        """Let others write; again is a no-op."""

    def close(self) -> None:
        """Keep no descriptor."""


class Committed(Exception):
    """The reply to a COMMIT was lost, and the transaction has committed."""


class PostgresTurn:
    """Nobody waits before the database; a statement waits for a lock as long as the store says."""

    def __init__(self, store: PostgresStore | AsyncPostgresStore) -> None:
        self._store = store
        self._begun: Begun | None = None

    def take(self) -> None:
        pass

    def begin(self, driver: Any, fetch: Fetch) -> None:
        from duly.store.postgres import begun_of, begun_sql

        before = self._store.past.mark()
        seen = fetch(begun_sql(self._store.busy_seconds))
        self._begun = begun_of([tuple(seen)], self._store.past, before)

    def is_open(self, driver: Any) -> bool:
        if hasattr(driver, "is_in_transaction"):
            return bool(driver.is_in_transaction())  # asyncpg's
        return bool(driver.info.transaction_status != 0)  # idle, in libpq's words and so in those drivers' that use it

    def has_failed(self, driver: Any) -> bool:
        # In error, in libpq's words. asyncpg does not tell.
        return not hasattr(driver, "is_in_transaction") and bool(driver.info.transaction_status == 3)

    def is_same(self, fetch: Fetch) -> bool:
        (xid,) = fetch("select pg_current_xact_id()::text")
        return self._begun is not None and bool(xid == self._begun.xid)

    def ends(self, sql: str) -> bool:
        return ends_transaction(sql)

    def meaning_of(self, error: BaseException | None) -> Exception | None:
        state = _state_of(error)
        if state.startswith(INTEGRITY):
            return None
        return meaning_of(state, name=self._store.path, kind=type(error).__name__)

    def judge(self, error: BaseException | None) -> Exception | None:
        if not leaves_open(_state_of(error)):
            meaning = self.meaning_of(error)
            return meaning if isinstance(meaning, Conflict) else None  # a deferred trigger of the caller's, for one
        from duly.store.postgres import ROLLED_BACK, has_committed

        assert self._begun is not None  # what is committed was begun
        return Committed() if has_committed(self._store.past, self._begun) else Conflict(ROLLED_BACK)

    def discard(self, driver: Any) -> None:
        if hasattr(driver, "terminate"):
            driver.terminate()  # asyncpg's
        elif hasattr(driver, "pgconn"):
            driver.pgconn.finish()  # psycopg's, awaited or not
        else:
            driver.close()

    def committed(self) -> None:
        assert self._begun is not None
        self._store.past.committed(self._begun)

    def give_up(self) -> None:
        pass

    def close(self) -> None:
        pass


def _state_of(error: BaseException | None) -> str:
    state: str | None = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)  # the latter is psycopg2's
    return state or ""


class SqliteTurn:
    """Writers queue behind the file lock; whoever holds it begins as a writer."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._lock = WriterLock(store.path)
        self._deadline = 0.0
        self._taken = False

    def take(self) -> None:
        self._deadline = monotonic() + self._store.busy_seconds
        if not self._lock.acquire(self._store.busy_seconds):
            raise LedgerBusy(
                f"the ledger {self._store.path} stayed busy for {self._store.busy_seconds:g} s; "
                "nothing was decided. Try again"
            )
        self._taken = True

    def begin(self, driver: sqlite3.Connection, fetch: Fetch) -> None:
        from sqlite3 import Error

        from duly.store.sqlite import refuse_newer, translated, while_busy

        if getattr(driver, "autocommit", None) is True:  # from Python 3.12 on
            raise Misuse(
                "run.tx: the connection was made with autocommit=True, under which its commit() keeps nothing; leave that out"
            )

        def write_first() -> object:
            # Who lets the library emit BEGIN has a transaction that has not read yet; others wait for their first write.
            if driver.in_transaction:
                return driver.execute("update main.duly_meta set value = value where name is null")
            return driver.execute("begin immediate")

        try:
            while_busy(write_first, seconds=self._deadline - monotonic())
            refuse_newer(driver)
        except Error as e:
            raise translated(e, path=self._store.path) from e

    def is_open(self, driver: sqlite3.Connection) -> bool:
        return driver.in_transaction

    def has_failed(self, driver: sqlite3.Connection) -> bool:
        return not driver.in_transaction

    def is_same(self, fetch: Fetch) -> bool:
        # Looked at before each statement, which therefore begins no other. SQLite gives a transaction no name: one that the
        # driver itself ended and began, behind the library's back, cannot be told from it.
        return True

    def ends(self, sql: str) -> bool:
        return statement_ends_transaction(sql)

    def meaning_of(self, error: BaseException | None) -> Exception | None:
        from sqlite3 import Error

        from duly.store.sqlite import translated

        if not isinstance(error, Error):
            return None
        meaning = translated(error, path=self._store.path)
        return None if meaning is error else meaning

    judge = meaning_of  # no reply can be lost on the way from a file

    def discard(self, driver: Any) -> None:
        pass  # the library closes it, in the thread that it belongs to

    def committed(self) -> None:
        pass

    def give_up(self) -> None:
        if self._taken:
            self._taken = False
            self._lock.release()

    def close(self) -> None:
        self._lock.close()
