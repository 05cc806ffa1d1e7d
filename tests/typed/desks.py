"""Desks: a ledger whose `run.tx` is a library's own kind of connection, and that library's ways with it. All alike.

A story speaks to a desk in one voice. To add a kind, copy the class that resembles it and name it in `KINDS`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connections, models, transaction
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker
from sqlalchemy.util import greenlet_spawn

import duly
import duly.aio
from tests.borrowed.callers import django_database, engine_url
from tests.typed.beside import Beside, ClaimBeside, DriverBeside, WhileAwaited, awaited, done

Way = Callable[[Any], object]  # what is tried with a run's tx


class Desk:
    """Someone with a typed ledger. `whole` are ways to end the transaction that leave it as it was, `deadly` ways that do
    not: nothing of the run is kept after one.
    """

    ledger: Any  # a duly.Ledger, or speaks as one
    whole: dict[str, Way]
    deadly: dict[str, Way]

    def __init__(self, place: str, *settings: str) -> None:
        raise NotImplementedError

    def put(self, tx: Any, note: str) -> None:
        """Cause an effect, as the library's users do."""
        raise NotImplementedError

    def execute(self, tx: Any, sql: str) -> None:
        """Run a statement as it is written."""
        raise NotImplementedError

    def savepoint(self, tx: Any) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def driver(self, tx: Any) -> Any:
        """The driver's connection under it."""
        raise NotImplementedError

    @contextmanager
    def take(self, key: str) -> Iterator[Any]:
        """A claim, in whose transaction is done what it is given to use."""
        claim = self.ledger.take(key)
        assert isinstance(claim, duly.Claim)
        with claim:
            yield ClaimUsed(claim)

    def at_once(self, call: Callable[[], object], times: int) -> list[object]:
        """What a call answers that is made several times at once."""
        start = threading.Barrier(times)
        answers: list[object] = []

        def work() -> None:
            start.wait()
            answers.append(call())
            self.ledger.close()
            self.rest()

        threads = [threading.Thread(target=work) for _ in range(times)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def rest(self) -> None:
        """Let go of what this thread has open."""

    def close(self) -> None:
        raise NotImplementedError


class ClaimUsed:
    def __init__(self, claim: duly.Claim) -> None:
        self.complete = claim.complete
        self._run = claim.run

    def use(self, effect: Way) -> None:
        effect(self._run.tx)


class Undone(Exception):
    """What a story raises to have a savepoint rolled back."""


class Base(DeclarativeBase):
    pass


class Effect(Base):
    __tablename__ = "effect"
    note: Mapped[str] = mapped_column(primary_key=True)


class OfSqlalchemy(Desk):
    """What a Connection and a Session have in common."""

    whole = {  # noqa: RUF012  # the stories only read it
        "commit": lambda tx: tx.commit(),
        "rollback": lambda tx: tx.rollback(),
        "close": lambda tx: tx.close(),
        "with": lambda tx: tx.__enter__(),
        "begin": lambda tx: tx.begin(),
        "with begin": lambda tx: tx.begin().__enter__(),
        "commit as SQL": lambda tx: tx.execute(text("commit")),
        "commit as SQL, after a comment": lambda tx: tx.execute(text("/* now */ COMMIT")),
        "end as SQL": lambda tx: tx.execute(text("-- now\nend")),
        "rollback as SQL": lambda tx: tx.execute(text("rollback")),
        "begin as SQL": lambda tx: tx.execute(text("begin")),
    }
    deadly = {  # noqa: RUF012
        "the transaction's commit": lambda tx: tx.get_transaction().commit(),
        "the transaction's rollback": lambda tx: tx.get_transaction().rollback(),
        "the transaction's close": lambda tx: tx.get_transaction().close(),
        "invalidate": lambda tx: tx.invalidate(),
    }

    def __init__(self, place: str, *settings: str) -> None:
        (driver,) = settings
        self.engine: Engine = create_engine(engine_url(place, driver))

    def execute(self, tx: Any, sql: str) -> None:
        tx.execute(text(sql))

    def savepoint(self, tx: Any) -> AbstractContextManager[Any]:
        begun: AbstractContextManager[Any] = tx.begin_nested()
        return begun

    def close(self) -> None:
        self.ledger.close()
        self.engine.dispose()


class OfConnection(OfSqlalchemy):
    whole = {  # noqa: RUF012
        **OfSqlalchemy.whole,
        "commit by the driver's words": lambda tx: tx.exec_driver_sql("commit"),
        "the base class's with": lambda tx: Connection.__exit__(tx, None, None, None),
    }

    def __init__(self, place: str, *settings: str) -> None:
        super().__init__(place, *settings)
        ledger: duly.Ledger[Connection] = duly.sqlalchemy(self.engine)
        self.ledger = ledger

    def put(self, tx: Connection, note: str) -> None:
        tx.execute(Effect.__table__.insert().values(note=note))  # type: ignore[attr-defined]  # it is a Table

    def driver(self, tx: Connection) -> Any:
        return tx.connection.driver_connection


class ShopSession(Session):
    """A user's own class of sessions."""


class OfSession(OfSqlalchemy):
    whole = {  # noqa: RUF012
        **OfSqlalchemy.whole,
        "its connection's commit": lambda tx: tx.connection().commit(),
        "its connection's rollback": lambda tx: tx.connection().rollback(),
        "its connection's close": lambda tx: tx.connection().close(),
        "reset": lambda tx: tx.reset(),
        "the base class's with": lambda tx: Session.__exit__(tx, None, None, None),
    }

    def __init__(self, place: str, *settings: str) -> None:
        super().__init__(place, *settings)
        maker = sessionmaker(self.engine, class_=ShopSession)
        ledger: duly.Ledger[ShopSession] = duly.sqlalchemy(maker)
        self.ledger = ledger

    def put(self, tx: ShopSession, note: str) -> None:
        assert isinstance(tx, ShopSession)
        tx.add(Effect(note=note))

    def driver(self, tx: ShopSession) -> Any:
        return tx.connection().connection.driver_connection


# -- SQLAlchemy's asyncio ------------------------------------------------------------------------------------------------


class OfAsyncSqlalchemy(Desk):
    """What an AsyncConnection and an AsyncSession have in common. The stories are plain: see `beside`."""

    whole = {  # noqa: RUF012
        "commit": lambda tx: done(tx.commit()),
        "rollback": lambda tx: done(tx.rollback()),
        "close": lambda tx: done(tx.close()),
        "with": lambda tx: done(tx.__aenter__()),
        "begin": lambda tx: done(tx.begin().start()),
        "with begin": lambda tx: done(tx.begin().__aenter__()),
        "commit as SQL": lambda tx: done(tx.execute(text("commit"))),
        "commit as SQL, after a comment": lambda tx: done(tx.execute(text("/* now */ COMMIT"))),
        "end as SQL": lambda tx: done(tx.execute(text("-- now\nend"))),
        "rollback as SQL": lambda tx: done(tx.execute(text("rollback"))),
        "begin as SQL": lambda tx: done(tx.execute(text("begin"))),
        "commit as SQL, streamed": lambda tx: done(tx.stream(text("commit"))),
        "commit by what stands behind it": lambda tx: done(tx.run_sync(lambda behind: behind.commit())),
        "rollback by what stands behind it": lambda tx: done(tx.run_sync(lambda behind: behind.rollback())),
        "close by what stands behind it": lambda tx: done(tx.run_sync(lambda behind: behind.close())),
        "begin by what stands behind it": lambda tx: done(tx.run_sync(lambda behind: behind.begin())),
    }
    deadly = {  # noqa: RUF012
        "the transaction's commit": lambda tx: done(tx.get_transaction().commit()),
        "the transaction's rollback": lambda tx: done(tx.get_transaction().rollback()),
        "invalidate": lambda tx: done(tx.invalidate()),
    }

    def __init__(self, place: str, *settings: str) -> None:
        (driver,) = settings
        self.loop = asyncio.Runner()
        self.engine = create_async_engine(engine_url(place, driver))

    def execute(self, tx: Any, sql: str) -> None:
        done(tx.execute(text(sql)))

    def savepoint(self, tx: Any) -> AbstractContextManager[Any]:
        return WhileAwaited(tx.begin_nested())

    @contextmanager
    def take(self, key: str) -> Iterator[Any]:
        claim = self.loop.run(awaited(self.ledger.told.take(key)))
        assert isinstance(claim, duly.aio.Claim)
        with ClaimBeside(claim, self.loop) as beside:
            yield beside

    def at_once(self, call: Callable[[], object], times: int) -> list[object]:
        async def all_of_them() -> list[object]:
            return list(await asyncio.gather(*(greenlet_spawn(call) for _ in range(times))))

        return self.loop.run(all_of_them())

    def close(self) -> None:
        self.loop.run(self.ledger.told.close())
        self.loop.run(self.engine.dispose())
        self.loop.close()


class OfAsyncConnection(OfAsyncSqlalchemy):
    whole = {  # noqa: RUF012
        **OfAsyncSqlalchemy.whole,
        "start": lambda tx: done(tx.start()),
        "await": lambda tx: done(tx),
        "commit by the driver's words": lambda tx: done(tx.exec_driver_sql("commit")),
        "the base class's with": lambda tx: done(AsyncConnection.__aexit__(tx, None, None, None)),
    }
    deadly = {  # noqa: RUF012
        **OfAsyncSqlalchemy.deadly,
        "the transaction's close": lambda tx: done(tx.get_transaction().close()),
    }

    def __init__(self, place: str, *settings: str) -> None:
        super().__init__(place, *settings)
        ledger: duly.aio.Ledger[AsyncConnection] = duly.aio.sqlalchemy(self.engine)
        self.ledger = Beside(ledger, self.loop)

    def put(self, tx: AsyncConnection, note: str) -> None:
        done(tx.execute(Effect.__table__.insert().values(note=note)))  # type: ignore[attr-defined]  # it is a Table

    def driver(self, tx: AsyncConnection) -> Any:
        return DriverBeside(done(tx.get_raw_connection()).driver_connection)


class AsyncShopSession(AsyncSession):
    """A user's own class of sessions."""

    sync_session_class = ShopSession


class OfAsyncSession(OfAsyncSqlalchemy):
    whole = {  # noqa: RUF012
        **OfAsyncSqlalchemy.whole,
        "its connection's commit": lambda tx: done(done(tx.connection()).commit()),
        "its connection's rollback": lambda tx: done(done(tx.connection()).rollback()),
        "its connection's close": lambda tx: done(done(tx.connection()).close()),
        "aclose": lambda tx: done(tx.aclose()),
        "reset": lambda tx: done(tx.reset()),
        "the base class's with": lambda tx: done(AsyncSession.__aexit__(tx, None, None, None)),
    }

    def __init__(self, place: str, *settings: str) -> None:
        super().__init__(place, *settings)
        maker = async_sessionmaker(self.engine, class_=AsyncShopSession)
        ledger: duly.aio.Ledger[AsyncShopSession] = duly.aio.sqlalchemy(maker)
        self.ledger = Beside(ledger, self.loop)

    def put(self, tx: AsyncShopSession, note: str) -> None:
        assert isinstance(tx, AsyncShopSession)
        assert isinstance(tx.sync_session, ShopSession)
        tx.add(Effect(note=note))

    def driver(self, tx: AsyncShopSession) -> Any:
        connection: AsyncConnection = done(tx.connection())
        return DriverBeside(done(connection.get_raw_connection()).driver_connection)


# -- Django -------------------------------------------------------------------------------------------------------------


class DjangoEffect(models.Model):  # type: ignore[misc]  # Django comes without types
    note = models.CharField(max_length=40, primary_key=True)

    class Meta:
        app_label = "shop"
        db_table = "effect"


def execute_in_django(tx: Any, sql: str) -> None:
    with tx.cursor() as cursor:
        cursor.execute(sql)


class OfDjango(Desk):
    whole = {  # noqa: RUF012
        "commit": lambda tx: tx.commit(),
        "rollback": lambda tx: tx.rollback(),
        "autocommit": lambda tx: tx.set_autocommit(True),
        "commit as SQL": lambda tx: execute_in_django(tx, "commit"),
        "commit as SQL, after a comment": lambda tx: execute_in_django(tx, "/* now */ COMMIT"),
        "rollback as SQL": lambda tx: execute_in_django(tx, "rollback"),
        "begin as SQL": lambda tx: execute_in_django(tx, "begin"),
    }
    deadly = {"close": lambda tx: tx.close(), "set_rollback": lambda tx: tx.set_rollback(True)}  # noqa: RUF012

    def __init__(self, place: str, *settings: str) -> None:
        self.alias = django_database(place)
        self.ledger = duly.django(self.alias)

    def put(self, tx: Any, note: str) -> None:
        assert tx is connections[self.alias]
        DjangoEffect.objects.using(self.alias).create(note=note)

    def execute(self, tx: Any, sql: str) -> None:
        execute_in_django(tx, sql)

    def savepoint(self, tx: Any) -> AbstractContextManager[Any]:
        block: AbstractContextManager[Any] = transaction.atomic(using=self.alias)
        return block

    def driver(self, tx: Any) -> Any:
        return tx.connection

    def rest(self) -> None:
        connections[self.alias].close()

    def close(self) -> None:
        self.ledger.close()
        connections[self.alias].close()
        del connections[self.alias], connections.settings[self.alias]


@dataclass(frozen=True)
class Kind:
    """A kind of `run.tx`, on one of the databases."""

    name: str
    database: str
    desk: type[Desk]
    settings: tuple[str, ...] = ()

    @property
    def is_async(self) -> bool:
        return self.name.startswith("Async")

    def open(self, place: str) -> Desk:
        return self.desk(place, *self.settings)


KINDS = [
    Kind("Connection sqlite", "sqlite", OfConnection, ("sqlite",)),
    Kind("Connection psycopg", "postgresql", OfConnection, ("postgresql+psycopg",)),
    Kind("Session sqlite", "sqlite", OfSession, ("sqlite",)),
    Kind("Session psycopg", "postgresql", OfSession, ("postgresql+psycopg",)),
    Kind("AsyncConnection aiosqlite", "sqlite", OfAsyncConnection, ("sqlite+aiosqlite",)),
    Kind("AsyncConnection psycopg", "postgresql", OfAsyncConnection, ("postgresql+psycopg",)),
    Kind("AsyncConnection asyncpg", "postgresql", OfAsyncConnection, ("postgresql+asyncpg",)),
    Kind("AsyncSession aiosqlite", "sqlite", OfAsyncSession, ("sqlite+aiosqlite",)),
    Kind("AsyncSession psycopg", "postgresql", OfAsyncSession, ("postgresql+psycopg",)),
    Kind("AsyncSession asyncpg", "postgresql", OfAsyncSession, ("postgresql+asyncpg",)),
    Kind("Django sqlite", "sqlite", OfDjango),
    Kind("Django postgresql", "postgresql", OfDjango),
]
