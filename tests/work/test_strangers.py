"""What a stranger does to a job: functions that only promise, forks, threads, files that are moved under it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

import duly


class Shop:
    """A ledger beside a business table, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.ledger = duly.sqlite(path)
        self.write("create table effect (what text)")

    def write(self, sql: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop.db")


def test_a_function_that_only_promises_is_refused_where_it_is_declared(shop: Shop) -> None:
    declare = shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST)

    async def later(run: duly.Run[sqlite3.Connection]) -> None: ...

    def one_by_one(run: duly.Run[sqlite3.Connection]) -> Iterator[int]:
        yield 1

    for function in (later, one_by_one):
        with pytest.raises(duly.Misuse, match="async"):
            declare(function)


def test_work_that_a_function_returns_instead_of_doing_it_is_no_completion(shop: Shop) -> None:
    async def work() -> None: ...

    job = shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST)(lambda run: work())

    with pytest.raises(TypeError, match="coroutine"):
        job.run("2026-01-01")

    assert shop.rows("select outcome from duly_attempt") == [("failed",)]


def in_a_child(program: str, shop: Shop) -> subprocess.CompletedProcess[str]:
    """A job's process that forks; both ends are bounded by the test's own time-out."""
    head = (
        "import os, sqlite3, sys, warnings, duly\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "ledger = duly.sqlite(sys.argv[1])\n"
    )
    return subprocess.run(
        [sys.executable, "-c", head + program, shop.path], capture_output=True, text=True, check=False
    )


def test_a_forked_child_cannot_write_through_its_parents_transaction(shop: Shop) -> None:
    program = """
@ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST)
def close(run):
    run.tx.execute("insert into effect values ('parent')")
    if (child := os.fork()) == 0:
        try:
            run.tx.execute("insert into effect values ('child')")
        except duly.TransactionOwned:
            os._exit(7)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

print(close.run("2026-01-01"))
"""
    ended = in_a_child(program, shop)

    assert ended.stdout.splitlines()[0] == "7", ended.stderr
    assert shop.rows("select what from effect") == [("parent",)]
    assert shop.rows("pragma integrity_check") == [("ok",)]


@pytest.mark.parametrize("before", ["pass", "run.tx.execute(\"insert into effect values ('before')\")"])
def test_a_forked_child_that_leaves_does_not_end_its_parents_attempt(shop: Shop, before: str) -> None:
    program = f"""
@ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST)
def close(run):
    {before}
    if (child := os.fork()) == 0:
        sys.exit(3)
    os.waitpid(child, 0)
    run.tx.execute("insert into effect values ('parent')")

close.run("2026-01-01")
"""
    ended = in_a_child(program, shop)

    assert ended.returncode == 0, ended.stderr
    assert ("parent",) in shop.rows("select what from effect")
    assert shop.rows("select state from duly_run") == [("completed",)]


def test_a_transaction_is_begun_in_the_jobs_own_thread(shop: Shop) -> None:
    seen: list[BaseException] = []

    @shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST)
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        def elsewhere() -> None:
            try:
                run.tx.execute("insert into effect values ('x')")
            except duly.TransactionOwned as e:
                seen.append(e)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        run.tx.execute("insert into effect values ('own')")

    close.run("2026-01-01")

    assert "own thread" in str(seen[0])
    assert shop.rows("select what from effect") == [("own",)]


def test_a_ledger_that_was_moved_away_takes_no_commit(shop: Shop) -> None:
    job = shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST, effect="external", retries=0)

    @job
    def close(run: duly.Run[sqlite3.Connection]) -> None:
        os.rename(shop.path, f"{shop.path}.away")

    with pytest.raises(duly.LedgerUnavailable, match="deleted or replaced"):
        close.run("2026-01-01")


def test_a_misspelt_zone_is_no_other_identity(shop: Shop) -> None:
    with closing(sqlite3.connect(shop.path)) as connection, connection, pytest.raises(ValueError, match="Berln"):
        duly.once(connection, "inv:2026-01-01[Europe/Berln]")
    with pytest.raises(ValueError, match="Berln"):
        shop.ledger.take("inv:2026-01-01[Europe/Berln]")


def test_a_day_may_be_named_by_its_date(shop: Shop) -> None:
    job = shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST)(lambda run: None)

    job.run(date(2026, 1, 1))

    assert isinstance(shop.ledger.take("close", date(2026, 1, 1)), duly.AlreadyCompleted)


def test_a_ledger_with_ad_hoc_runs_passes_the_databases_own_check(shop: Shop) -> None:
    claim = shop.ledger.take("close", adhoc="ticket-17")
    assert claim
    claim.complete()

    assert shop.rows("pragma integrity_check") == [("ok",)]


@pytest.mark.parametrize(
    "settings", [{"scopes": "acme"}, {"retries": "3"}, {"lease": 30.5}, {"timeout": "soon"}, {"effect": "magic"}]
)
def test_what_a_declaration_cannot_mean_is_refused_by_name(shop: Shop, settings: dict[str, object]) -> None:
    with pytest.raises(duly.Misuse, match=next(iter(settings))):
        shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.LATEST, **settings)  # type: ignore[arg-type]
