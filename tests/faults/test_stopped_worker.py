"""SIGSTOP, past every lease, in the middle of an effect, then SIGCONT: a worker that wakes up late writes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

import duly
from duly.errors import LedgerBusy
from tests.books import LATE
from tests.exec.stage import environment, state_of, until
from tests.faults.account import CREDIT, DAY, KEY, Account
from tests.work.bank import Worker

CREDIT_AND_SAY = f"""
try:
    print(type(credit.run("{DAY}")).__name__)
except duly.DulyError as e:
    print(type(e).__name__)
ledger.close()
"""


def started(account: Account, *, until_point: str, script: str = CREDIT + CREDIT_AND_SAY) -> Worker:
    """A worker that has come to a point of its job."""
    worker = account.worker(script)
    for point in ("before the effect", "after the effect", "before the commit"):
        worker.reaches(point)
        if point == until_point:
            return worker
        worker.go_on()
    raise AssertionError(f"no such point: {until_point}")


@contextmanager
def stopped(worker: Worker) -> Iterator[None]:
    """In here not one of its threads runs."""
    pid = worker.process.pid
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state_of(pid) == "T", "it is stopped")
    try:
        yield
    finally:
        worker.process.send_signal(signal.SIGCONT)  # unless it was killed meanwhile


def end_of(worker: Worker) -> str:
    """Let it go on to its end; what it said of its run."""
    worker.go_on()
    worker.go_on()
    return worker.ends().splitlines()[-1]


# -- PostgreSQL: the lease decides, and the guard protects --------------------------------------------------------------


def test_on_postgres_another_takes_over_and_the_effect_of_the_stopped_one_is_not_committed(
    on_postgres: Account,
) -> None:
    worker = started(on_postgres, until_point="after the effect")

    with stopped(worker):
        on_postgres.clock.advance(LATE)
        assert on_postgres.credit().run(DAY) == duly.Completed(KEY, 2)

    assert end_of(worker) == "ClaimLost"
    assert on_postgres.days == [DAY]
    assert on_postgres.history() == [(1, "lost"), (2, "completed")]


def test_on_postgres_it_is_fenced_while_the_other_still_works(on_postgres: Account) -> None:
    worker = started(on_postgres, until_point="after the effect")

    with stopped(worker):
        on_postgres.clock.advance(LATE)
        other = started(on_postgres, until_point="before the effect")

    assert end_of(worker) == "ClaimLost"
    assert on_postgres.days == []
    assert end_of(other) == "Completed"
    assert on_postgres.days == [DAY]


def test_on_postgres_before_its_lease_is_over_nobody_takes_over(on_postgres: Account) -> None:
    worker = started(on_postgres, until_point="after the effect")

    with stopped(worker):
        on_postgres.clock.advance(LATE // 4)
        assert isinstance(on_postgres.credit().run(DAY), duly.Busy)

    assert end_of(worker) == "Completed"
    assert on_postgres.history() == [(1, "completed")]


ASKING = f"""
import time

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=1000, retry_delay=0)
def credit(run):
    stop("before the effect")
    while not run.superseded:
        time.sleep(0.002)
    print("superseded", flush=True)
{CREDIT_AND_SAY}"""


def test_who_wakes_up_late_is_told_by_its_keeper_that_another_took_over(on_postgres: Account) -> None:
    worker = started(on_postgres, until_point="before the effect", script=ASKING)

    with stopped(worker):
        on_postgres.clock.advance(LATE)
        assert on_postgres.credit(overlap=False).run(DAY) == duly.Completed(KEY, 2)
    worker.go_on()
    worker.reaches("superseded")

    assert worker.ends() == "ClaimLost"


def test_on_postgres_the_locks_of_the_stopped_one_are_told_as_locks(on_postgres: Account) -> None:
    """Its transaction is still open: whoever needs the same row waits, and is told so. Nothing is done twice."""
    on_postgres.book.amend("create unique index on credited (day)")
    worker = started(on_postgres, until_point="after the effect")

    with stopped(worker):
        on_postgres.clock.advance(LATE)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            on_postgres.credit(on_postgres.ledger(busy_seconds=0.2)).run(DAY)

    assert end_of(worker) == "ClaimLost"
    assert on_postgres.days == []
    assert on_postgres.credit().run(DAY) == duly.Completed(KEY, 3)
    assert on_postgres.days == [DAY]
    assert on_postgres.history() == [(1, "lost"), (2, "failed"), (3, "completed")]


STOPPING_COMMIT = (
    """
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
    + CREDIT
    + CREDIT_AND_SAY
)


