"""The ledger on PostgreSQL: connections, transactions, and the answers to what an operation asks.

A write is a transaction at READ COMMITTED, so that a look after a write sees what rivals have committed; the guards of the
statements decide, row locks only order who waits. All locks end with their transaction, so that a pooler in transaction
mode may stand between. The lease alone says whether a holder may be alive: processes of other hosts cannot be looked at.
"""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar, cast

import psycopg

from duly.errors import DulyError, LedgerTooNew
from duly.ledger.ask import Ask, Statement, drive
from duly.store import BUSY_SECONDS, SCHEMA, VERSION_LOCK, refuse_other_versions
from duly.store.postgres_sql import as_pyformat, clock_sql, spell
from duly.store.sqlstate import meaning_of

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin
    from duly.store.owned.postgres import OwnedTransaction

T = TypeVar("T")


# A ledger may be migrated under a running process. The lock is taken first, so that the look is after it.
_MAY_WRITE = (
    f"select pg_advisory_xact_lock_shared({VERSION_LOCK}); select value from duly.meta where name = 'min_writer'"
)


def redacted(url: str) -> str:
    """A ledger's URL without its password."""
    return re.sub(r"(?<=://)([^:@/]*):[^@/]*@", r"\1:…@", url)


def translated(error: psycopg.Error, *, name: str) -> DulyError:
    """What an error of psycopg means for the ledger of this name."""
    return meaning_of(error.sqlstate or "", name=name, kind=type(error).__name__)


# -- answering ----------------------------------------------------------------------------------------------------------


class Answers:
    """Answers what an operation asks on one connection, inside whatever transaction that is in."""

    def __init__(self, connection: psycopg.Connection[Any], *, clock_by_hand: bool = False) -> None:
        self._connection = connection
        self.clock_by_hand = clock_by_hand

    def now(self) -> int:
        """The instant by the database's clock, or by the one that a test set by hand."""
        row = self._cursor().execute(trusted(f"select {clock_sql(self.clock_by_hand)}")).fetchone()
        assert row is not None
        instant: int = row[0]
        return instant

    def _cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        # A caller's row factory is none of our rows' business.
        return psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row)

    def __call__(self, ask: Ask) -> object:
        if ask.statement is None:
            return self.now() if ask.want == "now" else False
        cursor = self._cursor()
        try:
            cursor.execute(render(ask.statement, clock_sql(self.clock_by_hand)), ask.parameters)
        except psycopg.IntegrityError:
            if ask.statement.refuses is None:
                raise
            raise ask.statement.refuses from None
        if ask.want == "one":
            return cursor.fetchone()
        return cursor.rowcount if ask.want == "count" else cursor.fetchall()


_rendered: dict[tuple[Statement, str], LiteralString] = {}


def render(statement: Statement, clock: str) -> LiteralString:
    """A statement's text for psycopg."""
    ready = _rendered.get((statement, clock))
    if ready is None:
        ready = _rendered[statement, clock] = trusted(as_pyformat(spell(statement, clock)))
    return ready


def trusted(sql: str) -> LiteralString:
    """SQL that is put together from constants of ours; every value is bound."""
    return cast(LiteralString, sql)  # type: ignore[redundant-cast]  # to mypy LiteralString is str; to others it is not


def beginning(busy_seconds: float, *, durable: bool = True) -> str:
    """What begins a transaction that writes; `busy_seconds` is how long each of its statements waits for a lock.

    Set explicitly: a role's defaults may be otherwise. Without `durable` the commit is not flushed. `refuse_newer` reads the
    answer.
    """
    begin = f"begin isolation level read committed; set local lock_timeout = {int(busy_seconds * 1000)}"
    flush = "" if durable else "set local synchronous_commit = off; "
    return f"{begin}; {flush}{_MAY_WRITE}"


