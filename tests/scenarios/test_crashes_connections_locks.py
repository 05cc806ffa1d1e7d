"""Crashes, connections and locks: long jobs, lost conflicts, logs that grow, dead connections, disks that are none."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import duly
import duly.aio
from tests.books import Book, PostgresBook
from tests.exec.stage import DAILY, Stage, until
from tests.exec.test_killed import through_leases
from tests.faults.account import DAY, KEY, Account
from tests.scenarios.hosts import Hosts

# -- long jobs ----------------------------------------------------------------------------------------------------------


def test_a_command_of_47_minutes_is_taken_over_at_none_of_them(hosts: Hosts) -> None:
    """Where no file lock shows that it lives, its lease alone does: it has no age."""
    gate = hosts.gate("long")
    running = hosts.start(
        "close", *DAILY, "--effect", "idempotent", "--remembers", "forever", command=hosts.effect(gate.shell)
    )
    gate.arrived()
    with closing(duly.postgres(hosts.path)) as other:
        for _ in range(47):
            through_leases(hosts, running, 1)
            assert isinstance(other.take("close", "2026-11-28"), duly.Busy)
    gate.open()

    assert running.ended().code == 0
    assert hosts.outcomes() == ["completed"]


# -- what may be tried again is no outcome ------------------------------------------------------------------------------


def test_an_effect_that_was_the_victim_of_a_deadlock_is_taken_again(on_postgres: Account) -> None:
    for day in ("one", "two"):
        on_postgres.book.amend("insert into credited values (?, 0)", day)
    rival = psycopg.connect(on_postgres.url)
    add_ten(rival, "two")

    @on_postgres.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)
    def credit(run: duly.Run[psycopg.Connection[Any]]) -> None:
        run.tx.execute("set local deadlock_timeout = '10ms'")  # it is the one that notices
        add_ten(run.tx, "one")
        if run.attempt == 1:
            crossing.start()
            until(lambda: is_waiting(on_postgres), "the other waits for the first row")
        add_ten(run.tx, "two")

    def cross() -> None:
        add_ten(rival, "one")
        rival.commit()

    crossing = threading.Thread(target=cross)
    with pytest.raises(psycopg.errors.DeadlockDetected):
        credit.run(DAY)
    crossing.join()
    rival.close()

    assert on_postgres.book.rows("select state, retry_at is null from duly_run") == [("failed", False)]
    assert credit.run(DAY) == duly.Completed(KEY, 2)
    assert on_postgres.book.rows("select units from credited") == [(20,), (20,)]


def add_ten(connection: psycopg.Connection[Any], day: str) -> None:
    connection.execute("update credited set units = units + 10 where day = %s", (day,))


def is_waiting(account: Account) -> bool:
    return bool(
        account.book.rows(
            "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
    )


def test_an_effect_that_could_not_be_serialized_is_taken_again(on_postgres: Account) -> None:
    """Two who each credit only what nobody credited yet: the second learns of the first when it is too late."""
    on_postgres.book.job("credit")
    ledger = on_postgres.ledger()

    with pytest.raises((psycopg.errors.SerializationFailure, duly.Conflict)):
        credit_if_none(on_postgres, ledger.take("credit", DAY), meanwhile=lambda: credit_if_none(on_postgres, None))

    assert on_postgres.book.rows("select state, retry_at is null from duly_run") == [("failed", False)]
    assert on_postgres.days == ["by hand"]
    on_postgres.clock.advance("2h")
    credit_if_none(on_postgres, ledger.take("credit", DAY))
    assert on_postgres.days == ["by hand"]
    assert on_postgres.history() == [(1, "failed"), (2, "completed")]


def credit_if_none(account: Account, claim: object, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Credit a day unless there is one, at SERIALIZABLE: as a claim's effect, or by hand."""
    with ExitStack() as both, psycopg.connect(account.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        if isinstance(claim, duly.Claim):
            both.enter_context(claim)
        none = connection.execute("select 1 from credited").fetchone() is None
        meanwhile()
        if none:
            day = DAY if claim else "by hand"
            connection.execute("insert into credited (day, units) values (%s, 10)", (day,))
        if isinstance(claim, duly.Claim):
            claim.complete(connection)


# -- nothing is held between two transactions ---------------------------------------------------------------------------


def nothing_is_held(book: Book) -> bool:
    """Whether nobody of duly's keeps old rows, or anyone, waiting: no reader, no open transaction, no lock of a session."""
    return no_session_holds(book) if isinstance(book, PostgresBook) else log_can_be_emptied(book.path)


def log_can_be_emptied(path: str) -> bool:
    """Behind a reader the write-ahead log grows without end (sqlite.org/wal.html, "Avoiding Excessively Large WAL Files")."""
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        (blocked, _, _) = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    return not blocked and os.path.getsize(path + "-wal") == 0


def no_session_holds(book: Book) -> bool:
    """Behind an open transaction dead rows pile up, and behind a pooler the lock of a session is whoever's comes next."""
    held = book.rows(
        """select a.state, (select count(*) from pg_locks l where l.pid = a.pid)
             from pg_stat_activity a
            where a.datname = current_database() and a.application_name like 'duly%'"""
    )
    return set(held) == {("idle", 0)}


def test_while_a_command_goes_on_nothing_is_held_in_its_ledger(stage: Stage) -> None:
    gate = stage.gate("long")
    running = stage.start("close", *DAILY, command=stage.effect(gate.shell))
    gate.arrived()

    if isinstance(stage, Hosts):
        until(lambda: no_session_holds(stage.book), "nothing is held")
    else:
        until(lambda: log_can_be_emptied(stage.path), "nothing is held")
    gate.open()

    assert running.ended().code == 0


def test_a_process_that_keeps_its_ledger_open_holds_nothing_in_it(account: Account) -> None:
    ledger = account.ledger()
    seen: list[str] = []

    def free(when: str) -> None:
        until(lambda: nothing_is_held(account.book), f"nothing is held {when}")
        seen.append(when)

    @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    def credit(run: duly.Run[Any]) -> None:
        free("before run.tx is read")
        run.tx.execute("select * from credited").fetchone()  # nobody reads it to its end

    credit.catch_up()
    free("after a run")
    assert credit.catch_up() == []
    free("after a look that found nothing")
    assert isinstance(credit.run(DAY), duly.AlreadyCompleted)
    free("after a duplicate")
    claim = ledger.take("credit", "2026-10-04")
    assert isinstance(claim, duly.Claim)
    with claim:
        free("while a claim is held")
        assert isinstance(account.ledger().take("credit", "2026-10-04"), duly.Busy)
        free("after it was busy")
        claim.complete()
    free("after a claim")
    with pytest.raises(ZeroDivisionError):
        account.ledger().job("divide", duly.daily("UTC"), catch_up=duly.EACH)(divide).run(DAY)
    free("after a failure")

    assert len(seen) == 8


def divide(run: duly.Run[Any]) -> None:
    run.tx.execute("select * from credited")
    raise ZeroDivisionError


def test_an_event_loop_that_keeps_its_ledger_open_holds_nothing_in_it(account: Account) -> None:
    async def free() -> None:
        while not nothing_is_held(account.book):
            await asyncio.sleep(0.002)

    async def story() -> None:
        async with opened_in_loop(account) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[Any]) -> None:
                await free()
                tx = await run.tx
                await (await tx.execute("select * from credited")).fetchone()

            await credit.catch_up()
            await free()
            assert await credit.catch_up() == []
            await free()
            assert isinstance(await credit.run(DAY), duly.AlreadyCompleted)
            await free()

    asyncio.run(asyncio.wait_for(story(), 60))


def opened_in_loop(account: Account) -> duly.aio.Ledger[Any]:
    return duly.aio.postgres(account.url) if isinstance(account.book, PostgresBook) else duly.aio.sqlite(account.url)


# -- connections --------------------------------------------------------------------------------------------------------


def test_in_an_event_loop_a_connection_that_the_server_ended_is_dropped_at_the_first_word(on_postgres: Account) -> None:
    async def story() -> list[str]:
        async with duly.aio.postgres(on_postgres.url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0, overlap=True)
            async def credit(run: duly.aio.Run[Any]) -> None:
                tx = await run.tx
                await tx.execute(f"insert into credited (day, units) values ('{run.label}', 10)")

            async def told() -> str:
                try:
                    return type(await credit.run(DAY)).__name__
                except duly.DulyError as e:
                    return type(e).__name__

            await asyncio.gather(*(credit.run(f"2026-10-0{day}") for day in (1, 2, 3)))
            end_connections(on_postgres)
            return [await told() for _ in range(6)]

    answers = asyncio.run(story())

    failed = answers.count("LedgerUnavailable")
    assert answers == ["LedgerUnavailable"] * failed + ["Completed"] + ["AlreadyCompleted"] * (5 - failed)
    assert on_postgres.days == ["2026-10-01", "2026-10-02", "2026-10-03", DAY]


def end_connections(account: Account) -> None:
    """End every connection of duly's, as an administrator does, and see them gone."""
    theirs = "from pg_stat_activity where datname = current_database() and application_name like 'duly%' and pid <> ?"
    ((mine,),) = account.book.rows("select pg_backend_pid()")
    account.book.rows(f"select pg_terminate_backend(pid) {theirs}", mine)
    until(lambda: not account.book.rows(f"select 1 {theirs}", mine), "they are gone")


# -- disks --------------------------------------------------------------------------------------------------------------

NFS = "1 0 0:1 / / rw,relatime - nfs4 server:/export rw,vers=4.2\n"
BELIEVING = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/$$/mountinfo && exec "$@"')


def test_on_a_network_file_system_nothing_is_run_and_no_ledger_made(tmp_path: Path) -> None:
    """The kernel's table of mounts is another one for this process alone: that of a host whose disk is elsewhere."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(NFS)
    if shutil.which("unshare") is None or subprocess.run([*BELIEVING, mounts, "true"], check=False).returncode:
        pytest.skip("this user may not mount: no process can be shown another table of mounts")
    (tmp_path / "disk").mkdir()
    ledger = tmp_path / "disk" / "jobs.db"

    with closing(Stage(tmp_path)) as stage:
        environ = {"DULY_LEDGER": str(ledger)}
        remote = stage.start("close", *DAILY, command=stage.effect(), environ=environ, prefix=(*BELIEVING, str(mounts)))
        said = remote.ended()
        made = list(ledger.parent.iterdir())
        local = stage.exec("close", *DAILY, command=stage.effect(), environ=environ)

    assert said.code != 0
    assert "lies on nfs4, a network file system" in said.talk
    assert made == []
    assert local.code == 0
    assert len(stage.effects()) == 1
