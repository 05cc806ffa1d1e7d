"""The transaction that a run owns on PostgreSQL: `run.tx`, a real `psycopg.Connection` that cannot end it.

It begins with the first statement, in one wait with it, and commits with the run's completion. Commit, rollback, close and
`with` are refused by overriding them, transaction statements by their first word; savepoints, and so `transaction()`, are
allowed. Completion looks whether the transaction is still the one that was begun, whatever a statement may have hidden.

The connection is not in psycopg's autocommit mode: a cursor that is not ours cannot write outside of a transaction either.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from duly.errors import ClaimLost, TransactionOwned
from duly.ledger.ask import drive
from duly.store.owned.words import ends_transaction, is_several
from duly.store.postgres import (
    ANOTHER_TRANSACTION,
    BEGIN,
    BEGUN,
    COMPLETE_AT_ONCE,
    Answers,
    Begun,
    ForgettableConnection,
    Mark,
    Past,
    answer_of,
    begun_of,
    begun_sql,
    commit,
    completion_of,
    give_up,
    is_refusal,
    millis,
    send,
    settle,
    together,
    translated,
)
from duly.store.talk import Talk, raise_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.ledger.ask import Ask, Operation
    from duly.store.postgres import PostgresStore
    from duly.store.talk import Sent

T = TypeVar("T")

ANOTHER = "the run's transaction was ended and another one begun; nothing more is kept"


class OwnedCursor(psycopg.Cursor[Any]):
    """A cursor that writes only while the run's transaction is open, and does not end it."""

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> OwnedCursor:
        connection = _owner(self)
        connection.check(query)
        if params is None and is_several(text_of(connection, query)):  # which cannot be sent with others
            connection.begin()
        if connection.is_begun:
            return super().execute(query, params, **kwargs)
        with connection.beginning():
            return super().execute(query, params, **kwargs)

    def executemany(self, query: Any, params_seq: Iterable[Any], **kwargs: Any) -> None:
        _owner(self).check(query)
        super().executemany(query, params_seq, **kwargs)

    def stream(self, query: Any, params: Any = None, **kwargs: Any) -> Iterator[Any]:
        connection = _owner(self)
        connection.check(query)
        connection.begin()
        try:
            yield from super().stream(query, params, **kwargs)
        finally:
            # What is sent together next would come row by row too (libpq leaves that mode at a query that is sent alone).
            if connection.info.transaction_status == TransactionStatus.INTRANS:
                psycopg.Cursor(connection).execute("")


def _owner(cursor: OwnedCursor) -> OwnedConnection:
    connection = cursor.connection
    assert isinstance(connection, OwnedConnection)
    return connection


class Ours:
    """What both kinds of connection know of the run's transaction."""

    _open = False
    _owner_pid = 0
    _begun: Begun | None = None
    _begins = 0  # how often a transaction was begun in this run
    _says_begin = False
    _past: Past
    _busy_seconds: float
    _name: str

    @property
    def is_begun(self) -> bool:
        """Whether the run's transaction has been begun, and it is known which it is."""
        return self._begun is not None

    @property
    def _is_idle(self: Any) -> bool:
        return bool(self.pgconn.transaction_status == TransactionStatus.IDLE)

    def check(self: Any, query: Any) -> None:
        """Raise `TransactionOwned` unless the run's transaction is open here, and the query leaves it so."""
        refuse_ending(self, text_of(self, query), is_open=self._open, owner_pid=self._owner_pid, is_begun=self.is_begun)

    def check_own(self: Any) -> None:
        """Raise `TransactionOwned` unless the transaction, if one is open, is the one that was begun for this run."""
        self.check("")
        if self._begins > 1:
            raise TransactionOwned(ANOTHER)

    def belong_to(self, past: Past, busy_seconds: float, name: str) -> None:
        """Be a new connection of this process."""
        self._owner_pid, self._past, self._busy_seconds, self._name = os.getpid(), past, busy_seconds, name

    def give_back(self) -> None:
        """Be no run's any more."""
        self._open, self._begun, self._begins = False, None, 0

    @contextmanager
    def _saying_begin(self) -> Iterator[None]:
        """Around a BEGIN of ours: psycopg would send one of its own before, and wait for the answer."""
        self._says_begin = True
        try:
            yield
        finally:
            self._says_begin = False

    def _start_query(self: Any) -> Any:  # what every cursor of psycopg, copy and transaction() do first
        if not self._is_idle:
            return
        self._begins += 1
        if self._says_begin:
            return
        # A cursor that is not ours comes first: psycopg says BEGIN for it, and waits.
        if not self._open or self._owner_pid != os.getpid():
            raise TransactionOwned("this run is over, or another process's: nothing can be written through its run.tx")
        before = self._past.mark()
        yield from super()._start_query()  # type: ignore[misc]  # every connection of psycopg has it
        if self._pipeline is None:
            seen = yield from self._exec_command(begun_sql(self._busy_seconds))
            self._know([[str(seen.get_value(0, column), "ascii") for column in range(seen.nfields)]], before)

    def _know(self, rows: list[Any], before: Mark) -> None:
        self._begun = begun_of(rows, self._past, before)


