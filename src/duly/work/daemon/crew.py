"""Crew: who makes the attempts. Each hand attempts one run of a line at a time and says what came of it.

Python functions run in threads, async ones in an event loop of their own thread, commands as children that a thread watches.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from duly.work.answers import Attempted, Completed

if TYPE_CHECKING:
    from duly.ledger.open import Idle
    from duly.ledger.ripe import Ripe
    from duly.work.aio.job import Job as AsyncJob
    from duly.work.job import Job

T = TypeVar("T")

TRIGGER = "daemon"


class NotBegun(Exception):
    """An attempt that could not begin: the claim was given back, and the run is as it was."""


class CommandFailed(Exception):
    """A command did not complete its run; what its run is now, and why, in duly's own words."""


class Left(Exception):
    """A function wanted to end the process. How its attempt ended is written down."""


class Hand(Protocol):
    """Works the lines of one job."""

    name: str

    def lines(self) -> list[str]:
        """The scopes of the job of which anything may be owed, made known to the ledger. Raises what it refuses."""

    def has(self, scope: str) -> bool:
        """Whether a line of that scope is the job's, as it is declared here."""

    def attempt(self, ripe: Ripe, done: Callable[[Future[list[Attempted] | Idle]], None]) -> None:
        """Attempt the oldest run of a line that can be worked, or the next window of its backfill.

        `done` is called, in any thread, with what came of it.
        """

    def end(self) -> None:
        """Tell what is being attempted to end at once, as far as it can be told."""


class Threads:
    """Works a job that is a plain function, each attempt in a thread."""

    def __init__(self, job: Job[Any], pool: ThreadPoolExecutor) -> None:
        self.name = job.name
        self._job = job
        self._pool = pool

    def lines(self) -> list[str]:
        return self._job.lines()

    def has(self, scope: str) -> bool:
        return self._job.has(scope)

    def attempt(self, ripe: Ripe, done: Callable[[Future[list[Attempted] | Idle]], None]) -> None:
        attempt = partial(self._job.attempt, ripe.scope, TRIGGER, of_backfill=ripe.backfill)
        self._pool.submit(attempt).add_done_callback(done)

    def end(self) -> None:
        """A function cannot be ended from outside: its attempt vanishes with the process."""


class Tasks:
    """Works an async job, each attempt as a task of one event loop."""

    def __init__(self, job: AsyncJob[Any], loop: Loop) -> None:
        self.name = job.name
        self._job = job
        self._loop = loop

    def lines(self) -> list[str]:
        return self._loop.run(self._job.lines()).result()

    def has(self, scope: str) -> bool:
        return self._job.has(scope)

    def attempt(self, ripe: Ripe, done: Callable[[Future[list[Attempted] | Idle]], None]) -> None:
        self._loop.run(self._attempt(ripe)).add_done_callback(done)

    async def _attempt(self, ripe: Ripe) -> list[Attempted] | Idle:
        try:
            return await self._job.attempt(ripe.scope, TRIGGER, of_backfill=ripe.backfill)
        except (SystemExit, KeyboardInterrupt) as e:  # it would end the loop, and all that goes on in it
            raise Left(type(e).__name__) from e

    def end(self) -> None:
        self._loop.cancel_all()


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="duly-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
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
    return str(outcome) if isinstance(outcome, CommandFailed) else f"failed: {type(outcome).__qualname__}"
