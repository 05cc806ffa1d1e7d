"""Ledgers in an event loop whose `run.tx` is the user's own kind of connection: the twin of `work.typed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from duly.errors import Misuse
from duly.store import BUSY_SECONDS
from duly.store.sqlite import ledger_path
from duly.store.typed_async import AsyncTypedStore
from duly.work.aio.ledger import Ledger
from duly.work.typed import has_several_databases, place_of, refuse_other_databases

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker

    from duly.store.owned.sqlalchemy_async import Lend
    from duly.store.typed_async import Kept

S = TypeVar("S", bound="AsyncSession")


@overload
def sqlalchemy(source: AsyncEngine, *, busy_seconds: float = BUSY_SECONDS) -> Ledger[AsyncConnection]: ...


@overload
def sqlalchemy(source: async_sessionmaker[S], *, busy_seconds: float = BUSY_SECONDS) -> Ledger[S]: ...


def sqlalchemy(source: AsyncEngine | async_sessionmaker[Any], *, busy_seconds: float = BUSY_SECONDS) -> Ledger[Any]:
    """The ledger in the database of an async engine (extra `sqlalchemy`): SQLite by aiosqlite, PostgreSQL by psycopg, asyncpg.

    Given an `AsyncEngine`, `await run.tx` is an `AsyncConnection` of it; given an `async_sessionmaker`, an `AsyncSession` of
    the maker's class, flushed before the completion. duly's own short transactions use connections of its own, on PostgreSQL
    by psycopg (extra `postgres`). `busy_seconds` is how long a write waits for its turn. Raises `Misuse` for another database
    or source; what the first use raises: `Misuse` too, and as `duly.aio.sqlite`, `duly.aio.postgres`.
    """
    from duly.store.owned.sqlalchemy_async import OwnedTransaction

    engine, lend = _engine_and_lend(source)
    refuse_other_databases(engine.sync_engine)
    name = engine.url.render_as_string(hide_password=True)
    return Ledger(
        AsyncTypedStore(
            name,
            busy_seconds,
            lambda: _ledger_of_engine(engine, busy_seconds),
            lambda ledger: OwnedTransaction(engine, lend, ledger),
        )
    )


def _engine_and_lend(source: object) -> tuple[AsyncEngine, Lend]:
    from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker

    from duly.store.owned.sqlalchemy_async import connections_of, sessions_of

    if isinstance(source, AsyncEngine):
        return source, connections_of(source)
    if not isinstance(source, async_sessionmaker):
        raise Misuse(
            f"source: give an AsyncEngine or an async_sessionmaker of SQLAlchemy, not a {type(source).__name__}; "
            "duly.sqlalchemy takes an Engine or a sessionmaker"
        )
    engine = source.kw.get("bind")
    if not isinstance(engine, AsyncEngine) or has_several_databases(source.kw):
        raise Misuse(
            "source: the async_sessionmaker has to be bound to one engine, async_sessionmaker(engine): "
            "run.tx commits in one database"
        )
    return engine, sessions_of(source)


async def _ledger_of_engine(engine: AsyncEngine, busy_seconds: float) -> Kept:
    """The ledger where the engine's connections go."""
    async with engine.connect() as connection:
        place = await connection.run_sync(place_of)
    ledger = _at(place, engine.dialect.name, busy_seconds)
    try:
        await ledger.open()
    except BaseException:
        await ledger.close()
        raise
    return ledger


def _at(place: str, database: str, busy_seconds: float) -> Kept:
    if database == "sqlite":
        from duly.store.sqlite_async import AsyncSqliteStore

        return AsyncSqliteStore(ledger_path(place), busy_seconds=busy_seconds)
    from duly.store.postgres_async import AsyncPostgresStore

    return AsyncPostgresStore(place, busy_seconds=busy_seconds)


def django(alias: str = "default", *, busy_seconds: float = BUSY_SECONDS) -> NoReturn:
    """There is none: Django's transactions do not work in async code (its manual, "Asynchronous support"). Raises `Misuse`.

    Declare the job with `duly.django(alias)` as a plain function, and await `asgiref.sync.sync_to_async(job.run)(window)`.
    """
    raise Misuse(
        "Django's transactions do not work in async code; declare the job with duly.django() as a plain function, and await "
        "asgiref.sync.sync_to_async(job.run)(window)"
    )
