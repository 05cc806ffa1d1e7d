"""duly: the same transactional job in an event loop, one run after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duly
import duly.aio
from bench.contestant import EFFECT, JOB, Contestant, Given, Window, compete
from bench.contestants.ledger import ATOMIC, EVERY_FIVE_MINUTES, is_known
from duly.store.migrations import postgres


class Awaited:
    """Runs of an async job that are asked for by name."""

    def __init__(self, loop: asyncio.Runner, ledger: duly.aio.Ledger[Any]) -> None:
        async def credit(run: duly.aio.Run[Any]) -> None:
            tx = await run.tx
            await tx.execute(EFFECT)

        self._job = ledger.job(JOB, EVERY_FIVE_MINUTES, catch_up=duly.EACH)(credit)
        self._loop = loop

    def work(self, windows: Sequence[Window]) -> None:
        answers = self._loop.run(self._each(windows))
        assert all(isinstance(answer, duly.Completed) for answer in answers)

    def again(self, windows: Sequence[Window]) -> int:
        return sum(map(is_known, self._loop.run(self._each(windows))))

    async def _each(self, windows: Sequence[Window]) -> list[object]:
        return [await self._job.run(window.name) for window in windows]


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    if given.on_postgres:
        postgres.create(given.database, by="bench")
    with asyncio.Runner() as loop:
        ledger: duly.aio.Ledger[Any]
        ledger = duly.aio.postgres(given.database) if given.on_postgres else duly.aio.sqlite(given.path)
        yield Awaited(loop, ledger)
        loop.run(ledger.close())


if __name__ == "__main__":
    compete(enter, of="duly", atomic=True, guarantees=ATOMIC)
