"""64 jobs in one second: what a host does at 03:00. Each is `duly exec JOB -- true`, its own process, on one ledger.

Reported first: how they ended, how many completions the ledger then holds, the longest from start to end, and what as many
processes take that only start Python (they share the cores, so most of the time is that). Reported below it: the wait for
the right to write, alone. As many processes are ready before the first begins, and write two transactions each: once in
duly's queue (a flock before BEGIN IMMEDIATE), once with SQLite's own busy time-out, which polls.

    python bench/burst.py [HOW MANY]
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

DULY = str(Path(sys.executable).with_name("duly"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROUNDS = 3

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


def main(count: int) -> None:
    """Report a burst of so many, a few times."""
    print(f"{count} processes at once, {os.cpu_count()} cores")
    for name, room in rooms():
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=room) as folder:
                print(f"  {name:10}{duly_exec(folder, count)}", flush=True)
    print("the wait for the right to write, in seconds: longest (median)")
    for name, room in rooms():
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=room) as folder:
                queue, polled = waits(folder, count, "queue"), waits(folder, count, "busy time-out")
                print(f"  {name:10}duly's queue {queue}   busy time-out {polled}", flush=True)


def rooms() -> list[tuple[str, str]]:
    """Where to try it: a disk, and a file system in memory where there is one."""
    found = [("disk", str(Path.cwd()))]
    if os.access("/dev/shm", os.W_OK):
        found.append(("/dev/shm", "/dev/shm"))
    return found


def duly_exec(folder: str, count: int) -> str:
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
    return (
        f"{done} complete, exit codes {dict(codes)}, longest {longest:5.2f} s   (python -c pass: {start_alone:5.2f} s)"
    )


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


def waits(folder: str, count: int, how: str) -> str:
    """How long writers wait that all begin at once."""
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
    return f"{max(longest):5.2f} ({median(longest):4.2f})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
