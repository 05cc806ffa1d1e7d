"""A borrowed transaction of psycopg's `AsyncConnection`: as `postgres`, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duly.errors import ClaimLost
from duly.ledger.ask import drive_async
from duly.redaction import shown_url
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.borrowed.postgres import check_transaction
from duly.store.postgres import translated
from duly.store.postgres_async import AsyncAnswers

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin

T = TypeVar("T")


async def in_borrowed(connection: psycopg.AsyncConnection[Any], operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the connection's transaction. Raises as `run_in_async`."""
    try:
        check_transaction(connection)
        answers = AsyncAnswers(connection)
        answers.clock_by_hand = clock_by_hand(await answers(FACTS), origin)
        return await drive_async(operation, answers)
    except ClaimLost:
        await connection.close()
        raise
    except psycopg.Error as e:
        raise translated(e, name=shown_url(connection.info.dsn)) from e


def is_open(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether a transaction is under way."""
    return connection.info.transaction_status != TransactionStatus.IDLE
