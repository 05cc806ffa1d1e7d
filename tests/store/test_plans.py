"""What the planner of SQLite makes of the statements that must be fast however long the record is: a new ledger tells it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duly.evidence.batches import (
    BACKFILLS_BEFORE,
    OLDEST_OF_LINE,
    OPEN_MESSAGES_AFTER,
    PERHAPS_UNKNOWN_AFTER,
    RUNS_BEFORE,
    SERIES_FROM,
)
from duly.evidence.complete_through import LAST_COMPLETED, OLDEST_UNSETTLED, OLDEST_WITH_MESSAGES
from duly.evidence.durations import NEWEST_COMPLETED
from duly.evidence.metrics import MESSAGES, RECENT_ATTEMPTS
from duly.evidence.on_record import RUNS as RUNS_IN_SPANS
from duly.evidence.over_time import ROWS_IN_PIECES, UNDELIVERED
from duly.evidence.proof import SETTLED_BETWEEN
from duly.evidence.runs import NEWEST_OF_SERIES, NEWEST_UNSETTLED_OF_SERIES
from duly.evidence.status import UNDELIVERED_OF_LINES, UNSETTLED_OF_LINES
from duly.evidence.unknown import UNKNOWN_RUNS, WITH_UNKNOWN_MESSAGES
from duly.ledger.ask import Statement
from duly.ledger.forget import FORGET_ATTEMPTS, FORGET_RUNS
from duly.ledger.owed import UNSETTLED_OF_LINE, WORKABLE_OF_LINE
from duly.ledger.remembered import CLAIM_IF_AS_REMEMBERED_IN_UTC
from duly.store.migrations import sqlite as migrations
from duly.store.sqlite import positional, render

RUNS, MESSAGES_LEFT = "duly_run_unsettled", "duly_message_unsettled"


def plan(path: Path, statement: Statement) -> list[str]:
    sql, _ = render(statement)
    given = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    with closing(sqlite3.connect(path)) as connection:
        return [row[3] for row in connection.execute(f"explain query plan {sql}", given)]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "ledger.db"
    migrations.create(str(path))
    return path


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (UNSETTLED_OF_LINE, RUNS),
        (WORKABLE_OF_LINE, RUNS),
        (OLDEST_UNSETTLED, RUNS),
        (OLDEST_WITH_MESSAGES, MESSAGES_LEFT),
        (UNDELIVERED_OF_LINES, MESSAGES_LEFT),
        (MESSAGES, "duly_message_due"),
        (UNKNOWN_RUNS, RUNS),
        (UNSETTLED_OF_LINES, RUNS),
        (WITH_UNKNOWN_MESSAGES, MESSAGES_LEFT),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
def test_what_is_not_settled_is_found_by_the_index_that_holds_it(
    ledger: Path, statement: Statement, index: str
) -> None:
    assert any(f"USING INDEX {index}" in step for step in plan(ledger, statement))


def test_a_claim_from_memory_copies_nothing_before_it_writes(ledger: Path) -> None:
    """As an insert does that reads its own table."""
    sql, names, _ = positional(CLAIM_IF_AS_REMEMBERED_IN_UTC)
    with closing(sqlite3.connect(ledger)) as connection:
        steps = [row[1] for row in connection.execute(f"explain {sql}", [1] * len(names))]

    assert "Insert" in steps
    assert not {"OpenEphemeral", "OpenAutoindex", "SorterOpen"} & set(steps)


def test_a_parameter_stands_at_each_of_its_places() -> None:
    text, names, needs_now = positional(Statement("mine", "select :b || ':' || :a_1, {now}, :b"))

    assert text == "select ? || ':' || ?, ?, ?"
    assert names == ["b", "a_1", "now", "b"]
    assert needs_now


def test_the_newest_runs_are_read_from_the_end_of_their_series_and_nothing_is_sorted(ledger: Path) -> None:
    steps = plan(ledger, NEWEST_OF_SERIES)

    assert any("(series=?)" in step for step in steps)
    assert not any("TEMP B-TREE" in step for step in steps)
    assert any(f"USING INDEX {RUNS}" in step for step in plan(ledger, NEWEST_UNSETTLED_OF_SERIES))


def test_the_newest_are_found_from_the_end(ledger: Path) -> None:
    assert any("(series=? AND nominal>?)" in step for step in plan(ledger, RECENT_ATTEMPTS))
    assert plan(ledger, LAST_COMPLETED)[1] == "SEARCH duly_run USING PRIMARY KEY (series=?)"


def test_no_table_that_grows_is_read_from_end_to_end(ledger: Path) -> None:
    of_lines = (UNSETTLED_OF_LINE, OLDEST_UNSETTLED, OLDEST_WITH_MESSAGES, LAST_COMPLETED, RECENT_ATTEMPTS)
    of_pages = (ROWS_IN_PIECES, UNDELIVERED, SETTLED_BETWEEN, NEWEST_COMPLETED)
    for statement in (*of_lines, *of_pages):
        for step in plan(ledger, statement):
            assert not re.match(r"SCAN (r|m|a)\b(?! USING INDEX)", step), step


def test_runs_are_read_by_their_span_and_not_by_the_bounds_of_all_spans(tmp_path: Path) -> None:
    """What SQLite does for it grows with what lies in the spans, and not with what lies between them."""

    def steps(far: int) -> int:
        path = tmp_path / f"{far}.db"
        migrations.create(str(path))
        sql, _ = render(RUNS_IN_SPANS)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("pragma foreign_keys = off")
            connection.execute(
                "insert into duly_run (series, nominal, revision, state, fence, opened_at, failures) "
                f"with recursive n(k) as (select 0 union all select k + 1 from n where k < {far}) "
                "select 1, k, 1, 'skipped', 0, 0, 0 from n"
            )
            counted = 0

            def count() -> None:
                nonlocal counted
                counted += 1

            connection.set_progress_handler(count, 10)
            spans = f"[[1, 0, 9], [1, {far // 2}, {far // 2 + 9}], [1, {far - 9}, {far}]]"
            found = connection.execute(sql, {"spans": spans, "now": 0}).fetchall()
            assert len(found) == 30
            return counted

    assert steps(20_000) < 2 * steps(1_000)


def test_the_next_of_a_backlog_is_found_without_reading_what_comes_after_it(tmp_path: Path) -> None:
    """Else to catch up run by run costs the square of how far one is behind."""

    def steps(behind: int) -> int:
        path = tmp_path / f"{behind}.db"
        migrations.create(str(path))
        sql, _ = render(WORKABLE_OF_LINE)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("pragma foreign_keys = off")
            connection.execute("insert into duly_series values (1, 1, 'UTC', 'a', 0), (2, 1, 'UTC', 'b', 0)")
            connection.execute(
                "insert into duly_run (series, nominal, revision, state, fence, due, opened_at, failures) "
                f"with recursive n(k) as (select 1 union all select k + 1 from n where k < {behind}) "
                "select case when k > 3 then 1 else 1 + (k % 2) end, k, 1, 'open', 0, k, 0, 0 from n"
            )
            counted = 0

            def count() -> None:
                nonlocal counted
                counted += 1

            connection.set_progress_handler(count, 10)
            found = connection.execute(
                sql, {"line": 1, "series": 1, "spread": 0, "as_of": behind, "now": 0, "most": 3}
            ).fetchall()
            assert [(row[0], row[1]) for row in found] == [(2, 1), (1, 2), (2, 3)]
            return counted

    assert steps(20_000) < 2 * steps(1_000)


@pytest.mark.parametrize(
    ("statement", "seek"),
    [
        (SERIES_FROM, "(rowid>?)"),
        (RUNS_BEFORE, "PRIMARY KEY (series=? AND (nominal,revision)<(?,?))"),
        (PERHAPS_UNKNOWN_AFTER, f"INDEX {RUNS} ((series,nominal,revision)>(?,?,?))"),
        (OPEN_MESSAGES_AFTER, f"INDEX {MESSAGES_LEFT} ((series,nominal,revision,number)>(?,?,?,?))"),
        (OLDEST_OF_LINE, "PRIMARY KEY (series=? AND nominal=?)"),
        (BACKFILLS_BEFORE, "(rowid<?)"),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
def test_a_batch_is_sought_at_its_place_and_nothing_is_sorted(ledger: Path, statement: Statement, seek: str) -> None:
    steps = plan(ledger, statement)

    assert any(seek in step for step in steps), steps
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in steps), steps


@pytest.mark.parametrize("statement", [FORGET_RUNS, FORGET_ATTEMPTS], ids=lambda statement: statement.name)
def test_a_batch_that_is_forgotten_costs_what_it_holds_and_not_what_lies_below_the_horizon(
    tmp_path: Path, statement: Statement
) -> None:
    """Else each batch of a long backlog reads all of it, and the last ones never end."""

    def steps(below: int) -> int:
        path = tmp_path / f"{below}.db"
        migrations.create(str(path))
        sql, _ = render(statement)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("pragma foreign_keys = off")
            numbers = f"with recursive n(k) as (select 0 union all select k + 1 from n where k < {below})"
            connection.execute(
                "insert into duly_run (series, nominal, revision, state, fence, opened_at, failures, settled_at) "
                f"{numbers} select 1, k, 1, 'skipped', 0, 0, 0, 1 from n"
            )
            connection.execute(
                "insert into duly_attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome, "
                f"contract, owner, trigger) {numbers} select 1, k, 1, 1, x'00', 0, 0, 'completed', '', '', '' from n"
            )
            if statement is FORGET_ATTEMPTS:
                connection.execute("delete from duly_run where nominal < 100")
            connection.commit()
            counted = 0

            def count() -> None:
                nonlocal counted
                counted += 1

            connection.set_progress_handler(count, 10)
            given = {"series": 1, "horizon": below, "first": 0, "last": 99, "settled_by": 1}
            assert connection.execute(sql, given).rowcount == 100
            return counted

    assert steps(20_000) < 2 * steps(1_000)
