"""A stage on SQLite: a file, and a copy of it in memory. One writer at a time, so what interleaves are whole transactions."""

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
        self._empty, self._kept = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
        self._reader.backup(self._empty)
        self._seats: dict[str, SqliteSeat] = {}

    def prepare(self, given: Callable[[Stage], T]) -> T:
        for seat in self._seats.values():
            seat.rollback()
        self._empty.backup(self._reader)
        made = given(self)
        self._reader.backup(self._kept)
        return made

    def restore(self) -> None:
        for seat in self._seats.values():
            seat.rollback()
        self._kept.backup(self._reader)

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
        for connection in (self._reader, self._empty, self._kept):
            connection.close()


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


def quick(path: str) -> sqlite3.Connection:
    """A connection that flushes nothing: no history survives its process."""
    connection = connect(path)
    connection.execute("pragma synchronous = off")
    return connection
