"""A clock set by hand, carried by the ledger.

A ledger made here has no other clock: leases, grace, retries and time-outs in every process that opens it follow it, so
that no test has to wait. Lock and busy time-outs stay real.
"""

from __future__ import annotations

import os

from duly.store.lock import WriterLock
from duly.store.migrations import create
from duly.store.sqlite import BUSY_SECONDS, begin, commit, connect, while_busy
from duly.times import parse_duration, parse_instant


class HandClock:
    """The clock of the ledger at a path, made if it is not there. Raises `ValueError` for a ledger with a real clock."""

    def __init__(self, path: str, *, at: str | int | None = None) -> None:
        self._path = os.path.abspath(path)
        facts = create(self._path, clock="hand")
        if facts["clock"] != "hand":
            raise ValueError(f"{path} is a ledger with a clock of its own")
        if at is not None:
            self.set(at)

    def now(self) -> int:
        """The instant it shows, in microseconds."""
        connection = connect(self._path)
        try:
            read = "select at from duly_clock"
            instant: int = while_busy(lambda: connection.execute(read).fetchone(), seconds=BUSY_SECONDS)[0]
        finally:
            connection.close()
        return instant

    def set(self, at: str | int) -> None:
        """Set it to an instant: microseconds, or ISO text with an offset or `Z`."""
        self._write("update duly_clock set at = ?", parse_instant(at) if isinstance(at, str) else at)

    def advance(self, by: str | int) -> None:
        """Move it forward by a duration: microseconds, or text as `15m`."""
        self._write("update duly_clock set at = at + ?", parse_duration(by) if isinstance(by, str) else by)

    def _write(self, sql: str, value: int) -> None:
        connection = connect(self._path)
        lock = WriterLock(self._path)
        try:
            begin(connection, lock, path=self._path, seconds=10)
            try:
                connection.execute(sql, (value,))
                commit(connection, seconds=10)
            finally:
                lock.release()
        finally:
            connection.close()
            lock.close()
