"""Daemons beside each other, killed at random, over a day of 25 hours. `python -m campaigns.day` tells it with 1,000 jobs."""

from __future__ import annotations

from pathlib import Path

from tests.books import Book, PostgresBook
from tests.daemon.day import Day
from tests.daemon.stage import Stage
from tests.servers import Server


def test_three_daemons_on_one_ledger_do_each_period_of_a_day_once_though_they_are_killed(
    server: Server, tmp_path: Path
) -> None:
    stage = Stage(PostgresBook(url := server.new_database()), tmp_path)
    try:
        day = Day(stage, jobs=12, daemons=3, hours=25, seed=1)
        day.go_by()
        day.assert_whole()
        assert day.killed > 5
    finally:
        stage.close()
        server.drop(url)


def test_one_daemon_on_a_file_does_each_period_of_a_day_once_though_it_is_killed(tmp_path: Path) -> None:
    stage = Stage(Book(tmp_path / "jobs.db"), tmp_path)
    try:
        day = Day(stage, jobs=12, daemons=1, hours=25, seed=2)
        day.go_by()
        day.assert_whole()
        assert day.killed > 5
    finally:
        stage.close()
