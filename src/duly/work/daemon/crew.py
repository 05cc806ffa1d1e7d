"""Crew: who makes the attempts. Each hand attempts one run of a line at a time and says what came of it.

Python functions run in threads, async ones in an event loop of their own thread, commands as children that a thread watches;
or others make the attempts, and are asked to (`celery`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from duly.records import record
from duly.work.answers import Attempted

if TYPE_CHECKING:
    from typing import TypeAlias

    from duly.ledger.open import Idle
    from duly.ledger.ripe import Ripe
    from duly.work.aio.job import Job as AsyncJob
    from duly.work.job import Job
    from duly.work.probe import Probed

T = TypeVar("T")

TRIGGER = "daemon"


class NotBegun(Exception):
    """An attempt that could not begin: the claim was given back, and the run is as it was."""


class CommandFailed(Exception):
    """A command did not complete its run; what its run is now, and why, in duly's own words."""


class Left(Exception):
    """A function wanted to end the process. How its attempt ended is written down."""


@record
class Elsewhere:
    """That so many runs of a line were worked in another process. What came of them the ledger knows."""

    worked: int


if TYPE_CHECKING:
    Answer: TypeAlias = list[Attempted] | Elsewhere | Idle


class Hand(Protocol):
    """Works the lines of one job."""

    name: str
    has_probe: bool

    def lines(self) -> list[str]:
        """The scopes of the job of which anything may be owed, made known to the ledger. Raises what it refuses."""

    def has(self, scope: str) -> bool:
        """Whether a line of that scope is the job's, as it is declared here."""

    def attempt(self, ripe: Ripe, done: Callable[[Future[Answer]], None]) -> None:
        """Attempt the oldest run of a line that can be worked, or the next window of its backfill.

        `done` is called, in any thread, with what came of it.
        """

    def ask_probe(self, is_over: Callable[[], bool]) -> list[Probed]:
        """Ask the job's probe about its runs whose outcome is unknown, until it is over; what was asked, and what has come of
        it.
        """

    def leave(self) -> None:
        """The daemon begins nothing more: give back the places of what goes on elsewhere, without it."""

    def end(self) -> None:
        """Tell what is being attempted to end at once, as far as it can be told."""


class Threads:
    """Works a job that is a plain function, each attempt in a thread."""

    def __init__(self, job: Job[Any], pool: ThreadPoolExecutor) -> None:
        self.name = job.name
        self.has_probe = job.has_probe
        self._job = job
        self._pool = pool

    def lines(self) -> list[str]:
        return self._job.lines()

    def has(self, scope: str) -> bool:
        return self._job.has(scope)

    def attempt(self, ripe: Ripe, done: Callable[[Future[Answer]], None]) -> None:
        attempt = partial(self._job.attempt, ripe.scope, TRIGGER, of_backfill=ripe.backfill)
        ended: Future[Answer] = self._pool.submit(attempt)
        ended.add_done_callback(done)

    def ask_probe(self, is_over: Callable[[], bool]) -> list[Probed]:
        return self._job.ask_probe(is_over=is_over)

    def leave(self) -> None:
        """What is attempted is attempted here."""

    def end(self) -> None:
        """A function cannot be ended from outside: its attempt vanishes with the process."""


class Tasks:
    """Works an async job, each attempt as a task of one event loop."""

    def __init__(self, job: AsyncJob[Any], loop: Loop) -> None:
        self.name = job.name
        self.has_probe = job.has_probe
        self._job = job
        self._loop = loop

    def lines(self) -> list[str]:
        return self._loop.run(self._job.lines()).result()

    def has(self, scope: str) -> bool:
        return self._job.has(scope)

    def attempt(self, ripe: Ripe, done: Callable[[Future[Answer]], None]) -> None:
        self._loop.run(self._attempt(ripe)).add_done_callback(done)

    async def _attempt(self, ripe: Ripe) -> Answer:
        try:
            return await self._job.attempt(ripe.scope, TRIGGER, of_backfill=ripe.backfill)
        except (SystemExit, KeyboardInterrupt) as e:  # it would end the loop, and all that goes on in it
            raise Left(type(e).__name__) from e

    def ask_probe(self, is_over: Callable[[], bool]) -> list[Probed]:
        return self._loop.run(self._ask_probe(is_over)).result()

    async def _ask_probe(self, is_over: Callable[[], bool]) -> list[Probed]:
        return await self._job.ask_probe(is_over=is_over)

    def leave(self) -> None:
        """What is attempted is attempted here."""

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
