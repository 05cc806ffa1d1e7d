"""Where an async typed ledger lies, what it is opened by, and what it says to whoever brings something else."""

from __future__ import annotations

import asyncio
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

import duly
import duly.aio
from duly.redaction import shown_url
from duly.store.migrations import postgres
from duly.store.place import url_of
from tests.borrowed.callers import django_database, engine_url, let_sqlalchemy_begin
from tests.borrowed.shop import Shop, on_sqlite
from tests.servers import Server
from tests.typed.desks import DjangoEffect, Effect

DAY = "2026-10-05"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = on_sqlite(tmp_path)
    yield shop
    shop.close()


async def put(run: duly.aio.Run[AsyncConnection]) -> None:
    await (await run.tx).execute(text("insert into effect values ('report')"))


def run_once(source: AsyncEngine | async_sessionmaker[Any], work: Any = put, **settings: Any) -> object:
    """What one run of a job answers, in a loop of its own."""

    async def story() -> object:
        try:
            async with duly.aio.sqlalchemy(source, **settings) as ledger:
                return await ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(work).run(DAY)
        finally:
            await (source if isinstance(source, AsyncEngine) else source.kw["bind"]).dispose()

    return asyncio.run(story())


# -- what it is opened by -----------------------------------------------------------------------------------------------


def test_nothing_is_looked_at_before_the_first_use_and_then_a_ledger_is_made(tmp_path: Path) -> None:
    async def story() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/new.db")
        ledger: duly.aio.Ledger[AsyncConnection] = duly.aio.sqlalchemy(engine)
        assert repr(ledger) == f"<duly.aio.Ledger sqlite+aiosqlite:///{tmp_path}/new.db>"
        assert not (tmp_path / "new.db").exists()

        async with ledger:
            assert repr(ledger) == f"<duly.aio.Ledger {tmp_path}/new.db>"
        await engine.dispose()

    asyncio.run(story())


def test_tasks_that_open_it_at_once_open_one(server: Server) -> None:
    url = server.new_database()
    postgres.create(url)

    async def story() -> None:
        engine = create_async_engine(engine_url(url, "postgresql+asyncpg"))
        ledger = duly.aio.sqlalchemy(engine)
        await asyncio.gather(*(ledger.take(f"export:2026-10-0{day}[UTC]") for day in range(1, 5)))
        await ledger.close()
        await engine.dispose()

    asyncio.run(story())

    with psycopg.connect(server.url) as connection:
        left = "select count(*) from pg_stat_activity where application_name = 'duly' and datname = %s"
        assert connection.execute(left, (conninfo_to_dict(url)["dbname"],)).fetchone() == (0,)


def test_a_name_has_no_password(shop: Shop) -> None:
    engine = create_async_engine("postgresql+asyncpg://clerk:secret@localhost/shop")

    assert "secret" not in repr(duly.aio.sqlalchemy(engine))


def test_the_place_is_asked_of_a_connection_so_a_creator_will_do(shop: Shop) -> None:
    import aiosqlite

    engine = create_async_engine("sqlite+aiosqlite://", async_creator=lambda: aiosqlite.connect(shop.book.path))

    assert run_once(engine)
    assert shop.effects == ["report"]


def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(duly.Misuse, match="in memory would be forgotten"):
        run_once(create_async_engine("sqlite+aiosqlite://"))


def test_what_is_not_awaited_is_refused_and_told_where_it_belongs(shop: Shop) -> None:
    engine = create_engine(engine_url(shop.book.path, "sqlite"))
    for source in (engine, sessionmaker(engine), engine.url.render_as_string()):
        with pytest.raises(duly.Misuse, match=r"duly\.sqlalchemy takes an Engine"):
            duly.aio.sqlalchemy(source)  # type: ignore[call-overload]  # that is the story


def test_what_is_awaited_is_told_by_the_plain_one_where_it_belongs(shop: Shop) -> None:
    engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"))
    for source in (engine, async_sessionmaker(engine)):
        with pytest.raises(duly.Misuse, match=r"duly\.aio\.sqlalchemy takes an AsyncEngine"):
            duly.sqlalchemy(source)  # type: ignore[call-overload]  # that is the story


def test_another_database_than_the_two_is_refused_by_its_name() -> None:
    engine = create_async_engine("mssql+aioodbc://localhost/shop?driver=any", module=sqlite3)

    with pytest.raises(duly.Misuse, match="not in mssql"):
        duly.aio.sqlalchemy(engine)


