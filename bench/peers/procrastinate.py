"""procrastinate: a job for each run, deferred with its key as a queueing lock, and a worker that works what waits.

A queueing lock is refused while a job of that lock waits, and free again when a worker has fetched it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import procrastinate
import psycopg
from procrastinate.exceptions import AlreadyEnqueued

from bench.contestant import EFFECT, Contestant, Given, Window, compete


class Deferred:
    """Jobs, and a worker that comes when all are deferred."""

    def __init__(self, loop: asyncio.Runner, app: procrastinate.App, credit: Any) -> None:
        self._loop, self._app, self._credit = loop, app, credit

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        return self._loop.run(self._defer_and_work(windows))

    async def _defer_and_work(self, windows: Sequence[Window]) -> int:
        refused = 0
        for window in windows:
            try:
                await self._credit.configure(queueing_lock=window.key).defer_async(key=window.key)
            except AlreadyEnqueued:
                refused += 1
        await self._app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
        return refused


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    logging.disable(logging.CRITICAL)
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=given.database))
    connections: list[psycopg.AsyncConnection[Any]] = []

    @app.task(name="credit")
    async def credit(key: str) -> None:
        await connections[0].execute(EFFECT)

    async def begin() -> None:
        connections.append(
            await psycopg.AsyncConnection.connect(given.database, autocommit=True, prepare_threshold=0)
        )
        await app.open_async()
        await app.schema_manager.apply_schema_async()

    async def end() -> None:
        await app.close_async()
        await connections[0].close()

    with asyncio.Runner() as loop:
        loop.run(begin())
        yield Deferred(loop, app, credit)
        loop.run(end())


if __name__ == "__main__":
    compete(
        enter,
        of="procrastinate",
        atomic=False,
        guarantees="a job is recorded and run by one worker; what a dead worker held waits for who retries it; a key is free "
        "again once its job has begun",
    )
