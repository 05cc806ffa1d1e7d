"""PostgreSQL ended as by a crash while processes work: each window is done once, and nobody is told otherwise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import duly
from duly.store.migrations import postgres
from tests.books import PostgresBook
from tests.exec.stage import DAILY, until
from tests.faults.account import CREDIT, DAY, KEY, Account
from tests.faults.cluster import Cluster
from tests.proxy import Proxy
from tests.scenarios.hosts import Hosts
from tests.story import Said
from tests.work.bank import Worker

# -- under load ---------------------------------------------------------------------------------------------------------

WORKERS = 4
WINDOWS = [f"2026-{month:02}-{day:02}" for month in (3, 4) for day in range(1, 21)]

# In real time, with a lease of half a second: a claim whose process could not say how it ended is soon taken over.
COUNTING = """
import json, time, warnings
import psycopg
from duly.errors import LedgerWentBack
from duly.work.run import LongTransaction

warnings.simplefilter("ignore", LongTransaction)  # while the server is down a commit waits to be looked up

def job_of(ledger):
    @ledger.job("count", duly.daily("UTC"), catch_up=duly.EACH, lease="500ms", retries=1000, retry_delay=0, overlap=True)
    def count(run):
        run.tx.execute("insert into counted (day) values (%s)", (run.label,))
        run.tx.execute("update counter set n = n + 1")
        run.tx.execute("select pg_sleep(0.02)")  # an effect that takes a while: a crash finds somebody at it

    return count

def work(left):
    global ledger
    job, told, failed = job_of(ledger), [], []
    while left:
        window = left.pop(0)
        try:
            answer = job.run(window)
        except LedgerWentBack:  # as a supervisor does: begin again
            failed.append("LedgerWentBack")
            ledger.close()
            left.append(window)
            while (ledger := opened()) is None:
                time.sleep(0.005)
            job = job_of(ledger)
        except (duly.LedgerUnavailable, duly.Conflict, duly.ClaimLost, psycopg.Error) as e:
            failed.append(type(e).__name__)
            left.append(window)
            time.sleep(0.005)  # the server may be down
        else:
            if isinstance(answer, duly.Completed):
                told.append(window)
            elif not isinstance(answer, duly.AlreadyCompleted):
                left.append(window)
    return {"told": told, "failed": failed}

def opened():
    try:
        return duly.postgres(path)
    except duly.LedgerUnavailable:
        return None

stop("ready")
print(json.dumps(work(WINDOWS)))
ledger.close()
"""


class Counting(PostgresBook):
    """A ledger with a clock of its own beside a counter, on a server that may crash."""

    def __init__(self, cluster: Cluster) -> None:  # without a clock set by hand
        self.cluster = cluster
        self.path = cluster.databases.new_database()
        postgres.create(self.path)
        self.amend("create table counted (day text not null)")
        self.amend("create table counter (n integer not null)")
        self.amend("insert into counter values (0)")

    def worker(self, windows: list[str]) -> Worker:
        return Worker(self, COUNTING.replace("WINDOWS", repr(windows)))

    @property
    def counter(self) -> int:
        ((n,),) = self.rows("select n from counter")
        return int(n)

    def crash_after(self, completions: int) -> None:
        """Let the server crash once so many windows are complete, and come back."""
        until(lambda: self.counter >= completions, f"{completions} windows are complete")
        self.cluster.crash_and_restart()


def test_a_server_that_crashes_twice_under_four_workers_leaves_each_window_done_once(cluster: Cluster) -> None:
    counting = Counting(cluster)
    workers = [counting.worker(WINDOWS[nth * 10 :] + WINDOWS[: nth * 10]) for nth in range(WORKERS)]
    for worker in workers:
        worker.reaches("ready")
    for worker in workers:
        worker.go_on()

    counting.crash_after(8)
    counting.crash_after(20)
    reports = [json.loads(worker.ends()) for worker in workers]

    completed = [nominal[:10] for nominal, state in counting.runs("count") if state == "completed"]
    assert completed == WINDOWS
    assert counting.rows("select day from counted order by day") == [(day,) for day in WINDOWS]
    assert counting.counter == len(WINDOWS)
    outcomes = Counter(outcome for (outcome,) in counting.rows("select outcome from duly_attempt_readable"))
    assert outcomes["completed"] == len(WINDOWS), outcomes
    assert set(outcomes) <= {"completed", "failed", "lost"}, outcomes
    # Not everybody: a worker that was between two statements at both crashes has noticed nothing, and did nothing wrong.
    assert any(report["failed"] for report in reports), "nobody noticed a crash: nothing was tested"


# -- a claim that was not flushed ---------------------------------------------------------------------------------------


@pytest.fixture
def forgetful(cluster: Cluster) -> Iterator[Account]:
    """An account on a server that forgets, in a crash, every commit that nobody asked it to flush."""
    cluster.stop()
    cluster.start(wal_writer_delay="10s")  # and not by chance, meanwhile
    account = Account(PostgresBook(cluster.databases.new_database()))
    account.credit().run("2026-10-01")  # the job is known
    account.close()
    yield account
    account.close()


TWO_DAYS = f"""
import time

