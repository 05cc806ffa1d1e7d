"""A stage on PostgreSQL: a database with a copy of its rows, and a thread for each actor, which may have to wait for a lock.

Whether a statement waits is asked of the server: it alone knows. A deadlock is looked for after a millisecond, so that who
met one learns it at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Literal

from duly.errors import DulyError
from duly.ledger.ask import Ask, drive
from duly.redaction import shown_url
from duly.store.postgres import Answers, translated
from duly.store.talk import trusted
from duly.testing.clock import HandClock
from duly.testing.histories.points import Begin, Commit, Point, Rollback, Use, name_of
from duly.testing.histories.stage import MAKE_EFFECTS, START, Seat, Stage

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

T = TypeVar("T")

PATIENCE = 30  # seconds that a lock is waited for: in vain, if nobody saw that it is waited for
FIRST_LOOK = 0.001  # seconds until the server is asked whether a statement waits
TIDY_EACH = 100  # histories between two vacuums: each leaves dead rows

TABLES = """
select c.oid, n.nspname, c.relname
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'kept')
 order by n.nspname, c.relname
"""

POINTS_TO = "select conrelid, confrelid from pg_constraint where contype = 'f' and conrelid <> confrelid"

WAITS = "select pg_blocking_pids(%s) && %s::int[]"


class PostgresStage:
    """A ledger in an empty database that is given by its URL. `tables`: a script that makes the caller's own."""

    name = "postgres"
    one_writer = False
    sqlstates: tuple[str, ...] = ("40001", "40P01")

    def __init__(self, url: str, *, tables: str = "") -> None:
        self.ledger = url
        HandClock(url, at=START)
        self._reader = psycopg.connect(url, autocommit=True, application_name="duly histories")
        self._reader.execute("set synchronous_commit = off")
        self._reader.execute(trusted(f"{MAKE_EFFECTS.format(bytes='bytea')};{tables}"))
        self._answers = Answers(self._reader, clock_by_hand=True)
        self._seats: dict[str, PostgresSeat] = {}
        self._told = 0
        self._names = tables_in_order(self._reader)
        self._make_copies()

    def _make_copies(self) -> None:
        execute = self._reader.execute
        execute("create schema kept")
        for _, copy in self._names:
            execute(trusted(f"create unlogged table {copy} as table {_} with no data"))
        emptied = [f"delete from {table};" for table, _ in reversed(self._names)]
        filled = [f"insert into {table} select * from {copy};" for table, copy in self._names]
        kept = [f"delete from {copy}; insert into {copy} select * from {table};" for table, copy in self._names]
        for name, statements in (("restore", emptied + filled), ("keep", kept)):
            body = "\n".join(statements)
            execute(trusted(f"create function kept.{name}() returns void language plpgsql as $$ begin {body} end $$"))
        execute("select kept.keep()")
        self._empty = {copy: execute(trusted(f"table {copy}")).fetchall() for _, copy in self._names}

    def prepare(self, given: Callable[[Stage], T]) -> T:
        self._forget()
        self.restore()
        made = given(self)
        self._reader.execute("select kept.keep()")
        return made

    def _forget(self) -> None:
        """The copy is that of the empty ledger again."""
        for copy, rows in self._empty.items():
            self._reader.execute(trusted(f"delete from {copy}"))
            for row in rows:
                places = ", ".join(["%s"] * len(row))
                self._reader.execute(trusted(f"insert into {copy} values ({places})"), row)

    def restore(self) -> None:
        for seat in self._seats.values():
            seat.rollback()
        self._reader.execute("select kept.restore()")
        self._told += 1
        if self._told % TIDY_EACH == 0:
            self._reader.execute("vacuum")

    def seat(self, name: str) -> Seat:
        if name not in self._seats:
            self._seats[name] = PostgresSeat(self)
        return self._seats[name]

    def answer(self, ask: Ask) -> object:
        return self._answers(ask)

    def write(self, operation: Operation[T]) -> T:
        with self._reader.transaction():
            return drive(operation, self._answers)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._reader.execute(trusted(sql)).fetchall()

    def waits(self, pid: int) -> bool:
        """Whether a backend waits for a lock of another actor's."""
        others = [seat.pid for seat in self._seats.values() if seat.pid]
        row = self._reader.execute(WAITS, (pid, others)).fetchone()
        return row == (True,)

    def end_backend(self, pid: int) -> None:
        """Let a backend end, and wait until it has: its locks are free and its transaction never was."""
        self._reader.execute("select pg_terminate_backend(%s)", (pid,))
        while self._reader.execute("select 1 from pg_stat_activity where pid = %s", (pid,)).fetchone():
            sleep(FIRST_LOOK)

    def close(self) -> None:
        for seat in self._seats.values():
            seat.close()
        self._reader.close()


