"""What a daemon does in a second: trivial functions on SQLite, flushed, in one process with eight places.

Once one line that is far behind and whose runs may overlap, once many lines with a few windows each; beside them as many
runs by `catch_up()`, which is one place. Each number is the best of some rounds.

    python bench/daemon.py
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import duly
from duly.times import SECOND
from duly.work.daemon.crew import Threads
from duly.work.daemon.systemd import Notifier
from duly.work.daemon.watch import Daemon, Limits

ROUNDS, PLACES = 3, 8


def behind(path: Path, *, lines: int, windows: int) -> duly.Ledger[sqlite3.Connection]:
    """A ledger with lines that are so many windows behind."""
    ledger = duly.sqlite(path)

    def nothing(run: duly.Run[sqlite3.Connection]) -> None:
        """Trivial."""

    for number in range(lines):
        declare = ledger.job(f"job-{number}", duly.every("1h"), catch_up=duly.EACH, overlap=True)
        declare(nothing).catch_up()
    back = windows * 3600 * SECOND
    with closing(sqlite3.connect(path)) as connection, connection:
        moved = ", ".join(f"{column} = {column} - {back}" for column in ("opened_until", "starts", "next_due"))
        connection.execute(f"update duly_line set {moved}")
        connection.execute("delete from duly_run")
        connection.execute("delete from duly_attempt")
    return ledger


def completed(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        number: int = connection.execute("select count(*) from duly_run where state = 'completed'").fetchone()[0]
        return number


def by_daemon(ledger: duly.Ledger[Any], path: Path, runs: int) -> None:
    """Let a daemon work until all is done."""
    with ThreadPoolExecutor(PLACES) as pool:
        hands = [Threads(job, pool) for job in ledger.jobs.values()]
        daemon = Daemon(ledger.store, list(hands), Limits(PLACES, PLACES, 5.0), Notifier({}), lambda line: None)
        working = threading.Thread(target=daemon.work)
        working.start()
        while completed(path) < runs:
            time.sleep(0.02)
        daemon.stop()
        working.join()


def by_hand(ledger: duly.Ledger[Any], path: Path, runs: int) -> None:
    """Call `catch_up()` of each job."""
    for job in ledger.jobs.values():
        job.catch_up()


def rate(work: Callable[[duly.Ledger[Any], Path, int], None], *, lines: int, windows: int) -> float:
    """Runs a second, the best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "jobs.db"
            ledger = behind(path, lines=lines, windows=windows)
            began = time.perf_counter()
            work(ledger, path, lines * windows)
            best = max(best, lines * windows / (time.perf_counter() - began))
            ledger.close()
    return best


def main() -> None:
    for name, lines, windows in (("one line, far behind", 1, 1_000), ("many lines", 200, 5)):
        daemon, hand = (rate(work, lines=lines, windows=windows) for work in (by_daemon, by_hand))
        print(f"{name}: {lines} x {windows} runs; a daemon {daemon:.0f} a second, catch_up() {hand:.0f}")


if __name__ == "__main__":
    main()
