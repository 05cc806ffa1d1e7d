"""The library on PostgreSQL: jobs with run.tx, once and claims in a caller's transaction, beside what only it can do wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, LiteralString, cast

import psycopg
import pytest

import duly
from duly.store.migrations import postgres
from duly.testing.clock import HandClock
from tests.servers import Server

NIGHT = "2026-10-06T03:00:00Z"
ADD = "update balance set units = units + 10"


class Shop:
    """A ledger in the database of the business, whose table has one row."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = HandClock(url, at=NIGHT)
        self.ledger = duly.postgres(url)
        with self.connected() as connection:
            connection.execute("create table balance (units integer)")
            connection.execute("insert into balance values (0)")

    def connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url)

    @property
    def units(self) -> int:
        ((units,),) = self.rows("select units from balance")
        return int(units)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connected() as connection:
            return connection.execute(cast(LiteralString, sql)).fetchall()  # type: ignore[redundant-cast]


@pytest.fixture
def shop(server: Server) -> Iterator[Shop]:
    with server.ledger() as url:
        yield Shop(url)


def test_a_database_without_a_ledger_says_so(server: Server) -> None:
    with pytest.raises(duly.NoLedger, match="duly db create"):
        duly.postgres(server.new_database())


def test_those_who_make_a_ledger_at_once_make_one(server: Server) -> None:
    url = server.new_database()
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(postgres.create(url)["ledger_id"])) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 4
    assert len(set(made)) == 1


def test_a_jobs_effect_commits_with_its_completion(shop: Shop) -> None:
    @shop.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[psycopg.Connection[Any]]) -> None:
        run.tx.execute(ADD)

    assert [done.key for done in credit.catch_up()] == ["credit:2026-10-05[UTC]"]
    assert credit.catch_up() == []
    assert isinstance(credit.run("2026-10-05"), duly.AlreadyCompleted)
    assert shop.units == 10


def test_an_effect_that_fails_leaves_only_its_record(shop: Shop) -> None:
    @shop.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[psycopg.Connection[Any]]) -> None:
        run.tx.execute(ADD)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        credit.run("2026-10-05")

    assert shop.units == 0
    assert shop.rows("select outcome from duly.attempt") == [("failed",)]


NO_ENDS = (
    *(
        "do $$ begin perform 1; end $$",
        "select 'first; begin again'",
        "select e'it\\'s; commit'",
        'select 1 as "a; end"',
    ),
    *("select 1 -- ; commit", "select /* ; rollback */ 1"),
)
ENDS = ("commit", "COMMIT", " rollback", "-- why\nend", "select 1; commit", "prepare transaction 'x'", "begin")


@pytest.mark.parametrize("inline", [False, True])
def test_the_transaction_of_a_run_cannot_be_ended_by_it(shop: Shop, inline: bool) -> None:
    @shop.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=inline)
    def credit(run: duly.Run[psycopg.Connection[Any]]) -> None:
        run.tx.execute(ADD)
        for end in (run.tx.commit, run.tx.rollback, run.tx.close, run.tx.__enter__):
            with pytest.raises(duly.TransactionOwned):
                end()
        for sql in ENDS:
            with pytest.raises(duly.TransactionOwned):
                run.tx.execute(sql)
        for sql in NO_ENDS:
            run.tx.execute(cast(LiteralString, sql))  # type: ignore[redundant-cast]
        run.tx.execute("savepoint a")
        run.tx.execute("rollback to savepoint a")
        with run.tx.transaction():  # a savepoint
            run.tx.execute(ADD)

    credit.run("2026-10-05")

    assert shop.units == 20


def test_nobody_waits_for_the_commit_of_a_stranger_who_is_doing_the_same(shop: Shop) -> None:
    key = "credit:2026-10-05[UTC]"
    shop.ledger.job("credit", duly.daily("UTC"), catch_up=duly.LATEST)(lambda run: None).run("2026-10-04")
    with shop.connected() as first, shop.connected() as second:
        second.execute("set lock_timeout = '5s'")
        second.commit()
        assert duly.once(first, key)

        with pytest.raises(duly.RunBusy, match="another transaction"):
            duly.once(second, key)
        busy = shop.ledger.take(key)
        assert duly.once(second, "credit:2026-10-03[UTC]")  # another window is nobody's business

        assert isinstance(busy, duly.Busy)
        assert busy.owner == "another transaction"
        first.rollback()
        second.commit()
    assert shop.ledger.take(key)


