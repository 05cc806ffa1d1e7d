"""A contestant: does so many runs, is offered every key again, and says in one line of JSON how long that took.

All of them do the same work. A run is named by its job and its nominal window, and its one effect is a unit more in the user's
own table, `balance`. Afterwards the units are counted: what was done twice shows. A contestant is a process of its own, in an
environment of its own, so this module needs nothing but the standard library (and psycopg, for PostgreSQL).

    python -m bench.contestants.floor_sqlite --runs 1000 --database sqlite:////tmp/scratch/bench.db
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

EFFECT = "update balance set units = units + 1"
TABLE = ("create table balance (units bigint not null)", "insert into balance values (0)")

JOB = "credit"
FIRST, STEP = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=5)
WARM = 10  # so many runs before those that are timed


class Window(NamedTuple):
    """The nominal window of a run: seconds since 1970, and the same as text."""

    nominal: int
    name: str

    @property
    def key(self) -> str:
        """What the run is called, where a key is text."""
        return f"{JOB}:{self.name}"

    def next(self) -> Window:
        """The window that begins when this one ends."""
        return _window(datetime.fromtimestamp(self.nominal, UTC) + STEP)


def windows(first: int, until: int) -> list[Window]:
    """Windows of five minutes, from one number until another."""
    return [_window(FIRST + STEP * number) for number in range(first, until)]


def _window(start: datetime) -> Window:
    return Window(int(start.timestamp()), start.strftime("%Y-%m-%dT%H:%M:%SZ"))


@dataclass(frozen=True)
class Given:
    """What a contestant is told: where the user's table is, and how it may go about it."""

    runs: int
    database: str  # sqlite:////path/of/a/file, or postgresql://…, with nothing in it but the user's table
    redis: str  # for who needs one; it is emptied
    way: str  # one of several ways that a file has to do the work

    @property
    def on_postgres(self) -> bool:
        return self.database.startswith("postgresql://")

    @property
    def path(self) -> str:
        """The file of an SQLite database."""
        return self.database.removeprefix("sqlite:///")

    def beside(self, name: str) -> str:
        """A file beside the user's, for a contestant that keeps its own records apart."""
        return str(Path(self.path).with_name(name))

    def connect(self) -> Any:
        """A plain connection to the user's database."""
        return connect(self.database)


def connect(database: str) -> Any:
    """A plain connection: each statement commits by itself, and is flushed where its server flushes."""
    if database.startswith("postgresql://"):
        import psycopg

        return psycopg.connect(database, autocommit=True, prepare_threshold=0)
    connection = sqlite3.connect(database.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


class Contestant(Protocol):
    """What each of them can do."""

    def work(self, windows: Sequence[Window]) -> None:
        """Do the runs of these windows. It returns when each is done, and recorded as done."""

    def again(self, windows: Sequence[Window]) -> int:
        """Offer the same runs again, and do what was not refused. Answers how many were refused."""


def compete(
    enter: Callable[[Given], AbstractContextManager[Contestant]], *, of: str, atomic: bool, guarantees: str
) -> None:
    """Have a contestant do its work, and print what came of it.

    `of` is the distribution whose version counts, `atomic` whether the effect commits if and only if its completion does,
    and `guarantees` says in a sentence what may be relied upon.
    """
    given = _given()
    with closing(given.connect()) as connection:
        for statement in TABLE:
            connection.execute(statement)
    with enter(given) as contestant:
        contestant.work(windows(-WARM, 0))
        timed = windows(0, given.runs)
        seconds, _ = _timed(contestant.work, timed)
        done = _units(given) - WARM
        again_seconds, refused = _timed(contestant.again, timed)
    told = {
        "version": version(of) if of else None,
        "python": platform.python_version(),
        "atomic": atomic,
        "guarantees": guarantees,
        "runs": given.runs,
        "runs_per_second": given.runs / seconds,
        "effects": done,
        "refused": refused,
        "offers_per_second": given.runs / again_seconds,
        "effects_after_offers": _units(given) - WARM,
    }
    print(json.dumps(told, ensure_ascii=False), flush=True)


def _timed(act: Callable[[list[Window]], Any], windows: list[Window]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = act(windows)
    return time.perf_counter() - began, answer


def _units(given: Given) -> int:
    with closing(given.connect()) as connection:
        return int(connection.execute("select units from balance").fetchone()[0])


def _given() -> Given:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--database", required=True, metavar="URL")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379/9", metavar="URL")
    parser.add_argument("--way", default="")
    args = parser.parse_args()
    return Given(args.runs, args.database, args.redis, args.way)
