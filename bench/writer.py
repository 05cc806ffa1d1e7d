"""One writer of `writers.py`: works windows of a job of its own, one after the other, until it is told that time is over.

    python -m bench.writer URL NUMBER SECONDS HOW

HOW is `queue`, or `time-out`: then it waits for an SQLite ledger as SQLite does by itself, with its own busy time-out, and does
everything else as before. It says that it is ready, begins at the end of its input, and prints how many runs it completed and
the longest of them in seconds.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import duly
from duly.store import sqlite as store
from duly.store.lock import WriterLock
from duly.store.owned import sqlite as owned

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BUSY_SECONDS = 60.0


def begin_by_busy_time_out(connection: sqlite3.Connection, lock: WriterLock, *, path: str, seconds: float) -> None:
    """As `duly.store.sqlite.begin`, without the lock that writers queue for."""
    execute = sqlite3.Cursor(connection).execute
    execute(f"pragma busy_timeout = {int(seconds * 1000)}")
    execute("begin immediate")


def main(url: str, number: str, seconds: float, how: str) -> None:
    if how == "time-out":
        for module in (store, owned):
            module.begin = begin_by_busy_time_out  # type: ignore[attr-defined]
    is_postgres = url.startswith("postgres")
    ledger: Any = (
        duly.postgres(url) if is_postgres else duly.sqlite(url.removeprefix("sqlite:///"), busy_seconds=BUSY_SECONDS)
    )
    mark = "%s" if is_postgres else "?"

    @ledger.job(f"writer-{number}", duly.every("5m"), catch_up=duly.EACH, effect="external")  # type: ignore[untyped-decorator]
    def work(run: duly.Run[Any]) -> None:
        run.tx.execute(f"update balance set units = units + 1 where writer = {mark}", (int(number),))

    windows = (f"{BEGIN + timedelta(minutes=5 * n):%Y-%m-%dT%H:%M:%SZ}" for n in count())
    work.run(next(windows))  # what is done once is done
    print("ready", flush=True)
    sys.stdin.read()
    runs, longest = 0, 0.0
    until = time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        work.run(next(windows))
        runs, longest = runs + 1, max(longest, time.monotonic() - began)
    print(runs, longest, flush=True)
    os._exit(0)  # the others write on


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
