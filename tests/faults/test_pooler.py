"""PgBouncer in transaction mode: each transaction may be on another of two connections, shared by everybody."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import duly
import duly.aio
from tests.books import PostgresBook
from tests.exec.stage import environment, until
from tests.faults.account import DAY, KEY, Account
from tests.faults.cluster import Cluster, folder_of, free_port, plain_user

CLIENTS = 12
PATIENCE = 30

# As distributions ship it: whoever prepares a statement may not find it again (`max_prepared_statements`, from 1.21 on).
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
server_check_delay = 0
"""


@pytest.fixture(scope="module")
def pooler(standing_cluster: Cluster) -> Iterator[int]:
    """The port of a pooler that has two connections to the server. Skips where PgBouncer cannot be had."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed: nothing stands between duly and PostgreSQL here")
    user, port = plain_user(), free_port()
    with folder_of(user) as folder:
        settings = folder / "pgbouncer.ini"
        settings.write_text(CONFIGURATION.format(server=standing_cluster.port, port=port))
        with (folder / "log").open("w") as log:
            pooler = subprocess.Popen([program, settings], user=user, cwd=folder, stdout=log, stderr=log)
        until(lambda: listens(port) or pooler.poll() is not None, "the pooler listens")
        assert pooler.poll() is None, (folder / "log").read_text()
        yield port
        pooler.kill()
        pooler.wait(PATIENCE)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def pooled(standing_cluster: Cluster, pooler: int) -> Iterator[Account]:
    """An account whose ledger everybody reaches through the pooler."""
    direct = standing_cluster.databases.new_database()
    account = Account(PostgresBook(direct))
    account.url = urlsplit(direct)._replace(netloc=f"postgres@127.0.0.1:{pooler}").geturl()
    yield account
    account.close()
    standing_cluster.databases.drop(direct)


def test_the_pooler_gives_a_transaction_to_whichever_connection_is_free(pooled: Account) -> None:
    """Else the other tests would tell nothing: clients share two connections, and none keeps one."""
    clients = [psycopg.connect(pooled.url, autocommit=True) for _ in range(4)]

    for one, other in zip(clients[:2], clients[2:], strict=True):
        one.execute("begin")
        other.execute("begin")
        pids = {client.execute("select pg_backend_pid()").fetchone() for client in (one, other)}
        assert len(pids) == 2
        one.execute("commit")
        other.execute("commit")
    pids = {client.execute("select pg_backend_pid()").fetchone() for client in clients}

    assert len(pids) <= 2
    for client in clients:
        client.close()


def test_a_job_is_done_once_and_a_duplicate_is_told_so_again_and_again(pooled: Account) -> None:
    """Often enough for a driver that prepares what it repeats, under the same name as every other client."""
    credits = [pooled.credit(pooled.ledger()) for _ in range(3)]

    assert credits[0].run(DAY) == duly.Completed(KEY, 1)
    for credit in credits * 10:
        assert isinstance(credit.run(DAY), duly.AlreadyCompleted)

    assert pooled.days == [DAY]
    assert pooled.history() == [(1, "completed")]


def test_the_same_in_event_loops(pooled: Account) -> None:
    async def client() -> None:
        async with duly.aio.postgres(pooled.url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, overlap=True)
            async def credit(run: duly.aio.Run[Any]) -> None:
                tx = await run.tx
                await tx.execute("insert into credited values (%s, 10)", (run.label,))

            for day in (1, 2, 3, 4, 5, 1, 2, 3, 4, 5):
                await credit.run(f"2026-10-0{day}", wait="1h")

    async def clients() -> None:
        await asyncio.gather(client(), client(), client())

    asyncio.run(clients())

    assert pooled.days == pooled.completed() == [f"2026-10-0{day}" for day in range(1, 6)]


def test_what_is_owed_is_worked_by_many_clients_and_each_day_once(pooled: Account) -> None:
    pooled.credit(pooled.ledger()).catch_up()
    pooled.clock.advance("12d")
    failures: list[BaseException] = []

    def client() -> None:
        ledger = pooled.ledger()
        try:
            pooled.credit(ledger).catch_up()
        except BaseException as e:
            failures.append(e)
        finally:
            ledger.close()

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert failures == []
    assert len(pooled.days) == 13
    assert pooled.days == pooled.completed()


def test_many_clients_on_one_window_give_one_effect(pooled: Account) -> None:
    workers = [pooled.worker(ONE_OF_MANY) for _ in range(4)]
    for worker in workers:
        worker.reaches("ready")
    for worker in workers:
        worker.go_on()

    said = sorted(worker.ends() for worker in workers)

    assert said == ["AlreadyCompleted"] * 3 + ["Completed"]
    assert pooled.days == [DAY]


ONE_OF_MANY = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    run.tx.execute("insert into credited values ('2026-10-05', 10)")

stop("ready")
print(type(credit.run("2026-10-05", wait="1h")).__name__)
ledger.close()
"""


