"""The ledger on PostgreSQL for an event loop: as `postgres`, awaited.

A transaction that is cut short by cancellation leaves nothing half open: its connection is discarded, and the server rolls
back. Connections that are free are kept for the next transaction.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from duly.errors import Conflict, LedgerUnavailable
from duly.ledger.ask import Ask, ask_together, conclude, drive_async
from duly.redaction import shown_url
from duly.store import BUSY_SECONDS, refuse_other_versions
from duly.store.postgres import (
    CLAIM_AT_ONCE,
    FACTS_AND_BACKEND,
    FATE,
    LOOK_AGAIN_SECONDS,
    NOT_KNOWN,
    NOW,
    PREPARE_NEVER,
    READING,
    ROLLED_BACK,
    Begun,
    Past,
    as_claim,
    beginning,
    begun_of,
    exit_by_sync,
    fate_of,
    is_usable,
    leaves_claim_open,
    reply_is_lost,
    threshold_of,
    translated,
)
from duly.store.postgres_sql import clock_sql
from duly.store.talk import COMMIT, Sent, Talk, raise_refusal, sent_of

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin
    from duly.store.owned.postgres_async import OwnedConnection, OwnedTransaction

T = TypeVar("T")

_KEPT = 4  # free connections that are kept open; more come and go with their transaction


_forsaken: list[psycopg.AsyncConnection[Any]] = []  # a parent's: kept from the collector, which would complain of them


class AsyncAnswers:
    """Answers what an operation asks on one connection, inside whatever transaction that is in."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, clock_by_hand: bool = False) -> None:
        self._connection = connection
        self.clock_by_hand = clock_by_hand

    async def now(self) -> int:
        """The instant by the database's clock, or by the one that a test set by hand."""
        instant = await self(NOW)
        assert isinstance(instant, int)
        return instant

    async def __call__(self, ask: Ask) -> object:
        if ask.want == "alive":
            return None
        sent = await send(self._connection, [sent_of(ask, clock_sql(self.clock_by_hand))])
        return await answer_of(ask, sent[-1])


async def send(
    connection: psycopg.AsyncConnection[Any], sent: Sequence[Sent]
) -> list[psycopg.AsyncCursor[tuple[Any, ...]]]:
    """Send statements in one wait; as `postgres.send`."""
    cursors: list[psycopg.AsyncCursor[tuple[Any, ...]]] = []
    try:
        async with together_async(connection) if len(sent) > 1 else nullcontext():
            for each in sent:
                cursors.append(psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row))
                await cursors[-1].execute(each.text, each.parameters)
    except psycopg.Error as e:
        raise_refusal(sent, cursors, e)
    return cursors


async def answer_of(ask: Ask, cursor: psycopg.AsyncCursor[tuple[Any, ...]]) -> object:
    """What a question wanted of its statement; as `postgres.answer_of`."""
    match ask.want:
        case "do":
            return None
        case "count":
            return cursor.rowcount
        case "every":
            return await cursor.fetchall()
    row = await cursor.fetchone()
    return row if row is None or ask.want == "one" else row[0]


async def commit(connection: psycopg.AsyncConnection[Any], past: Past, begun: Begun) -> None:
    """Commit, once; as `postgres.commit`, awaited."""
    try:
        await psycopg.AsyncCursor(connection).execute("commit")
    except psycopg.Error as e:
        await settle(connection, past, begun, e)
    past.committed(begun)


async def settle(connection: psycopg.AsyncConnection[Any], past: Past, begun: Begun, error: psycopg.Error) -> None:
    """After an error at a COMMIT: return where it has committed all the same; as `postgres.settle`, awaited."""
    if not reply_is_lost(error):
        raise error
    connection.pgconn.finish()
    if not await _has_committed(past, begun):
        raise Conflict(ROLLED_BACK) from error


class _Pipeline(psycopg.AsyncPipeline):
    _exit_gen = exit_by_sync


