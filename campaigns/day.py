"""A day of a thousand jobs and four daemons on PostgreSQL, killed at random, by a clock set by hand; and on SQLite with one.

python -m campaigns.day [JOBS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.books import Book, PostgresBook
from tests.daemon.day import Day
from tests.daemon.stage import Stage
from tests.servers import MACHINES_OWN, Server, answers, from_wheel


def main(jobs: int) -> None:
    """Tell both days, and how long they took."""
    with tempfile.TemporaryDirectory() as folder:
        if answers(MACHINES_OWN):
            _on_postgres(Server(MACHINES_OWN), Path(folder), jobs)
        else:
            with from_wheel(Path(folder) / "server") as url:
                _on_postgres(Server(url), Path(folder), jobs)
        (beside := Path(folder) / "file").mkdir()
        _tell(Stage(Book(beside / "jobs.db"), beside), jobs=jobs, daemons=1)


def _on_postgres(server: Server, folder: Path, jobs: int) -> None:
    (beside := folder / "postgres").mkdir()
    try:
        _tell(Stage(PostgresBook(server.new_database()), beside), jobs=jobs, daemons=4)
    finally:
        server.close()


def _tell(stage: Stage, *, jobs: int, daemons: int) -> None:
    began = monotonic()
    try:
        day = Day(stage, jobs=jobs, daemons=daemons, hours=25, seed=1)
        day.go_by()
        day.assert_whole()
        runs = len(stage.effects())
        where = "PostgreSQL" if stage.is_postgres else "SQLite"
        print(
            f"{where}: {jobs} jobs, {daemons} daemons, {day.killed} times one was killed; {runs} runs, each effect once; "
            f"{monotonic() - began:.0f} s",
            flush=True,
        )
    finally:
        stage.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
