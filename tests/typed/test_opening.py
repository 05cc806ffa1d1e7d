"""Where a typed ledger lies: in the database of an engine or alias, found by asking one of its connections."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import django.db
import psycopg
import pytest
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, sessionmaker

import duly
from duly.redaction import shown_url
from duly.store.place import url_of
from tests.borrowed.callers import django_database, engine_url, let_sqlalchemy_begin
from tests.borrowed.shop import Shop, on_sqlite
from tests.typed.desks import DjangoEffect, Effect, OfDjango, OfSession

DAY = "2026-10-05"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = on_sqlite(tmp_path)
    yield shop
    shop.close()


@pytest.fixture
def engine(shop: Shop) -> Iterator[Engine]:
    engine = create_engine(engine_url(shop.book.path, "sqlite"))
    yield engine
    engine.dispose()


def export_of(ledger: duly.Ledger[Any], work: Callable[[duly.Run[Any]], object]) -> duly.Job[Any]:
    return ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(work)


def put(run: duly.Run[Any]) -> None:
    run.tx.execute(text("insert into effect values ('report')"))


# -- what it is opened by -----------------------------------------------------------------------------------------------


def test_a_ledger_is_made_in_a_file_that_has_none(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/new.db")
    ledger: duly.Ledger[Connection] = duly.sqlalchemy(engine)

    assert repr(ledger) == f"<duly.Ledger {tmp_path}/new.db>"
    ledger.close()
    engine.dispose()


def test_the_file_is_asked_of_a_connection_so_a_creator_will_do(shop: Shop) -> None:
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(shop.book.path))

    export_of(duly.sqlalchemy(engine), put).run(DAY)

    assert shop.effects == ["report"]
    engine.dispose()


def test_a_database_in_memory_is_refused() -> None:
    engine = create_engine("sqlite://")
    with pytest.raises(duly.Misuse, match="in memory would be forgotten"):
        duly.sqlalchemy(engine)
    engine.dispose()


def test_another_database_than_the_two_is_refused_by_its_name() -> None:
    with pytest.raises(duly.Misuse, match="Engine or a sessionmaker"):
        duly.sqlalchemy("sqlite:///shop.db")  # type: ignore[call-overload]  # that is the story
    with pytest.raises(duly.Misuse, match="not in mysql"):
        duly.sqlalchemy(create_engine("mysql+pymysql://localhost/shop", module=sqlite3))


def test_an_engine_that_is_awaited_is_refused(shop: Shop) -> None:
    engine = create_async_engine(engine_url(shop.book.path, "sqlite+aiosqlite"))
    with pytest.raises(duly.Misuse, match="AsyncEngine"):
        duly.sqlalchemy(engine)  # type: ignore[call-overload]  # that is the story
    with pytest.raises(duly.Misuse, match="aiosqlite is awaited"):
        duly.sqlalchemy(engine.sync_engine)


@pytest.mark.parametrize("settings", [{}, {"twophase": True}, {"binds": {Effect: None}}])
def test_a_sessionmaker_has_to_be_bound_to_one_engine(engine: Engine, settings: dict[str, Any]) -> None:
    maker = sessionmaker(engine if settings else None, **settings)

    with pytest.raises(duly.Misuse, match="bound to one engine"):
        duly.sqlalchemy(maker)


def test_an_engine_in_autocommit_is_refused_on_postgres(server: Any) -> None:
    engine = create_engine(engine_url(server.url, "postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with pytest.raises(duly.Misuse, match="AUTOCOMMIT"):
        duly.sqlalchemy(engine)
    engine.dispose()


def test_a_database_without_a_ledger_is_told_on_postgres(server: Any) -> None:
    url = server.new_database()
    engine = create_engine(engine_url(url, "postgresql+psycopg"))
    with pytest.raises(duly.NoLedger):
        duly.sqlalchemy(engine)
    engine.dispose()


def test_the_url_of_a_connection_has_its_password_and_what_else_it_was_made_with(server: Any) -> None:
    made_with = {"password": "it's a #secret@/", "application_name": "a shop", "options": "-c statement_timeout=9s"}
    with psycopg.connect(make_conninfo(server.url, **made_with)) as connection:
        url = url_of(connection, {})

    found, named = conninfo_to_dict(url), conninfo_to_dict(server.url)
    assert found.items() >= made_with.items()
    assert all(found[part] == named[part] for part in ("user", "host", "dbname"))
    assert "secret" not in shown_url(url)
    with psycopg.connect(url) as again:
        assert again.execute("show statement_timeout").fetchone() == ("9s",)


def test_of_several_hosts_it_names_all(server: Any) -> None:
    with psycopg.connect(server.url) as connection:
        found = conninfo_to_dict(url_of(connection, {"host": "one,two", "port": "1,2"}))

    assert (found["host"], found["port"]) == ("one,two", "1,2")


def test_a_driver_that_does_not_say_where_it_is_to_is_refused_with_what_to_do() -> None:
    with pytest.raises(duly.Misuse, match=r"duly\.postgres\(url\)"):
        url_of(object(), {})


# -- modes and settings of the user's -----------------------------------------------------------------------------------


def test_an_engine_that_emits_begin_itself_will_do(shop: Shop, engine: Engine) -> None:
    let_sqlalchemy_begin(engine)

    export_of(duly.sqlalchemy(engine), put).run(DAY)

    assert (shop.effects, shop.state) == (["report"], "completed")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has had this mode since Python 3.12")
def test_a_connection_whose_commit_does_nothing_is_refused_before_the_run_writes(shop: Shop) -> None:
    engine = create_engine(engine_url(shop.book.path, "sqlite"), connect_args={"autocommit": True})
    ledger: duly.Ledger[Connection] = duly.sqlalchemy(engine)

    with pytest.raises(duly.Misuse, match="leave that out"):
        export_of(ledger, put).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")
    ledger.close()
    engine.dispose()


def test_foreign_writers_are_waited_for_as_long_as_the_ledger_says(shop: Shop, engine: Engine) -> None:
    quick = create_engine(engine_url(shop.book.path, "sqlite"), connect_args={"timeout": 0})
    export = export_of(duly.sqlalchemy(quick, busy_seconds=0.05), put)
    with sqlite3.connect(shop.book.path) as holder:
        holder.execute("begin immediate")
        with pytest.raises(duly.LedgerBusy):
            export.run(DAY)
        holder.rollback()
    holder.close()

    assert export.run(DAY) == duly.Completed(f"export:{DAY}[UTC]", 1)
    quick.dispose()


def test_sessions_have_the_settings_the_class_and_the_events_of_their_maker(shop: Shop, engine: Engine) -> None:
    maker = sessionmaker(engine, autoflush=False, info={"shop": 1})
    heard: list[str] = []
    event.listen(maker, "before_commit", lambda session: heard.append("before commit"))
    event.listen(maker, "after_commit", lambda session: heard.append(f"after commit, {shop.state}"))

    def work(run: duly.Run[Session]) -> None:
        assert (run.tx.autoflush, run.tx.info) == (False, {"shop": 1})
        run.tx.add(Effect(note="report"))

    export_of(duly.sqlalchemy(maker), work).run(DAY)

    assert heard == ["before commit", "after commit, completed"]
    assert shop.effects == ["report"]


@pytest.mark.parametrize(
    ("database", "driver", "fatal"),
    [
        ("sqlite", "sqlite", "insert or rollback into duly_meta (name, value) values ('schema', '1')"),
        ("postgres", "postgresql+psycopg", "select 1 / 0"),
    ],
    ids=["sqlite", "postgres"],
)
def test_a_hook_that_swallows_an_error_before_the_commit_makes_no_run_complete(
    new_shop: Callable[[str], Shop], database: str, driver: str, fatal: str
) -> None:
    """The transaction has failed: its COMMIT would keep nothing, and be no error."""
    shop = new_shop(database)
    engine = create_engine(engine_url(shop.book.path, driver))
    maker = sessionmaker(engine)

    def swallow(session: Session) -> None:
        with suppress(DBAPIError):
            session.execute(text(fatal))

    event.listen(maker, "before_commit", swallow)

    def work(run: duly.Run[Session]) -> None:
        run.tx.add(Effect(note="report"))

    with pytest.raises(duly.TransactionOwned, match="ended by an error"):
        export_of(duly.sqlalchemy(maker), work).run(DAY)

    assert shop.effects == []
    assert shop.state != "completed"
    engine.dispose()


def test_a_session_with_another_database_besides_is_refused_before_it_writes_there(
    shop: Shop, engine: Engine, tmp_path: Path
) -> None:
    elsewhere = create_engine(f"sqlite:///{tmp_path}/elsewhere.db")

    class Routed(Session):
        def get_bind(self, mapper: Any = None, **settings: Any) -> Engine | Connection:
            return elsewhere if mapper is not None else super().get_bind(**settings)

    def work(run: duly.Run[Routed]) -> None:
        run.tx.add(Effect(note="report"))
        run.tx.flush()

    with pytest.raises(duly.Misuse, match="another database"):
        export_of(duly.sqlalchemy(sessionmaker(engine, class_=Routed)), work).run(DAY)
    assert (shop.effects, shop.state) == ([], "failed")
    elsewhere.dispose()


def test_a_flush_that_fails_is_told_as_it_is_and_nothing_more_is_kept(shop: Shop) -> None:
    shop.book.amend("insert into effect values ('report')")
    desk = OfSession(shop.book.path, "sqlite")

    def work(run: duly.Run[Session]) -> None:
        run.tx.add(Effect(note="before"))
        run.tx.flush()
        run.tx.add(Effect(note="report"))
        with pytest.raises(IntegrityError):
            run.tx.flush()
        with pytest.raises(duly.TransactionOwned):
            run.tx.rollback()

    with pytest.raises(duly.TransactionOwned, match="nothing more of it is kept"):
        export_of(desk.ledger, work).run(DAY)
    assert (shop.effects, shop.state) == (["report"], "failed")
    desk.close()


def test_what_was_not_flushed_is_written_before_the_completion_or_neither_is(shop: Shop) -> None:
    shop.book.amend("insert into effect values ('report')")
    desk = OfSession(shop.book.path, "sqlite")

    with pytest.raises(IntegrityError):
        export_of(desk.ledger, lambda run: run.tx.add(Effect(note="report"))).run(DAY)

    assert shop.state == "failed"
    desk.close()


def test_a_session_that_is_kept_after_its_run_writes_nothing(shop: Shop) -> None:
    desk = OfSession(shop.book.path, "sqlite")
    kept: list[Session] = []
    export_of(desk.ledger, lambda run: kept.append(run.tx)).run(DAY)

    kept[0].add(Effect(note="late"))
    with pytest.raises(duly.TransactionOwned, match="over"):
        kept[0].flush()
    with pytest.raises(duly.TransactionOwned, match="over"):
        kept[0].commit()

    assert shop.effects == []
    desk.close()


def test_a_connection_that_is_kept_after_its_run_writes_nothing(shop: Shop, engine: Engine) -> None:
    kept: list[Connection] = []
    export_of(duly.sqlalchemy(engine), lambda run: kept.append(run.tx)).run(DAY)

    with pytest.raises(Exception, match=r"closed|over"):
        kept[0].execute(text("insert into effect values ('late')"))

    assert shop.effects == []
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # a QueuePool has it


def test_a_connection_of_another_ledger_than_the_one_that_was_found_is_refused(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = on_sqlite(tmp_path / "other")
    path = shop.book.path
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path))
    export = export_of(duly.sqlalchemy(engine), put)
    path = other.book.path
    engine.dispose()

    with pytest.raises(duly.WrongLedger):
        export.run(DAY)

    assert (shop.effects, other.effects, shop.state) == ([], [], "failed")
    engine.dispose()
    other.close()


# -- Django -------------------------------------------------------------------------------------------------------------


def test_nothing_is_looked_at_before_the_first_use() -> None:
    alias = django_database("/nowhere/at/all.db")
    ledger = duly.django(alias)

    export = export_of(ledger, put)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(Exception, match="unable to open"):
            export.run(DAY)
        gc.collect()
    assert not told, "what was to be asked of it was never begun"
    del connections[alias], connections.settings[alias]


def test_a_run_inside_an_atomic_block_of_the_callers_is_refused(shop: Shop) -> None:
    desk = OfDjango(shop.book.path)
    export = export_of(desk.ledger, lambda run: desk.put(run.tx, "report"))

    with transaction.atomic(using=desk.alias), pytest.raises(duly.Misuse, match="leave the atomic block first"):
        export.run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")
    desk.close()


def test_hooks_of_on_commit_come_after_the_completion_and_may_start_another_run(shop: Shop) -> None:
    desk = OfDjango(shop.book.path)
    seen: list[object] = []
    after = desk.ledger.job("after", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: desk.put(run.tx, "after"))

    def hook() -> None:
        seen.append(shop.state)
        seen.append(after.run(DAY))

    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        transaction.on_commit(hook, using=desk.alias)

    export_of(desk.ledger, work).run(DAY)

    assert seen == ["completed", duly.Completed(f"after:{DAY}[UTC]", 1)]
    assert shop.effects == ["after", "report"]
    desk.close()


def test_an_error_of_a_hook_of_on_commit_is_told_as_it_is_not_as_one_of_the_commit(shop: Shop) -> None:
    desk = OfDjango(shop.book.path)

    def hook() -> None:
        with closing(sqlite3.connect(shop.book.path, isolation_level=None)) as other:
            other.execute("begin immediate")
            desk.execute(connections[desk.alias], "pragma busy_timeout = 0")
            desk.put(connections[desk.alias], "after")

    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        transaction.on_commit(hook, using=desk.alias)

    with pytest.raises(django.db.OperationalError, match="locked") as told:
        export_of(desk.ledger, work).run(DAY)

    assert (shop.effects, shop.state) == (["report"], "completed")
    assert "duly: it came after the commit: the run is complete" in told.value.__notes__
    desk.close()


def test_a_run_that_a_hook_of_on_commit_starts_cannot_end_its_transaction_either(shop: Shop) -> None:
    desk = OfDjango(shop.book.path)

    def work_after(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "after")
        with pytest.raises(duly.TransactionOwned):
            desk.execute(run.tx, "commit")
        raise ZeroDivisionError

    after = desk.ledger.job("after", duly.daily("UTC"), catch_up=duly.EACH)(work_after)

    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        transaction.on_commit(lambda: after.run(DAY), using=desk.alias)

    with pytest.raises(ZeroDivisionError):
        export_of(desk.ledger, work).run(DAY)

    assert shop.effects == ["report"]
    desk.close()


def test_a_hook_of_on_commit_is_forgotten_with_a_run_that_fails(shop: Shop) -> None:
    desk = OfDjango(shop.book.path)
    called: list[int] = []

    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        transaction.on_commit(lambda: called.append(1), using=desk.alias)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export_of(desk.ledger, work).run(DAY)

    assert called == []
    assert not DjangoEffect.objects.using(desk.alias).exists()  # the thread's connection is as before
    DjangoEffect.objects.using(desk.alias).create(note="by itself")
    assert shop.effects == ["by itself"]
    desk.close()


# -- imports ------------------------------------------------------------------------------------------------------------


def test_a_ledger_of_one_library_imports_no_other(tmp_path: Path) -> None:
    script = (
        "import sys, duly\n"
        "assert not {'sqlalchemy', 'django', 'psycopg'} & sys.modules.keys()\n"
        "duly.django\n"
        "assert not {'sqlalchemy', 'django', 'psycopg'} & sys.modules.keys()\n"
        "from sqlalchemy import create_engine\n"
        f"engine = create_engine('sqlite:///{tmp_path}/a.db')\n"
        "ledger = duly.sqlalchemy(engine)\n"
        "ledger.job('a', duly.daily('UTC'), catch_up='each')(lambda run: run.tx.exec_driver_sql('select 1')).catch_up()\n"
        "assert not {'django', 'psycopg'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
