"""Awaiting: work that cancellation does not cut in half, beside answers that cannot be mistaken for their truth."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from duly.store.awaited import Awaited as Awaited

T = TypeVar("T")


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
