"""A borrowed transaction of aiosqlite: as `sqlite`, in the connection's own thread.

The whole operation runs there in one piece, so that no other task of the program comes between two of its statements. The
one way that aiosqlite has for this is a method of its own, `_execute`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import aiosqlite

from duly.store.borrowed.sqlite import in_borrowed as in_sqlite

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin

T = TypeVar("T")


async def in_borrowed(connection: aiosqlite.Connection, operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the connection's transaction. Raises as `run_in_async`."""
    result: T = await connection._execute(  # type: ignore[no-untyped-call]
        lambda: in_sqlite(connection._conn, operation, origin)
    )
    return result


def is_open(connection: aiosqlite.Connection) -> bool:
    """Whether a transaction is under way."""
    return connection.in_transaction