def said(window):
    try:
        return type(credit.run(window)).__name__
    except (duly.DulyError, psycopg.Error) as e:
        return type(e).__name__

print(said("{DAY}"), flush=True)
sys.stdin.readline()
while (answer := said("2026-10-04")) == "LedgerUnavailable":  # the connections of before the crash are dropped one by one
    time.sleep(0.005)
print(answer)
ledger.close()
"""


def claimed_and_forgotten(account: Account, cluster: Cluster) -> Worker:
    """A worker whose claim the server has forgotten, before its effect."""
    worker = account.worker("import psycopg\n" + CREDIT + TWO_DAYS)
    worker.reaches("before the effect")
    assert account.history() == [(1, "completed"), (1, "running")]
    account.close()
    cluster.crash_and_restart(wal_writer_delay="10s")
    assert account.history() == [(1, "completed")]
    return worker


def test_a_claim_may_be_lost_in_a_crash_and_its_effect_is_not_doubled(forgetful: Account, cluster: Cluster) -> None:
    """I2: the claim that comes after it has the same number, and another attempt id."""
    worker = claimed_and_forgotten(forgetful, cluster)

    assert forgetful.credit().run(DAY) == duly.Completed(KEY, 1)
    worker.go_on()
    worker.reaches("after the effect")
    worker.go_on()
    worker.reaches("ClaimLost")

    assert forgetful.days == ["2026-10-01", DAY]
    assert forgetful.history() == [(1, "completed")] * 2
    worker.kill()


def test_who_lost_such_a_claim_works_on(forgetful: Account, cluster: Cluster) -> None:
    """What nobody asked to be flushed was not promised: a ledger that forgets it has not gone back in time."""
    worker = claimed_and_forgotten(forgetful, cluster)

    worker.go_on()
    worker.reaches("after the effect")
    worker.go_on()
    worker.reaches("ClaimLost")
    worker.go_on()
    worker.reaches("before the effect")
    worker.go_on()
    worker.reaches("after the effect")
    worker.go_on()

    assert worker.ends() == "Completed"
    assert forgetful.days == ["2026-10-01", "2026-10-04"]


# -- a completion that was not flushed ----------------------------------------------------------------------------------

STOPPING_COMMIT = """
import psycopg
import duly.store.owned.postgres as owned

class StoppingCursor(psycopg.Cursor):
    def execute(self, query, *settings, **named):
        if query == "commit":
            stop("before the commit")
        return super().execute(query, *settings, **named)

def stopping_cursor(transaction):
    return StoppingCursor(transaction._connection, row_factory=psycopg.rows.tuple_row)

