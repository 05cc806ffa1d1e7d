"""What each of the two databases wants of a borrowed operation, where SQLAlchemy or Django stands between it and duly.

Both libraries run any statement on either database and wrap the errors of the driver below. So here is the database: how a
statement is spelled, what the time is, whether a holder is alive, what an error means. How a statement is run is theirs.
"""

from __future__ import annotations

import os
import sqlite3
from time import time_ns
from typing import TYPE_CHECKING, Any, Protocol

from duly.errors import DulyError
from duly.ledger.ask import Ask, Statement
from duly.store.borrowed.sqlite import meaning_of as meaning_on_sqlite
from duly.store.lock import has_pulse, lock_path
from duly.store.postgres_sql import clock_sql, spell
from duly.store.sqlite import render
from duly.store.sqlstate import meaning_of as meaning_of_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duly.ledger.ask import Value


class Rows(Protocol):
    """What running a statement answers: a cursor, or what stands for one."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> Any: ...

    def close(self) -> None: ...


class Database(Protocol):
    """One of the two databases. Parameters in its texts are `:name`."""

    clock_by_hand: bool

    def spell(self, statement: Statement) -> str: ...

    def clock(self) -> int | str:
        """The instant, or the statement that asks for it."""

    def alive(self, attempt_id: bytes) -> bool | None: ...

    def meaning_of(self, error: BaseException | None) -> Exception | None:
        """What an error of the driver means; None for one that is ours, and has to be seen as it is."""


class OnPostgres:
    """PostgreSQL, by the name that its errors tell. The lease alone says whether a holder may be alive."""

    def __init__(self, name: str) -> None:
        self.clock_by_hand = False
        self._name = name

    def spell(self, statement: Statement) -> str:
        return spell(statement, clock_sql(self.clock_by_hand))

    def clock(self) -> str:
        return f"select {clock_sql(self.clock_by_hand)}"

    def alive(self, attempt_id: bytes) -> None:
        return None

    def meaning_of(self, error: BaseException | None) -> DulyError:
        state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or ""  # the latter is psycopg2's
        return meaning_of_state(state, name=self._name, kind=type(error).__name__)


class OnSqlite:
    """SQLite, by its file (empty: in memory). `was_open`: whether the transaction was there before the first statement."""

    def __init__(self, path: str, *, was_open: bool) -> None:
        self.clock_by_hand = False
        self.path = os.path.realpath(path) if path else ""
        self._was_open = was_open

    def spell(self, statement: Statement) -> str:
        sql, _ = render(statement)
        return sql

    def clock(self) -> int | str:
        return "select at from duly_clock" if self.clock_by_hand else time_ns() // 1000

    def alive(self, attempt_id: bytes) -> bool | None:
        # In memory whoever could hold it is this connection.
        return bool(self.path) and has_pulse(lock_path(self.path), attempt_id)

    def meaning_of(self, error: BaseException | None) -> Exception | None:
        if not isinstance(error, sqlite3.Error):
            return None
        meaning = meaning_on_sqlite(error, path=self.path, was_open=self._was_open)
        return None if meaning is error else meaning


class Answers:
    """Answers what an operation asks, through the function that runs a statement on the caller's connection.

    `refusal` is the error that the library makes of a violated constraint.
    """

    def __init__(
        self, database: Database, run: Callable[[str, Mapping[str, Value]], Rows], refusal: type[Exception]
    ) -> None:
        self._database = database
        self._run = run
        self._refusal = refusal

    def now(self) -> int:
        """The instant: of the database's host, or of the clock that a test set by hand."""
        clock = self._database.clock()
        if isinstance(clock, int):
            return clock
        ((instant,),) = self._run(clock, {}).fetchall()
        return int(instant)

    def __call__(self, ask: Ask) -> object:
        if ask.statement is None:
            return self.now() if ask.want == "now" else self._alive(ask)
        sql = self._database.spell(ask.statement)
        parameters = {**ask.parameters, "now": self.now()} if ":now" in sql else ask.parameters
        try:
            rows = self._run(sql, parameters)
        except self._refusal:
            if ask.statement.refuses is None:
                raise
            raise ask.statement.refuses from None
        return _wanted(ask.want, rows)

    def _alive(self, ask: Ask) -> bool | None:
        attempt_id = ask.parameters["attempt_id"]
        assert isinstance(attempt_id, bytes)
        return self._database.alive(attempt_id)


def _wanted(want: str, rows: Rows) -> object:
    try:
        if want in ("count", "do"):
            return rows.rowcount
        if want == "one":
            row = rows.fetchone()
            return None if row is None else _plain(row)
        return [_plain(row) for row in rows.fetchall()]
    finally:
        rows.close()  # an unfinished cursor would keep its read, and with it SQLite's WAL, open


def _plain(row: Any) -> tuple[Any, ...]:
    """A row as the other drivers give it: psycopg2 shows bytes as a memoryview."""
    return tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
