"""A server that ends connections, takes no writes or has no patience: errors mean what they say, and nothing is half done.

Never is any of it told as a duplicate: who believes that a run is complete does not come again (I12).
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import duly
from duly.errors import LedgerBusy, LedgerUnwritable
from tests.books import PostgresBook
from tests.exec.stage import environment, until
from tests.faults.account import DAY, KEY, Account
from tests.faults.cluster import Cluster, folder_of

_numbers = count(1)

# Nothing of it was committed, and the whole may be tried again: the connection was found ended before the completion was
# sent, or while its answer was waited for. Which of the two, the kernel decides.
ENDED = (duly.LedgerUnavailable, duly.Conflict)

# What is wrong about it is a test of its own.
NEVER_TRIED = pytest.mark.filterwarnings("ignore:coroutine 'complete_or_raise' was never awaited:RuntimeWarning")


def as_role(account: Account, *settings: str, rights: str = "superuser") -> str:
    """The URL of the account for a new role, with settings that its administrator chose."""
    role = f"clerk_{next(_numbers)}"
    for statement in (f"create role {role} login {rights}", *(f"alter role {role} set {one}" for one in settings)):
        account.book.amend(statement)
    parts = urlsplit(account.url)
    return parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()


def work(account: Account, effect: Callable[[duly.Run[Any]], object], **settings: Any) -> object:
    """Do the account's job with another effect."""
    job: duly.Job[Any] = account.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(effect)
    return job.run(DAY, **settings)


def credit_in(run: duly.Run[Any]) -> None:
    run.tx.execute(f"insert into credited (day, units) values ('{run.label}', 10)")


# -- connections that the server ends -----------------------------------------------------------------------------------


def end_backend(account: Account, pid: int) -> None:
    """End a connection as an administrator does, and see it gone."""
    account.book.rows("select pg_terminate_backend(?)", pid)
    until(lambda: not account.book.rows("select 1 from pg_stat_activity where pid = ?", pid), "the backend is gone")


@NEVER_TRIED
def test_a_backend_ended_between_effect_and_completion_leaves_neither(on_postgres: Account) -> None:
    def cut_off(run: duly.Run[Any]) -> None:
        credit_in(run)
        end_backend(on_postgres, run.tx.info.backend_pid)

    with pytest.raises(ENDED):
        work(on_postgres, cut_off)

    assert on_postgres.days == []
    assert on_postgres.history() == [(1, "failed")]
    assert work(on_postgres, credit_in) == duly.Completed(KEY, 2)
    assert on_postgres.days == [DAY]


def test_a_completion_that_could_not_be_tried_leaves_no_warning(on_postgres: Account) -> None:
    def cut_off(run: duly.Run[Any]) -> None:
        credit_in(run)
        end_backend(on_postgres, run.tx.info.backend_pid)

    with pytest.raises(ENDED):
        work(on_postgres, cut_off)
    gc.collect()


def test_connections_ended_between_two_runs_are_dropped_at_the_first_word(on_postgres: Account) -> None:
    credit = on_postgres.credit()
    credit.run("2026-10-04")
    for (pid,) in on_postgres.book.rows(
        "select pid from pg_stat_activity where datname = current_database() and application_name like 'duly%%'"
    ):
        end_backend(on_postgres, pid)

    answers = [told(lambda: credit.run(DAY)) for _ in range(4)]

    failed = answers.count("LedgerUnavailable")
    assert failed <= 2, answers
    assert answers[failed:] == ["Completed"] + ["AlreadyCompleted"] * (3 - failed)
    assert on_postgres.days == ["2026-10-04", DAY]


def told(act: Callable[[], object]) -> str:
    """The kind of an answer, or of the error in its place."""
    try:
        return type(act()).__name__
    except duly.DulyError as e:
        return type(e).__name__