@pytest.mark.parametrize("settings", [{}, {"twophase": True}, {"binds": {Effect: None}}])
def test_an_async_sessionmaker_has_to_be_bound_to_one_engine(shop: Shop, settings: dict[str, Any]) -> None:
    engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"))
    maker: async_sessionmaker[AsyncSession] = async_sessionmaker(engine if settings else None, **settings)

    with pytest.raises(duly.Misuse, match="bound to one engine"):
        duly.aio.sqlalchemy(maker)


def test_a_function_that_makes_the_sessions_behind_is_refused(shop: Shop) -> None:
    engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"))
    maker = async_sessionmaker(engine, sync_session_class=lambda **settings: Session(**settings))

    with pytest.raises(duly.Misuse, match="sync_session_class"):
        duly.aio.sqlalchemy(maker)


@pytest.mark.parametrize("driver", ["postgresql+psycopg", "postgresql+asyncpg"])
def test_an_engine_in_autocommit_is_refused_on_postgres(server: Server, driver: str) -> None:
    with pytest.raises(duly.Misuse, match="AUTOCOMMIT"):
        run_once(create_async_engine(engine_url(server.url, driver), isolation_level="AUTOCOMMIT"))


@pytest.mark.parametrize("driver", ["postgresql+psycopg", "postgresql+asyncpg"])
def test_a_database_without_a_ledger_is_told_on_postgres(server: Server, driver: str) -> None:
    with pytest.raises(duly.NoLedger):
        run_once(create_async_engine(engine_url(server.new_database(), driver)))


def test_an_engine_that_emits_begin_itself_will_do(shop: Shop) -> None:
    engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"))
    let_sqlalchemy_begin(engine.sync_engine)

    assert run_once(engine) == duly.Completed(f"export:{DAY}[UTC]", 1)
    assert shop.effects == ["report"]


def test_foreign_writers_are_waited_for_as_long_as_the_ledger_says(shop: Shop) -> None:
    engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"), connect_args={"timeout": 0})
    holder = sqlite3.connect(shop.book.path, isolation_level=None)

    async def work(run: duly.aio.Run[AsyncConnection]) -> None:
        holder.execute("begin immediate")
        asyncio.get_running_loop().call_later(0.2, holder.rollback)
        with pytest.raises(duly.LedgerBusy):
            _ = await run.tx
        await asyncio.sleep(0.2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_once(engine, work, busy_seconds=0.05)
    assert (shop.effects, shop.state) == ([], "failed")
    holder.close()


def test_a_session_with_another_database_besides_is_refused_before_it_writes_there(shop: Shop, tmp_path: Path) -> None:
    elsewhere = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/elsewhere.db")

    class Routed(Session):
        def get_bind(self, mapper: Any = None, **settings: Any) -> Engine | Connection:
            return elsewhere.sync_engine if mapper is not None else super().get_bind(**settings)

    async def work(run: duly.aio.Run[AsyncSession]) -> None:
        tx = await run.tx
        tx.add(Effect(note="report"))
        await tx.flush()

    async def story() -> None:
        engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"))
        async with duly.aio.sqlalchemy(async_sessionmaker(engine, sync_session_class=Routed)) as ledger:
            with pytest.raises(duly.Misuse, match="another database"):
                await ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)(work).run(DAY)
        await engine.dispose()
        await elsewhere.dispose()

    asyncio.run(story())

    assert (shop.effects, shop.state) == ([], "failed")


def test_a_connection_of_another_ledger_than_the_one_that_was_found_is_refused(shop: Shop, tmp_path: Path) -> None:
    import aiosqlite

    (tmp_path / "other").mkdir()
    other = on_sqlite(tmp_path / "other")
    path = shop.book.path
    engine = create_async_engine("sqlite+aiosqlite://", async_creator=lambda: aiosqlite.connect(path))

    async def story() -> None:
        nonlocal path
        async with duly.aio.sqlalchemy(engine) as ledger:
            await engine.dispose()
            path = other.book.path
            with pytest.raises(duly.WrongLedger):
                await ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)(put).run(DAY)
        await engine.dispose()

    asyncio.run(story())

    assert (shop.effects, other.effects, shop.state) == ([], [], "failed")
    other.close()


# -- where a connection of asyncpg goes ---------------------------------------------------------------------------------


def test_the_url_of_a_connection_of_asyncpg_has_what_it_was_made_with(server: Server) -> None:
    secret = "it's a #secret@/"

    async def told() -> str:
        settings = {"application_name": "a shop", "statement_timeout": "9s", "shop.words": r"a b, \c"}
        connection = await asyncpg.connect(server.url, password=secret, server_settings=settings)
        url = url_of(connection, {})
        await connection.close()
        return url

    url = asyncio.run(told())

    found, named = conninfo_to_dict(url), conninfo_to_dict(server.url)
    assert (found["password"], found["application_name"]) == (secret, "a shop")
    assert all(found[part] == named[part] for part in ("user", "host", "dbname"))
    assert "secret" not in shown_url(url)
    with psycopg.connect(url) as again:
        assert again.execute("show statement_timeout").fetchone() == ("9s",)
        assert again.execute("show shop.words").fetchone() == (r"a b, \c",)