def test_two_claims_are_renewed_while_others_use_the_connections(pooled: Account) -> None:
    ledger = pooled.ledger()
    pooled.credit(ledger).catch_up()
    first, second = ledger.take("credit", "2026-10-01"), ledger.take("credit", "2026-10-02")
    assert first
    assert second

    with first, second:
        for _ in range(6):
            pooled.clock.advance("25s")
            until(lambda: renewed(pooled) == 2, "both leases are renewed")
            assert isinstance(ledger.take("credit", "2026-10-01"), duly.Busy)
        assert (first.superseded, second.superseded) == (False, False)
        first.complete()
        second.complete()

    assert pooled.completed() == ["2026-10-01", "2026-10-02", DAY]


def renewed(account: Account) -> int:
    """How many leases will last for most of their length."""
    soon = account.clock.now() + 30_000_000
    ((found,),) = account.book.rows("select count(*) from duly_renewal where until > ?", soon)
    return int(found)


def test_a_stale_claim_is_refused_in_a_callers_transaction(pooled: Account) -> None:
    ledger = pooled.ledger()
    pooled.credit(ledger).catch_up()
    stale = ledger.take("credit", "2026-10-01")
    assert stale
    pooled.clock.advance("5m")
    fresh = ledger.take("credit", "2026-10-01")
    assert fresh

    late = psycopg.connect(pooled.url)
    late.execute("insert into credited values ('2026-10-01', 10)")
    with pytest.raises(duly.ClaimLost):
        stale.complete(late)
    assert late.closed
    with psycopg.connect(pooled.url) as connection:
        connection.execute("insert into credited values ('2026-10-01', 10)")
        fresh.complete(connection)

    assert pooled.days == ["2026-10-01", DAY]


def test_a_time_out_set_for_one_statement_is_not_left_to_the_next_client(pooled: Account) -> None:
    """What duly sets, it sets for one transaction: another client is given the connection as it was."""
    credit = pooled.credit(pooled.ledger())

    for day in range(1, 6):
        credit.run(f"2026-10-0{day}")

    with psycopg.connect(pooled.url, autocommit=True) as one, psycopg.connect(pooled.url) as other:
        left = [connection.execute(LEFT).fetchone() for connection in (one, other)]
    assert left == [("0", "0", "on", "read committed")] * 2


LEFT = """
select current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('synchronous_commit'),
       current_setting('default_transaction_isolation')
"""


def test_a_command_is_run_once_through_the_pooler(pooled: Account, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    command = ["sh", "-c", f"echo $DULY_RUN_KEY >> '{effects}'"]

    codes = [exec_on(pooled, "--period", "daily", "--zone", "UTC", command=command) for _ in range(4)]

    assert codes == [0] * 4
    assert effects.read_text().splitlines() == ["close:2026-10-05[UTC]"]


def exec_on(account: Account, *flags: str, command: list[str]) -> int:
    """The exit code of `duly exec` on the pooled ledger."""
    words = [sys.executable, "-W", "error", "-m", "duly", "exec", "close", *flags, "--", *command]
    ended = subprocess.run(words, env=environment(DULY_LEDGER=account.url), capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode
