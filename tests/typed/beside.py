"""Plain stories, told of what is awaited: each runs in a greenlet beside an event loop, as SQLAlchemy's own plain code does.

So the stories of `duly.sqlalchemy` are those of `duly.aio.sqlalchemy`, word for word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from greenlet import getcurrent  # type: ignore[import-untyped]
from sqlalchemy.util import greenlet_spawn

import duly.aio
from duly.store.owned.sqlalchemy_async import await_

T = TypeVar("T")


def done(work: Awaitable[T]) -> T:
    """What is awaited, in a story that runs beside the loop."""
    answer: T = await_(awaited(work))
    return answer


async def awaited(work: Awaitable[T]) -> T:
    return await work


class Beside:
    """A ledger of `duly.aio` that speaks as a plain one."""

    def __init__(self, told: duly.aio.Ledger[Any], loop: asyncio.Runner) -> None:
        self.told = told
        self._loop = loop

    def job(self, *declared: Any, **settings: Any) -> Callable[[Callable[[Any], object]], JobBeside]:
        def register(work: Callable[[Any], object]) -> JobBeside:
            async def in_loop(run: duly.aio.Run[Any]) -> None:
                await greenlet_spawn(work, RunBeside(run, self._loop))

            return JobBeside(self.told.job(*declared, **settings)(in_loop), self._loop)

        return register


class JobBeside:
    def __init__(self, told: duly.aio.Job[Any], loop: asyncio.Runner) -> None:
        self._told = told
        self._loop = loop

    def run(self, *asked: Any, **settings: Any) -> Any:
        return wherever(self._told.run(*asked, **settings), self._loop)

    def catch_up(self) -> list[duly.Completed]:
        return wherever(self._told.catch_up(), self._loop)


class RunBeside:
    def __init__(self, told: duly.aio.Run[Any], loop: asyncio.Runner) -> None:
        self.told = told
        self.label, self.attempt = told.label, told.attempt
        self._loop = loop

    @property
    def tx(self) -> Any:
        return wherever(self.told.tx, self._loop)

    def publish(self, path: Path) -> Path:
        return wherever(self.told.publish(path), self._loop)


def wherever(work: Awaitable[T], loop: asyncio.Runner) -> T:
    """What is awaited: in a story that runs beside the loop already, or in one that does not."""
    return done(work) if getcurrent().parent is not None else loop.run(awaited(work))


class ClaimBeside:
    """A claim whose block is plain, outside of the loop."""

    def __init__(self, told: duly.aio.Claim, loop: asyncio.Runner) -> None:
        self._told = told
        self._loop = loop

    def __enter__(self) -> ClaimBeside:
        self._loop.run(self._told.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._told.__aexit__(kind, error, trace))

    def use(self, effect: Callable[[Any], object]) -> None:
        async def in_loop() -> None:
            await greenlet_spawn(effect, await self._told.run.tx)

        self._loop.run(in_loop())

    def complete(self) -> None:
        self._loop.run(awaited(self._told.complete()))


class DriverBeside:
    """A connection of aiosqlite, psycopg or asyncpg, spoken to as a plain one."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def commit(self) -> None:
        done(self._driver.commit() if hasattr(self._driver, "commit") else self._driver.execute("commit"))

    def execute(self, sql: str) -> None:
        # asyncpg begins nothing by itself.
        done(self._driver.execute(sql if hasattr(self._driver, "commit") else f"begin; {sql}"))


class WhileAwaited:
    """An `async with` that is plain."""

    def __init__(self, block: Any) -> None:
        self._block = block

    def __enter__(self) -> Any:
        return done(self._block.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        answer: bool | None = done(self._block.__aexit__(kind, error, trace))
        return answer