def asyncpg_like(**told: Any) -> Any:
    """A connection of asyncpg as its making left it, where this host has no server that is made like that."""
    mode = SimpleNamespace(name=told.pop("sslmode", "prefer"))
    made_with = {
        "user": "clerk",
        "password": None,
        "database": "shop",
        "ssl": False,
        "server_settings": None,
        "target_session_attrs": SimpleNamespace(value="any"),
        "sslmode": mode,
    }
    address = told.pop("address", ("db", 5432))
    return SimpleNamespace(_params=SimpleNamespace(**{**made_with, **told}), _addr=address)


def test_of_several_hosts_it_names_all() -> None:
    found = conninfo_to_dict(url_of(asyncpg_like(), {"host": ["one", "two"], "port": [1, 2]}))

    assert (found["host"], found["port"]) == ("one,two", "1,2")


def test_a_socket_is_named_by_its_folder() -> None:
    found = conninfo_to_dict(url_of(asyncpg_like(address="/run/postgresql/.s.PGSQL.5433"), {}))

    assert (found["host"], found["port"]) == ("/run/postgresql", "5433")


def test_what_a_connection_checks_of_its_server_is_checked_by_dulys_own_too() -> None:
    """libpq, which has no context of Python's, refuses where it cannot."""
    checks_all, checks_certificate = ssl.create_default_context(), ssl.create_default_context()
    checks_certificate.check_hostname = False
    checks_none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    checks_none.check_hostname = False
    checks_none.verify_mode = ssl.CERT_NONE

    def mode(context: Any, asked: str) -> Any:
        return conninfo_to_dict(url_of(asyncpg_like(ssl=context, sslmode=asked), {}))["sslmode"]

    assert mode(checks_all, "require") == "verify-full"
    assert mode(checks_certificate, "require") == "verify-ca"
    assert mode(checks_none, "require") == "require"
    assert mode(checks_none, "prefer") == "prefer"
    assert mode(False, "disable") == "disable"


def test_a_password_that_a_function_makes_is_refused() -> None:
    with pytest.raises(duly.Misuse, match="made by a function"):
        url_of(asyncpg_like(password=lambda: "secret"), {})


# -- Django -------------------------------------------------------------------------------------------------------------


def test_django_is_answered_with_what_to_do() -> None:
    with pytest.raises(duly.Misuse, match=r"sync_to_async\(job\.run\)"):
        duly.aio.django()


def test_a_job_of_django_is_run_from_an_event_loop_as_that_says(shop: Shop) -> None:
    alias = django_database(shop.book.path)

    def work(run: duly.Run[Any]) -> None:
        with run.tx.cursor():
            DjangoEffect.objects.using(alias).create(note=run.label)

    ledger = duly.django(alias)
    export = ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)(work)

    async def story() -> list[object]:
        answers: list[object] = [await sync_to_async(export.run)(DAY), await sync_to_async(export.run)(DAY)]
        await sync_to_async(ledger.close)()
        await sync_to_async(lambda: connections[alias].close())()
        return answers

    first, again = asyncio.run(story())

    assert first == duly.Completed(f"export:{DAY}[UTC]", 1)
    assert isinstance(again, duly.AlreadyCompleted)
    assert shop.effects == [DAY]
    del connections.settings[alias]


# -- imports ------------------------------------------------------------------------------------------------------------


def test_a_ledger_of_one_library_imports_no_other(tmp_path: Path) -> None:
    script = (
        "import sys, duly.aio\n"
        "duly.aio.sqlalchemy, duly.aio.django\n"
        "libraries = {'sqlalchemy', 'aiosqlite', 'asyncpg', 'django', 'psycopg'}\n"
        "assert not libraries & sys.modules.keys()\n"
        "import asyncio\n"
        "from sqlalchemy.ext.asyncio import create_async_engine\n"
        "async def work(run):\n"
        "    await (await run.tx).exec_driver_sql('select 1')\n"
        "async def main():\n"
        f"    engine = create_async_engine('sqlite+aiosqlite:///{tmp_path}/a.db')\n"
        "    async with duly.aio.sqlalchemy(engine) as ledger:\n"
        "        await ledger.job('a', duly.daily('UTC'), catch_up='each')(work).catch_up()\n"
        "    await engine.dispose()\n"
        "asyncio.run(main())\n"
        "assert libraries & sys.modules.keys() == {'sqlalchemy', 'aiosqlite'}\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
