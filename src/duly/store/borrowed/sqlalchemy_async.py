"""A borrowed transaction of SQLAlchemy's asyncio: the same as the other's, which its bridge runs beside the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

from duly.store.borrowed.sqlalchemy import in_borrowed as in_borrowed_beside

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin

T = TypeVar("T")


async def in_borrowed(
    tx: AsyncConnection | AsyncSession | async_scoped_session[Any], operation: Operation[T], origin: Origin | None
) -> T:
    """Run an operation in the transaction of an AsyncConnection or AsyncSession. Raises as `run_in`, and what a flush
    raises.
    """
    here = tx() if isinstance(tx, async_scoped_session) else tx
    return await here.run_sync(in_borrowed_beside, operation, origin)


def is_open(tx: AsyncConnection | AsyncSession | async_scoped_session[Any]) -> bool:
    """Whether a transaction is under way."""
    here = tx() if isinstance(tx, async_scoped_session) else tx
    return here.in_transaction()
