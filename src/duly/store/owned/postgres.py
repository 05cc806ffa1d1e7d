"""The transaction that a run owns on PostgreSQL: `run.tx`, a real `psycopg.Connection` that cannot end it.

It begins when it is first read and commits with the run's completion. Commit, rollback, close and `with` are refused by
overriding them, transaction statements by their first word; savepoints, and so `transaction()`, are allowed. Completion
looks whether the transaction is still the one that was begun, whatever a statement may have hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, LiteralString, NoReturn, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from duly.errors import ClaimLost, TransactionOwned
from duly.ledger.ask import drive
from duly.store.owned.words import ends_transaction
from duly.store.postgres import (
    Answers,
    Begun,
    beginning,
    begun,
    commit,
    is_refusal,
    settle,
    together,
    translated,
    trusted,
)

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.postgres import PostgresStore

T = TypeVar("T")

# Where the transaction is another one, the error ends that one too.
STILL_THE_SAME: LiteralString = "select 1 / (pg_current_xact_id() = %s::xid8)::int"
CURRENT: LiteralString = "select pg_current_xact_id()::text"


class OwnedCursor(psycopg.Cursor[Any]):
    """A cursor that writes only while the run's transaction is open, and does not end it."""

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> OwnedCursor:
        _owner(self).check(query)
        return super().execute(query, params, **kwargs)

    def executemany(self, query: Any, params_seq: Iterable[Any], **kwargs: Any) -> None:
        _owner(self).check(query)
        super().executemany(query, params_seq, **kwargs)


def _owner(cursor: OwnedCursor) -> OwnedConnection:
    connection = cursor.connection
    assert isinstance(connection, OwnedConnection)
    return connection


class OwnedConnection(psycopg.Connection[Any]):
    """A connection whose transaction belongs to duly."""

    _open = False
    _owner_pid = 0

    def check(self, query: Any) -> None:
        """Raise `TransactionOwned` unless the run's transaction is open here, and the query leaves it so."""
        refuse_ending(self, text_of(self, query), is_open=self._open, owner_pid=self._owner_pid)

    def commit(self) -> None:
        raise TransactionOwned

    def rollback(self) -> None:
        raise TransactionOwned("duly owns this transaction; raise an exception, and nothing of it is kept")

    def close(self) -> None:
        raise TransactionOwned

    def __enter__(self) -> NoReturn:
        raise TransactionOwned


def refuse_ending(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], text: str, *, is_open: bool, owner_pid: int
) -> None:
    """Raise `TransactionOwned` unless the run's transaction is open in this process, and the statement leaves it so."""
    if owner_pid != os.getpid():
        raise TransactionOwned("run.tx belongs to the process that forked this one")
    if not is_open:
        raise TransactionOwned("this run is over: nothing can be written through its run.tx any more")
    if connection.info.transaction_status == TransactionStatus.IDLE:
        raise TransactionOwned("the run's transaction has ended; nothing of it is kept. Stop")
    if ends_transaction(text):
        raise TransactionOwned


def text_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], query: Any) -> str:
    """The text of a query, in whichever of psycopg's forms it is."""
    if isinstance(query, sql.Composable):
        return query.as_string(connection)
    return query.decode(errors="replace") if isinstance(query, bytes) else str(query)


class OwnedTransaction:
    """A thread's owned connection: begun by `begin`, ended by `complete` or `abandon`, then ready for the next run."""

    def __init__(self, store: PostgresStore) -> None:
        self._past = store.past
        self._name = store.path
        self._busy_seconds = store.busy_seconds
        try:
            connection = OwnedConnection.connect(
                store.url,
                autocommit=True,
                application_name="duly run",
                prepare_threshold=store.prepare_threshold,
                cursor_factory=OwnedCursor,
            )
        except psycopg.Error as e:
            raise translated(e, name=store.path) from e
        connection._owner_pid = os.getpid()
        self._connection = connection
        self._answers = Answers(connection, clock_by_hand=store.clock_by_hand)
        self._begun: Begun | None = None

    @property
    def connection(self) -> OwnedConnection:
        """The connection, for the run's effect."""
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._connection._open

    def begin(self) -> OwnedConnection:
        """Begin the transaction. Raises `LedgerTooNew`."""
        if self._connection._open:
            raise TransactionOwned("this thread's run.tx is open for another run; complete that one first")
        try:
            before = self._past.mark()
            self._begun = begun(self._ours(beginning(self._busy_seconds)), self._past, before)
        except BaseException:
            self.abandon()
            raise
        self._connection._open = True
        return self._connection

    def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises."""
        try:
            self._connection.check("")
            return drive(operation, self._answers)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            operation.close()

    def commit(self) -> None:
        """Commit the transaction, and be ready for the next run. Raises `Conflict` where it was rolled back instead."""
        assert self._begun is not None
        try:
            commit(self._cursor(), self._past, self._begun)
        except psycopg.IntegrityError:  # a constraint of the user's, judged here
            raise
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            self.abandon()

    def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            self._connection.check("")
            assert self._begun is not None
            return self._complete(operation, self._begun)
        finally:
            operation.close()
            self.abandon()

    def _complete(self, operation: Operation[T], began: Begun) -> T:
        """The look whether it is still the same transaction, the completion and the COMMIT, sent together: one wait.

        An error of an earlier one ends the transaction, and the COMMIT behind it is skipped (I2).
        """
        sent: list[T] = []
        try:
            with together(self._connection):
                self._cursor().execute(STILL_THE_SAME, (began.xid,))
                sent.append(drive(operation, self._answers))
                self._cursor().execute("commit")
        except psycopg.errors.DivisionByZero as e:
            raise TransactionOwned("the run's transaction was ended and another one begun; nothing more is kept") from e
        except psycopg.IntegrityError as e:
            if is_refusal(e):  # else it is a constraint of the user's, looked at when the effect commits
                raise ClaimLost from None
            raise
        except psycopg.Error as e:
            if not sent:
                raise translated(e, name=self._name) from e
            self._settle(began, e)
        self._past.committed(began)
        return sent[0]

    def _settle(self, began: Begun, error: psycopg.Error) -> None:
        try:
            settle(self._connection, self._past, began, error)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e

    def abandon(self) -> None:
        """End the transaction and keep nothing of it; a no-op once it has committed."""
        if self._connection._owner_pid != os.getpid():  # a fork has the connection too, and not the transaction
            return
        self._connection._open = False
        usable = not self._connection.closed and not self._connection.broken
        if usable and self._connection.info.transaction_status != TransactionStatus.IDLE:
            self._ours("rollback")

    def close(self) -> None:
        """Close the connection."""
        psycopg.Connection.close(self._connection)

    def _ours(self, statement: str) -> psycopg.Cursor[Any]:
        """A statement of duly's own, which no cursor class looks at."""
        try:
            return self._cursor().execute(trusted(statement))
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e

    def _cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        # A run's row factory is none of our rows' business.
        return psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row)

    def _current(self) -> str:
        try:
            row = self._cursor().execute(CURRENT).fetchone()
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        assert row is not None
        return str(row[0])
