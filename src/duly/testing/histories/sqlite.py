"""A stage on SQLite: a file, and copies of it beside it. One writer at a time, so what interleaves are whole transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from duly.errors import DulyError
from duly.ledger.ask import Ask, drive
from duly.store.sqlite import Answers, connect, translated
from duly.testing.clock import HandClock
from duly.testing.histories.points import Begin, Commit, Point, Rollback, Use
from duly.testing.histories.stage import MAKE_EFFECTS, START, Seat, Stage

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

T = TypeVar("T")

TABLES = "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by rowid"


class SqliteStage:
    """A new ledger in a folder, which is best in memory. `tables`: a script that makes the caller's own."""

    name = "sqlite"
    one_writer = True
    sqlstates: tuple[str, ...] = ()

    def __init__(self, folder: str | os.PathLike[str], *, tables: str = "") -> None:
        self.ledger = os.path.join(folder, "histories.db")
        HandClock(self.ledger, at=START)
        self._reader = quick(self.ledger)
        self._reader.executescript(f"{MAKE_EFFECTS.format(bytes='blob')};{tables}")
        self._answers = Answers(self._reader, self.ledger, clock_by_hand=True)
        self._tables = [f'"{name}"' for (name,) in self.rows(TABLES)]
        self._copies = {copy: self._copied(copy) for copy in ("empty", "kept")}
        self._seats: dict[str, SqliteSeat] = {}

    def _copied(self, copy: str) -> list[str]:
        """Attach a copy of the ledger as it is now; the statements that put it back. Rows are put back, not the file, so that
        every connection keeps the statements that it has prepared: to prepare them takes longer than a history.
        """
        path = f"{self.ledger}.{copy}"
        self._reader.execute("vacuum into ?", (path,))
        self._reader.execute(f"attach ? as {copy}", (path,))
        return _rows_of(copy, "main", self._tables)

    def prepare(self, given: Callable[[Stage], T]) -> T:
        self._put_back("empty")
        made = given(self)
        self._perform(_rows_of("main", "kept", self._tables))
        return made

    def restore(self) -> None:
        self._put_back("kept")

    def _put_back(self, copy: str) -> None:
        for seat in self._seats.values():
            seat.rollback()
        self._perform(self._copies[copy])

    def _perform(self, statements: list[str]) -> None:
        for statement in statements:
            self._reader.execute(statement)

    def seat(self, name: str) -> Seat:
        if name not in self._seats:
            self._seats[name] = SqliteSeat(self.ledger)
        return self._seats[name]

    def answer(self, ask: Ask) -> object:
        return self._answers(ask)

    def write(self, operation: Operation[T]) -> T:
        self._reader.execute("begin immediate")
        try:
            answer = drive(operation, self._answers)
            self._reader.execute("commit")
            return answer
        finally:
            self._reader.rollback()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._reader.execute(sql).fetchall()

    def close(self) -> None:
        for seat in self._seats.values():
            seat.crash()
        self._reader.close()


class SqliteSeat:
    """An actor's connection to the file. Nothing waits: nobody begins while another has begun."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._outcome: tuple[object, Exception | None] = (None, None)

    @property
    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = quick(self._path)
        return self._connection

    @property
    def in_transaction(self) -> bool:
        return self._connection is not None and self._connection.in_transaction

    def start(self, point: Point, *, alone: bool) -> None:
        try:
            self._outcome = self._perform(point), None
        except sqlite3.Error as e:
            self._outcome = None, translated(e, path=self._path)
        except DulyError as e:
            self._outcome = None, e

    def _perform(self, point: Point) -> object:
        match point:
            case Ask():
                return Answers(self.connection, self._path, clock_by_hand=True)(point)
            case Begin():
                self.connection.execute("begin immediate")
            case Commit():
                self.connection.execute("commit")  # not commit(): where nothing is open, that says nothing
                return True
            case Rollback():
                self.rollback()
            case Use(act=act):
                return act(self.connection)
        return None

    def is_over(self) -> bool:
        return True

    def outcome(self) -> tuple[object, Exception | None]:
        return self._outcome

    def crash(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def cancel(self) -> None:
        raise AssertionError("nothing waits here")

    def fail(self, sqlstate: str) -> Exception:
        raise AssertionError("SQLite has no SQLSTATEs")

    def rollback(self) -> None:
        if self._connection is not None:
            self._connection.rollback()


def _rows_of(source: str, target: str, tables: list[str]) -> list[str]:
    """The statements that give all tables of one database the rows of another."""
    old = (f"delete from {target}.{name}" for name in tables)
    new = (f"insert into {target}.{name} select * from {source}.{name}" for name in tables)
    return ["begin immediate", *old, *new, "commit"]


def quick(path: str) -> sqlite3.Connection:
    """A connection that flushes nothing: no history survives its process."""
    connection = connect(path, cached_statements=1_000)
    connection.execute("pragma synchronous = off")
    return connection