@NEVER_TRIED
def test_a_transaction_that_idled_too_long_for_the_server_commits_nothing(on_postgres: Account) -> None:
    on_postgres.url = as_role(on_postgres, "idle_in_transaction_session_timeout = '100ms'")

    def dawdle(run: duly.Run[Any]) -> None:
        credit_in(run)
        pid = run.tx.info.backend_pid
        until(lambda: not on_postgres.book.rows("select 1 from pg_stat_activity where pid = ?", pid), "it was ended")

    with pytest.raises(ENDED):
        work(on_postgres, dawdle)

    assert on_postgres.days == []
    assert on_postgres.history() == [(1, "failed")]


# -- servers that take no writes ----------------------------------------------------------------------------------------


def test_a_read_only_primary_is_told_as_unwritable_and_still_tells_duplicates(on_postgres: Account) -> None:
    on_postgres.credit().run("2026-10-04")
    on_postgres.url = as_role(on_postgres, "default_transaction_read_only = on")
    credit = on_postgres.credit()

    with pytest.raises(LedgerUnwritable, match="25006"):
        credit.run(DAY)
    with pytest.raises(ExceptionGroup) as all_of_it:
        credit.catch_up()

    assert [type(e) for e in all_of_it.value.exceptions] == [LedgerUnwritable]
    assert isinstance(credit.run("2026-10-04"), duly.AlreadyCompleted)
    assert on_postgres.days == ["2026-10-04"]


