"""An hour of a daemon and a dashboard: whether their memory, descriptors and threads stay what they are.

On SQLite and, beside it, on PostgreSQL where a server answers: a real `duly daemon` works functions that come due every five
seconds and commands every ten, and a real `duly web` on the same ledger is read all the time: pages, the API, and a listener to
its changes that comes and goes. Both are looked at from outside, in /proc. At the end: what they took in the first and in the
last quarter after a warm-up, the slope of the line through what was seen (least squares), and whether each window that came due
was completed once.

No page has more in view as the hour goes by than a few hundred windows: what a page needs while it is drawn would grow with
them, and the log of a SQLite ledger with each page that takes seconds, for it is not folded under a reader.

A slope of less than 2 MB an hour is called flat. Some of it is no growth: CPython asks for memory a megabyte at a time, and
each connection fills a cache of SQLite's to its bound as the ledger grows. What would be kept of each run cannot hide below it:
of the 20,000 runs of an hour that would be a hundred bytes each, less than the smallest of our objects in a list. A share, as
5 %, would allow the more to whoever takes much already. Descriptors and threads may not differ by more than two, which is what
is under way. Less than half an hour is not judged: pages and statements are still met for the first time.

It does not go on where it stopped: an hour is one piece. What was seen is kept in .campaigns/hour-DATABASE.txt.

    python -m campaigns.hour [--minutes N]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import linear_regression, median
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

import psycopg
from tests.exec.stage import environment
from tests.servers import MACHINES_OWN, Server, answers

from campaigns.progress import FOLDER

SAMPLE_SECONDS = 15.0
WARM_MINUTES = 10.0
TELL_MINUTES = 5.0
PAGE_SECONDS = 2.0
LISTEN_SECONDS, AWAY_SECONDS = 7.0, 3.0
AT_ONCE = 12  # pages, in the beginning: more than the threads that a dashboard looks with
FLAT_MB = 2.0  # an hour
FLAT_COUNT = 2
JUDGED_HOURS = 0.5

FUNCTIONS, FUNCTION_SECONDS = 24, 5
COMMANDS, COMMAND_SECONDS = 4, 10

JOBS = """
import os
import duly

ledger = duly.{kind}(os.environ["HOUR_LEDGER"])


def credit(run):
    run.tx.execute("insert into effect (run) values ({sign})", (run.key,))


for number in range({functions}):
    ledger.job(f"credit-{{number:02}}", duly.every("{seconds}s"), catch_up=duly.EACH)(credit)
"""
COMMAND = """
[jobs.mark-{number}]
command = ["/bin/sh", "-c", 'echo "$DULY_RUN_KEY" >> marks']
every = "{seconds}s"
catch_up = "each"
"""
PAGES = (
    *("/", "/grid?job=mark-0&unit=hour&n=3", "/job/credit-00", "/job/mark-0", "/api/v1/status", "/unknown"),
    *("/api/v1/jobs", "/now.json", "/grid.json?job=mark-1&unit=hour&n=3", "/backfill", "/lab?every=1h"),
)
RUNS = "/api/v1/runs?job=credit-01&limit=50"

Rows: TypeAlias = Callable[[str], list[tuple[Any, ...]]]


class Sample(NamedTuple):
    """What was seen of a process: resident and proportional memory in MB, open descriptors, threads."""

    rss: float
    pss: float
    descriptors: int
    threads: int


class Seen(NamedTuple):
    """What was seen at one time, in hours since the beginning; the ledger's size in MB."""

    hours: float
    daemon: Sample
    web: Sample
    ledger: float


