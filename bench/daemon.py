"""What a daemon does in a second: functions that do nothing, or write one row, on SQLite, flushed, in one process.

One line that is far behind, and many lines with a few windows each; run by run, and in groups that share a commit; beside them
as many runs by `catch_up()`, which is one place, and the floor of `bench.contestants`, a hundred to a commit. Rounds are
interleaved; each number is the median of some.

    python -m bench.daemon [--rounds N] [--folder DIR]
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median

import duly
from bench.contestant import EFFECT, TABLE, Given, connect, windows
from bench.contestants import floor_sqlite
from bench.contestants.ledger import GROUP
from bench.figure import Figure, arguments, positive, write
from duly.work.daemon.crew import Threads
from duly.work.daemon.systemd import Notifier
from duly.work.daemon.watch import Daemon, Limits
from duly.work.job import Job

PLACES = 8
YARDSTICK = f"the floor, {GROUP} to a commit"

Jobs = list[Job[sqlite3.Connection]]


class Counted:
    """The function of the jobs, which counts how often it was called."""

    def __init__(self, *, writes: bool) -> None:
        self.calls: list[None] = []  # of many threads, so not a number
        self._writes = writes

    def __call__(self, run: duly.Run[sqlite3.Connection]) -> None:
        self.calls.append(None)
        if self._writes:
            run.tx.execute(EFFECT)


def behind(ledger: duly.Ledger[sqlite3.Connection], each: Counted, *, lines: int, owed: int, group: int) -> Jobs:
    """Jobs that owe so many windows each."""
    scope = duly.Scope("shop", since=windows(0, 1)[0].name, until=windows(owed, owed + 1)[0].name)
    return [
        ledger.job(
            f"job-{number}", duly.every("5m"), catch_up=duly.EACH, inline=group > 1, group=group, scopes=[scope]
        )(each)
        for number in range(lines)
    ]


def by_daemon(ledger: duly.Ledger[sqlite3.Connection], jobs: Jobs, each: Counted, runs: int) -> None:
    """Let a daemon work until all are done."""

    def ended() -> None:  # an attempt, or a group of them: what it called for is committed
        if len(each.calls) >= runs:
            daemon.stop()

    with ThreadPoolExecutor(PLACES) as pool:
        crew = [Threads(job, pool) for job in jobs]
        daemon = Daemon(ledger.store, list(crew), Limits(PLACES, PLACES, 5.0), Notifier({}), lambda line: None, ended)
        daemon.work()


def by_hand(ledger: duly.Ledger[sqlite3.Connection], jobs: Jobs, each: Counted, runs: int) -> None:
    """Call `catch_up()` of each job."""
    for job in jobs:
        job.catch_up()


Work = Callable[[duly.Ledger[sqlite3.Connection], Jobs, Counted, int], None]


def rate(work: Work, folder: str, *, lines: int, owed: int, group: int, writes: bool) -> float:
    """How many runs a second, of so many windows of so many lines."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path, runs, each = Path(place) / "jobs.db", lines * owed, Counted(writes=writes)
        with closing(connect(f"sqlite:///{path}")) as connection:  # as the floor's: else it flushes four times as often
            for statement in TABLE:
                connection.execute(statement)
        ledger = duly.sqlite(path)
        jobs = behind(ledger, each, lines=lines, owed=owed, group=group)
        for job in jobs:
            job.lines()  # the ledger knows them before the clock runs
        began = time.perf_counter()
        work(ledger, jobs, each, runs)
        took = time.perf_counter() - began
        ledger.close()
        assert completed(path) == (runs, runs if writes else 0)
        return runs / took


def completed(path: Path) -> tuple[int, int]:
    """How many runs are complete, and how many effects there are."""
    with closing(sqlite3.connect(path)) as connection:
        (runs,) = connection.execute("select count(*) from duly_run where state = 'completed'").fetchone()
        (effects,) = connection.execute("select units from balance").fetchone()
        return int(runs), int(effects)


def rate_of_floor(folder: str, runs: int) -> float:
    """The same of the floor."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        given = Given(runs, f"sqlite:///{place}/floor.db", "", "group")
        with closing(given.connect()) as connection:
            for statement in TABLE:
                connection.execute(statement)
        with floor_sqlite.enter(given) as floor:
            all_windows = windows(0, runs)
            began = time.perf_counter()
            floor.work(all_windows)
            return runs / (time.perf_counter() - began)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=positive, help="how many (3; quick: 1)")
    parser.add_argument("--folder", default=".", help="where the ledgers are made")
    args = parser.parse_args()
    rounds, share = args.rounds or (1 if args.quick else 3), 10 if args.quick else 1
    figures: list[Figure] = []
    for name, lines, owed in (("one line, far behind", 1, 5_000 // share), ("many lines", 100 // share, 50)):
        found = rates(args.folder, lines=lines, owed=owed, rounds=rounds)
        floor = median(found[YARDSTICK])
        case = f"{name}: {lines} x {owed} runs"
        print(f"\n{case}, medians of {rounds} rounds")
        for what, each in found.items():
            middle = median(each)
            print(f"  {what:<42}{middle:>9.0f} runs a second   {middle / floor:5.2f} of the floor")
            figures.append(Figure("daemon", case, what, middle, "runs/s", middle / floor, YARDSTICK))
    write(args.json, figures)


def rates(folder: str, *, lines: int, owed: int, rounds: int) -> dict[str, list[float]]:
    """Each way to do it, in each round."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        found.setdefault(YARDSTICK, []).append(rate_of_floor(folder, lines * owed))
        for group in (1, GROUP):
            for who, work in (("a daemon", by_daemon), ("catch_up()", by_hand)):
                for writes in (False, True) if group > 1 else (True,):
                    how = "run by run" if group == 1 else f"{group} to a commit"
                    what = f"{who}, {how}, {'a row' if writes else 'nothing'}"
                    one = rate(work, folder, lines=lines, owed=owed, group=group, writes=writes)
                    found.setdefault(what, []).append(one)
    return found


if __name__ == "__main__":
    main()
