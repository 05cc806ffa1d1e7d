"""What duly costs beside the floor: the same claim, effect and completion, written by hand without any of its guards.

    python bench/overhead.py [--runs N] [--rounds N] [--folder DIR]... [--postgres URL]

Rounds of each are interleaved on the same disk in one process, and the median of each is compared: above 1 duly is faster.
The floor takes two durable transactions a run, as duly does of a job whose claim must survive; of a transactional job duly
does not flush the claim. A memory file system shows the cost of the processor alone.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import duly

Worker = Callable[[int], None]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EFFECT = "update balance set units = units + 10"
FLOOR_TABLES = (
    "create table balance (units integer)",
    "insert into balance values (0)",
    "create table run (job integer, nominal bigint, state integer, ended bigint, primary key (job, nominal))",
    (
        "create table attempt (job integer, nominal bigint, number integer, started bigint, ended bigint, "
        "primary key (job, nominal, number))"
    ),
)


@cache
def name(number: int) -> str:
    return (BEGIN + timedelta(minutes=5 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- the floor ------------------------------------------------------------------------------------------------------------


def floor_on_sqlite(path: Path) -> Worker:
    connection = sqlite3.connect(path, isolation_level=None)
    execute = connection.execute
    execute("pragma journal_mode = wal")
    execute("pragma synchronous = full")
    for statement in FLOOR_TABLES:
        execute(statement)

    def run(number: int) -> None:
        execute("begin immediate")
        execute("insert into run values (1, ?, 1, null) on conflict do nothing", (number,))
        execute("insert into attempt values (1, ?, 1, ?, null)", (number, time.time_ns()))
        execute("commit")
        execute("begin immediate")
        execute(EFFECT)
        execute("update attempt set ended = ? where job = 1 and nominal = ?", (time.time_ns(), number))
        execute("update run set state = 2 where job = 1 and nominal = ? and state = 1", (number,))
        execute("commit")

    return run


def floor_on_postgres(url: str) -> Worker:
    import psycopg

    connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    execute: Any = connection.execute
    for statement in FLOOR_TABLES:
        execute(statement)
    claim = (
        "with r as (insert into run values (1, %s, 1, null) on conflict do nothing returning nominal) "
        "insert into attempt select 1, nominal, 1, %s, null from r"
    )

    def run(number: int) -> None:
        execute(claim, (number, time.time_ns()))
        with connection.pipeline():
            execute("begin")
            execute(EFFECT)
            execute("update attempt set ended = %s where job = 1 and nominal = %s", (time.time_ns(), number))
            execute("update run set state = 2 where job = 1 and nominal = %s and state = 1", (number,))
            execute("commit")

    return run


# -- duly -----------------------------------------------------------------------------------------------------------------


def job_of(ledger: duly.Ledger[Any], **settings: Any) -> Worker:
    """A transactional job: its claim is not flushed."""

    def credit(run: duly.Run[Any]) -> None:
        run.tx.execute(EFFECT)

    job = ledger.job("credit", duly.every("5m"), catch_up=duly.EACH, **settings)(credit)
    return lambda number: _done(job.run(name(number)))


def claims_of(ledger: duly.Ledger[Any]) -> Worker:
    """An external job: its claim must survive, so it is flushed too, as the floor's is."""
    ledger.job("export", duly.every("5m"), catch_up=duly.EACH, effect="external")(lambda run: None).run(name(-1))

    def run(number: int) -> None:
        claim = ledger.take("export", name(number))
        assert isinstance(claim, duly.Claim)
        with claim:
            claim.run.tx.execute(EFFECT)
            claim.complete()

    return run


def _done(answer: object) -> None:
    assert isinstance(answer, duly.Completed), answer


# -- side by side ---------------------------------------------------------------------------------------------------------


def compare(title: str, workers: dict[str, Worker], *, runs: int, rounds: int) -> None:
    """Print the median of each beside the floor's."""
    took: dict[str, list[float]] = {what: [] for what in workers}
    number = 0
    for _ in range(rounds + 1):  # the first is not counted
        for each in range(number, number + runs):
            name(each)  # what a window is called is not the ledger's work
        for what, run in workers.items():
            began = time.perf_counter()
            for each in range(number, number + runs):
                run(each)
            took[what].append((time.perf_counter() - began) / runs)
        number += runs
    floor = median(took["floor"][1:])
    print(f"\n{title}: {rounds} rounds of {runs} runs")
    for what, seconds in took.items():
        mid = median(seconds[1:])
        print(f"  {what:<34}{mid * 1e6:>9.0f} us   {floor / mid:5.2f} of the floor")


def on_sqlite(folder: str, *, runs: int, rounds: int) -> None:
    here = Path(tempfile.mkdtemp(dir=folder))
    try:
        ledger = duly.sqlite(here / "duly.db")
        with sqlite3.connect(here / "duly.db") as connection:
            connection.execute(FLOOR_TABLES[0])
            connection.execute(FLOOR_TABLES[1])
        connection.close()
        workers = {
            "floor": floor_on_sqlite(here / "floor.db"),
            "claim, its commit flushed": claims_of(ledger),
            "transactional job": job_of(ledger),
        }
        compare(f"SQLite in {folder}", workers, runs=runs, rounds=rounds)
    finally:
        shutil.rmtree(here)


def on_postgres(server: str, *, runs: int, rounds: int) -> None:
    from urllib.parse import urlsplit

    import psycopg

    from duly.store.migrations.postgres import create

    for flush in ("on", "off"):
        database = f"duly_bench_{flush}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"drop database if exists {database} with (force)")
            connection.execute(f"create database {database}")
            connection.execute(f"alter database {database} set synchronous_commit = {flush}")
        url = urlsplit(server)._replace(path=f"/{database}").geturl()
        create(url, by="bench")
        with psycopg.connect(url) as connection:
            connection.execute("create schema floor")
        floor = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Dfloor"
        with psycopg.connect(url) as connection:
            connection.execute("create table balance (units integer)")
            connection.execute("insert into balance values (0)")
        ledger = duly.postgres(url)
        workers = {
            "floor": floor_on_postgres(floor),
            "claim, its commit flushed": claims_of(ledger),
            "transactional job": job_of(ledger),
        }
        compare(f"PostgreSQL, synchronous_commit = {flush}", workers, runs=runs, rounds=rounds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", action="append", help="where SQLite's files are made; may be given several times")
    parser.add_argument("--postgres", metavar="URL", help="a server in which databases may be made")
    args = parser.parse_args()
    for folder in args.folder or [".", "/dev/shm"]:
        on_sqlite(folder, runs=args.runs, rounds=args.rounds)
    if args.postgres:
        on_postgres(args.postgres, runs=args.runs, rounds=args.rounds)


if __name__ == "__main__":
    main()