def main(minutes: float) -> None:
    """Let an hour go by on each database at once, and say what became of it."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        hours = [stack.enter_context(on_sqlite(Path(folder) / "sqlite"))]
        if answers(url := os.environ.get("DULY_TEST_POSTGRES", MACHINES_OWN)):
            hours.append(stack.enter_context(on_postgres(url, Path(folder) / "postgres")))
        began = told = time.monotonic()
        pause = min(SAMPLE_SECONDS, minutes * 60 / 20)
        while (now := time.monotonic()) < began + minutes * 60:
            for hour in hours:
                hour.look((now - began) / 3600)
            if now - told >= TELL_MINUTES * 60:
                told = now
                for hour in hours:
                    hour.tell()
            time.sleep(max(now + pause - time.monotonic(), 0))
        for hour in hours:
            hour.end()
            hour.report(warm=min(WARM_MINUTES, minutes / 6) / 60)


@contextmanager
def on_sqlite(folder: Path) -> Iterator[Hour]:
    """A daemon and a dashboard of a ledger in a file."""
    folder.mkdir()
    path = folder / "jobs.db"
    with closing(sqlite3.connect(path)) as connection:

        def size() -> float:
            return sum(each.stat().st_size for each in folder.glob("jobs.db*")) / 1e6

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return connection.execute(sql).fetchall()

        with closing(Hour("SQLite", "sqlite", str(path), folder, rows, size)) as hour:
            yield hour


@contextmanager
def on_postgres(server_url: str, folder: Path) -> Iterator[Hour]:
    """A daemon and a dashboard of a ledger in a database of its own."""
    folder.mkdir()
    with closing(Server(server_url)) as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as connection:

            def size() -> float:
                ((found,),) = connection.execute("select pg_database_size(current_database())").fetchall()
                return float(found) / 1e6

            def rows(sql: str) -> list[tuple[Any, ...]]:
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute("set local search_path = duly, public")
                    return cursor.execute(sql.encode()).fetchall()

            with closing(Hour("PostgreSQL", "postgres", url, folder, rows, size)) as hour:
                yield hour


class Hour:
    """One ledger with its daemon, its dashboard and whoever reads that."""

    def __init__(self, name: str, kind: str, ledger: str, folder: Path, rows: Rows, size: Callable[[], float]) -> None:
        self.name = name
        self._folder = folder
        self._rows = rows
        self._size = size
        self._view = "run_readable" if kind == "postgres" else "duly_run_readable"
        self._seen: list[Seen] = []
        self._log = FOLDER / f"hour-{name}.txt"
        FOLDER.mkdir(exist_ok=True)
        self._log.write_text("hours\tprocess\trss\tpss\tdescriptors\tthreads\tledger\n")
        sign = "%s" if kind == "postgres" else "?"
        (folder / "jobs.py").write_text(
            JOBS.format(kind=kind, sign=sign, functions=FUNCTIONS, seconds=FUNCTION_SECONDS)
        )
        (folder / "duly.toml").write_text(
            "".join(COMMAND.format(number=number, seconds=COMMAND_SECONDS) for number in range(COMMANDS))
        )
        self._environment = environment(DULY_LEDGER=ledger, HOUR_LEDGER=ledger)
        subprocess.run(
            [*DULY, "db", "create"],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        if kind == "postgres":
            with psycopg.connect(ledger) as connection:
                connection.execute("create table effect (run text)")
        else:
            with closing(sqlite3.connect(ledger)) as connection:
                connection.execute("create table effect (run text)")
        self._daemon = self._start("daemon", "jobs:ledger", log="daemon.log")
        self._web = self._start("web", "--port", "0", log="web.log")
        self._reading = Reading(place_said(folder / "web.log", self._web))

    def _start(self, *words: str, log: str) -> subprocess.Popen[bytes]:
        path = f"{self._environment['PYTHONPATH']}:{self._folder}"
        with (self._folder / log).open("wb") as file:
            return subprocess.Popen(
                [*DULY, *words],
                cwd=self._folder,
                env={**self._environment, "PYTHONPATH": path},
                stdout=subprocess.DEVNULL,
                stderr=file,
            )

    def look(self, hours: float) -> None:
        """Look at both processes, and at the ledger."""
        seen = Seen(hours, sample(self._daemon.pid), sample(self._web.pid), self._size())
        self._seen.append(seen)
        with self._log.open("a") as f:
            for name, of in (("daemon", seen.daemon), ("web", seen.web)):
                print(f"{hours:.4f}", name, *of, f"{seen.ledger:.2f}", sep="\t", file=f)

    def tell(self) -> None:
        """Say how things stand."""
        last = self._seen[-1]
        print(
            f"{self.name}, {last.hours * 60:.0f} min: daemon {last.daemon.rss:.1f} MB, web {last.web.rss:.1f} MB, "
            f"ledger {last.ledger:.1f} MB",
            flush=True,
        )

    def end(self) -> None:
        """Read no more, tell the processes to stop, and wait for them. They end well."""
        self._reading.end()
        for process in (self._web, self._daemon):
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(60) for process in (self._web, self._daemon)]
        assert codes[1] == 0, f"the daemon ended with {codes[1]}"

    def close(self) -> None:
        """End what is still there."""
        self._reading.end()
        for process in (self._web, self._daemon):
            if process.poll() is None:
                process.kill()
                process.wait()

    # -- what became of it -----------------------------------------------------------------------------------------------

    def report(self, *, warm: float) -> None:
        """Print what was seen after so many hours of warm-up."""
        seen = [one for one in self._seen if one.hours >= warm]
        quarter = max(len(seen) // 4, 1)
        first, last = seen[:quarter], seen[-quarter:]
        runs = self._completed()
        print(f"\n{self.name}: {seen[-1].hours * 60:.0f} minutes, the first {warm * 60:.0f} left out; {runs}")
        print(f"  {self._reading.said()}; the ledger grew from {self._seen[0].ledger:.1f} to {seen[-1].ledger:.1f} MB")
        print(f"  {'':<22}{'first quarter':>14}{'last quarter':>14}{'an hour':>10}")
        for process in ("daemon", "web"):
            for what, unit in (("rss", " MB"), ("pss", " MB"), ("descriptors", ""), ("threads", "")):

                def of(one: Seen, process: str = process, what: str = what) -> float:
                    return float(getattr(getattr(one, process), what))

                before, after = (median(map(of, some)) for some in (first, last))
                slope = linear_regression([one.hours for one in seen], [of(one) for one in seen]).slope
                is_flat = slope < FLAT_MB if unit else after - before <= FLAT_COUNT
                verdict = "" if seen[-1].hours < JUDGED_HOURS else "flat" if is_flat else "GROWS"
                print(f"  {process:<8}{what + unit:<14}{before:>14.1f}{after:>14.1f}{slope:>+10.2f}  {verdict}")
        sys.stdout.flush()

    def _completed(self) -> str:
        """How many windows were completed. Raises `AssertionError` where one was left out, or had its effect twice."""
        lines = self._rows(
            f"select job, count(*), sum(case when state = 'completed' then 1 else 0 end), min(stored_nominal), "
            f"max(stored_nominal) from {self._view} group by job order by job"
        )
        assert len(lines) == FUNCTIONS + COMMANDS, lines
        for job, rows, completed, oldest, newest in lines:
            seconds = FUNCTION_SECONDS if job.startswith("credit") else COMMAND_SECONDS
            windows = (newest - oldest) // (2 * seconds) + 1  # a nominal counts half seconds
            assert rows == completed == windows, f"{job}: {windows} windows, {rows} runs, {completed} of them complete"
        effects = [run for (run,) in self._rows("select run from effect")]
        marks = (self._folder / "marks").read_text().split()
        total = sum(int(line[2]) for line in lines)
        assert len({*effects, *marks}) == len(effects) + len(marks) == total, "a window took effect twice, or never"
        return f"{total} windows, each completed once"


class Reading:
    """Somebody who reads a dashboard all the time, and a page that comes and goes and is told of changes."""

    def __init__(self, place: str) -> None:
        self._place = urlsplit(place).netloc
        self._is_over = threading.Event()
        self._pages = self._streams = self._told = 0
        self._refused: Counter[str] = Counter()
        self._threads = [threading.Thread(target=act, daemon=True) for act in (self._read, self._listen)]
        # Else its threads come one by one, each when two pages first meet there, and what they keep looks like growth.
        with ThreadPoolExecutor(AT_ONCE) as crowd:
            for page in PAGES:
                list(crowd.map(self._get, [page] * AT_ONCE))
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Read no more."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def said(self) -> str:
        """What was read."""
        return (
            f"{self._pages} pages read, {self._refused.total()} of them refused {dict(self._refused) or ''}; "
            f"{self._streams} listeners were told of {self._told} changes"
        )

    def _read(self) -> None:
        while not self._is_over.is_set():
            for page in PAGES:
                self._page(page)
            runs = json.loads(self._page(RUNS) or "{}").get("runs")
            if runs:
                self._page(f"/run/{quote(runs[-1]['key'], safe='')}")

    def _page(self, page: str) -> bytes:
        """Read a page, and rest; empty when it is over."""
        if self._is_over.is_set():
            return b""
        status, text = self._get(page)
        self._pages += 1
        if status != 200:
            self._refused[f"{page}: {status}"] += 1
        self._is_over.wait(PAGE_SECONDS)
        return text

    def _get(self, page: str) -> tuple[int, bytes]:
        with closing(HTTPConnection(self._place, timeout=60)) as connection:
            connection.request("GET", page)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def _listen(self) -> None:
        while not self._is_over.is_set():
            with closing(HTTPConnection(self._place, timeout=2)) as connection:
                connection.request("GET", "/life")
                answer = connection.getresponse()
                self._streams += 1
                until = time.monotonic() + LISTEN_SECONDS
                while time.monotonic() < until and not self._is_over.is_set():
                    try:
                        self._told += answer.readline().startswith(b"data:")
                    except (TimeoutError, HTTPException):  # nothing was said for a while; that reader is spent
                        break
            self._is_over.wait(AWAY_SECONDS)


# -- looking from outside ------------------------------------------------------------------------------------------------

DULY = (sys.executable, "-m", "duly")


def place_said(log: Path, process: subprocess.Popen[bytes]) -> str:
    """The address that a dashboard says it listens at."""
    while process.poll() is None:
        if "\n" in (said := log.read_text()):
            return said.split()[1]
        time.sleep(0.05)
    raise SystemExit(log.read_text())


def sample(pid: int) -> Sample:
    """A process as the kernel tells of it (proc(5))."""
    own = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (own / "status").read_text().splitlines())
    rollup = (own / "smaps_rollup").read_text().splitlines()[1:]
    pss = dict(line.split(":", 1) for line in rollup)["Pss"]
    return Sample(
        int(status["VmRSS"].split()[0]) / 1024,
        int(pss.split()[0]) / 1024,
        len(os.listdir(own / "fd")),
        int(status["Threads"]),
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=60.0)
    main(arguments.parse_args().minutes)
