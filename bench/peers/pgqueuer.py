"""pgqueuer: a job for each run, its key for deduplication, ten fetched at a time until none is left.

A key is refused while its job is queued or being worked, and free again when that is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import asyncpg
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job
from pgqueuer.types import QueueExecutionMode

from bench.contestant import EFFECT, Contestant, Given, Window, compete

BATCH = 10


class Queued:
    """A queue that is filled, and then drained."""

    def __init__(self, loop: asyncio.Runner, database: str) -> None:
        self._loop, self._database = loop, database
        self._connection, self._effects = loop.run(self._begin())
        self._one_at_a_time = asyncio.Lock()

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        return self._loop.run(self._fill_and_drain(windows))

    async def _begin(self) -> tuple[asyncpg.Connection, asyncpg.Connection]:
        connection = await asyncpg.connect(self._database)
        await Queries(AsyncpgDriver(connection)).install()
        return connection, await asyncpg.connect(self._database)

    async def _fill_and_drain(self, windows: Sequence[Window]) -> int:
        queries, refused = Queries(AsyncpgDriver(self._connection)), 0
        for window in windows:
            (number,) = await queries.enqueue("credit", window.key.encode(), dedupe_key=window.key, on_conflict="skip")
            refused += number is None
        await self._drain()
        return refused

    async def _drain(self) -> None:
        connection = await asyncpg.connect(self._database)
        queuer = PgQueuer(AsyncpgDriver(connection))

        @queuer.entrypoint("credit")
        async def credit(job: Job) -> None:
            async with self._one_at_a_time:  # a connection of asyncpg's has one statement at a time
                await self._effects.execute(EFFECT)

        await queuer.qm.run(
            mode=QueueExecutionMode.drain, batch_size=BATCH, dequeue_timeout=timedelta(seconds=1)
        )
        await connection.close()


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    logging.disable(logging.CRITICAL)
    with asyncio.Runner() as loop:
        yield Queued(loop, given.database)


if __name__ == "__main__":
    compete(
        enter,
        of="pgqueuer",
        atomic=False,
        guarantees="at least once: what a dead worker held is worked again; a key is free again once its job is done",
    )
