"""A ledger made and migrated on SQLite: behind the writer lock, as every write of duly's."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from duly.errors import LedgerUnwritable, NoLedger
from duly.store.lock import WriterLock
from duly.store.migrations import BY_DULY, SQLITE, Step, failed, is_there, lacking, statements, steps
from duly.store.sqlite import BUSY_SECONDS, begin, commit, connect, facts_of, translated, while_busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


def create(
    path: str,
    *,
    busy_seconds: float = BUSY_SECONDS,
    clock: str = "system",
    by: str = BY_DULY,
    known: Sequence[Step] | None = None,
) -> dict[str, str]:
    """Make the ledger's tables in a file, and the file where there is none. Answers the ledger's facts.

    Two processes may try at once: the second finds what the first made. A database that was there before keeps its
    journal mode. `clock`: `system`, or `hand` for one that a test sets.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise LedgerUnwritable(
            f"there is no folder {folder} to make a ledger in; make it, or name another ledger",
            next_step=f"mkdir -p {quote(folder)}",
        )
    ours = not os.path.exists(path) or os.path.getsize(path) == 0
    if ours:
        # Nobody else's to read: it holds errors and reasons. It is made first, so that what SQLite and the lock put beside
        # it is for the same people. Where it cannot be made, connecting says so.
        with suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640))
    with _opened(path, busy_seconds) as door:
        if ours:
            door.make_wal()
        return door.write(lambda: _found(door.connection, path, clock, by, known or steps(SQLITE)))


def migrate(
    path: str, *, busy_seconds: float = BUSY_SECONDS, by: str = BY_DULY, known: Sequence[Step] | None = None
) -> list[Step]:
    """Apply what a ledger lacks, each step in a transaction of its own, and answer what was applied.

    Two at once share the work. Raises `NoLedger`, `MigrationDiffers`, `LedgerTooNew`, `LedgerUnwritable`, `LedgerBusy`.
    """
    _refuse_absent(path)
    applied: list[Step] = []
    with _opened(path, busy_seconds) as door:
        while step := door.write(lambda: _apply_next(door.connection, path, by, known or steps(SQLITE))):
            applied.append(step)
    return applied


def pending(path: str, *, busy_seconds: float = BUSY_SECONDS, known: Sequence[Step] | None = None) -> list[Step]:
    """What `migrate` would apply. Raises as it does."""
    _refuse_absent(path)
    with _opened(path, busy_seconds) as door:
        return while_busy(lambda: _missing(door.connection, path, known or steps(SQLITE)), seconds=busy_seconds)


def _found(connection: sqlite3.Connection, path: str, clock: str, by: str, known: Sequence[Step]) -> dict[str, str]:
    if not is_there(connection.execute, SQLITE):
        for step in known:
            _apply(connection, path, step, by)
        if clock == "hand":
            connection.execute("update duly_meta set value = 'hand' where name = 'clock'")
            connection.execute("insert into duly_clock (at) values (0)")
    return facts_of(connection, seconds=0)


def _apply_next(connection: sqlite3.Connection, path: str, by: str, known: Sequence[Step]) -> Step | None:
    lacking = _missing(connection, path, known)
    if not lacking:
        return None
    _apply(connection, path, lacking[0], by)
    return lacking[0]


def _missing(connection: sqlite3.Connection, path: str, known: Sequence[Step]) -> list[Step]:
    if not is_there(connection.execute, SQLITE):
        raise NoLedger(f"{path} is a database, but holds no ledger", next_step="duly db create")
    return lacking(connection.execute, known, ledger=path)


def _apply(connection: sqlite3.Connection, path: str, step: Step, by: str) -> None:
    try:
        for statement in statements(step, by=by):
            connection.execute(statement)
    except sqlite3.Error as e:
        if e.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):  # not a disk that is full
            raise failed(step, ledger=path, why=str(e)) from e
        raise


def _refuse_absent(path: str) -> None:
    if not os.path.exists(path):
        raise NoLedger(f"there is no ledger at {path}", next_step="duly db create")


class _Door:
    """A connection to the file, with its writer lock."""

    def __init__(self, connection: sqlite3.Connection, lock: WriterLock, path: str, busy_seconds: float) -> None:
        self.connection = connection
        self._lock = lock
        self._path = path
        self._busy_seconds = busy_seconds

    def write(self, act: Callable[[], T]) -> T:
        """Do it in a transaction, and commit."""
        begin(self.connection, self._lock, path=self._path, seconds=self._busy_seconds)
        try:
            result = act()
            commit(self.connection, seconds=self._busy_seconds)
            return result
        finally:
            try:
                if self.connection.in_transaction:
                    self.connection.rollback()
            finally:
                self._lock.release()

    def make_wal(self) -> None:
        if self._lock.acquire(self._busy_seconds):
            try:
                while_busy(lambda: self.connection.execute("pragma journal_mode = wal"), seconds=self._busy_seconds)
            finally:
                self._lock.release()


@contextmanager
def _opened(path: str, busy_seconds: float) -> Iterator[_Door]:
    lock = WriterLock(path)
    try:
        with closing(_connect(path, busy_seconds)) as connection:
            yield _Door(connection, lock, path, busy_seconds)
    except sqlite3.Error as e:
        raise translated(e, path=path) from e
    finally:
        lock.close()


def _connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    try:
        return connect(path, seconds=busy_seconds)
    except sqlite3.OperationalError as e:
        folder = os.path.dirname(path)
        if e.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN and not os.path.exists(path):
            raise LedgerUnwritable(
                f"cannot make {path}: {folder} may not be written; name another ledger",
                next_step=f"ls -ld {quote(folder)}",
            ) from e
        raise
