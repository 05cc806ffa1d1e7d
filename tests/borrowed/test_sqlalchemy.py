"""What only SQLAlchemy can do right or wrong: objects that are not written yet, modes of its drivers, sessions of all sorts."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import Connection, Engine, String, event, text
from sqlalchemy.exc import IntegrityError, InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

import duly
from duly.errors import Misuse
from duly.ledger.complete import complete_or_raise
from duly.store.borrowed import run_in_async
from tests.borrowed.callers import engine_url, let_sqlalchemy_begin
from tests.borrowed.shop import KEY, Shop

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}


class Base(DeclarativeBase):
    """The tables of the shop."""


class Effect(Base):
    __tablename__ = "effect"

    note: Mapped[str] = mapped_column(String(40), primary_key=True)


@pytest.fixture(params=DRIVERS)
def shop(request: pytest.FixtureRequest, new_shop: Callable[[str], Shop]) -> Shop:
    return new_shop(request.param)


@pytest.fixture
def engine(shop: Shop) -> Iterator[Engine]:
    engine = new_engine(shop)
    yield engine
    engine.dispose()


def new_engine(shop: Shop, **settings: Any) -> Engine:
    return sqlalchemy.create_engine(
        engine_url(shop.book.path, DRIVERS[shop.database]), **{"poolclass": NullPool, **settings}
    )


# -- objects ------------------------------------------------------------------------------------------------------------


def test_what_was_added_before_the_completion_commits_with_it(shop: Shop, engine: Engine) -> None:
    with shop.take() as claim, Session(engine) as session, session.begin():
        session.add(Effect(note="mine"))
        claim.complete(session)
        assert not session.new  # the guard speaks for it too

    assert (shop.effects, shop.state) == (["mine"], "completed")


def test_what_was_added_is_not_kept_without_its_completion(shop: Shop, engine: Engine) -> None:
    stale = shop.take()
    successor = shop.lose(stale)

    with Session(engine) as session:
        session.add(Effect(note="mine"))
        with pytest.raises(duly.ClaimLost):
            stale.complete(session)
        session.add(Effect(note="after"))
        with pytest.raises(InvalidRequestError, match="roll"):
            session.commit()

    assert (shop.effects, shop.state) == ([], "running")
    successor.release()


def test_objects_that_cannot_be_written_leave_the_run_unsettled(shop: Shop, engine: Engine) -> None:
    shop.book.amend("insert into effect values ('there')")
    claim = shop.take()

    with Session(engine) as session:
        session.add(Effect(note="there"))
        with pytest.raises(IntegrityError):
            claim.complete(session)
        with pytest.raises(duly.Conflict):  # the session has to be rolled back first
            claim.complete(session)
        session.rollback()
        assert shop.state == "running"

        session.add(Effect(note="mine"))
        claim.complete(session)
        session.commit()

    claim.close()
    assert (shop.effects, shop.history) == (["mine", "there"], [(1, "completed")])


def test_objects_are_not_written_where_they_would_commit_alone(shop: Shop) -> None:
    claim = shop.take()
    engine = new_engine(shop, isolation_level="AUTOCOMMIT")

    with Session(engine) as session:
        session.add(Effect(note="alone"))
        with pytest.raises(duly.NoTransaction):
            claim.complete(session)

    assert (shop.effects, shop.state) == ([], "running")
    claim.release()


# -- sessions and connections of all sorts ------------------------------------------------------------------------------


def test_a_block_of_an_engine_commits_both_or_neither(shop: Shop, engine: Engine) -> None:
    def export(day: str, *, fail: bool = False) -> bool:
        with engine.begin() as connection:
            if not duly.once(connection, f"export:{day}[UTC]"):
                return False
            connection.execute(text("insert into effect values (:day)"), {"day": day})
            if fail:
                raise ZeroDivisionError
            return True

    with pytest.raises(ZeroDivisionError):
        export("2026-10-05", fail=True)

    assert [export("2026-10-05"), export("2026-10-05"), export("2026-10-04")] == [True, False, True]
    assert shop.effects == ["2026-10-04", "2026-10-05"]


def test_a_session_of_the_thread_is_as_good(shop: Shop, engine: Engine) -> None:
    session = scoped_session(sessionmaker(engine))

    with shop.take() as claim:
        session.add(Effect(note="mine"))
        claim.complete(session)
        session.commit()

    session.remove()
    assert (shop.effects, shop.state) == (["mine"], "completed")


def test_a_session_on_a_connection_is_part_of_its_transaction(shop: Shop, engine: Engine) -> None:
    with engine.connect() as connection:
        transaction = connection.begin()
        with Session(connection) as session:
            assert duly.once(session, KEY)
            session.commit()
        transaction.rollback()

    assert shop.state is None


def test_a_session_of_several_databases_lends_the_connection_of_one(shop: Shop, engine: Engine) -> None:
    with Session(binds={Effect: engine}) as session, session.begin():
        session.add(Effect(note="mine"))
        session.flush()
        assert duly.once(session.connection(bind_arguments={"mapper": Effect}), KEY)

    assert (shop.effects, shop.state) == (["mine"], "completed")


def test_a_session_without_a_database_is_told_what_to_lend(shop: Shop) -> None:
    with Session() as session, pytest.raises(Misuse, match="connection of the one"):
        duly.once(session, KEY)


def test_a_lost_claim_says_so_again_at_the_commit(shop: Shop, engine: Engine) -> None:
    stale = shop.take()
    successor = shop.lose(stale)

    with engine.connect() as connection:
        with pytest.raises(duly.ClaimLost):
            stale.complete(connection)
        with pytest.raises(InvalidRequestError, match="roll"):
            connection.commit()

    successor.release()


def test_a_pool_gives_out_a_sound_connection_after_a_lost_claim(shop: Shop) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    engine = sqlalchemy.create_engine(engine_url(shop.book.path, DRIVERS[shop.database]), pool_size=1, max_overflow=0)
    with pytest.raises(duly.ClaimLost), engine.begin() as connection:
        stale.complete(connection)

    with engine.begin() as connection:
        successor.complete(connection)

    engine.dispose()
    successor.close()
    assert shop.state == "completed"


def test_how_the_caller_fetches_rows_is_none_of_its_business(shop: Shop, engine: Engine) -> None:
    claim = shop.take()

    with engine.connect().execution_options(stream_results=True, yield_per=1, preserve_rowcount=True) as connection:
        claim.complete(connection)
        assert not duly.once(connection, KEY)
        assert duly.once(connection, "export:2026-10-04[UTC]")
        connection.commit()

    claim.close()
    assert shop.history == [(1, "completed"), (1, "completed")]


def test_eight_threads_on_one_key_give_one_effect(shop: Shop, engine: Engine) -> None:
    answers: list[bool] = []
    start = threading.Barrier(8)

    def worker() -> None:
        start.wait()
        with Session(engine) as session, session.begin():
            try:
                applied = duly.once(session, KEY)
            except duly.RunBusy:  # on PostgreSQL nobody waits for another's commit
                applied = False
            if applied:
                session.add(Effect(note="mine"))
        answers.append(applied)

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [False] * 7 + [True]
    assert (shop.effects, shop.history) == (["mine"], [(1, "completed")])


# -- asyncio ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_a_completion_that_is_cancelled_half_way_commits_nothing(new_shop: Callable[[str], Shop], driver: str) -> None:
    shop = new_shop("postgresql")
    claim = shop.take()

    async def export(is_waiting: Callable[[], bool]) -> None:
        engine = create_async_engine(engine_url(shop.book.path, f"postgresql+{driver}"), poolclass=NullPool)
        async with AsyncSession(engine) as session:
            session.add(Effect(note="mine"))
            origin = claim._store.origin  # type: ignore[attr-defined]  # each store has one
            completion = asyncio.create_task(run_in_async(session, complete_or_raise(claim._held), origin))
            while not is_waiting():
                await asyncio.sleep(0)
            completion.cancel()
            with pytest.raises(asyncio.CancelledError):
                await completion
            with pytest.raises(InvalidRequestError, match="roll"):
                await session.commit()
        await engine.dispose()

    with psycopg.connect(shop.book.path) as rival, psycopg.connect(shop.book.path, autocommit=True) as watcher:
        rival.execute("select 1 from duly.run for update")
        waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        asyncio.run(export(lambda: watcher.execute(waiting).fetchone() is not None))

    assert (shop.effects, shop.state) == ([], "running")
    claim.release()


# -- modes of sqlite3 ---------------------------------------------------------------------------------------------------


@pytest.fixture
def file(new_shop: Callable[[str], Shop]) -> Shop:
    """A shop in an SQLite file."""
    return new_shop("sqlite")


def driver_begins(engine: Engine) -> None:
    """As it comes."""


def nobody_begins(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connected(driver: Any, record: Any) -> None:
        driver.isolation_level = None


@pytest.mark.parametrize("lend", [Connection, Session])
@pytest.mark.parametrize("mode", [driver_begins, nobody_begins])
@pytest.mark.parametrize("level", [None, "AUTOCOMMIT"])
def test_a_savepoint_that_would_commit_by_itself_is_refused(
    file: Shop, lend: Callable[[Engine], Connection | Session], mode: Callable[[Engine], None], level: Any
) -> None:
    claim = file.take()
    engine = new_engine(file, **({} if level is None else {"isolation_level": level}))
    mode(engine)

    with lend(engine) as lent:
        with lent.begin_nested():
            with pytest.raises(duly.NoTransaction):
                duly.once(lent, "export:2026-10-04[UTC]")
            with pytest.raises(duly.NoTransaction):
                claim.complete(lent)
        lent.rollback()

    assert file.book.rows("select state from duly_run") == [("running",)]
    claim.release()


def test_a_savepoint_begun_after_it_is_the_callers_affair(file: Shop) -> None:
    engine = new_engine(file)

    with engine.begin() as connection:
        assert duly.once(connection, KEY)
        savepoint = connection.begin_nested()
        connection.execute(text("insert into effect values ('dropped')"))
        savepoint.rollback()
        connection.execute(text("insert into effect values ('kept')"))

    assert (file.effects, file.state) == (["kept"], "completed")


def test_a_savepoint_is_sound_where_sqlalchemy_begins(file: Shop) -> None:
    engine = new_engine(file)
    let_sqlalchemy_begin(engine)

    with engine.connect() as connection:
        with connection.begin_nested():
            assert duly.once(connection, KEY)
        assert file.state is None
        connection.rollback()

    assert file.state is None


def test_whoever_has_read_may_still_write_where_the_driver_begins(file: Shop) -> None:
    engine = new_engine(file)

    with engine.begin() as late:
        late.execute(text("select count(*) from effect"))
        with engine.begin() as first:
            assert duly.once(first, KEY)
        assert not duly.once(late, KEY)


def test_it_writes_before_it_looks(file: Shop) -> None:
    engine = new_engine(file)
    let_sqlalchemy_begin(engine)  # a transaction that looked first could be refused its first write
    said: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def about(connection: Any, cursor: Any, statement: str, *rest: object) -> None:
        said.append(statement)

    with Session(engine) as session, session.begin():
        session.add(Effect(note="mine"))
        duly.once(session, KEY)

    assert next(statement for statement in said if "duly_" in statement).startswith("update")


@pytest.mark.parametrize("factory", [bytes, str.encode])
def test_how_the_caller_wants_text_is_none_of_its_business(file: Shop, factory: Any) -> None:
    engine = new_engine(file)

    @event.listens_for(engine, "connect")
    def connected(driver: Any, record: Any) -> None:
        driver.text_factory = factory

    with file.take() as claim, engine.connect() as connection:
        claim.complete(connection)
        assert not duly.once(connection, KEY)
        assert connection.connection.driver_connection.text_factory is factory  # type: ignore[union-attr]
        connection.commit()

    assert file.state == "completed"


def test_a_ledger_in_memory_is_as_good_for_once(file: Shop) -> None:
    engine = sqlalchemy.create_engine("sqlite://")

    with engine.connect() as connection:
        copy_into(connection, file)
        assert duly.once(connection, KEY)
        connection.commit()
        assert not duly.once(connection, KEY)
        connection.commit()

    engine.dispose()


def copy_into(connection: Connection, shop: Shop) -> None:
    """Have the shop's tables, in memory."""
    source = sqlite3.connect(shop.book.path)
    source.backup(connection.connection.driver_connection)  # type: ignore[arg-type]
    source.close()
