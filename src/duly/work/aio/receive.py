"""Receive, in an event loop: the twin of `work.receive`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.outbox.receiver.receipt import delivery_of, receive_in_async
from duly.work.aio.awaited import Awaited
from duly.work.receive import hash_of

if TYPE_CHECKING:
    from datetime import datetime

    from duly.outbox.receiver.receipt import AsyncReceived, Replayed
    from duly.work.payload import Json


def receive(
    tx: object,
    key: str,
    payload: bytes | Json,
    *,
    source: str,
    remembers: str | None = None,
    first_sent: datetime | str | None = None,
    undated: str = "refuse",
) -> Awaited[AsyncReceived | Replayed]:
    """Receive a message in the caller's transaction: as `duly.receive`, awaited, and so is `answer` of what it gives.

    `tx` is an `AsyncConnection` of psycopg, a connection of asyncpg or aiosqlite, or an `AsyncConnection` or `AsyncSession`
    of SQLAlchemy.
    """
    delivery = delivery_of(
        key, hash_of(payload), source=source, remembers=remembers, first_sent=first_sent, undated=undated
    )
    return Awaited(receive_in_async(tx, delivery))
