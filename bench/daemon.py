"""What a daemon does in a second: functions that do nothing, or write one row, on SQLite, flushed, in one process.

One line that is far behind, and many lines with a few windows each; run by run, and in groups that share a commit; beside them
as many runs by `catch_up()`, which is one place, and the floor: claim, effect and completion written by hand, a hundred to a
commit, without any guard. Rounds are interleaved; each number is the median of some.

    python bench/daemon.py [--rounds N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import duly
from duly.times import SECOND
from duly.work.daemon.crew import Threads
from duly.work.daemon.systemd import Notifier
from duly.work.daemon.watch import Daemon, Limits

PLACES, GROUP = 8, 100
EFFECT = "update balance set units = units + 10"
FLOOR = (
    "create table run (job integer, nominal bigint, state integer, ended bigint, primary key (job, nominal)) without rowid",
    "create table attempt (job, nominal, number, started, ended, primary key (job, nominal, number)) without rowid",
)

Ledger = duly.Ledger[sqlite3.Connection]
Work = Callable[[Ledger, Path, int], None]


def behind(path: Path, *, lines: int, windows: int, group: int, writes: bool) -> Ledger:
    """A ledger with lines that are so many windows behind."""
    ledger = duly.sqlite(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table balance (units integer)")
        connection.execute("insert into balance values (0)")

    def credit(run: duly.Run[sqlite3.Connection]) -> None:
        if writes:
            run.tx.execute(EFFECT)

    for number in range(lines):
        declare = ledger.job(f"job-{number}", duly.every("1h"), catch_up=duly.EACH, inline=group > 1, group=group)
        declare(credit).catch_up()
    back = windows * 3600 * SECOND
    with closing(sqlite3.connect(path)) as connection, connection:
        moved = ", ".join(f"{column} = {column} - {back}" for column in ("opened_until", "starts", "next_due"))
        connection.execute(f"update duly_line set {moved}")
        for table in ("duly_run", "duly_attempt"):
            connection.execute(f"delete from {table}")
        connection.execute("update balance set units = 0")
    return ledger


def completed(path: Path) -> tuple[int, int]:
    """How many runs are complete, and how many effects there are."""
    with closing(sqlite3.connect(path)) as connection:
        (runs,) = connection.execute("select count(*) from duly_run where state = 'completed'").fetchone()
        (effects,) = connection.execute("select units / 10 from balance").fetchone()
        return int(runs), int(effects)


def by_daemon(ledger: Ledger, path: Path, runs: int) -> None:
    """Let a daemon work until it has told of all of them. What is told counts what is committed."""
    told = 0

    def tell(line: str) -> None:
        nonlocal told
        told += 1
        if told == runs:
            daemon.stop()

    with ThreadPoolExecutor(PLACES) as pool:
        hands = [Threads(job, pool) for job in ledger.jobs.values()]
        daemon = Daemon(ledger.store, list(hands), Limits(PLACES, PLACES, 5.0), Notifier({}), tell)
        daemon.work()


def by_hand(ledger: Ledger, path: Path, runs: int) -> None:
    """Call `catch_up()` of each job."""
    for job in ledger.jobs.values():
        job.catch_up()


def floor(path: Path, runs: int) -> None:
    """The least that could be written: no guard, no lease, no evidence of who did it."""
    connection = sqlite3.connect(path, isolation_level=None)
    execute = connection.execute
    execute("pragma journal_mode = wal")
    execute("pragma synchronous = full")
    for statement in (*FLOOR, "create table balance (units integer)", "insert into balance values (0)"):
        execute(statement)
    for first in range(0, runs, GROUP):
        execute("begin immediate")
        for number in range(first, min(first + GROUP, runs)):
            execute("insert into run values (1, ?, 1, null) on conflict do nothing", (number,))
            execute("insert into attempt values (1, ?, 1, ?, null)", (number, time.time_ns()))
            execute(EFFECT)
            execute("update attempt set ended = ? where job = 1 and nominal = ?", (time.time_ns(), number))
            execute("update run set state = 2 where job = 1 and nominal = ? and state = 1", (number,))
        execute("commit")
    connection.close()


def seconds(work: Work, folder: str, *, lines: int, windows: int, group: int, writes: bool) -> float:
    """How long it takes to work so many windows of so many lines."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "jobs.db"
        ledger: Any = behind(path, lines=lines, windows=windows, group=group, writes=writes)
        began = time.perf_counter()
        work(ledger, path, lines * windows)
        took = time.perf_counter() - began
        ledger.close()
        runs = lines * windows
        assert completed(path) == (runs, runs if writes else 0)
        return took


def seconds_of_floor(folder: str, runs: int) -> float:
    """The same of the floor."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        began = time.perf_counter()
        floor(Path(place) / "floor.db", runs)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    args = parser.parse_args()
    for name, lines, windows in (("one line, far behind", 1, 5_000), ("many lines", 100, 50)):
        runs = lines * windows
        rates: dict[str, list[float]] = {}
        for _ in range(args.rounds):
            rates.setdefault(f"the floor, {GROUP} to a commit", []).append(runs / seconds_of_floor(args.folder, runs))
            for group in (1, GROUP):
                for who, work in (("a daemon", by_daemon), ("catch_up()", by_hand)):
                    for writes in (False, True) if group > 1 else (True,):
                        took = seconds(work, args.folder, lines=lines, windows=windows, group=group, writes=writes)
                        how = "run by run" if group == 1 else f"{group} to a commit"
                        what = "a row" if writes else "nothing"
                        rates.setdefault(f"{who}, {how}, {what}", []).append(runs / took)
        print(f"\n{name}: {lines} x {windows} runs, medians of {args.rounds} rounds")
        least = median(rates[f"the floor, {GROUP} to a commit"])
        for what, each in rates.items():
            print(f"  {what:<42}{median(each):>9.0f} runs a second   {median(each) / least:5.2f} of the floor")


if __name__ == "__main__":
    main()
