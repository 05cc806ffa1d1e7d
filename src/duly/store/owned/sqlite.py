"""The transaction that a run owns: `run.tx`, a real `sqlite3.Connection` that cannot end it.

It begins when it is first read, behind the writer lock, and commits with the run's completion. Commit, rollback, close,
`with` and transaction statements are refused: the methods by overriding them, the statements by an authorizer that stays
installed and asks whose step it is. No statement of a run is cached, for a cached one is not authorised again; duly's own
are, on the same connection. When SQLite ends the transaction by itself (a failed `insert or rollback`, a full disk), or the
run is over, nothing more can be written.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from threading import get_ident
from weakref import WeakSet

from duly.errors import TransactionOwned
from duly.ledger.ask import drive
from duly.store.lock import WriterLock
from duly.store.sqlite import Answers, begin, commit, connect, file_at, refuse_moved, refuse_newer, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, NoReturn, TypeVar

    from duly.ledger.ask import Operation
    from duly.store.sqlite import SqliteStore

    T = TypeVar("T")


_MAKING_TEMPORARY = frozenset(
    (sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_CREATE_TEMP_VIEW, sqlite3.SQLITE_CREATE_TEMP_TRIGGER)
)


class OwnedCursor(sqlite3.Cursor):
    """A cursor that writes only while the run's transaction is open."""

    def execute(self, sql: str, parameters: Any = (), /) -> OwnedCursor:
        self.connection.check_open()  # type: ignore[attr-defined]  # it is an OwnedConnection
        try:
            return super().execute(sql, parameters)
        except sqlite3.DatabaseError as e:
            raise _explained(e) from e

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> OwnedCursor:
        try:
            return super().executemany(sql, self._checked(parameters))
        except sqlite3.DatabaseError as e:
            raise _explained(e) from e

    def _checked(self, parameters: Iterable[Any]) -> Iterator[Any]:
        """The same, as long as the run's transaction is open: an iterator may outlive it."""
        self.connection.check_open()  # type: ignore[attr-defined]  # it is an OwnedConnection
        for each in parameters:
            self.connection.check_open()  # type: ignore[attr-defined]
            yield each

    def executescript(self, sql_script: str, /) -> NoReturn:
        raise TransactionOwned("executescript commits first; execute the statements one by one: duly commits them")


def _explained(error: sqlite3.DatabaseError) -> Exception:
    denied = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_AUTH
    return TransactionOwned() if denied else error


class OwnedConnection(sqlite3.Connection):
    """A connection whose transaction belongs to duly."""

    _lifted_by = 0  # the thread in which a step of duly's own is under way: others may use `run.tx` meanwhile
    _open = False
    _pid = 0
    disposed = False  # no run will use it any more
    _left_open = False  # who closes it is only through with it

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepared: dict[str, Any] = {}
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    @property
    def _ours(self) -> bool:
        return self._lifted_by == get_ident()

    def __call__(self, sql: str, /) -> Any:
        """The statement of a text, for a cursor. The module asks for it wherever it caches none itself."""
        if self._lifted_by != get_ident():
            return super().__call__(sql)
        statement = self._prepared.get(sql)
        if statement is None:
            statement = self._prepared[sql] = super().__call__(sql)
        return statement

    def check_open(self) -> None:
        """Raise `TransactionOwned` unless the run's transaction is open, in this process."""
        if self._pid != os.getpid():
            raise TransactionOwned(
                "run.tx belongs to the process that forked this one; SQLite's files would be damaged"
            )
        if not self._open:
            raise TransactionOwned("this run is over: nothing can be written through its run.tx any more")
        if not self.in_transaction and not self._ours:
            raise TransactionOwned("the run's transaction has ended by an error; nothing of it is kept. Stop")

    def cursor(self, factory: Any = OwnedCursor) -> Any:
        cursor = super().cursor(OwnedCursor if factory in (None, sqlite3.Cursor) else factory)
        self._cursors.add(cursor)
        return cursor

    def execute(self, sql: str, parameters: Any = (), /) -> OwnedCursor:
        cursor: OwnedCursor = self.cursor()
        return cursor.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> OwnedCursor:
        cursor: OwnedCursor = self.cursor()
        return cursor.executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> NoReturn:
        raise TransactionOwned("executescript commits first; execute the statements one by one: duly commits them")

    def commit(self) -> None:
        if not self._ours:
            raise TransactionOwned
        super().commit()

    def rollback(self) -> None:
        raise TransactionOwned("duly owns this transaction; raise an exception, and nothing of it is kept")

    def close(self) -> None:
        if self._left_open:
            return
        if not self.disposed:
            raise TransactionOwned
        self._prepared.clear()
        super().close()

    @contextmanager
    def left_open(self) -> Iterator[None]:
        """What stands before it, as aiosqlite does, may be closed meanwhile, and closes nothing else."""
        self._left_open = True
        try:
            yield
        finally:
            self._left_open = False

    def close_cursors(self) -> None:
        """Let go of what the run has read by half: it would keep the connection in the past, and the WAL from ending."""
        for cursor in list(self._cursors):
            with suppress(sqlite3.ProgrammingError):  # another thread is in the midst of it
                cursor.close()
        self._cursors.clear()

    @property
    def autocommit(self) -> bool | int:  # from Python 3.12 on
        return super().autocommit  # type: ignore[misc, no-any-return]

    @autocommit.setter
    def autocommit(self, mode: bool | int) -> None:
        raise TransactionOwned("the transaction mode of run.tx is duly's: it commits with the run's completion")

    def __enter__(self) -> NoReturn:
        raise TransactionOwned

    def set_authorizer(self, *_: object, **__: object) -> None:
        raise TransactionOwned("the authorizer of run.tx is duly's: it keeps the transaction whole")


