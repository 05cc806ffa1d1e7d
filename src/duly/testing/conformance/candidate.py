"""The store that is tried, of either kind, as stories use it: every call returns when it is done.

A call of an async store is run to its end in an event loop; one of a sync store is simply made. So one set of stories serves
both. Where several things happen at once in one store, it is in threads for the one kind and in tasks for the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from duly.ledger.ask import Statement, count

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.protocol import AsyncOwned, AsyncStore, Owned, Store

T = TypeVar("T")

MAKE_NOTES = Statement(
    "make_notes",
    "create table if not exists conformance_note (job text not null, body text not null, primary key (job, body))",
)

BUSY_SECONDS = 5.0  # of a store that is not told otherwise: longer than any story lasts


class Candidate:
    """What is tried, in three functions.

    `new_ledger` makes a new, empty ledger with a clock, `hand` or `system`, and answers its name: a path, or a URL.
    `open_store` opens the store on a ledger of that name, with `busy_seconds`, as another process would. `connect` opens a
    plain connection of the driver's to the ledger's database, in the mode in which it begins a transaction by itself;
    without it no story of lent transactions is told. Left as a context, it closes what it opened.
    """

    def __init__(
        self,
        new_ledger: Callable[[str], str],
        open_store: Callable[..., Store | AsyncStore],
        connect: Callable[[str], Any] | None = None,
    ) -> None:
        self.new_ledger = new_ledger
        self.open_store = open_store
        self.connect = connect
        self._witnesses: dict[str, Tried] = {}

    def __enter__(self) -> Candidate:
        return self

    def __exit__(self, *_: object) -> None:
        for witness in self._witnesses.values():
            witness.leave()

    def witness(self, ledger: str) -> Tried:
        """The store as others have it open, who see what a story does to a ledger. The same for all stories of it."""
        if ledger not in self._witnesses:
            witness = self._witnesses[ledger] = Tried(self.open_store(ledger, busy_seconds=BUSY_SECONDS))
            witness.write(count(MAKE_NOTES))
        return self._witnesses[ledger]

    # Every story has a job of its own, so all may use the same ledger.

    @cached_property
    def by_hand(self) -> str:
        """The ledger of most stories: its clock is set by hand."""
        return self.new_ledger("hand")

    @cached_property
    def by_system(self) -> str:
        """A ledger with the clock of its database."""
        return self.new_ledger("system")

    @cached_property
    def another(self) -> str:
        """Another ledger, which is not theirs."""
        return self.new_ledger("hand")


class Loop:
    """An event loop for what has to be awaited; what has not is done already."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)

    def done(self, answer: T | Awaitable[T]) -> T:
        """What the answer is when it has come."""
        return self._runner.run(_awaited(answer)) if isawaitable(answer) else answer

    def close(self) -> None:
        self._runner.close()


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


