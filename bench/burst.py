"""64 jobs in one second: what a host does at 03:00. Each is `duly exec JOB -- true`, its own process, on one ledger.

Reported first: how they ended, how many completions the ledger then holds, the longest from start to end, and what as many
processes take that only start Python (they share the cores, so most of the time is that). Reported below it: the wait for
the right to write, alone. As many processes are ready before the first begins, and write two transactions each: once in
duly's queue (a flock before BEGIN IMMEDIATE), once with SQLite's own busy time-out, which polls.

The longest wait in duly's queue should be a tenth of that by time-out at most. Rounds of both are interleaved.

    python -m bench.burst [--count N] [--rounds N] [--json FILE] [--quick]
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.figure import Figure, arguments, positive, write

DULY = str(Path(sys.executable).with_name("duly"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

WRITER = """
import sqlite3, sys, time
how, path, name = sys.argv[1:]
if how == "queue":
    from duly.store.lock import WriterLock
    from duly.store.sqlite import begin, connect
    connection, lock = connect(path), WriterLock(path)
else:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("pragma synchronous = full")
print("ready", flush=True)
sys.stdin.readline()
waits = []
for state in ("running", "completed"):
    began = time.perf_counter()
    if how == "queue":
        begin(connection, lock, path=path, seconds=60)
    else:
        connection.execute("begin immediate")
    waits.append(time.perf_counter() - began)
    connection.execute("insert or replace into run values (?, ?)", (name, state))
    connection.execute("commit")
    if how == "queue":
        lock.release()
print(max(waits))
"""


PLAIN = "python -c pass"
TIME_OUT = "busy time-out"


class Burst(NamedTuple):
    """How a burst of wrappers went, and as many processes that only start Python: the longest of each, in seconds."""

    completed: int
    codes: Counter[int]
    longest: float
    plain: float


def main() -> None:
    """Report a burst of so many, a few times."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=positive, help="how many at once (64)")
    parser.add_argument("--rounds", type=positive, help="(3)")
    args = parser.parse_args()
    count = args.count or (8 if args.quick else 64)
    rounds = args.rounds or (1 if args.quick else 3)
    figures: list[Figure] = []
    print(f"{count} processes at once, {os.cpu_count()} cores")
    for name, room in rooms():
        figures += bursts(f"{count} at once, {name}", room, count, rounds)
    print("the wait for the right to write, in seconds: the longest, and the median of a round")
    for name, room in rooms():
        figures += all_waits(f"{count} at once, {name}", room, count, rounds)
    write(args.json, figures)


def bursts(case: str, room: str, count: int, rounds: int) -> list[Figure]:
    """Bursts of `duly exec`. Raises `SystemExit` where one of them did not complete."""
    seen: list[Burst] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=room) as folder:
            seen.append(burst := duly_exec(folder, count))
        print(
            f"  {case}: {burst.completed} complete, exit codes {dict(burst.codes)}, longest {burst.longest:5.2f} s   "
            f"({PLAIN}: {burst.plain:5.2f} s)",
            flush=True,
        )
        if burst.completed != count or set(burst.codes) != {0}:
            raise SystemExit("a run of the burst is not complete")
    longest, plain = median(burst.longest for burst in seen), median(burst.plain for burst in seen)
    return [
        Figure("burst", case, f"{PLAIN}, the longest", plain, "s"),
        Figure("burst", case, "duly exec, the longest", longest, "s", longest / plain, f"{PLAIN}, the longest"),
    ]


def all_waits(case: str, room: str, count: int, rounds: int) -> list[Figure]:
    """The wait alone, both ways in turn."""
    seen: dict[str, list[list[float]]] = {"queue": [], TIME_OUT: []}
    for _ in range(rounds):
        for how, each in seen.items():
            with tempfile.TemporaryDirectory(dir=room) as folder:
                each.append(waits(folder, count, how))
    worst = {how: max(map(max, each)) for how, each in seen.items()}
    usual = {how: median(map(median, each)) for how, each in seen.items()}
    ratio = worst["queue"] / worst[TIME_OUT]
    print(
        f"  {case}: duly's queue {worst['queue']:6.3f} ({usual['queue']:5.3f})   {TIME_OUT} {worst[TIME_OUT]:6.3f} "
        f"({usual[TIME_OUT]:5.3f})   {ratio:.2f}",
        flush=True,
    )
    of = f"wait by {TIME_OUT}, longest"
    return [
        Figure("burst", case, of, worst[TIME_OUT], "s"),
        Figure("burst", case, "wait in duly's queue, longest", worst["queue"], "s", ratio, of),
        Figure("burst", case, f"wait by {TIME_OUT}, median", usual[TIME_OUT], "s"),
        Figure("burst", case, "wait in duly's queue, median", usual["queue"], "s"),
    ]


def rooms() -> list[tuple[str, str]]:
    """Where to try it: a disk, and a file system in memory where there is one."""
    found = [("on disk", str(Path.cwd()))]
    if os.access("/dev/shm", os.W_OK):
        found.append(("in memory", "/dev/shm"))
    return found


def duly_exec(folder: str, count: int) -> Burst:
    """The burst itself, on a ledger that is there but knows none of the jobs."""
    path = f"{folder}/ledger.db"
    duly = [DULY, "exec"]
    flags = ["--ledger", f"sqlite:///{path}", "--period", "daily", "--zone", "UTC", "--", "true"]
    subprocess.run([*duly, "first", *flags], check=True)
    codes, longest = together([[*duly, f"job-{n}", *flags] for n in range(count)])
    connection = sqlite3.connect(path)
    done = connection.execute("select count(*) from duly_run where state = 'completed'").fetchone()[0] - 1
    connection.close()
    _, start_alone = together([[sys.executable, "-c", "pass"]] * count)
    return Burst(done, codes, longest, start_alone)


def together(lines: Sequence[list[str]]) -> tuple[Counter[int], float]:
    """Start every line at once; how they ended, and the longest from start to end in seconds."""
    began: dict[int, float] = {}
    for line in lines:
        now = time.monotonic()
        began[os.posix_spawn(line[0], line, os.environ)] = now
    codes: Counter[int] = Counter()
    longest = 0.0
    for _ in lines:
        pid, status = os.wait()
        longest = max(longest, time.monotonic() - began[pid])
        codes[os.waitstatus_to_exitcode(status)] += 1
    return codes, longest


def waits(folder: str, count: int, how: str) -> list[float]:
    """How long each of so many writers waits that all begin at once: the longer of its two waits, in seconds."""
    path = f"{folder}/{how[:4]}.db"
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table run (job text primary key, state text)")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, how, path, f"job-{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    for writer in writers:
        assert writer.stdout is not None
        if writer.stdout.readline() != "ready\n":
            raise SystemExit("a writer did not come up")
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()  # the end of its input is the word to begin
        writer.stdin = None
    longest = [float(writer.communicate()[0]) for writer in writers]
    connection.close()
    return longest


if __name__ == "__main__":
    main()
