"""oban: a job for each run, ten worked at once. Unique jobs are not in the open edition; a unique index is made by hand.

A job that is done is kept, and with it its key, until it is pruned: after a day, unless configured otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from oban import Oban, worker
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

from bench.contestant import EFFECT, Contestant, Given, Window, compete

AT_ONCE = 10
UNIQUE = "create unique index bench_unique on oban_jobs ((args ->> 'key'))"
UNFINISHED = "select count(*) from oban_jobs where state <> 'completed'"


class Worked:
    """A queue that is worked while it is filled."""

    def __init__(self, loop: asyncio.Runner, database: str) -> None:
        self._loop = loop
        self._pool = AsyncConnectionPool(database, min_size=2, max_size=8, open=False)
        self._connection = loop.run(self._begin(database))
        execute = self._connection.execute

        @worker(queue="default")
        class Credit:
            async def process(self, job: Any) -> None:
                await execute(EFFECT)

        self._credit: Any = Credit
        self._oban = Oban(pool=self._pool, queues={"default": AT_ONCE})
        loop.run(self._oban.start())

    async def _begin(self, database: str) -> psycopg.AsyncConnection[Any]:
        await self._pool.open()
        await install(self._pool)
        connection = await psycopg.AsyncConnection.connect(database, autocommit=True, prepare_threshold=0)
        await connection.execute(UNIQUE)
        return connection

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        return self._loop.run(self._enqueue_and_wait(windows))

    async def _enqueue_and_wait(self, windows: Sequence[Window]) -> int:
        refused = 0
        for window in windows:
            try:
                await self._oban.enqueue(self._credit.new({"key": window.key}))
            except psycopg.errors.UniqueViolation:
                refused += 1
        while (await (await self._connection.execute(UNFINISHED)).fetchone()) != (0,):
            await asyncio.sleep(0.005)
        return refused

    def close(self) -> None:
        self._loop.run(self._end())

    async def _end(self) -> None:
        await self._oban.stop()
        await self._connection.close()
        await self._pool.close()


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    logging.disable(logging.CRITICAL)
    with asyncio.Runner() as loop:
        worked = Worked(loop, given.database)
        yield worked
        worked.close()


if __name__ == "__main__":
    compete(
        enter,
        of="oban",
        atomic=False,
        guarantees="at least once: what a dead worker held is worked again; a key by a unique index made by hand, until its job "
        "is pruned after a day",
    )