def refuse_newer(begun: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> None:
    """Raise `LedgerTooNew` where a transaction that writes has begun in a ledger that this release may only read."""
    while begun.nextset():
        pass
    found = begun.pgresult  # whatever rows the connection makes
    if found is not None and found.ntuples and int(found.get_value(0, 0) or 0) > SCHEMA:
        raise LedgerTooNew


# -- the store ----------------------------------------------------------------------------------------------------------


class PostgresStore:
    """One ledger in the schema duly of a PostgreSQL database. Each thread gets a connection of its own.

    `busy_seconds` is how long a statement waits for a lock before it raises `LedgerBusy`. Raises `NoLedger` (tables are
    made by `duly db create`, never implicitly), `LedgerUnavailable`, `LedgerTooNew` or `LedgerTooOld`.
    """

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.url = url
        self.path = redacted(url)
        self.busy_seconds = busy_seconds
        self._sessions = threading.local()
        try:
            facts = facts_of(self.session.connection)
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        refuse_other_versions(facts, name=self.path)
        self.ledger_id = facts["ledger_id"]
        self.namespace = facts["namespace"]
        self.clock_by_hand = facts["clock"] == "hand"
        self.session.answers = Answers(self.session.connection, clock_by_hand=self.clock_by_hand)

    clock_by_hand = False

    @property
    def session(self) -> Session:
        """This thread's session, opened when it is first asked for, anew in a forked child or when it is broken."""
        session: Session | None = getattr(self._sessions, "session", None)
        if session is None or session.pid != os.getpid() or session.connection.broken or session.connection.closed:
            session = self._sessions.session = Session(self.url, self.path, clock_by_hand=self.clock_by_hand)
        return session

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit to flush."""
        return self._run(operation, "begin isolation level repeatable read read only")

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it. Raises `LedgerBusy` when its turn does not come.

        Without `durable` the commit is not flushed: for what a later, flushed commit makes durable with it, and whose
        loss loses nothing.
        """
        return self._run(operation, beginning(busy_seconds or self.busy_seconds, durable=durable))

    def _run(self, operation: Operation[T], beginning: str) -> T:
        try:
            session = self.session
            connection = session.connection
            try:
                refuse_newer(connection.execute(trusted(beginning)))
                result = drive(operation, session.answers)
                connection.execute("commit")
            except BaseException:
                if not connection.broken:
                    connection.execute("rollback")
                raise
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        finally:
            operation.close()
        return result

    def owned(self) -> OwnedTransaction:
        """This thread's transaction for a run's own effect."""
        session = self.session
        if session.owned is None or session.owned.connection.closed:
            from duly.store.owned.postgres import OwnedTransaction

            session.owned = OwnedTransaction(self)
        return session.owned

    def begin_pulse(self, attempt_id: bytes) -> int:
        """No pulse: processes of other hosts cannot be looked at, the lease alone decides."""
        return -1

    def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        from duly.store.borrowed import run_in

        return run_in(tx, operation, self.origin)

    @property
    def origin(self) -> Origin:
        """The ledger, as a claim of it names it to a borrowed transaction."""
        from duly.store.borrowed import Origin

        return Origin(self.ledger_id, "", self.path)

    def now(self) -> int:
        """The ledger's instant."""
        try:
            return self.session.answers.now()
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e

    def close(self) -> None:
        """Close this thread's connections. The store may be used again."""
        session: Session | None = getattr(self._sessions, "session", None)
        if session is not None:
            session.close()
            del self._sessions.session


class Session:
    """One thread's connection to the ledger."""

    def __init__(self, url: str, name: str, *, clock_by_hand: bool) -> None:
        self.pid = os.getpid()
        self.owned: OwnedTransaction | None = None
        try:
            self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True, application_name="duly")
        except psycopg.Error as e:
            raise translated(e, name=name) from e
        self.answers = Answers(self.connection, clock_by_hand=clock_by_hand)

    def __del__(self) -> None:
        if self.pid == os.getpid() and hasattr(self, "connection"):
            self.close()

    def close(self) -> None:
        self.connection.close()
        if self.owned is not None:
            self.owned.close()
            self.owned = None


def facts_of(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The facts of a ledger: schema, min_writer, ledger_id, namespace, clock. Raises an error of psycopg without one."""
    cursor = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row)
    return dict(cursor.execute("select name, value from duly.meta").fetchall())