@asynccontextmanager
async def together_async(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
    """As `postgres.together`."""
    if not psycopg.capabilities.has_pipeline():
        yield
        return
    async with psycopg.AsyncConnection.pipeline(connection) as pipeline:
        pipeline.__class__ = _Pipeline
        yield


async def _has_committed(past: Past, begun: Begun) -> bool:
    deadline = monotonic() + past.busy_seconds
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(past.url, autocommit=True, connect_timeout=2) as again:
                row = await (await psycopg.AsyncCursor(again).execute(FATE, (begun.xid,))).fetchone()
        except psycopg.OperationalError:  # it restarts
            row = None
        except psycopg.DataError:  # an id that is still to come: an older copy of the database stands there now
            return False
        fate = fate_of(begun, row)
        if fate is not None:
            return fate
        if monotonic() >= deadline:
            raise LedgerUnavailable(NOT_KNOWN)
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


class AsyncPostgresStore:
    """One ledger in the schema duly of a PostgreSQL database, used by the tasks of one event loop.

    As `PostgresStore`; `open` is awaited before it is used, and raises what that one's initialiser does.
    """

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.url = url
        self.path = shown_url(url)
        self.busy_seconds = busy_seconds
        self.past = Past(url, busy_seconds)
        self.prepare_threshold: int | None = PREPARE_NEVER  # until it is known who answers
        self.clock_by_hand = False
        self.ledger_id = self.namespace = ""
        self._pid = os.getpid()
        self._free: list[psycopg.AsyncConnection[Any]] = []
        self._free_owned: list[OwnedConnection] = []

    async def open(self) -> None:
        """Read what the ledger says of itself; again is a no-op."""
        if self.ledger_id:
            return
        connection = None
        try:
            connection = await self.connect()
            cursor = psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row)
            await cursor.execute(FACTS_AND_BACKEND)
            facts: dict[str, str] = dict(await cursor.fetchall())
            connection.prepare_threshold = self.prepare_threshold = threshold_of(connection, facts["backend"])
        except psycopg.Error as e:
            if connection is not None:
                connection.pgconn.finish()
            raise translated(e, name=self.path) from e
        self._keep(connection)
        refuse_other_versions(facts, name=self.path)
        self.ledger_id, self.namespace = facts["ledger_id"], facts["namespace"]
        self.clock_by_hand = facts["clock"] == "hand"

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        """A connection of one's own; `_keep` gives it back."""
        self._leave_the_parents()
        while self._free:
            connection = self._free.pop()
            if is_usable(connection):
                return connection
            connection.pgconn.finish()
        return await psycopg.AsyncConnection.connect(
            self.url, autocommit=True, application_name="duly", prepare_threshold=self.prepare_threshold
        )

    def _leave_the_parents(self) -> None:
        """In a forked child leave what is free to its parent: a reply there is the parent's, and to close it would end that."""
        if self._pid != os.getpid():
            _forsaken.extend((*self._free, *self._free_owned))
            self._free, self._free_owned, self._pid = [], [], os.getpid()

    def _keep(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if connection.closed or connection.pgconn.transaction_status != 0 or len(self._free) >= _KEPT:
            connection.pgconn.finish()
        else:
            self._free.append(connection)

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit to flush."""
        return await self._run(operation, READING, writes=False)

    async def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself."""
        connection = None
        try:
            connection = await self.connect()
            return await drive_async(operation, AsyncAnswers(connection, clock_by_hand=self.clock_by_hand))
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        finally:
            operation.close()
            if connection is not None:
                self._keep(connection)

    async def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it, as `PostgresStore.write`."""
        return await self._run(
            operation, beginning(busy_seconds or self.busy_seconds, durable=durable), writes=True, durable=durable
        )

    claim_looks = True  # a claim that looks by itself is one wait

    async def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """As `PostgresStore.claim_at_once`."""
        connection = None
        try:
            before = self.past.mark()
            asked = as_claim(list(ask_together(claim)), before, self.busy_seconds, durable=durable)
            if not self.past.is_known:
                return None
            connection = await self.connect()
            cursor = psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row)
            await cursor.execute(CLAIM_AT_ONCE, asked)
            return conclude(claim, self.past.seen_by(await cursor.fetchone(), durable=durable))
        except psycopg.Error as e:
            if leaves_claim_open(e):
                return None
            raise translated(e, name=self.path) from e
        finally:
            claim.close()
            if connection is not None:
                self._keep(connection)

    async def _run(self, operation: Operation[T], beginning: list[Sent], *, writes: bool, durable: bool = True) -> T:
        connection = None
        try:
            connection = here = await self.connect()
            talk, before = Talk(beginning, clock_by_hand=self.clock_by_hand), self.past.mark()
            began: Begun | None = None

            async def say(*last: Ask | Sent) -> psycopg.AsyncCursor[tuple[Any, ...]]:
                nonlocal began
                begins = not talk.has_begun
                cursors = await send(here, talk.take(*last))
                if begins and writes:
                    began = begun_of(await cursors[len(beginning) - 1].fetchall(), self.past, before)
                return cursors[-1]

            async def answer(ask: Ask) -> object:
                if ask.want == "do":
                    talk.hold(ask)
                    return None
                return None if ask.want == "alive" else await answer_of(ask, await say(ask))

            result = await drive_async(operation, answer)
            if not talk.has_begun:
                await say()
            try:
                await send(here, talk.take(COMMIT))
            except psycopg.Error as e:
                if began is None:
                    raise
                await settle(here, self.past, began, e)
            if began is not None and durable:
                self.past.committed(began)
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e
        finally:
            operation.close()
            if connection is not None:
                self._keep(connection)  # one that is still in a transaction is discarded
        return result

    async def now(self) -> int:
        """The ledger's instant."""
        try:
            connection = await self.connect()
            try:
                return await AsyncAnswers(connection, clock_by_hand=self.clock_by_hand).now()
            finally:
                self._keep(connection)
        except psycopg.Error as e:
            raise translated(e, name=self.path) from e

    async def owned(self) -> OwnedTransaction:
        """A transaction for a run's own effect."""
        from duly.store.owned.postgres_async import OwnedTransaction

        self._leave_the_parents()
        while self._free_owned:
            connection = self._free_owned.pop()
            if is_usable(connection):
                return OwnedTransaction(connection, self)
            connection.pgconn.finish()
        return await OwnedTransaction.open(self)

    def keep_owned(self, connection: OwnedConnection) -> None:
        """Keep one for another run, whose run is over. One that is still in a transaction is discarded."""
        if is_usable(connection) and len(self._free_owned) < _KEPT:
            self._free_owned.append(connection.renewed())
        else:
            connection.pgconn.finish()

    def begin_pulse(self, attempt_id: bytes) -> int:
        """No pulse: processes of other hosts cannot be looked at, the lease alone decides."""
        return -1

    async def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        from duly.store.borrowed import run_in_async

        return await run_in_async(tx, operation, self.origin)

    @property
    def origin(self) -> Origin:
        """The ledger, as a claim of it names it to a borrowed transaction."""
        from duly.store.borrowed import Origin

        return Origin(self.ledger_id, "", self.path)

    async def close(self) -> None:
        """Close the free connections. The store may be used again."""
        self._leave_the_parents()
        while self._free:
            await self._free.pop().close()
        for connection in self._free_owned:
            connection.pgconn.finish()
        self._free_owned.clear()
