"""Callers: code that makes its own transactions and lends them, one class for each kind of connection, all alike.

A story speaks to a caller in one voice, whatever it is made of; a caller of asyncio runs its own loop. To add a kind, copy
the class that resembles it and name it in `KINDS`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from typing import Any, TypeVar

import aiosqlite
import asyncpg
import django
import psycopg
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import duly
import duly.aio
from duly.ledger.complete import complete_or_raise
from duly.store.borrowed import run_in_async

T = TypeVar("T")

EFFECT = "insert into effect values ('{note}')"


class Undone(Exception):
    """What a caller raises to have its block rolled back."""


class Caller:
    """Someone with a connection. `lent` is what is given to duly; savepoints nest."""

    lent: Any

    def begin(self) -> None:
        """Begin a transaction, where that has to be said."""

    def apply(self, note: str) -> None:
        """Cause an effect."""
        self.execute(EFFECT.format(note=note))

    def execute(self, sql: str) -> None:
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def rollback(self) -> None:
        raise NotImplementedError

    def begin_savepoint(self) -> None:
        self.execute("savepoint mine")

    def rollback_savepoint(self) -> None:
        self.execute("rollback to savepoint mine")

    def release_savepoint(self) -> None:
        self.execute("release savepoint mine")

    def once(self, key: str, *, payload: Any = None) -> bool:
        return duly.once(self.lent, key, payload=payload)

    def complete(self, claim: duly.Claim) -> None:
        claim.complete(self.lent)

    def receive(self, key: str, payload: Any = b"", **more: Any) -> Any:
        return duly.receive(self.lent, key, payload, source="orders", **more)

    def answer(self, received: Any, body: bytes, **more: Any) -> None:
        received.answer(body, **more)

    def close(self) -> None:
        raise NotImplementedError


# -- drivers ------------------------------------------------------------------------------------------------------------


class OfSqlite3(Caller):
    def __init__(self, place: str, *, autocommit: bool = False, isolation: str | None = None) -> None:
        self.lent = sqlite3.connect(place, isolation_level=None, timeout=30)
        self._begins = not autocommit

    def begin(self) -> None:
        if self._begins:
            self.execute("begin")

    def execute(self, sql: str) -> None:
        self.lent.execute(sql)

    def commit(self) -> None:
        self.lent.commit()

    def rollback(self) -> None:
        self.lent.rollback()

    def close(self) -> None:
        self.lent.close()


class OfPsycopg(Caller):
    def __init__(self, place: str, *, autocommit: bool = False, isolation: str | None = None) -> None:
        self.lent = psycopg.connect(place, autocommit=autocommit)
        if isolation:
            self.lent.isolation_level = psycopg.IsolationLevel[isolation.replace(" ", "_")]

    def execute(self, sql: str) -> None:
        self.lent.execute(sql)

    def commit(self) -> None:
        self.lent.commit()

    def rollback(self) -> None:
        self.lent.rollback()

    def close(self) -> None:
        self.lent.close()


# -- SQLAlchemy ---------------------------------------------------------------------------------------------------------

# The modes of a driver of SQLite: it begins at the first write, SQLAlchemy begins, or a transaction is always open (from
# Python 3.12 on). Others have one mode.
DRIVER_BEGINS, SQLALCHEMY_BEGINS, ALWAYS_OPEN = "", "-begins", "-open"


def engine_url(place: str, driver: str) -> str:
    """The URL of an engine: `driver` is SQLAlchemy's name of it."""
    return place.replace("postgresql://", f"{driver}://") if "://" in place else f"{driver}:///{place}"


def settings_of_engine(mode: str, autocommit: bool, isolation: str | None) -> dict[str, Any]:
    level = "AUTOCOMMIT" if autocommit else isolation
    return {
        "poolclass": NullPool,
        **({"isolation_level": level} if level else {}),
        **({"connect_args": {"autocommit": False}} if mode == ALWAYS_OPEN and not autocommit else {}),
    }


