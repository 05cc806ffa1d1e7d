"""Ledgers whose `run.tx` is the user's own kind of connection: of SQLAlchemy or Django."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from duly.errors import Misuse
from duly.store import BUSY_SECONDS
from duly.store.place import url_of
from duly.store.sqlite import ledger_path
from duly.store.typed import TypedStore, at_url, in_file
from duly.work.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.backends.base.base import BaseDatabaseWrapper
    from sqlalchemy import Connection, Engine
    from sqlalchemy.orm import Session, sessionmaker

    from duly.store.owned.sqlalchemy import Lend
    from duly.store.typed import Kept

S = TypeVar("S", bound="Session")


@overload
def sqlalchemy(source: Engine, *, busy_seconds: float = BUSY_SECONDS) -> Ledger[Connection]: ...


@overload
def sqlalchemy(source: sessionmaker[S], *, busy_seconds: float = BUSY_SECONDS) -> Ledger[S]: ...


def sqlalchemy(source: Engine | sessionmaker[Any], *, busy_seconds: float = BUSY_SECONDS) -> Ledger[Any]:
    """Open the ledger in the database of an engine (extra `sqlalchemy`): SQLite, or PostgreSQL by psycopg or psycopg2.

    Given an `Engine`, `run.tx` is a `Connection` of it; given a `sessionmaker`, a `Session` of the maker's class, flushed
    before the completion. duly's own short transactions use a connection of its own. On SQLite the ledger is made if it is
    not there, on PostgreSQL by `duly db create`. Raises `Misuse` for another database, and as `duly.sqlite`, `duly.postgres`.
    """
    from duly.store.owned.sqlalchemy import ThroughSqlalchemy

    engine, lend = _engine_and_lend(source)
    store = TypedStore(
        lambda: _ledger_of_engine(engine, busy_seconds),
        lambda guard, turn: ThroughSqlalchemy(engine, guard, turn, lend),
    )
    _ = store.ledger  # whoever is wrong hears it now
    return Ledger(store)


def _engine_and_lend(source: object) -> tuple[Engine, Lend]:
    from sqlalchemy import Engine
    from sqlalchemy.orm import sessionmaker

    from duly.store.owned.sqlalchemy import itself, sessions_of

    if isinstance(source, Engine):
        return source, itself
    if not isinstance(source, sessionmaker):
        raise Misuse(
            f"source: give an Engine or a sessionmaker of SQLAlchemy, not a {type(source).__name__}; "
            "duly.aio.sqlalchemy takes an AsyncEngine or an async_sessionmaker"
        )
    engine = source.kw.get("bind")
    if not isinstance(engine, Engine) or has_several_databases(source.kw):
        raise Misuse(
            "source: the sessionmaker has to be bound to one engine, sessionmaker(engine): run.tx commits in one database"
        )
    return engine, sessions_of(source)


def has_several_databases(settings: Mapping[str, Any]) -> bool:
    """Whether sessions of these settings commit in more than the one that they are bound to."""
    return bool(settings.get("binds") or settings.get("twophase"))


def _ledger_of_engine(engine: Engine, busy_seconds: float) -> Kept:
    """The ledger where the engine's connections go."""
    refuse_other_databases(engine)
    if engine.dialect.is_async:
        raise Misuse(f"source: {engine.driver} is awaited; give its AsyncEngine to duly.aio.sqlalchemy")
    with engine.connect() as connection:
        place = place_of(connection)
    if engine.dialect.name == "sqlite":
        return in_file(place, busy_seconds=busy_seconds)
    return at_url(place, busy_seconds=busy_seconds)


def refuse_other_databases(engine: Engine) -> None:
    """Raise `Misuse` for a database that no ledger lies in."""
    if engine.dialect.name not in ("postgresql", "sqlite"):
        raise Misuse(f"source: a ledger lies in PostgreSQL or SQLite, not in {engine.dialect.name}")


def place_of(connection: Connection) -> str:
    """Where a connection of SQLAlchemy is to: a file, empty in memory, or a URL. Raises `Misuse` in autocommit."""
    if connection.dialect.name == "sqlite":
        return _main_file(connection.exec_driver_sql("pragma database_list").fetchall())
    adapted = connection.connection.dbapi_connection
    assert adapted is not None  # it is open
    if connection.dialect.detect_autocommit_setting(adapted):
        raise Misuse("source: the engine commits each statement by itself (AUTOCOMMIT); give one that does not")
    _, asked = connection.dialect.create_connect_args(connection.engine.url)
    return url_of(connection.connection.driver_connection, asked)


def django(alias: str = "default", *, busy_seconds: float = BUSY_SECONDS) -> Ledger[BaseDatabaseWrapper]:
    """The ledger in a database of Django's settings (extra `django`): PostgreSQL or SQLite.

    `run.tx` is `connections[alias]` inside an `atomic` block that duly enters when it is first read, and leaves with the
    completion: the ORM works on that alias as ever. Nothing is looked at before the first use, so that a module of a project
    may call this while the project is loading. What the first use raises: `Misuse`, and as `duly.sqlite`, `duly.postgres`.
    """
    from duly.store.owned.django import ThroughDjango

    return Ledger(
        TypedStore(lambda: _ledger_of_alias(alias, busy_seconds), lambda guard, turn: ThroughDjango(alias, guard, turn))
    )


def _ledger_of_alias(alias: str, busy_seconds: float) -> Kept:
    """The ledger where the alias's connections go."""
    place, vendor = _place_of_alias(alias)
    if vendor == "postgresql":
        return at_url(place, busy_seconds=busy_seconds)
    return in_file(place, busy_seconds=busy_seconds)


def url_of_alias(alias: str) -> str:
    """Where the ledger in a database of Django's settings is: a URL with its password, or a file. Raises `Misuse`."""
    place, vendor = _place_of_alias(alias)
    return place if vendor == "postgresql" else ledger_path(place)


def _place_of_alias(alias: str) -> tuple[str, str]:
    """A URL or a file, empty in memory, and which of the two."""
    from django.db import connections

    connection: Any = connections[alias]
    if connection.vendor not in ("postgresql", "sqlite"):
        raise Misuse(f"alias: a ledger lies in PostgreSQL or SQLite, not in {connection.vendor}")
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        return url_of(connection.connection, connection.get_connection_params()), connection.vendor
    with connection.cursor() as cursor:
        cursor.execute("pragma database_list")
        return _main_file(cursor.fetchall()), connection.vendor


def _main_file(databases: Any) -> str:
    """The file of the main database, by `pragma database_list`; empty for one in memory."""
    return next((file or "" for _, name, file in databases if name == "main"), "")