owned.OwnedTransaction._cursor = stopping_cursor
"""


def crashed_at_its_commit(account: Account, cluster: Cluster) -> Worker:
    """A worker that has written effect and completion, and sends its COMMIT to a server that has crashed since."""
    worker = account.worker("import psycopg\n" + STOPPING_COMMIT + CREDIT + TWO_DAYS)
    for point in ("before the effect", "after the effect"):
        worker.reaches(point)
        worker.go_on()
    worker.reaches("before the commit")
    account.close()
    cluster.crash_and_restart(wal_writer_delay="10s")
    return worker


def said_by(worker: Worker) -> str:
    """The next line of a worker."""
    assert worker.process.stdout is not None
    line: str = worker.process.stdout.readline().strip()
    return line


def test_a_completion_that_did_not_commit_in_a_crash_is_told_as_rolled_back(
    forgetful: Account, cluster: Cluster
) -> None:
    worker = crashed_at_its_commit(forgetful, cluster)

    worker.go_on()

    assert said_by(worker) in ("Conflict", "LedgerUnavailable")
    assert forgetful.days == ["2026-10-01"]
    worker.kill()


def test_it_is_not_told_as_done_because_another_transaction_has_its_id_now(
    forgetful: Account, cluster: Cluster
) -> None:
    """Ids of transactions whose log was not flushed are given out again after a crash."""
    worker = crashed_at_its_commit(forgetful, cluster)
    for _ in range(10):  # others work on at once
        forgetful.book.rows("select pg_current_xact_id()")

    worker.go_on()
    said = said_by(worker)
    worker.kill()

    assert forgetful.days == ["2026-10-01"]
    assert said != "Completed"


def test_a_completion_that_was_told_survives_a_crash(forgetful: Account, cluster: Cluster) -> None:
    """Its commit is flushed, and the claim before it with it."""
    assert forgetful.credit().run(DAY) == duly.Completed(KEY, 1)
    forgetful.close()

    cluster.crash_and_restart()

    assert forgetful.days == forgetful.completed() == ["2026-10-01", DAY]
    assert isinstance(forgetful.credit().run(DAY), duly.AlreadyCompleted)


# -- a command's end whose reply was lost in the crash -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "code", "outcome", "told"),
    [("exit 0", 0, "completed", ""), ("exit 3", 3, "failed", "failed (exit 3); may be retried in ")],
)
def test_an_end_that_was_written_down_is_told_as_what_it_was_and_not_as_a_take_over(
    tmp_path: Path, cluster: Cluster, end: str, code: int, outcome: str, told: str
) -> None:
    """After a crash the server cannot say what became of a commit of before it; the ledger can."""
    hosts = Hosts(tmp_path, cluster.databases.new_database())
    proxy = Proxy(hosts.path)

    def exec_through_proxy() -> Said:
        hosts.clock.advance("1d")
        command, environ = hosts.effect(end), {"DULY_LEDGER": proxy.url}
        return hosts.exec("close", *DAILY, "--retries", "1", "--no-retry", command=command, environ=environ)

    exec_through_proxy()  # registers the job as well
    proxy.commits = 0
    before = exec_through_proxy()
    proxy.meanwhile = cluster.crash_and_restart
    proxy.swallow_the_reply_of(proxy.commits - 1)  # of the command's end; after it comes a look for more work
    after = exec_through_proxy()
    proxy.close()

    assert (before.code, after.code) == (code, code), after
    assert told in before.talk
    assert told in after.talk
    assert hosts.outcomes() == [outcome] * 3
    assert len(hosts.effects()) == 3
    hosts.close()


# -- what survives ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", ["external", "idempotent"])
def test_a_claim_of_another_contract_survives_a_crash(forgetful: Account, cluster: Cluster, contract: str) -> None:
    """Its effect may be elsewhere already: whoever comes after the crash has to know."""
    terms: dict[str, Any] = {"remembers": "1h"} if contract == "idempotent" else {}
    worker = forgetful.worker(CHARGING.format(contract=contract, terms=terms))
    worker.reaches("claimed")
    forgetful.close()

    cluster.crash_and_restart()

    assert forgetful.history()[1:] == [(1, "running")]
    worker.kill()


CHARGING = """
@ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="{contract}", **{terms})
def charge(run):
    stop("claimed")

charge.run("2026-10-05")
"""


# -- connections that are lost while an attempt lives -------------------------------------------------------------------

HOLDING = """
@ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external")
def charge(run):
    stop("in the middle")
    {then}

try:
    print(type(charge.run("2026-10-05")).__name__)
except Exception as e:
    print(type(e).__name__, *e.__notes__)
ledger.close()
"""


def in_the_middle(account: Account, then: str) -> Worker:
    """A worker in the middle of a charge; what it says of threads that die is part of its end."""
    worker = account.worker(HOLDING.format(then=then))
    worker.reaches("in the middle")
    return worker


def test_a_lease_is_kept_across_a_restart_of_the_server(forgetful: Account, cluster: Cluster) -> None:
    worker = in_the_middle(forgetful, then="pass")
    forgetful.close()
    cluster.crash_and_restart()

    try:
        for _ in range(4):
            forgetful.clock.advance("25s")
            until(lambda: renewed(forgetful), "the lease is renewed", seconds=2)
    finally:
        worker.kill()


def renewed(account: Account) -> bool:
    """Whether the lease of the one attempt there is will last for most of its length."""
    return bool(account.book.rows("select 1 from duly_renewal where until > ?", account.clock.now() + 30_000_000))


def test_a_jobs_own_exception_is_raised_where_the_ledger_cannot_be_told_of_it(
    forgetful: Account, cluster: Cluster
) -> None:
    worker = in_the_middle(forgetful, then='raise ValueError("their answer makes no sense")')
    forgetful.close()
    cluster.stop("immediate")

    worker.go_on()
    said = worker.ends()

    assert said.startswith("ValueError duly: how this attempt ended could not be recorded"), said
