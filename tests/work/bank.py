"""A bank whose ledger lies in the database that holds its balances: effect and completion can commit together."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duly
from tests.books import Book

SOURCE = str(Path(duly.__file__).parents[1])


class Bank(Book):
    """A ledger and one account, on the morning of 2026-09-15."""

    def __init__(self, path: Path, *, at: str = "2026-09-15T03:00:00Z") -> None:
        super().__init__(path, at=at)
        self.amend("create table balance (id integer primary key, units integer not null)")
        self.amend("insert into balance values (1, 0)")
        self.amend("create table export (day text not null)")
        self.ledger = duly.sqlite(path)

    def daily_credit(self, **settings: Any) -> duly.Job[sqlite3.Connection]:
        """The job of the founding story: ten units for each day."""

        @self.ledger.job("credit", duly.daily("UTC"), **{"catch_up": duly.EACH, **settings})
        def credit(run: duly.Run[sqlite3.Connection]) -> None:
            add_ten(run.tx)

        return credit

    @contextmanager
    def connected(self, **settings: Any) -> Iterator[sqlite3.Connection]:
        """A connection of the caller's own."""
        with closing(sqlite3.connect(self.path, **{"timeout": 30, **settings})) as connection:
            yield connection

    @property
    def units(self) -> int:
        found: int = self.rows("select units from balance")[0][0]
        return found

    @property
    def completed(self) -> int:
        found: int = self.rows("select count(*) from duly_run where state = 'completed'")[0][0]
        return found

    def history(self) -> list[tuple[int, str]]:
        """Number and outcome of every attempt, the current one too."""
        return self.rows("select number, outcome from duly_attempt_readable order by series, nominal, revision, number")


def add_ten(connection: sqlite3.Connection) -> None:
    connection.execute("update balance set units = units + 10 where id = 1")


def until(come: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do. The test's time-out is the limit."""
    while not come():
        os.sched_yield()


class Worker:
    """A process of its own that works with a book's ledger. It says a line at each point where it stops."""

    def __init__(self, book: Book, script: str, *, python: str = sys.executable) -> None:
        self.process = subprocess.Popen(
            [python, "-W", "error", "-c", PRELUDE + script, book.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )

    def reaches(self, point: str) -> None:
        """Wait until it stops at a point."""
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        if said != point:
            self.process.kill()
            raise AssertionError((said, *self.process.communicate()))

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more."""
        self.process.kill()
        self.process.communicate()

    def ends(self) -> str:
        """Wait for its end; what else it said."""
        said, complaint = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, complaint
        return said.strip()


PRELUDE = """
import sqlite3, sys
import duly

path = sys.argv[1]
ledger = duly.postgres(path) if "://" in path else duly.sqlite(path)

def stop(point):
    print(point, flush=True)
    sys.stdin.readline()

"""
