"""Borrowed transactions: operations in a transaction that the caller began and will commit. One file for each driver.

All alike: see to it that a transaction is open, read what the ledger says of itself, drive the operation. No commit, no
rollback and no savepoint of ours. A driver is told by its class and imported only when one of its connections comes.
"""

from __future__ import annotations

from importlib import import_module

from duly.errors import Misuse, NoLedger, WrongLedger
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from types import ModuleType
    from typing import Any, Protocol, TypeAlias, TypeVar

    import psycopg
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session, scoped_session

    from duly.ledger.ask import Operation

    T = TypeVar("T")

    class DjangoConnection(Protocol):
        """A database connection of Django (`django.db.connection`), which comes without types."""

        vendor: str
        in_atomic_block: bool
        needs_rollback: bool
        settings_dict: dict[str, Any]
        connection: Any  # the driver's

        def cursor(self) -> Any: ...

        def set_rollback(self, rollback: bool) -> None: ...

        def close(self) -> None: ...

    # What a caller may lend a transaction by.
    Lent: TypeAlias = (
        sqlite3.Connection | psycopg.Connection[Any] | Connection | Session | scoped_session[Any] | DjangoConnection
    )

# The package and class of a connection, and the file here that knows it.
_DRIVERS = {
    ("sqlite3", "Connection"): "sqlite",
    ("psycopg", "Connection"): "postgres",
    ("sqlalchemy", "Connection"): "sqlalchemy",
    ("sqlalchemy", "Session"): "sqlalchemy",
    ("sqlalchemy", "scoped_session"): "sqlalchemy",
    ("django", "BaseDatabaseWrapper"): "django",
    ("django", "ConnectionProxy"): "django",
}
_ASYNC_DRIVERS = {
    ("psycopg", "AsyncConnection"): "postgres_async",
    ("asyncpg", "Connection"): "asyncpg",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg",
    ("aiosqlite", "Connection"): "aiosqlite",
    ("sqlalchemy", "AsyncConnection"): "sqlalchemy_async",
    ("sqlalchemy", "AsyncSession"): "sqlalchemy_async",
    ("sqlalchemy", "async_scoped_session"): "sqlalchemy_async",
}


@record
class Origin:
    """The ledger that a claim came from: its id, its file where it has one, and how it is named to people."""

    ledger_id: str
    path: str
    name: str


def run_in(tx: object, operation: Operation[T], origin: Origin | None = None) -> T:
    """Run an operation in a caller's transaction, by whichever driver it is; `origin` is the ledger of its claim.

    Raises `NoTransaction` before the first statement where there is none, `NoLedger`, `WrongLedger`, `LedgerTooNew`,
    `Conflict` (roll back, and try the whole transaction again), `Misuse` for a connection that is not known, and what the
    operation raises.
    """
    try:
        driver = _driver_of(tx, _DRIVERS)
        if driver is None:
            raise _not_known(tx, _ASYNC_DRIVERS, "duly.aio")
        result: T = driver.in_borrowed(tx, operation, origin)
        return result
    except NoLedger as e:
        raise _named(e, origin) from e
    finally:
        operation.close()


def is_open(tx: object) -> bool:
    """Whether a caller's transaction, in which an operation was run, is still to end."""
    driver = _driver_of(tx, _DRIVERS)
    return driver is not None and bool(driver.is_open(tx))


async def run_in_async(tx: object, operation: Operation[T], origin: Origin | None = None) -> T:
    """`run_in`, for connections whose statements are awaited."""
    try:
        driver = _driver_of(tx, _ASYNC_DRIVERS)
        if driver is None:
            raise _not_known(tx, _DRIVERS, "duly")
        result: T = await driver.in_borrowed(tx, operation, origin)
        return result
    except NoLedger as e:
        raise _named(e, origin) from e
    finally:
        operation.close()


def _driver_of(tx: object, drivers: dict[tuple[str, str], str]) -> ModuleType | None:
    for kind in type(tx).__mro__:
        file = drivers.get((kind.__module__.partition(".")[0].removeprefix("_"), kind.__name__))
        if file is not None:
            return import_module(f"duly.store.borrowed.{file}")
    return None


def _not_known(tx: object, others: dict[tuple[str, str], str], where: str) -> Misuse:
    if _driver_of(tx, others) is not None:
        return Misuse(f"tx: a {type(tx).__name__} of {type(tx).__module__.partition('.')[0]} belongs to {where}")
    return Misuse(
        f"tx: a {type(tx).__name__} is no connection that duly knows; give one of sqlite3, psycopg, asyncpg, aiosqlite, "
        "SQLAlchemy (a Connection or Session) or Django"
    )


def _named(error: NoLedger, origin: Origin | None) -> NoLedger | WrongLedger:
    if origin is None:
        return error
    return WrongLedger(f"the claim belongs to the ledger {origin.name}, and the connection's database holds none")