class OwnedConnection(Ours, ForgettableConnection):
    """A connection whose transaction belongs to duly."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # explicitly: a role's default may be otherwise
        self._first = threading.Lock()  # held while the transaction begins

    def give_back(self) -> None:
        super().give_back()
        self.row_factory, self.cursor_factory = psycopg.rows.tuple_row, OwnedCursor  # whatever the run set

    def begin(self) -> None:
        """Begin the run's transaction now, if it is not begun yet: where more follows than one statement."""
        if not self.is_begun:
            with self.beginning():
                pass

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Send what begins the transaction together with what the block executes: one wait. Of two threads, one does.

        Raises `LedgerTooNew`, `LedgerWentBack`, `LedgerBusy`, and what else keeps a transaction from beginning.
        """
        with self._first:
            if self.is_begun:
                yield
                return
            seen, before = psycopg.Cursor(self, row_factory=psycopg.rows.tuple_row), self._past.mark()
            try:
                with together(self):
                    if self._is_idle:  # else a cursor that is not ours has begun it
                        with self._saying_begin():
                            psycopg.Cursor(self).execute(BEGIN)
                    seen.execute(BEGUN, (millis(self._busy_seconds),))
                    yield
            except psycopg.Error as e:
                if seen.pgresult is None:  # it is an error of ours; the block's has come to nothing
                    raise translated(e, name=self._name) from e
                raise
            finally:
                if seen.pgresult is not None:
                    self._know(seen.fetchall(), before)

    def transaction(self, *args: Any, **kwargs: Any) -> Any:
        self.check("")
        self.begin()  # then it is a savepoint
        return super().transaction(*args, **kwargs)

    def commit(self, *_: object) -> NoReturn:
        raise TransactionOwned

    def rollback(self, *_: object) -> NoReturn:
        raise TransactionOwned("duly owns this transaction; raise an exception, and nothing of it is kept")

    close = tpc_begin = tpc_prepare = tpc_commit = tpc_rollback = __enter__ = commit  # type: ignore[assignment]

    def _set(self, *_: object) -> NoReturn:
        raise TransactionOwned(
            "how the transaction of run.tx behaves is duly's; `set local` may change it for this one"
        )

    # The attributes are set by them, too.
    set_autocommit = set_isolation_level = set_read_only = set_deferrable = _set  # type: ignore[assignment]


def refuse_ending(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
    text: str,
    *,
    is_open: bool,
    owner_pid: int,
    is_begun: bool,
) -> None:
    """Raise `TransactionOwned` unless the run's transaction is open in this process, and the statement leaves it so."""
    if owner_pid != os.getpid():
        raise TransactionOwned("run.tx belongs to the process that forked this one")
    if not is_open:
        raise TransactionOwned("this run is over: nothing can be written through its run.tx any more")
    if is_begun and connection.info.transaction_status == TransactionStatus.IDLE:
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
        try:
            connection = OwnedConnection.connect(
                store.url,
                application_name="duly run",
                prepare_threshold=store.prepare_threshold,
                cursor_factory=OwnedCursor,
            )
        except psycopg.Error as e:
            raise translated(e, name=store.path) from e
        connection.belong_to(store.past, store.busy_seconds, store.path)
        self._connection = connection
        self._answers = Answers(connection, clock_by_hand=store.clock_by_hand)

    @property
    def connection(self) -> OwnedConnection:
        """The connection, for the run's effect."""
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._connection._open

    def begin(self) -> OwnedConnection:
        """Give the connection to a run, whose first statement begins the transaction."""
        if self._connection._open:
            raise TransactionOwned("this thread's run.tx is open for another run; complete that one first")
        self.abandon()  # what somebody has begun on it between two runs
        self._connection._open = True
        return self._connection

    def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises.

        What nothing is read back of is sent with what follows it, and the first of it with what begins the transaction.
        """
        talk = Talk([], clock_by_hand=self._answers.clock_by_hand)

        def answer(ask: Ask) -> object:
            if ask.want == "do":
                talk.hold(ask)
                return None
            return None if ask.want == "alive" else answer_of(ask, self._send(talk.take(ask))[-1])

        try:
            try:
                return drive(operation, answer)
            finally:  # also where the operation has raised: what it did before stands
                if held := talk.take():
                    self._send(held)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            operation.close()

    def _send(self, sent: Sequence[Sent]) -> list[psycopg.Cursor[tuple[Any, ...]]]:
        """Send statements in one wait. Raises `TransactionOwned` where the transaction is not the run's own."""
        connection = self._connection
        connection.check_own()
        if connection.is_begun:
            return send(connection, sent)
        cursors: list[psycopg.Cursor[tuple[Any, ...]]] = []
        try:
            with connection.beginning():
                for each in sent:
                    cursors.append(psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row))
                    cursors[-1].execute(each.text, each.parameters)
        except psycopg.Error as e:
            raise_refusal(sent, cursors, e)
        connection.check_own()
        return cursors

    def _known(self) -> Begun:
        """The transaction, which is begun now if it was not. Raises `TransactionOwned` where it is not the run's own."""
        connection = self._connection
        connection.check("")
        connection.begin()
        connection.check_own()
        assert connection._begun is not None
        return connection._begun

    def commit(self) -> None:
        """Commit the transaction, and be ready for the next run. Raises `Conflict` where it was rolled back instead."""
        try:
            commit(self._cursor(), self._past, self._known())
        except psycopg.IntegrityError:  # a constraint of the user's, judged here
            raise
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            self.abandon()

    def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            try:
                began = self._known()
            except psycopg.Error as e:
                raise translated(e, name=self._name) from e
            return self._complete(operation, began)
        finally:
            operation.close()
            self.abandon()

    def _complete(self, operation: Operation[T], began: Begun) -> T:
        """The look whether it is still the same transaction, the completion and the COMMIT, sent together: one wait.

        An error of an earlier one ends the transaction, and the COMMIT behind it is skipped (I2).
        """
        asked: list[Ask] = []
        result = drive(operation, asked.append)  # it reads nothing back
        completion, others = completion_of(asked, began)
        is_sent = False
        try:
            with together(self._connection):
                self._cursor().execute(COMPLETE_AT_ONCE, completion)
                for ask in others:
                    self._answers(ask)
                is_sent = True
                self._cursor().execute("commit")
        except psycopg.IntegrityError as e:
            if is_refusal(e):  # else it is a constraint of the user's, looked at when the effect commits
                raise ClaimLost from None
            raise
        except psycopg.Error as e:
            if e.sqlstate == ANOTHER_TRANSACTION:
                raise TransactionOwned(ANOTHER) from e
            if not is_sent:
                raise translated(e, name=self._name) from e
            self._settle(began, e)
        self._past.committed(began)
        return result

    def _settle(self, began: Begun, error: psycopg.Error) -> None:
        try:
            settle(self._connection, self._past, began, error)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e

    def abandon(self) -> None:
        """End the transaction and keep nothing of it; a no-op once it has committed."""
        if self._connection._owner_pid != os.getpid():  # a fork has the connection too, and not the transaction
            return
        self._connection.give_back()
        try:
            give_up(self._connection)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e

    def close(self) -> None:
        """Close the connection."""
        psycopg.Connection.close(self._connection)

    def _cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        # A run's row factory is none of our rows' business.
        return psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row)