def test_a_command_is_not_started_where_the_ledger_takes_no_writes(on_postgres: Account) -> None:
    url = as_role(on_postgres, "default_transaction_read_only = on")
    words = ["exec", "close", "--period", "daily", "--zone", "UTC", "--", "sh", "-c", "echo done"]

    ended = subprocess.run(
        [sys.executable, "-m", "duly", *words],
        env=environment(DULY_LEDGER=url),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "cannot be written" in ended.stderr


def test_once_in_a_read_only_transaction_raises_and_does_not_say_duplicate(on_postgres: Account) -> None:
    with psycopg.connect(on_postgres.url) as connection:
        connection.read_only = True
        with pytest.raises(LedgerUnwritable):
            duly.once(connection, "daily-credit:2026-09-13T00:00:00Z")


def test_a_role_that_may_only_look_is_told_that_it_may_not_write(on_postgres: Account) -> None:
    on_postgres.credit().run("2026-10-04")
    on_postgres.url = as_role(on_postgres, rights="")
    for grant in ("usage on schema duly", "select on all tables in schema duly"):
        on_postgres.book.amend(f"grant {grant} to {urlsplit(on_postgres.url).username}")
    credit = on_postgres.credit()

    with pytest.raises(LedgerUnwritable, match="42501"):
        credit.run(DAY)

    assert isinstance(credit.run("2026-10-04"), duly.AlreadyCompleted)


def test_a_standby_is_told_as_unwritable(cluster: Cluster) -> None:
    account = Account(PostgresBook(cluster.databases.new_database()))
    account.credit().run("2026-10-04")
    account.close()
    cluster.stop()
    with standing_by(cluster) as standby:
        account.url = account.book.path.replace(str(cluster.port), str(standby.port))
        credit = account.credit()

        with pytest.raises(LedgerUnwritable):
            credit.run(DAY)
        assert isinstance(credit.run("2026-10-04"), duly.AlreadyCompleted)

        account.close()


@contextmanager
def standing_by(cluster: Cluster) -> Iterator[Cluster]:
    """A copy of a server that is stopped, in recovery: it may be read."""
    with folder_of(cluster.user) as folder:
        standby = cluster.copied_to(folder)
        (standby.data / "standby.signal").touch()
        standby.start()
        try:
            yield standby
        finally:
            standby.close()


# -- servers that have no patience --------------------------------------------------------------------------------------


@contextmanager
def line_held(account: Account) -> Iterator[psycopg.Connection[Any]]:
    """Somebody holds the line of every job, so that no claim can be decided."""
    with psycopg.connect(account.book.path) as connection:
        connection.execute("select 1 from duly.line for update")
        yield connection


@pytest.mark.parametrize("timeout", ["statement_timeout = '150ms'", "lock_timeout = '150ms'"])
def test_a_claim_that_could_not_be_decided_in_time_is_busy_and_no_duplicate(on_postgres: Account, timeout: str) -> None:
    on_postgres.credit(overlap=False).run("2026-10-04")
    on_postgres.url = as_role(on_postgres, timeout)
    credit = on_postgres.credit(on_postgres.ledger(busy_seconds=0.3), overlap=False)

    with line_held(on_postgres), pytest.raises(LedgerBusy):
        credit.run(DAY)

    assert on_postgres.days == ["2026-10-04"]
    assert credit.run(DAY) == duly.Completed(KEY, 1)


def test_a_roles_short_patience_for_locks_is_not_the_ledgers(on_postgres: Account) -> None:
    """How long the ledger waits is said where it is opened."""
    on_postgres.credit(overlap=False).run("2026-10-04")
    on_postgres.url = as_role(on_postgres, "lock_timeout = '1ms'")
    answers: list[object] = []

    def client() -> None:
        ledger = duly.postgres(on_postgres.url)
        answers.append(on_postgres.credit(ledger, overlap=False).run(DAY))
        ledger.close()

    thread = threading.Thread(target=client)
    with line_held(on_postgres):
        thread.start()
        until(lambda: is_waiting(on_postgres), "the claim waits for its line")
    thread.join()

    assert answers == [duly.Completed(KEY, 1)]


def is_waiting(account: Account) -> bool:
    return bool(
        account.book.rows(
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
    )


def test_a_statement_of_the_effect_that_takes_too_long_is_the_jobs_own_failure(on_postgres: Account) -> None:
    on_postgres.url = as_role(on_postgres, "statement_timeout = '100ms'")

    def slow(run: duly.Run[Any]) -> None:
        credit_in(run)
        run.tx.execute("select pg_sleep(20)")

    with pytest.raises(psycopg.errors.QueryCanceled):
        work(on_postgres, slow)

    assert on_postgres.days == []
    assert on_postgres.history() == [(1, "failed")]


@NEVER_TRIED
def test_an_effect_that_swallowed_its_failed_statement_is_not_committed(on_postgres: Account) -> None:
    on_postgres.url = as_role(on_postgres, "statement_timeout = '100ms'")

    def careless(run: duly.Run[Any]) -> None:
        credit_in(run)
        with pytest.raises(psycopg.errors.QueryCanceled):
            run.tx.execute("select pg_sleep(20)")

    with pytest.raises(duly.Conflict):
        work(on_postgres, careless)

    assert on_postgres.days == []
    assert on_postgres.history() == [(1, "failed")]


def test_a_roles_isolation_is_not_the_ledgers(on_postgres: Account) -> None:
    on_postgres.url = as_role(
        on_postgres, "default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on"
    )
    seen: list[object] = []

    def look(run: duly.Run[Any]) -> None:
        seen.extend(run.tx.execute("show transaction_isolation").fetchone())
        credit_in(run)

    assert work(on_postgres, look) == duly.Completed(KEY, 1)
    assert seen == ["read committed"]


# -- refusals that come with the COMMIT ---------------------------------------------------------------------------------


def test_a_constraint_that_is_judged_at_the_commit_is_the_jobs_own_failure(on_postgres: Account) -> None:
    on_postgres.book.amend("alter table credited add unique (day) deferrable initially deferred")

    def twice(run: duly.Run[Any]) -> None:
        credit_in(run)
        credit_in(run)

    with pytest.raises(psycopg.errors.UniqueViolation):
        work(on_postgres, twice)

    assert on_postgres.days == []
    assert on_postgres.history() == [(1, "failed")]
