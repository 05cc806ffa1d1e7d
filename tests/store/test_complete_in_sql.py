"""A job in any language completes its run with one line of SQL, in the transaction of its effect."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

import duly
from duly.testing.clock import HandClock
from tests.servers import Server

NIGHT = "2026-10-06T03:00:00Z"
MANY = 200_000  # settled runs: years of them

# A row of each table, as the ledger would have it after MANY windows.
SETTLED = """
insert into duly_run (series, nominal, revision, state, fence, opened_at, failures, settled_at, attempt_id)
select 1, -2 * n, 1, 'completed', 1, 0, 0, 0, {an_id}
  from {numbers}
"""


# -- PostgreSQL ---------------------------------------------------------------------------------------------------------


class Shop:
    """A ledger in the database of the business, and the shell of PostgreSQL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = HandClock(url, at=NIGHT)
        with psycopg.connect(url) as connection:
            connection.execute("create table export (day text)")

    def take(self, day: str = "2026-10-05") -> duly.Claim:
        claim = duly.postgres(self.url).take(f"export:{day}[UTC]")
        assert claim
        return claim

    def psql(self, claim: duly.Claim, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script in which :'id' and :attempt are the claim's."""
        if shutil.which("psql") is None:
            pytest.skip("psql is not installed: no script of its own completes a run here")
        known = ["-v", f"id={claim.run.attempt_id}", "-v", f"attempt={claim.run.attempt}"]
        return subprocess.run(
            ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *known, self.url],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def exported(self) -> list[str]:
        with psycopg.connect(self.url) as connection:
            return [day for (day,) in connection.execute("select day from export").fetchall()]

    @property
    def ends(self) -> list[tuple[str, int, str, int]]:
        """State and end of the run, and outcome and end of each attempt that has ended."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(
                "select r.state, r.settled_at, a.outcome, a.ended_at from duly.attempt a join duly.run r "
                "using (series, nominal, revision) order by number"
            ).fetchall()


@pytest.fixture
def shop(server: Server) -> Iterator[Shop]:
    with server.ledger() as url:
        yield Shop(url)


EXPORT = "begin; insert into export values ('2026-10-05'); select duly.complete(:'id', :attempt); commit;"


def test_psql_commits_an_effect_with_its_completion(shop: Shop) -> None:
    claim = shop.take()

    said = shop.psql(claim, EXPORT)

    assert said.returncode == 0, said.stderr
    assert shop.exported == ["2026-10-05"]
    now = shop.clock.now()
    assert shop.ends == [("completed", now, "completed", now)]
    assert isinstance(duly.postgres(shop.url).take("export:2026-10-05[UTC]"), duly.AlreadyCompleted)


def test_psql_keeps_nothing_of_a_script_that_rolls_back(shop: Shop) -> None:
    claim = shop.take()

    said = shop.psql(claim, EXPORT.replace("commit", "rollback"))

    assert said.returncode == 0, said.stderr
    assert (shop.exported, shop.ends) == ([], [])


def test_psql_completes_a_run_once(shop: Shop) -> None:
    claim = shop.take()
    shop.psql(claim, EXPORT)

    again = shop.psql(claim, EXPORT)

    assert again.returncode == 3  # of psql: the script met an error
    assert "another attempt took this run over, or it has already ended; nothing was committed" in again.stderr
    assert shop.exported == ["2026-10-05"]


def test_psql_keeps_nothing_of_an_attempt_that_was_taken_over_even_without_stopping_at_errors(shop: Shop) -> None:
    job = duly.postgres(shop.url).job("export", duly.daily("UTC"), catch_up=duly.EACH)  # transactional, as jobs are
    job(lambda run: None).catch_up()
    stale = shop.take("2026-10-01")
    shop.clock.advance("5m")
    fresh = shop.take("2026-10-01")

    said = shop.psql(stale, f"\\unset ON_ERROR_STOP\n{EXPORT}")  # it goes on to its commit

    assert "another attempt took this run over" in said.stderr
    assert shop.exported == []
    assert shop.psql(fresh, EXPORT).returncode == 0
    assert shop.exported == ["2026-10-05"]


def test_an_unknown_run_may_still_be_completed_by_its_own_attempt(shop: Shop) -> None:
    claim = shop.take()
    with psycopg.connect(shop.url) as connection:
        connection.execute("update duly.run set state = 'unknown'")

    assert shop.psql(claim, EXPORT).returncode == 0

    assert [state for state, *_ in shop.ends] == ["completed"]


def test_an_id_may_come_as_a_uuid_or_as_text_and_must_be_one(shop: Shop) -> None:
    claim = shop.take()
    bare = claim.run.attempt_id.replace("-", "").upper()
    with psycopg.connect(shop.url) as connection:
        for written in ("%s::uuid", "%s::text", "%s"):
            connection.execute(f"select duly.complete({written}, %s)".encode(), (bare, claim.run.attempt))
            connection.rollback()

        with pytest.raises(psycopg.DataError):
            connection.execute("select duly.complete('4711', 1)")


@pytest.mark.parametrize(("other_id", "ahead"), [(True, 0), (False, 1), (False, -1)])
def test_the_attempt_is_named_by_id_and_number_both(shop: Shop, other_id: bool, ahead: int) -> None:
    claim = shop.take()
    attempt = (str(uuid4()) if other_id else claim.run.attempt_id, claim.run.attempt + ahead)

    with psycopg.connect(shop.url) as connection:
        connection.execute("insert into export values ('2026-10-05')")
        with pytest.raises(psycopg.IntegrityError, match="nothing was committed"):
            connection.execute("select duly.complete(%s, %s)", attempt)
        connection.commit()  # of a transaction that has failed: a rollback

    assert (shop.exported, shop.ends) == ([], [])


def test_the_function_says_where_it_is_to_be_called(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        says = connection.execute(f"select obj_description(oid, 'pg_proc') {THE_FUNCTIONS}".encode()).fetchall()

    assert len(says) == 2
    assert all("outer level of the transaction" in comment for (comment,) in says)
    assert any("savepoint" in comment for (comment,) in says)


def test_the_function_has_the_rights_of_its_caller_and_names_that_nobody_can_replace(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        functions = connection.execute(f"select prosecdef, proconfig {THE_FUNCTIONS}".encode()).fetchall()

    assert [definer for definer, _ in functions] == [False, False]
    assert all("search_path=pg_catalog, pg_temp" in settings for _, settings in functions)
    # What is planned without scans looks dear enough to be compiled, which takes longer than a thousand completions.
    assert any({"enable_seqscan=off", "jit=off"} <= set(settings) for _, settings in functions)


THE_FUNCTIONS = "from pg_proc where pronamespace = 'duly'::regnamespace and proname = 'complete'"


@pytest.mark.parametrize("analyzed", [False, True])
def test_the_run_of_an_attempt_is_found_without_reading_the_settled_ones(shop: Shop, analyzed: bool) -> None:
    claim = shop.take()
    with psycopg.connect(shop.url, autocommit=True) as connection:
        numbers = f"generate_series(1, {MANY}) n"
        settled = SETTLED.format(numbers=numbers, an_id="decode(md5(n::text), 'hex')")
        connection.execute(settled.replace("duly_", "duly.").encode())
        if analyzed:
            connection.execute("analyze duly.run")
        with connection.transaction():
            connection.execute("select duly.complete(%s, %s)", (claim.run.attempt_id, claim.run.attempt))
            read = connection.execute(
                "select seq_scan, seq_tup_read, idx_tup_fetch <= 2 from pg_stat_xact_user_tables "
                "where schemaname = 'duly' and relname = 'run'"
            ).fetchone()

    assert read == (0, 0, True)


# -- SQLite -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("analyzed", [False, True])
def test_the_trigger_finds_the_run_of_an_attempt_among_the_unsettled_ones(tmp_path: Path, analyzed: bool) -> None:
    path = tmp_path / "shop.db"
    claim = duly.sqlite(path).take("export:2026-10-05[UTC]")
    assert claim
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table number as {NUMBERS}")
        connection.execute(SETTLED.format(numbers="number", an_id="randomblob(16)"))
        if analyzed:
            connection.execute("analyze")

        plans = [
            connection.execute(f"explain query plan {each}", ("", "")).fetchall() for each in triggered(connection)
        ]

    assert len(plans) == 2  # the attempt's row, and the run's
    for plan in plans:
        steps = [step for *_, step in plan if "duly_run" in step or re.search(r"\br\b", step)]
        assert steps
        assert all("USING INDEX duly_run_unsettled" in step for step in steps), steps


NUMBERS = (
    f"with recursive number (n) as (select 1 union all select n + 1 from number where n < {MANY}) select n from number"
)


def triggered(connection: sqlite3.Connection) -> list[str]:
    """The statements of the trigger behind duly_complete that read runs, with parameters for what is inserted."""
    ((body,),) = connection.execute("select sql from sqlite_master where name = 'duly_complete_run'").fetchall()
    statements = body[body.index("begin") + len("begin") :].split(";")
    told = [each.replace("new.attempt_id", "?1").replace("new.attempt", "?2") for each in statements]
    return [each for each in told if "duly_run" in each]


@pytest.mark.parametrize(("other_id", "ahead"), [(True, 0), (False, 1), (False, -1)])
def test_on_sqlite_too_the_attempt_is_named_by_id_and_number_both(tmp_path: Path, other_id: bool, ahead: int) -> None:
    path = tmp_path / "shop.db"
    claim = duly.sqlite(path).take("export:2026-10-05[UTC]")
    assert claim
    attempt = (str(uuid4()) if other_id else claim.run.attempt_id, claim.run.attempt + ahead)

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table export (day text)")
        connection.execute("insert into export values ('2026-10-05')")
        with pytest.raises(sqlite3.IntegrityError, match="nothing was committed"):
            connection.execute("insert into duly_complete (attempt_id, attempt) values (?, ?)", attempt)
        connection.commit()

        assert connection.execute("select day from export").fetchall() == []
        assert connection.execute("select state from duly_run").fetchall() == [("running",)]


def test_the_shell_of_sqlite_commits_an_effect_with_its_completion(tmp_path: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("the shell sqlite3 is not installed: no script of its own completes a run here")
    path = tmp_path / "shop.db"
    claim = duly.sqlite(path).take("export:2026-10-05[UTC]")
    assert claim
    values = f"('{claim.run.attempt_id}', '{claim.run.attempt}')"
    script = (
        "begin immediate; insert into export values ('2026-10-05'); "
        f"insert into duly_complete (attempt_id, attempt) values {values}; commit;"
    )

    said = [
        subprocess.run(["sqlite3", "-bail", path], input=text, capture_output=True, text=True, check=False)
        for text in ("create table export (day text)", script, script)
    ]

    assert [each.returncode for each in said] == [0, 0, 1]
    assert "nothing was committed" in said[2].stderr
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select day from export").fetchall() == [("2026-10-05",)]
        assert connection.execute("select state from duly_run").fetchall() == [("completed",)]
