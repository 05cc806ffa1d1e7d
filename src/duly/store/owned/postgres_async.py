"""The transaction that a run owns on PostgreSQL in an event loop: as `postgres`, a real `psycopg.AsyncConnection`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duly.errors import ClaimLost, TransactionOwned
from duly.ledger.ask import drive, drive_async
from duly.store.owned.postgres import ANOTHER, Ours, text_of
from duly.store.owned.words import is_several
from duly.store.postgres import (
    ANOTHER_TRANSACTION,
    BEGIN,
    BEGUN,
    COMPLETE_AT_ONCE,
    Begun,
    completion_of,
    is_refusal,
    millis,
    translated,
)
from duly.store.postgres_async import AsyncAnswers, answer_of, commit, send, settle, together_async
from duly.store.talk import Talk, raise_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.ledger.ask import Ask, Operation
    from duly.store.postgres_async import AsyncPostgresStore
    from duly.store.talk import Sent

T = TypeVar("T")


class OwnedCursor(psycopg.AsyncCursor[Any]):
    """A cursor that writes only while the run's transaction is open, and does not end it."""

    async def execute(self, query: Any, params: Any = None, **kwargs: Any) -> OwnedCursor:
        connection = _owner(self)
        connection.check(query)
        if params is None and is_several(text_of(connection, query)):  # which cannot be sent with others
            await connection.begin()
        if connection.is_begun:
            return await super().execute(query, params, **kwargs)
        async with connection.beginning():
            return await super().execute(query, params, **kwargs)

    async def executemany(self, query: Any, params_seq: Iterable[Any], **kwargs: Any) -> None:
        _owner(self).check(query)
        await super().executemany(query, params_seq, **kwargs)

    async def stream(self, query: Any, params: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        connection = _owner(self)
        connection.check(query)
        await connection.begin()
        try:
            async for row in super().stream(query, params, **kwargs):
                yield row
        finally:  # as in `postgres`
            if connection.info.transaction_status == TransactionStatus.INTRANS:
                await psycopg.AsyncCursor(connection).execute("")


def _owner(cursor: OwnedCursor) -> OwnedConnection:
    connection = cursor.connection
    assert isinstance(connection, OwnedConnection)
    return connection


class OwnedConnection(Ours, psycopg.AsyncConnection[Any]):
    """A connection whose transaction belongs to duly."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # explicitly: a role's default may be otherwise
        self._first = asyncio.Lock()  # held while the transaction begins

    async def begin(self) -> None:
        """Begin the run's transaction now, if it is not begun yet: where more follows than one statement."""
        if not self.is_begun:
            async with self.beginning():
                pass

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[None]:
        """Send what begins the transaction together with what the block executes: one wait. Of two tasks, one does.

        Raises `LedgerTooNew`, `LedgerWentBack`, `LedgerBusy`, and what else keeps a transaction from beginning.
        """
        async with self._first:
            if self.is_begun:
                yield
                return
            seen, before = psycopg.AsyncCursor(self, row_factory=psycopg.rows.tuple_row), self._past.mark()
            try:
                async with together_async(self):
                    if self._is_idle:  # else a cursor that is not ours has begun it
                        with self._saying_begin():
                            await psycopg.AsyncCursor(self).execute(BEGIN)
                    await seen.execute(BEGUN, (millis(self._busy_seconds),))
                    yield
            except psycopg.Error as e:
                if seen.pgresult is None:  # it is an error of ours; the block's has come to nothing
                    raise translated(e, name=self._name) from e
                raise
            finally:
                if seen.pgresult is not None:
                    self._know(await seen.fetchall(), before)

    def renewed(self) -> OwnedConnection:
        """The same connection to the server as another object: whoever has kept this one, a task that outlives its run,
        writes nothing more.
        """
        renewed = type(self)(self.pgconn)
        renewed.cursor_factory = OwnedCursor
        renewed._prepared = self._prepared  # the server knows them by their names
        renewed.belong_to(self._past, self._busy_seconds, self._name)
        self.pgconn = psycopg.pq.PGconn.connect_start(b"host=/ port=1")  # there is none, and it is not waited for
        self.pgconn.finish()
        return renewed

    @asynccontextmanager
    async def transaction(self, *args: Any, **kwargs: Any) -> AsyncIterator[psycopg.AsyncTransaction]:
        self.check("")
        await self.begin()  # then it is a savepoint
        async with super().transaction(*args, **kwargs) as savepoint:
            yield savepoint

    async def commit(self, *_: object) -> NoReturn:
        raise TransactionOwned

    async def rollback(self, *_: object) -> NoReturn:
        raise TransactionOwned("duly owns this transaction; raise an exception, and nothing of it is kept")

    close = tpc_begin = tpc_prepare = tpc_commit = tpc_rollback = __aenter__ = commit  # type: ignore[assignment]

    async def _set(self, *_: object) -> NoReturn:
        raise TransactionOwned(
            "how the transaction of run.tx behaves is duly's; `set local` may change it for this one"
        )

    set_autocommit = set_isolation_level = set_read_only = set_deferrable = _set  # type: ignore[assignment]


class OwnedTransaction:
    """A run's own connection: begun by its first statement, ended by `complete` or `abandon`, then the next run's."""

    def __init__(self, connection: OwnedConnection, store: AsyncPostgresStore) -> None:
        self._store = store
        self._past = store.past
        self._name = store.path
        self._connection = connection
        self._answers = AsyncAnswers(connection, clock_by_hand=store.clock_by_hand)
        self._is_over = False

    @classmethod
    async def open(cls, store: AsyncPostgresStore) -> OwnedTransaction:
        """A connection for one run. Raises `LedgerUnavailable`."""
        try:
            connection = await OwnedConnection.connect(
                store.url,
                application_name="duly run",
                prepare_threshold=store.prepare_threshold,
                cursor_factory=OwnedCursor,
            )
        except psycopg.Error as e:
            raise translated(e, name=store.path) from e
        connection.belong_to(store.past, store.busy_seconds, store.path)
        return cls(connection, store)

    @property
    def connection(self) -> OwnedConnection:
        """The connection, for the run's effect."""
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._connection._open

    async def begin(self) -> OwnedConnection:
        """Give the connection to a run, whose first statement begins the transaction."""
        self._connection._open = True
        return self._connection

    async def commit(self) -> None:
        """Commit the transaction. Raises `Conflict` where it was rolled back instead."""
        try:
            await commit(self._connection, self._past, await self._known())
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            await self.abandon()

    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open, as `postgres.OwnedTransaction.drive`."""
        talk = Talk([], clock_by_hand=self._answers.clock_by_hand)

        async def answer(ask: Ask) -> object:
            if ask.want == "do":
                talk.hold(ask)
                return None
            return None if ask.want == "alive" else await answer_of(ask, (await self._send(talk.take(ask)))[-1])

        try:
            try:
                return await drive_async(operation, answer)
            finally:
                if held := talk.take():
                    await self._send(held)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e
        finally:
            operation.close()

    async def _send(self, sent: Sequence[Sent]) -> list[psycopg.AsyncCursor[tuple[Any, ...]]]:
        """Send statements in one wait. Raises `TransactionOwned` where the transaction is not the run's own."""
        connection = self._connection
        connection.check_own()
        if connection.is_begun:
            return await send(connection, sent)
        cursors: list[psycopg.AsyncCursor[tuple[Any, ...]]] = []
        try:
            async with connection.beginning():
                for each in sent:
                    cursors.append(psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row))
                    await cursors[-1].execute(each.text, each.parameters)
        except psycopg.Error as e:
            raise_refusal(sent, cursors, e)
        connection.check_own()
        return cursors

    async def _known(self) -> Begun:
        """The transaction, which is begun now if it was not. Raises `TransactionOwned` where it is not the run's own."""
        connection = self._connection
        connection.check("")
        await connection.begin()
        connection.check_own()
        assert connection._begun is not None
        return connection._begun

    async def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            try:
                began = await self._known()
            except psycopg.Error as e:
                raise translated(e, name=self._name) from e
            return await self._complete(operation, began)
        finally:
            operation.close()
            await self.abandon()

    async def _complete(self, operation: Operation[T], began: Begun) -> T:
        """As `postgres.OwnedTransaction._complete`: the look, the completion and the COMMIT in one wait."""
        asked: list[Ask] = []
        result = drive(operation, asked.append)  # it reads nothing back
        completion, others = completion_of(asked, began)
        is_sent = False
        try:
            async with together_async(self._connection):
                await psycopg.AsyncCursor(self._connection).execute(COMPLETE_AT_ONCE, completion)
                for ask in others:
                    await self._answers(ask)
                is_sent = True
                await psycopg.AsyncCursor(self._connection).execute("commit")
        except psycopg.IntegrityError as e:
            if is_refusal(e):  # else it is a constraint of the user's, looked at when the effect commits
                raise ClaimLost from None
            raise
        except psycopg.Error as e:
            if e.sqlstate == ANOTHER_TRANSACTION:
                raise TransactionOwned(ANOTHER) from e
            if not is_sent:
                raise translated(e, name=self._name) from e
            await self._settle(began, e)
        self._past.committed(began)
        return result

    async def _settle(self, began: Begun, error: psycopg.Error) -> None:
        try:
            await settle(self._connection, self._past, began, error)
        except psycopg.Error as e:
            raise translated(e, name=self._name) from e

    async def abandon(self) -> None:
        """Keep nothing of what has not committed: then the connection is closed at the driver. Else the next run has it."""
        if not self._is_over:
            self._is_over = True
            self._connection.give_back()
            self._store.keep_owned(self._connection)