# Of a process that forked this one: not even closed here, and kept from the collector, which would.
_forsaken: list[OwnedTransaction] = []


class OwnedTransaction:
    """A thread's owned connection: begun by `begin`, ended by `complete` or `abandon`, then ready for the next run."""

    def __init__(self, store: SqliteStore) -> None:
        self._path = store.path
        self._busy_seconds = store.busy_seconds
        self._lock = WriterLock(store.path)
        connection = connect(store.path, OwnedConnection, cached_statements=0, seconds=store.busy_seconds)
        assert isinstance(connection, OwnedConnection)
        self._connection = connection
        connection._pid = os.getpid()
        self._file = file_at(store.path)
        # A run that failed may have left the connection in any state (`pragma query_only`, a progress handler): how it ended
        # is written down on another, and the next run gets a new one.
        self.is_spent = False
        sqlite3.Connection.set_authorizer(self._connection, self._authorize)
        self._answers = Answers(self._connection, store.path, clock_by_hand=store.clock_by_hand)

    def _authorize(self, action: int, *names: str | None) -> int:
        connection = self._connection
        if connection._ours:
            return sqlite3.SQLITE_OK
        # Also for cursors that are not ours: outside of the run's transaction a statement would commit by itself.
        inside = connection._open and connection.in_transaction and connection._pid == os.getpid()
        if action in _MAKING_TEMPORARY and any(name is not None and name.lower().startswith("duly_") for name in names):
            return sqlite3.SQLITE_DENY  # it would stand before the ledger's own table
        return sqlite3.SQLITE_OK if inside and action != sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_DENY

    def lend(self, operation: Operation[T], act: Callable[[Operation[T], Answers, float], T], seconds: float) -> T:
        """Let the ledger use the connection for itself, between two runs."""
        connection = self._connection
        connection._lifted_by = get_ident()
        try:
            return act(operation, self._answers, seconds)
        finally:
            connection._lifted_by = 0

    @property
    def connection(self) -> OwnedConnection:
        """The connection, for the run's effect."""
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._connection._open

    def begin(self) -> OwnedConnection:
        """Begin the transaction. Raises `LedgerBusy` when its turn does not come, and `LedgerTooNew`."""
        connection = self._connection
        if connection._open:
            raise TransactionOwned("this thread's run.tx is open for another run; complete that one first")
        connection._lifted_by, connection._open = get_ident(), True
        try:
            begin(connection, self._lock, path=self._path, seconds=self._busy_seconds)
            refuse_moved(self._path, self._file)
            refuse_newer(connection)
        except BaseException as e:
            self.abandon()
            if isinstance(e, sqlite3.Error):
                raise translated(e, path=self._path) from e
            raise
        finally:
            connection._lifted_by = 0
        return connection

    def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises."""
        connection = self._connection
        try:
            connection.check_open()
            connection._lifted_by = get_ident()
            return drive(operation, self._answers)
        except sqlite3.Error as e:
            raise translated(e, path=self._path) from e
        finally:
            connection._lifted_by = 0
            operation.close()

    def commit(self) -> None:
        """Commit the transaction, and be ready for the next run."""
        try:
            self._connection._lifted_by = get_ident()
            commit(self._connection, seconds=self._busy_seconds)
            self._connection._open = False
        except sqlite3.Error as e:
            raise translated(e, path=self._path) from e
        finally:
            self.abandon()

    def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            result = self.drive(operation)
            self.commit()
        except BaseException:
            self.abandon()
            raise
        return result

    def abandon(self) -> None:
        """End the transaction and keep nothing of it; a no-op once it has committed."""
        connection = self._connection
        if connection._pid != os.getpid():  # a fork that rolled back would change the WAL's index under its parent
            return
        connection._lifted_by = get_ident()
        self.is_spent = self.is_spent or connection._open
        try:
            connection.set_progress_handler(None, 0)  # it could stop the rollback too
            connection.close_cursors()
            if connection.in_transaction:
                sqlite3.Connection.rollback(connection)
        finally:
            connection._lifted_by, connection._open = 0, False
            connection.row_factory, connection.text_factory = None, str  # whatever the run set
            self._lock.release()

    @property
    def is_fresh(self) -> bool:
        """Whether another run may have it: none has failed on it, and it was opened in this process."""
        return not self.is_spent and self._connection._pid == os.getpid()

    def close(self) -> None:
        """Close the connection. One that another process has opened is left alone: its files would be damaged."""
        if self._connection._pid != os.getpid():
            _forsaken.append(self)
            return
        self._connection.disposed = True
        self._connection.close()
        self._lock.close()
