"""A ledger that this user may read but not write, while nobody has it open.

In WAL mode even a reader needs the files `-wal` and `-shm`. They are there while a writer is; when the last one has gone,
a reader who may not make them in the ledger's folder is refused, though nothing could be at rest more than this file. It
is then read as immutable, and believed only if it has not changed meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote

from duly.errors import LedgerBusy, LedgerUnavailable, NoLedger
from duly.ledger.ask import drive
from duly.store.sqlite import Answers, SqliteStore, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from duly.ledger.ask import Operation

    T = TypeVar("T")


def open_to_read(path: str) -> SqliteStore | RestingLedger:
    """The ledger at a path, for operations that only look. Creates nothing. Raises as `SqliteStore`."""
    try:
        return SqliteStore(path, create=False)
    except NoLedger as e:
        folder = os.path.dirname(os.path.abspath(path))
        if os.path.isdir(folder) and not _may(folder, os.X_OK):
            raise LedgerUnavailable(f"{folder} may not be looked into, so nothing is known of a ledger there") from e
        raise
    except LedgerUnavailable:
        beside = os.path.dirname(os.path.abspath(path))
        if _may(beside, os.W_OK) or os.path.exists(f"{path}-wal") or not _may(path, os.R_OK):
            raise
        return RestingLedger(path)


def _may(path: str, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


class RestingLedger:
    """A ledger's file that nobody has open, read without a trace. Raises `LedgerBusy` where somebody opens it meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks."""
        seen = self._stamp()
        try:
            connection = sqlite3.connect(f"file:{quote(self.path)}?immutable=1", uri=True, isolation_level=None)
        except sqlite3.Error as e:
            raise translated(e, path=self.path) from e
        try:
            facts = dict(connection.execute("select name, value from duly_meta").fetchall())
            answers = Answers(connection, self.path, clock_by_hand=facts["clock"] == "hand")
            result = drive(operation, answers)
        except sqlite3.Error as e:
            raise translated(e, path=self.path) from e
        finally:
            connection.close()
            operation.close()
        if self._stamp() != seen:
            raise LedgerBusy(f"{self.path} was written while it was read; read it again")
        return result

    def now(self) -> int:
        """The ledger's instant."""
        from duly.ledger.ask import now

        return self.read(now())

    def stamp(self) -> str:
        """What is another as soon as something was committed."""
        from duly.store.stamp import stamp_of_file

        return stamp_of_file(self.path)

    def close(self) -> None:
        """Nothing is kept open."""

    def _stamp(self) -> tuple[int, int, int, bool]:
        stat = os.stat(self.path)
        return stat.st_ino, stat.st_size, stat.st_mtime_ns, os.path.exists(f"{self.path}-wal")
