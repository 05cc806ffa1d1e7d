"""Crew: who makes the attempts. Each hand attempts one run of a line at a time and says what came of it.

Python functions run in threads, async ones in an event loop of their own thread, commands as children that a thread watches.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from duly.errors import Misuse, Refused
from duly.ledger.address import scopes_to_work
from duly.ledger.register import Declaration, declare
from duly.work.answers import Attempted, Completed
from duly.work.job import for_scope

if TYPE_CHECKING:
    from duly.ledger.open import Idle
    from duly.ledger.ripe import Ripe
    from duly.store.protocol import Store
    from duly.work.aio.job import Job as AsyncJob
    from duly.work.job import Job

TRIGGER = "daemon"


class NotBegun(Exception):
    """An attempt that could not begin: the claim was given back, and the run is as it was."""


class CommandFailed(Exception):
    """A command did not complete its run; why, in duly's own words."""


class Hand(Protocol):
    """Works the lines of one job."""

    name: str

    def lines(self) -> list[Declaration]:
        """The lines of the job, as they are declared, with the scopes that code declares put on the roster."""

    def has(self, scope: str) -> bool:
        """Whether a line of that scope is the job's, as it is declared here."""

    def attempt(self, ripe: Ripe, done: Callable[[Future[Attempted | Idle]], None]) -> None:
        """Attempt the oldest run of a line that can be worked, or the next window of its backfill.

        `done` is called, in any thread, with what came of it.
        """

    def end(self) -> None:
        """Tell what is being attempted to end at once, as far as it can be told."""


def lines_of(store: Store, declared: Declaration, closed: tuple[str, ...] | None) -> list[Declaration]:
    """The declarations of a job, one a line: of its own roster, of the ledger's, or the one without a scope."""
    roster = list(closed) if closed is not None else store.read(scopes_to_work(declared.job))
    return [for_scope(declared, scope, closed) for scope in roster]


def register(store: Store, lines: list[Declaration]) -> Refused | Misuse | None:
    """Make a job's lines known to the ledger, so that their windows are owed; why that is refused, if it is."""
    for declared in lines:
        answer = store.write(declare(declared))
        if isinstance(answer, (Refused, Misuse)):
            return answer
    return None


class Threads:
    """Works jobs that are plain functions, each attempt in a thread."""

    def __init__(self, job: Job[Any], pool: ThreadPoolExecutor, store: Store) -> None:
        self.name = job.name
        self._job = job
        self._pool = pool
        self._store = store

    def lines(self) -> list[Declaration]:
        self._job._enrol()
        return lines_of(self._store, self._job._declared, self._job._scopes)

    def has(self, scope: str) -> bool:
        return self._job._scopes is None or scope in self._job._scopes

    def attempt(self, ripe: Ripe, done: Callable[[Future[Attempted | Idle]], None]) -> None:
        self._pool.submit(self._attempt, ripe).add_done_callback(done)

    def _attempt(self, ripe: Ripe) -> Attempted | Idle:
        declared = for_scope(self._job._declared, ripe.scope, self._job._scopes)
        if ripe.backfill:
            return self._job._attempt_backfill(declared, TRIGGER, number=None, tried=frozenset())
        return self._job._attempt_next(declared, TRIGGER, as_of=None, tried=frozenset())

    def end(self) -> None:
        """A function cannot be ended from outside: its attempt vanishes with the process."""


class Tasks:
    """Works async jobs, each attempt as a task of one event loop."""

    def __init__(self, job: AsyncJob[Any], loop: Loop, store: Store) -> None:
        self.name = job.name
        self._job = job
        self._loop = loop
        self._store = store

    def lines(self) -> list[Declaration]:
        self._loop.run(self._job._enrol()).result()
        return lines_of(self._store, self._job._declared, self._job._scopes)

    def has(self, scope: str) -> bool:
        return self._job._scopes is None or scope in self._job._scopes

    def attempt(self, ripe: Ripe, done: Callable[[Future[Attempted | Idle]], None]) -> None:
        self._loop.run(self._attempt(ripe)).add_done_callback(done)

    async def _attempt(self, ripe: Ripe) -> Attempted | Idle:
        declared = for_scope(self._job._declared, ripe.scope, self._job._scopes)
        if ripe.backfill:
            return await self._job._attempt_backfill(declared, TRIGGER, number=None, tried=frozenset())
        return await self._job._attempt_next(declared, TRIGGER, as_of=None, tried=frozenset())

    def end(self) -> None:
        self._loop.cancel_all()


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="duly-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Any) -> Future[Any]:
        """Run a coroutine in the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def cancel_all(self) -> None:
        """Cancel every task: what they hold is given up in order."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(self._loop)])

    def close(self, *ends: Callable[[], Any]) -> None:
        """Await what closes the ledgers of the loop, and end it."""
        for end in ends:
            self.run(end()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def words_of(attempted: Attempted) -> str:
    """What came of an attempt, as a line of the log says it."""
    outcome = attempted.outcome
    if isinstance(outcome, Completed):
        return "completed"
    if isinstance(outcome, NotBegun):
        return f"could not begin: {outcome}"
    # Of a function's error the type: its message may hold what no log should.
    return f"failed: {outcome if isinstance(outcome, CommandFailed) else type(outcome).__qualname__}"
