"""A clock set by hand, carried by the ledger.

A ledger made here has no other clock: leases, grace, retries and time-outs in every process that opens it follow it, so
that no test has to wait. Lock and busy time-outs stay real.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from duly.ledger.ask import Statement, count
from duly.times import parse_duration, parse_instant

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.protocol import Store

SET = Statement("set_clock", "update duly_clock set at = :at")

ADVANCE = Statement("advance_clock", "update duly_clock set at = at + :by")


class HandClock:
    """The clock of a ledger, which is made if it is not there: the path of a file, or the URL of a PostgreSQL database.

    Raises `ValueError` for a ledger with a real clock.
    """

    def __init__(self, ledger: str, *, at: str | int | None = None) -> None:
        self._store = _open(str(ledger))
        try:
            if not self._store.clock_by_hand:
                raise ValueError(f"{ledger} is a ledger with a clock of its own")
        finally:
            self._store.close()
        if at is not None:
            self.set(at)

    def now(self) -> int:
        """The instant it shows, in microseconds."""
        try:
            return self._store.now()
        finally:
            self._store.close()  # between two looks nobody is kept from the ledger

    def set(self, at: str | int) -> None:
        """Set it to an instant: microseconds, or ISO text with an offset or `Z`."""
        self._write(count(SET, at=parse_instant(at) if isinstance(at, str) else at))

    def advance(self, by: str | int) -> None:
        """Move it forward by a duration: microseconds, or text as `15m`."""
        self._write(count(ADVANCE, by=parse_duration(by) if isinstance(by, str) else by))

    def _write(self, operation: Operation[int]) -> None:
        try:
            self._store.write(operation)
        finally:
            self._store.close()


def _open(ledger: str) -> Store:
    if ledger.startswith(("postgresql://", "postgres://")):
        from duly.store.migrations import postgres
        from duly.store.postgres import PostgresStore

        postgres.create(ledger, clock="hand")
        return PostgresStore(ledger)
    from duly.store.migrations import sqlite
    from duly.store.sqlite import SqliteStore

    sqlite.create(os.path.abspath(ledger), clock="hand")
    return SqliteStore(ledger)