class Tried:
    """A store of either kind, whose calls return when they are done. Used by one thread at a time."""

    def __init__(self, store: Store | AsyncStore) -> None:
        self._store = cast(Any, store)
        self.loop = Loop()
        self.is_async = hasattr(self._store, "open")
        if self.is_async:
            self.loop.done(self._store.open())
        self.ledger_id: str = store.ledger_id
        self.namespace: str = store.namespace
        self.clock_by_hand: bool = store.clock_by_hand

    def read(self, operation: Operation[T]) -> T:
        result: T = self.loop.done(self._store.read(operation))
        return result

    def glance(self, operation: Operation[T]) -> T:
        result: T = self.loop.done(self._store.glance(operation))
        return result

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        result: T = self.loop.done(self._store.write(operation, durable=durable, busy_seconds=busy_seconds))
        return result

    def now(self) -> int:
        instant: int = self.loop.done(self._store.now())
        return instant

    def owned(self) -> TriedOwned:
        return TriedOwned(self.loop.done(self._store.owned()), self.loop)

    def begin_pulse(self, attempt_id: bytes) -> int:
        descriptor: int = self._store.begin_pulse(attempt_id)
        return descriptor

    def lend(self, connection: Any) -> Lent:
        """A caller's connection, which the caller opened just now."""
        return Lent(self.loop.done(connection), self.loop)

    def run_in(self, lent: Lent, operation: Operation[T]) -> T:
        result: T = self.loop.done(self._store.run_in(lent.connection, operation))
        return result

    def at_once(self, calls: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Calls of this one store at once, in threads or in tasks; what each of them answered, or the error that it raised."""
        return self._in_tasks(calls) if self.is_async else self._in_threads(calls)

    def beside(self, call: Callable[[Any], Any]) -> Any:
        """A call of this one store in another thread or task than those before it."""
        (answer,) = self.at_once([call])
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def connection_beside(self) -> Any:
        """The connection of a run that is worked, and given up, in another thread or task."""
        return self.beside(_connection_awaited if self.is_async else _connection)

    def _in_tasks(self, calls: Sequence[Callable[[Any], Any]]) -> list[Any]:
        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(call(self._store) for call in calls), return_exceptions=True)

        return self.loop.done(all_of_them())

    def _in_threads(self, calls: Sequence[Callable[[Any], Any]]) -> list[Any]:
        with ThreadPoolExecutor(len(calls)) as pool:
            begun = [pool.submit(self._and_close, call) for call in calls]
        return [ended.exception() or ended.result() for ended in begun]

    def _and_close(self, call: Callable[[Any], Any]) -> Any:
        try:
            return call(self._store)
        finally:
            self._store.close()  # the connections of this thread

    def close(self) -> None:
        """Close the store, which may be used again."""
        self.loop.done(self._store.close())

    def leave(self) -> None:
        """Close it for good."""
        self.close()
        self.loop.close()


def _connection(store: Store) -> object:
    owned = store.owned()
    owned.begin()
    owned.abandon()
    return owned.connection


async def _connection_awaited(store: AsyncStore) -> object:
    owned = await store.owned()
    await owned.begin()
    await owned.abandon()
    return owned.connection


class TriedOwned:
    """A run's own transaction in a store of either kind."""

    def __init__(self, owned: Owned | AsyncOwned, loop: Loop) -> None:
        self._owned: Any = owned
        self._loop = loop

    @property
    def connection(self) -> Any:
        return self._owned.connection

    def is_open(self) -> bool:
        return bool(self._owned.is_open)

    def begin(self) -> Any:
        return self._loop.done(self._owned.begin())

    def execute(self, sql: str) -> Any:
        """A statement of the run's own, through the connection."""
        return self._loop.done(self.connection.execute(sql))

    def end_by(self, method: str) -> Any:
        """What no run may do: end the transaction by a method of the connection."""
        return self._loop.done(getattr(self.connection, method)())

    def drive(self, operation: Operation[T]) -> T:
        result: T = self._loop.done(self._owned.drive(operation))
        return result

    def complete(self, operation: Operation[T]) -> T:
        result: T = self._loop.done(self._owned.complete(operation))
        return result

    def commit(self) -> None:
        self._loop.done(self._owned.commit())

    def abandon(self) -> None:
        self._loop.done(self._owned.abandon())


class Lent:
    """A caller's own connection, in a transaction that the caller will end."""

    def __init__(self, connection: Any, loop: Loop) -> None:
        self.connection = connection
        self._loop = loop

    def execute(self, sql: str) -> Any:
        return self._loop.done(self.connection.execute(sql))

    def commit(self) -> None:
        self._loop.done(self.connection.commit())

    def rollback(self) -> None:
        self._loop.done(self.connection.rollback())

    def close(self) -> None:
        self._loop.done(self.connection.close())


class Crowd:
    """Other processes, as far as a story needs any: each call has a thread and a store of its own."""

    def __init__(self, open_another: Callable[[], Tried]) -> None:
        self._open_another = open_another
        self._pool = ThreadPoolExecutor(4)

    def begin(self, act: Callable[[Tried], T]) -> Future[T]:
        """Let another process do something; its answer is waited for where it is wanted."""
        return self._pool.submit(self._act, act)

    def _act(self, act: Callable[[Tried], T]) -> T:
        store = self._open_another()
        try:
            return act(store)
        finally:
            store.leave()

    def close(self) -> None:
        self._pool.shutdown()