def let_sqlalchemy_begin(engine: sqlalchemy.Engine) -> None:
    """As SQLAlchemy's manual has it, for savepoints that are real: the driver begins nothing, SQLAlchemy emits BEGIN."""

    @event.listens_for(engine, "connect")
    def connected(driver: Any, record: Any) -> None:
        driver.isolation_level = None

    @event.listens_for(engine, "begin")
    def begun(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("BEGIN")


class OfSqlalchemy(Caller):
    """What a Connection and a Session have in common: both are spoken to in the same words."""

    def __init__(
        self,
        place: str,
        driver: str,
        lend: Callable[[sqlalchemy.Engine], Any],
        *,
        mode: str = DRIVER_BEGINS,
        autocommit: bool = False,
        isolation: str | None = None,
    ) -> None:
        self.engine = sqlalchemy.create_engine(
            engine_url(place, driver), **settings_of_engine(mode, autocommit, isolation)
        )
        if mode == SQLALCHEMY_BEGINS and not autocommit:
            let_sqlalchemy_begin(self.engine)
        self.lent = lend(self.engine)
        self._savepoints: list[Any] = []

    def execute(self, sql: str) -> None:
        self.lent.execute(text(sql))

    def commit(self) -> None:
        self.lent.commit()

    def rollback(self) -> None:
        self.lent.rollback()

    def begin_savepoint(self) -> None:
        self._savepoints.append(self.lent.begin_nested())

    def rollback_savepoint(self) -> None:
        self._savepoints.pop().rollback()

    def release_savepoint(self) -> None:
        self._savepoints.pop().commit()

    def close(self) -> None:
        self.lent.close()
        self.engine.dispose()


class OfSqlalchemyAsync(Caller):
    """The same, awaited in a loop of its own."""

    def __init__(
        self,
        place: str,
        driver: str,
        lend: Callable[[Any], Any],
        *,
        mode: str = DRIVER_BEGINS,
        autocommit: bool = False,
        isolation: str | None = None,
    ) -> None:
        self._runner = asyncio.Runner()
        self.engine = create_async_engine(engine_url(place, driver), **settings_of_engine(mode, autocommit, isolation))
        if mode == SQLALCHEMY_BEGINS and not autocommit:
            let_sqlalchemy_begin(self.engine.sync_engine)
        self.lent = lend(self.engine)
        if not isinstance(self.lent, AsyncSession):
            self._run(self.lent.start())
        self._savepoints: list[Any] = []

    def _run(self, awaited: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(awaited)

    def execute(self, sql: str) -> None:
        self._run(self.lent.execute(text(sql)))

    def commit(self) -> None:
        self._run(self.lent.commit())

    def rollback(self) -> None:
        self._run(self.lent.rollback())

    def begin_savepoint(self) -> None:
        async def begin() -> Any:
            return await self.lent.begin_nested()

        self._savepoints.append(self._run(begin()))

    def rollback_savepoint(self) -> None:
        self._run(self._savepoints.pop().rollback())

    def release_savepoint(self) -> None:
        self._run(self._savepoints.pop().commit())

    def once(self, key: str, *, payload: Any = None) -> bool:
        return self._run(once_in(self.lent, key, payload))

    def complete(self, claim: duly.Claim) -> None:
        self._run(complete_in(self.lent, claim))

    def receive(self, key: str, payload: Any = b"", **more: Any) -> Any:
        return self._run(receive_in(self.lent, key, payload, **more))

    def answer(self, received: Any, body: bytes, **more: Any) -> None:
        self._run(answer_in(received, body, **more))

    def close(self) -> None:
        self._run(self.lent.close())
        self._run(self.engine.dispose())
        self._runner.close()


async def once_in(lent: Any, key: str, payload: Any) -> bool:
    return await duly.aio.once(lent, key, payload=payload)


async def receive_in(lent: Any, key: str, payload: Any, **more: Any) -> Any:
    return await duly.aio.receive(lent, key, payload, source="orders", **more)


async def answer_in(received: Any, body: bytes, **more: Any) -> None:
    await received.answer(body, **more)


async def complete_in(lent: Any, claim: duly.Claim) -> None:
    origin = claim._store.origin  # type: ignore[attr-defined]  # each store has one
    await run_in_async(lent, complete_or_raise(claim._held, claim.run._left()), origin)


class OfDriver(Caller):
    """Someone with a connection of an async driver, awaited in a loop of its own."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def _run(self, awaited: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(awaited)

    def execute(self, sql: str) -> None:
        self._run(self._awaited(sql))

    async def _awaited(self, sql: str) -> None:
        await self.lent.execute(sql)

    def commit(self) -> None:
        self._run(self.lent.commit())

    def rollback(self) -> None:
        self._run(self.lent.rollback())

    def once(self, key: str, *, payload: Any = None) -> bool:
        return self._run(once_in(self.lent, key, payload))

    def complete(self, claim: duly.Claim) -> None:
        self._run(complete_in(self.lent, claim))

    def receive(self, key: str, payload: Any = b"", **more: Any) -> Any:
        return self._run(receive_in(self.lent, key, payload, **more))

    def answer(self, received: Any, body: bytes, **more: Any) -> None:
        self._run(answer_in(received, body, **more))

    def close(self) -> None:
        self._run(self.lent.close())
        self._runner.close()


class OfAiosqlite(OfDriver):
    def __init__(self, place: str, *, autocommit: bool = False, isolation: str | None = None) -> None:
        super().__init__()

        self._begins = not autocommit

        async def connect() -> Any:
            return await aiosqlite.connect(place, timeout=0, isolation_level=None)

        self.lent = self._run(connect())

    def begin(self) -> None:
        if self._begins:
            self.execute("begin")


class OfPsycopgAsync(OfDriver):
    def __init__(self, place: str, *, autocommit: bool = False, isolation: str | None = None) -> None:
        super().__init__()
        self.lent = self._run(psycopg.AsyncConnection.connect(place, autocommit=autocommit))
        if isolation is not None:
            level = psycopg.IsolationLevel[isolation.replace(" ", "_")]
            self._run(self.lent.set_isolation_level(level))


class OfAsyncpg(OfDriver):
    def __init__(self, place: str, *, autocommit: bool = False, isolation: str | None = None) -> None:
        super().__init__()
        self.lent = self._run(asyncpg.connect(place))
        self._isolation = (isolation or "read committed").replace(" ", "_").lower()
        self._autocommit = autocommit
        self._transaction: Any = None

    def begin(self) -> None:
        if self._autocommit or self._transaction is not None:
            return

        async def begin() -> Any:
            transaction = self.lent.transaction(isolation=self._isolation)
            await transaction.start()
            return transaction

        self._transaction = self._run(begin())

    def _end(self, how: str) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            self._run(getattr(transaction, how)())

    def execute(self, sql: str) -> None:
        self.begin()
        super().execute(sql)

    def once(self, key: str, *, payload: Any = None) -> bool:
        self.begin()
        return super().once(key, payload=payload)

    def complete(self, claim: duly.Claim) -> None:
        self.begin()
        super().complete(claim)

    def receive(self, key: str, payload: Any = b"", **more: Any) -> Any:
        self.begin()
        return super().receive(key, payload, **more)

    def commit(self) -> None:
        self._end("commit")

    def rollback(self) -> None:
        self._end("rollback")


# -- Django -------------------------------------------------------------------------------------------------------------

settings.configure(DATABASES={}, USE_TZ=True)
django.setup()
_aliases = count(1)


def described_for_django(place: str) -> dict[str, Any]:
    """A file, or the URL of a PostgreSQL database, in the words of Django's settings."""
    if "://" not in place:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": place}
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    parts = conninfo_to_dict(place)
    return {
        "ENGINE": "django.db.backends.postgresql",
        **{named[name]: str(value) for name, value in parts.items() if name in named},
    }


def django_database(place: str, **options: Any) -> str:
    """The alias of a new database of Django's."""
    described = described_for_django(place)
    alias = f"shop{next(_aliases)}"
    handler = ConnectionHandler({"default": {}, alias: {**described, "OPTIONS": options}})
    connections.settings[alias] = handler.settings[alias]
    return alias


class OfDjango(Caller):
    def __init__(self, place: str, *, autocommit: bool = False, isolation: str | None = None) -> None:
        options = {"isolation_level": psycopg.IsolationLevel[isolation.replace(" ", "_")]} if isolation else {}
        self.alias = django_database(place, **options)
        self.lent = connections[self.alias]
        self._begins = not autocommit
        self._blocks: list[Any] = []

    def begin(self) -> None:
        if self._begins:
            self._enter()

    def execute(self, sql: str) -> None:
        with self.lent.cursor() as cursor:
            cursor.execute(sql)

    def commit(self) -> None:
        self._blocks.pop().__exit__(None, None, None)

    def rollback(self) -> None:
        self._blocks.pop().__exit__(Undone, Undone(), None)

    def begin_savepoint(self) -> None:
        self._enter()

    rollback_savepoint = rollback
    release_savepoint = commit

    def _enter(self) -> None:
        block = transaction.atomic(using=self.alias)
        block.__enter__()
        self._blocks.append(block)

    def close(self) -> None:
        while self._blocks:
            self.rollback()
        self.lent.close()
        del connections[self.alias], connections.settings[self.alias]


# -- kinds --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of connection. Without `savepoints` it has none that its transaction's commit would keep or drop."""

    name: str
    database: str
    lend: Callable[..., Caller]
    savepoints: bool = True


def sqlalchemy_kind(name: str, driver: str, lend: Callable[[Any], Any], *, mode: str = DRIVER_BEGINS) -> Kind:
    """A kind of SQLAlchemy's: what is lent is made from an engine over this driver, in a mode of it."""
    made_of = OfSqlalchemyAsync if name.startswith("Async") else OfSqlalchemy
    database = driver.partition("+")[0]

    def make(place: str, **settings: Any) -> Caller:
        return made_of(place, driver, lend, mode=mode, **settings)

    return Kind(f"{name} {driver}{mode}", database, make, savepoints=mode != DRIVER_BEGINS or database != "sqlite")


def a_connection(engine: Any) -> Any:
    return engine.connect()


KINDS = [
    Kind("sqlite3", "sqlite", OfSqlite3),
    Kind("psycopg", "postgresql", OfPsycopg),
    Kind("aiosqlite", "sqlite", OfAiosqlite),
    Kind("psycopg async", "postgresql", OfPsycopgAsync),
    Kind("asyncpg", "postgresql", OfAsyncpg),
    sqlalchemy_kind("Connection", "sqlite", a_connection),
    sqlalchemy_kind("Connection", "sqlite", a_connection, mode=SQLALCHEMY_BEGINS),
    sqlalchemy_kind("Connection", "postgresql+psycopg", a_connection),
    sqlalchemy_kind("Session", "sqlite", Session),
    sqlalchemy_kind("Session", "sqlite", Session, mode=SQLALCHEMY_BEGINS),
    sqlalchemy_kind("Session", "postgresql+psycopg", Session),
    sqlalchemy_kind("AsyncConnection", "sqlite+aiosqlite", a_connection),
    sqlalchemy_kind("AsyncConnection", "postgresql+asyncpg", a_connection),
    sqlalchemy_kind("AsyncSession", "sqlite+aiosqlite", AsyncSession, mode=SQLALCHEMY_BEGINS),
    sqlalchemy_kind("AsyncSession", "postgresql+asyncpg", AsyncSession),
    sqlalchemy_kind("AsyncSession", "postgresql+psycopg", AsyncSession),
    Kind("Django sqlite", "sqlite", OfDjango),
    Kind("Django postgresql", "postgresql", OfDjango),
]
if sys.version_info >= (3, 12):
    KINDS += [
        sqlalchemy_kind("Connection", "sqlite", a_connection, mode=ALWAYS_OPEN),
        sqlalchemy_kind("AsyncSession", "sqlite+aiosqlite", AsyncSession, mode=ALWAYS_OPEN),
    ]
if find_spec("psycopg2"):  # told where it is installed; the project does not ask for it
    KINDS += [sqlalchemy_kind("Session", "postgresql+psycopg2", Session)]
