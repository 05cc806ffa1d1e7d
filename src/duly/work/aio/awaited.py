"""Awaiting: answers that cannot be mistaken for their truth, and work that cancellation does not cut in half."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")


class Awaited(Generic[T]):
    """What `await` makes an answer of. Without it nothing is done, and asking whether it is true raises `TypeError`."""

    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()

    def __bool__(self) -> NoReturn:
        self._work.close()
        raise TypeError("this answer has to be awaited before it is asked for its truth; nothing was done")


async def to_the_end(work: Coroutine[Any, Any, T]) -> tuple[T, asyncio.CancelledError | None]:
    """Do the work to its end, also when whoever waits for it is cancelled meanwhile; with that cancellation, to be raised.

    For what is short and must not be half done: a claim, a completion, the record of an end.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as e:
            if task.cancelled():
                raise
            cancelled = e
        except BaseException:  # noqa: S112  the work's own error, which its result raises below
            continue
    return task.result(), cancelled


async def undivided(work: Coroutine[Any, Any, T]) -> T:
    """Do the work to its end, then let a cancellation that came meanwhile take effect."""
    result, cancelled = await to_the_end(work)
    if cancelled is not None:
        raise cancelled
    return result
