"""What the planner of PostgreSQL makes of the statements that must be fast however long the record is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from duly.evidence.complete_through import LAST_COMPLETED, OLDEST_UNSETTLED
from duly.evidence.on_record import RUNS, SETTLED
from duly.evidence.over_time import ROWS_IN_PIECES
from duly.evidence.runs import NEWEST_OF_SERIES
from duly.evidence.status import UNSETTLED_OF_LINES
from duly.ledger.ask import Statement
from duly.ledger.forget import FORGET_ATTEMPTS, FORGET_RUNS
from duly.ledger.owed import UNSETTLED_OF_LINE, WORKABLE_OF_LINE
from duly.store.migrations import postgres
from duly.store.postgres_sql import PARAMETER, as_pyformat, spell
from tests.servers import Server

WINDOWS = 3_000

# Ten lines, of one job each, that completed so many windows: side by side, as they come due.
RECORD = f"""
insert into duly.job (id, name, first_name, catch_up, contract, clean_exits, retry_delay, retry_ceiling, overlap, ordered,
       lease, owner, roster, version, created_at)
select n, 'job-' || n, 'job-' || n, 'each', 'transactional', '', 0, 0, 0, 0, 1, '', 'open', 1, 0
  from generate_series(1, 10) n;

insert into duly.version (job, number, label, kind, zone, grain, gap, fold, at, "offset", lines, "interval", anchor,
       calendar, words, effective_from, created_at, by, reason)
select n, 1, '', 'every', 'UTC', 'fire', '', '', '', '', '', 1, 0, '', '', 0, 0, '', ''
  from generate_series(1, 10) n;

insert into duly.line (id, job, scope, created_at)
select n, n, '', 0
  from generate_series(1, 10) n;

insert into duly.series (id, line, zone, grain, horizon)
select n, n, 'UTC', 'fire', 0
  from generate_series(1, 10) n;

insert into duly.run (series, nominal, revision, state, fence, opened_at, failures, settled_at, due)
select n, k, 1, 'completed', 1, 0, 0, k, k
  from generate_series(1, 10) n, generate_series(1, {WINDOWS}) k
 order by k, n;

insert into duly.attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome, contract, owner,
       trigger)
select series, nominal, 1, 1, '', 0, 0, 'completed', '', '', ''
  from duly.run
"""


@pytest.fixture(scope="module")
def long_record(server: Server) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a ledger with it, of which the planner has its statistics. Nobody else is lent one that has them."""
    url = server.new_database()
    postgres.create(url, clock="hand")
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for statement in RECORD.split(";"):
            connection.execute(statement)
        connection.execute("vacuum analyze")
        yield connection
    server.drop(url)


@pytest.mark.parametrize(
    "statement",
    [
        RUNS,
        SETTLED,
        ROWS_IN_PIECES,
        OLDEST_UNSETTLED,
        LAST_COMPLETED,
        NEWEST_OF_SERIES,
        UNSETTLED_OF_LINES,
        UNSETTLED_OF_LINE,
        FORGET_RUNS,
        FORGET_ATTEMPTS,
    ],
    ids=lambda statement: statement.name,
)
def test_no_table_that_grows_is_read_from_end_to_end(
    long_record: psycopg.Connection[Any], statement: Statement
) -> None:
    spans = ", ".join(f"[3, {k}, {k + 9}]" for k in range(1, WINDOWS, 100))
    given: dict[str, Any] = dict.fromkeys(PARAMETER.findall(spell(statement, "0")), 3)
    given |= dict.fromkeys(("name", "first_name", "last_name"), "job-3")
    given |= dict.fromkeys(("scope", "first_scope", "last_scope"), "")
    given |= {"spans": f"[{spans}]", "first": 100, "last": 200, "horizon": 200, "limit": 10, "state": None}
    sql = as_pyformat(spell(statement, "0"))

    steps = [row[0] for row in long_record.execute(f"explain {sql}", given)]

    scans = [step for step in steps if "Seq Scan on run" in step or "Seq Scan on attempt" in step]
    assert any("run" in step or "attempt" in step for step in steps)
    assert not scans, "\n".join(steps)


@pytest.mark.parametrize("analyzed", [True, False])
def test_the_next_of_a_backlog_is_found_without_reading_what_comes_after_it(server: Server, *, analyzed: bool) -> None:
    """With the statistics of a record that was complete, or none: so a planner sees a line that has just fallen behind."""

    def read(behind: int) -> int:
        url = server.new_database()
        postgres.create(url, clock="hand")
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute("alter table duly.run set (autovacuum_enabled = off)")
            for statement in RECORD.split(";"):
                connection.execute(statement)
            if analyzed:
                connection.execute("analyze")
            connection.execute(
                "insert into duly.run (series, nominal, revision, state, fence, opened_at, failures, due) "
                "select 3, %s + k, 1, 'open', 0, 0, 0, k from generate_series(1, %s) k",
                (WINDOWS, behind),
            )
            connection.execute("set plan_cache_mode = force_generic_plan")
            given = {"line": 3, "series": 3, "spread": 0, "as_of": behind, "most": 2}
            sql = as_pyformat(spell(WORKABLE_OF_LINE, "0"))
            plan = "explain (analyze, timing off, summary off, format json) " + sql
            (steps,) = connection.execute(plan, given, prepare=True).fetchone() or ([],)
        server.drop(url)
        return rows_of(steps[0]["Plan"])

    assert read(4_000) < 2 * read(400)


def rows_of(step: Any) -> int:
    """How many rows the steps of a plan handed on, or looked at in vain."""
    mine = int(step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * int(step["Actual Loops"])
    return mine + sum(rows_of(each) for each in step.get("Plans", []))