def test_on_postgres_who_is_stopped_at_its_commit_may_yet_complete_and_nobody_can_take_over(
    on_postgres: Account,
) -> None:
    """A completion that is written and not committed holds the run: others are told that it is busy, not that it is done."""
    worker = started(on_postgres, until_point="before the commit", script=STOPPING_COMMIT)

    with stopped(worker):
        on_postgres.clock.advance(LATE)
        with pytest.raises(LedgerBusy):
            on_postgres.credit(on_postgres.ledger(busy_seconds=0.2)).run(DAY)

    worker.go_on()
    assert worker.ends() == "Completed"
    assert on_postgres.days == [DAY]
    assert on_postgres.history() == [(1, "completed")]


# -- SQLite: whoever shows a pulse is alive, however late it is ---------------------------------------------------------


def test_on_sqlite_nobody_takes_over_from_a_stopped_worker_and_it_completes(on_sqlite: Account) -> None:
    worker = started(on_sqlite, until_point="before the effect")

    with stopped(worker):
        on_sqlite.clock.advance(100 * LATE)
        assert isinstance(on_sqlite.credit().run(DAY), duly.Busy)

    assert end_of(worker) == "Completed"
    assert on_sqlite.days == [DAY]
    assert on_sqlite.history() == [(1, "completed")]


def test_on_sqlite_a_stopped_worker_that_is_killed_is_taken_over(on_sqlite: Account) -> None:
    worker = started(on_sqlite, until_point="before the effect")

    with stopped(worker):
        on_sqlite.clock.advance(LATE)
        worker.kill()
        assert on_sqlite.credit().run(DAY) == duly.Completed(KEY, 2)

    assert on_sqlite.days == [DAY]


def test_on_sqlite_a_worker_stopped_inside_its_transaction_keeps_the_ledger_busy_and_that_is_what_is_said(
    on_sqlite: Account,
) -> None:
    worker = started(on_sqlite, until_point="after the effect")
    credit = on_sqlite.credit(on_sqlite.ledger(busy_seconds=0.2))

    with stopped(worker):
        assert isinstance(credit.run(DAY), duly.Busy)  # who only looks is not kept out
        with pytest.raises(LedgerBusy):
            credit.run("2026-10-04")
        assert on_sqlite.days == []

    assert end_of(worker) == "Completed"
    assert credit.run("2026-10-04") == duly.Completed("credit:2026-10-04[UTC]", 1)
    assert on_sqlite.days == ["2026-10-04", DAY]


def test_on_sqlite_an_external_worker_of_whom_a_person_said_that_it_is_dead_is_fenced(on_sqlite: Account) -> None:
    external = CREDIT.replace("catch_up=", 'effect="external", catch_up=') + CREDIT_AND_SAY
    worker = started(on_sqlite, until_point="before the effect", script=external)

    with stopped(worker):
        on_sqlite.clock.advance(LATE)
        assert said_dead(on_sqlite, "--as", "not-done") == 0
        assert on_sqlite.credit(effect="external").run(DAY) == duly.Completed(KEY, 2)

    assert end_of(worker) == "ClaimLost"
    assert on_sqlite.days == [DAY]
    assert on_sqlite.history() == [(1, "failed"), (2, "completed")]


def said_dead(account: Account, *words: str) -> int:
    """A person overrides the pulse of a worker; the exit code."""
    told = [*words, "--evidence", "its host was switched off", "--attempt-is-dead"]
    command = [sys.executable, "-m", "duly", "resolve", "credit", DAY, *told]
    return subprocess.run(command, env=environment(DULY_LEDGER=account.url), check=False).returncode