class PostgresSeat:
    """An actor's connection, with a thread for the statements that may have to wait."""

    def __init__(self, stage: PostgresStage) -> None:
        self._stage = stage
        self._connection: psycopg.Connection[Any] | None = None
        self._errands: SimpleQueue[Point | None] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[object, Exception | None]] = SimpleQueue()
        self._outcome: tuple[object, Exception | None] | None = (None, None)
        self.pid = 0
        self._thread = threading.Thread(target=self._run_errands, daemon=True)
        self._thread.start()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        assert self._connection is not None, "a transaction was to begin first"
        return self._connection

    def _connect(self) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._stage.ledger, autocommit=True, application_name="duly actor")
            self._connection.execute("set synchronous_commit = off")
            with suppress(psycopg.errors.InsufficientPrivilege):  # then a deadlock takes a second
                self._connection.execute("set deadlock_timeout = '1ms'")
            self._connection.execute(trusted(f"set lock_timeout = '{PATIENCE}s'"))
            self.pid = self._connection.info.backend_pid

    @property
    def in_transaction(self) -> bool:
        if self._connection is None or self._connection.closed:
            return False
        return self._connection.info.transaction_status != TransactionStatus.IDLE

    def start(self, point: Point, *, alone: bool) -> None:
        if not alone:
            self._outcome = None
            self._errands.put(point)
        else:
            self._outcome = self._attempt(point)

    def _run_errands(self) -> None:
        while (point := self._errands.get()) is not None:
            self._outcomes.put(self._attempt(point))

    def _attempt(self, point: Point) -> tuple[object, Exception | None]:
        try:
            return self._perform(point), None
        except psycopg.errors.LockNotAvailable:
            return None, RuntimeError(f"{name_of(point)} waited for a lock, and nobody was seen to hold it")
        except psycopg.Error as e:
            meaning = translated(e, name=shown_url(self._stage.ledger))
            meaning.__cause__ = e
            return None, meaning
        except DulyError as e:
            return None, e

    def _perform(self, point: Point) -> object:
        match point:
            case Ask():
                return Answers(self.connection, clock_by_hand=True)(point)
            case Begin(isolation=isolation):
                self._connect()  # a crash, or a refusal, may have closed the one before
                self.connection.execute(trusted(f"begin isolation level {isolation}"))
            case Commit():
                return self.connection.execute("commit").statusmessage == "COMMIT"
            case Rollback():
                self.rollback()
            case Use(act=act):
                return act(self.connection)
        return None

    def is_over(self) -> bool:
        while self._outcome is None:
            try:
                self._outcome = self._outcomes.get(timeout=FIRST_LOOK)
            except Empty:
                if self._stage.waits(self.pid):
                    return False
        return True

    def outcome(self) -> tuple[object, Exception | None]:
        assert self._outcome is not None
        if isinstance(self._outcome[1], RuntimeError):  # the kit's own: a history cannot go on from there
            raise self._outcome[1]
        return self._outcome

    def crash(self) -> None:
        if self._connection is not None and not self._connection.closed:
            self._stage.end_backend(self.pid)
        self._finish()
        if self._connection is not None:
            self._connection.close()

    def cancel(self) -> None:
        self.connection.cancel()
        self._finish()

    def fail(self, sqlstate: str) -> Exception:
        raising = SQL("do $$ begin raise exception using errcode = {}; end $$").format(Literal(sqlstate))
        try:
            self.connection.execute(raising)
        except psycopg.Error as e:
            return translated(e, name=shown_url(self._stage.ledger))
        raise AssertionError("an error was asked for, and none came")

    def rollback(self) -> None:
        if self._outcome is None and not self.is_over():
            self.cancel()
        if self.in_transaction and self._connection is not None:
            self._connection.execute("rollback")

    def _finish(self) -> None:
        if self._outcome is None:
            self._outcome = self._outcomes.get()

    def close(self) -> None:
        self.crash()
        self._errands.put(None)
        self._thread.join()


def tables_in_order(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """All tables with the names of their copies; each after those that it points to."""
    tables = {
        oid: (f'{schema}."{table}"', f'kept."{schema}_{table}"') for oid, schema, table in _all(connection, TABLES)
    }
    needs = {oid: {to for child, to in _all(connection, POINTS_TO) if child == oid} for oid in tables}
    ordered: list[int] = []
    while len(ordered) < len(tables):
        ready = [oid for oid in tables if oid not in ordered and needs[oid] <= set(ordered)]
        assert ready, "tables point at each other in a ring"
        ordered += ready
    return [tables[oid] for oid in ordered]


def _all(connection: psycopg.Connection[Any], query: str) -> list[Any]:
    return connection.execute(trusted(query)).fetchall()