def test_once_is_true_once_in_the_callers_transaction(shop: Shop) -> None:
    def credit(day: str, *, fail: bool = False) -> bool:
        with shop.connected() as connection:
            if not duly.once(connection, f"daily-credit:{day}T00:00:00Z"):
                return False
            connection.execute(ADD)
            if fail:
                raise ValueError("before the commit")
            return True

    with pytest.raises(ValueError, match="before the commit"):
        credit("2026-09-13", fail=True)
    assert shop.units == 0

    assert [credit("2026-09-13"), credit("2026-09-13"), credit("2026-09-14")] == [True, False, True]
    assert shop.units == 20
    assert shop.rows("select count(*) from duly.run where state = 'completed'") == [(2,)]


def test_eight_threads_on_one_key_give_one_effect(shop: Shop) -> None:
    answers: list[bool] = []
    start = threading.Barrier(8)

    def worker() -> None:
        with shop.connected() as connection:
            start.wait()
            try:
                applied = duly.once(connection, "daily-credit:2026-09-13T00:00:00Z")
            except duly.RunBusy:  # another has not committed yet
                applied = False
            if applied:
                connection.execute(ADD)
        answers.append(applied)

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [False] * 7 + [True]
    assert shop.units == 10


def test_eight_threads_on_one_window_give_one_claim(shop: Shop) -> None:
    job = shop.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: [run.tx.execute(ADD)])
    job.catch_up()
    start = threading.Barrier(8)
    answers: list[object] = []

    def worker() -> None:
        start.wait()
        answer = job.run("2026-10-01")
        while isinstance(answer, duly.Busy):
            answer = job.run("2026-10-01")
        answers.append(answer)
        shop.ledger.close()

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(type(answer).__name__ for answer in answers) == ["AlreadyCompleted"] * 7 + ["Completed"]
    assert shop.units == 20


def test_a_lost_claim_that_is_swallowed_commits_nothing(shop: Shop) -> None:
    shop.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None).catch_up()
    stale = shop.ledger.take("credit", "2026-10-01")
    assert stale
    shop.clock.advance("5m")  # its lease is over, and on PostgreSQL that is all that counts
    fresh = duly.postgres(shop.url).take("credit", "2026-10-01")
    assert fresh
    assert fresh.run.attempt == 2

    connection = shop.connected()
    connection.execute(ADD)
    with pytest.raises(duly.ClaimLost):
        stale.complete(connection)
    with pytest.raises(psycopg.OperationalError):
        connection.commit()

    assert shop.units == 0
    with shop.connected() as mine:
        mine.execute(ADD)
        fresh.complete(mine)
    assert shop.units == 10
    twice = shop.connected()
    twice.execute(ADD)
    with pytest.raises(duly.ClaimLost):
        fresh.complete(twice)
    assert twice.closed
    assert shop.units == 10


def test_no_transaction_no_completion(shop: Shop) -> None:
    with psycopg.connect(shop.url, autocommit=True) as connection, pytest.raises(duly.NoTransaction):
        duly.once(connection, "daily-credit:2026-09-13T00:00:00Z")

    assert shop.rows("select count(*) from duly.run") == [(0,)]


def test_a_claim_is_completed_in_its_own_ledger_only(shop: Shop, server: Server) -> None:
    claim = shop.ledger.take("credit:2026-10-01[UTC]")
    assert claim
    other = Shop(server.new_database())

    with other.connected() as connection, pytest.raises(duly.WrongLedger):
        claim.complete(connection)


def test_a_duplicate_at_a_stricter_isolation_asks_for_another_try(shop: Shop) -> None:
    key = "daily-credit:2026-09-13T00:00:00Z"
    late = shop.connected()
    late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    late.execute("select 1 from balance")  # its snapshot is older than the other's commit
    with shop.connected() as connection:
        assert duly.once(connection, key)

    with pytest.raises(duly.Conflict):
        duly.once(late, key)
    late.rollback()
    assert not duly.once(late, key)
    late.close()


def test_a_constraint_that_is_looked_at_at_the_commit_is_the_users_own_error(shop: Shop) -> None:
    with shop.connected() as connection:
        connection.execute("create table parent (id integer primary key)")
        connection.execute("create table child (id integer references parent deferrable initially deferred)")

    def orphan(run: duly.Run[psycopg.Connection[Any]]) -> None:
        run.tx.execute("insert into child values (1)")

    job = shop.ledger.job("orphan", duly.daily("UTC"), catch_up=duly.EACH)(orphan)

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        job.run("2026-10-05")

    assert shop.rows("select count(*) from child") == [(0,)]
    assert shop.rows("select outcome from duly.attempt") == [("failed",)]
