"""Eight processes that write all the time to one ledger, and people who read its dashboard meanwhile.

Each writer works windows of a job of its own, one after the other: a claim, an effect with its completion, two durable commits.
On SQLite they queue for duly's lock; beside it the same writers wait by SQLite's own busy time-out, which polls. On PostgreSQL
they meet nobody, but for the disk. Reported: runs a second of all of them; the least that one completed beside the most, which
should not be below a half; the longest run of all.

Then two readers ask a real `duly web` for its first page and for its grid, one after the other: how long an answer takes,
median and worst, while nobody writes and while all do; and what the readers take from the writers.

    python -m bench.writers [--writers N] [--seconds N] [--rounds N] [--json FILE] [--quick]
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg
from tests.servers import MACHINES_OWN, Server, answers

from bench.figure import Figure, arguments, positive, write

READERS = 2
PAGES = {"the first page": "/", "the grid": "/grid?unit=hour&n=48"}
QUEUE, TIME_OUT = "queue", "time-out"
HOW = {QUEUE: "duly's queue", TIME_OUT: "SQLite's busy time-out"}


class Worked(NamedTuple):
    """What the writers of a round did: runs of each, and the longest of all runs in seconds."""

    runs: list[int]
    longest: float
    seconds: float

    @property
    def rate(self) -> float:
        return sum(self.runs) / self.seconds

    @property
    def fairness(self) -> float:
        return min(self.runs) / max(self.runs)


def main() -> None:
    """Report SQLite, and PostgreSQL where a server answers."""
    parser = arguments(__doc__)
    parser.add_argument("--writers", type=positive, default=8)
    parser.add_argument("--seconds", type=positive, help="how long each round lasts (10)")
    parser.add_argument("--rounds", type=positive, help="(3)")
    args = parser.parse_args()
    seconds = args.seconds or (2 if args.quick else 10)
    rounds = args.rounds or (1 if args.quick else 3)
    figures: list[Figure] = []
    for name, room in rooms():
        with tempfile.TemporaryDirectory(dir=room) as folder:
            ways = {how: f"sqlite:///{folder}/{how}.db" for how in HOW}
            figures += contention(f"SQLite {name}", ways, args.writers, seconds, rounds)
    if answers(server_url := os.environ.get("DULY_TEST_POSTGRES", MACHINES_OWN)):
        with closing(Server(server_url)) as server:
            figures += contention("PostgreSQL", {QUEUE: server.new_database()}, args.writers, seconds, rounds)
    write(args.json, figures)


def contention(case: str, ways: dict[str, str], writers: int, seconds: float, rounds: int) -> list[Figure]:
    """The writers of each way in turn, alone and beside readers; and the readers alone."""
    is_postgres = QUEUE in ways and ways[QUEUE].startswith("postgres")
    for url in ways.values():
        prepare(url, writers)
    alone: dict[str, list[Worked]] = {how: [] for how in ways}
    beside: list[Worked] = []
    quiet: dict[str, list[float]] = {page: [] for page in PAGES}
    busy: dict[str, list[float]] = {page: [] for page in PAGES}
    with dashboard(ways[QUEUE]) as place:
        for path in PAGES.values():
            ask(place, path)  # the first answer of all makes ready what the others find
        for _ in range(rounds):
            for how, url in ways.items():
                alone[how].append(worked(url, writers, seconds, how))
            with reading(place, quiet):
                time.sleep(seconds)
            with reading(place, busy):
                beside.append(worked(ways[QUEUE], writers, seconds, QUEUE))
    print(f"\n{case}: {writers} writers, {seconds:g} s, medians of {rounds} rounds; the worst of all")
    figures = []
    names = {how: "writers alone, " + ("PostgreSQL's locks" if is_postgres else HOW[how]) for how in alone}
    for how, each in alone.items():
        figures += said(case, names[how], each, None if how == QUEUE else (names[QUEUE], alone[QUEUE]))
    figures += said(case, f"writers beside {READERS} readers", beside, (names[QUEUE], alone[QUEUE]))
    for page in PAGES:
        for what, one, other in (
            ("median", median(quiet[page]), median(busy[page])),
            ("worst", max(quiet[page]), max(busy[page])),
        ):
            of = f"{page}, {what}, nobody writing"
            now = f"{page}, {what}, all writing"
            print(f"  {page + ', ' + what:<44}{one * 1000:>8.1f} ms alone {other * 1000:>9.1f} ms beside writers")
            figures.append(Figure("writers", case, of, one * 1000, "ms"))
            figures.append(Figure("writers", case, now, other * 1000, "ms", other / one, of))
    return figures


def said(case: str, what: str, rounds: Sequence[Worked], beside: tuple[str, Sequence[Worked]] | None) -> list[Figure]:
    """Print what the writers did, and answer it as figures; `beside` is what their rate is compared with, and its name."""
    rate, fairness = median(one.rate for one in rounds), min(one.fairness for one in rounds)
    longest = max(one.longest for one in rounds)
    of, ratio = (None, None) if beside is None else (beside[0], rate / median(one.rate for one in beside[1]))
    print(f"  {what:<44}{rate:>8.0f} runs/s   least/most {fairness:4.2f}   longest run {longest:6.3f} s", flush=True)
    return [
        Figure("writers", case, what, rate, "runs/s", ratio, of),
        Figure("writers", case, f"{what}: least/most", fairness, "of 1"),
        Figure("writers", case, f"{what}: longest run", longest, "s"),
    ]


# -- writers -------------------------------------------------------------------------------------------------------------


def prepare(url: str, writers: int) -> None:
    """A ledger, and the table that the writers' effects go to."""
    subprocess.run([sys.executable, "-m", "duly", "db", "create", "--ledger", url], capture_output=True, check=True)
    rows = [f"insert into balance values ({number}, 0)" for number in range(writers)]
    statements = ["create table balance (writer integer primary key, units integer)", *rows]
    if url.startswith("postgres"):
        with psycopg.connect(url) as there:
            for statement in statements:
                there.execute(statement.encode())
    else:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            for statement in statements:
                connection.execute(statement)


def worked(url: str, writers: int, seconds: float, how: str) -> Worked:
    """Let so many writers write for so long, all at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.writer", url, str(number), str(seconds), how],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit("a writer did not come up")
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()  # the end of its input is the word to begin
        process.stdin = None
    told = [process.communicate()[0].split() for process in processes]
    return Worked([int(runs) for runs, _ in told], max(float(longest) for _, longest in told), seconds)


# -- readers -------------------------------------------------------------------------------------------------------------


@contextmanager
def dashboard(url: str) -> Iterator[str]:
    """A real `duly web` of a ledger; the host and port that it says."""
    process = subprocess.Popen(
        [sys.executable, "-m", "duly", "web", "--port", "0", "--ledger", url],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        if "http://" not in said:
            raise SystemExit(said + process.stderr.read())
        drained = threading.Thread(target=process.stderr.read, daemon=True)  # its log, of each page a line
        drained.start()
        yield said.partition("http://")[2].partition("/")[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def reading(place: str, took: dict[str, list[float]]) -> Iterator[None]:
    """Readers that ask for one page after the other meanwhile; what each answer took, in seconds, is noted."""
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            for page, path in PAGES.items():
                took[page].append(ask(place, path))
                is_over.wait(0.05)  # somebody looks at it

    threads = [threading.Thread(target=read) for _ in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def ask(place: str, path: str) -> float:
    """How many seconds an answer takes."""
    with closing(HTTPConnection(place, timeout=60)) as connection:
        began = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path} was answered with {answer.status}")
    return time.monotonic() - began


def rooms() -> list[tuple[str, str]]:
    """Where to try it: a disk, and a file system in memory where there is one."""
    found = [("on disk", str(Path.cwd()))]
    if os.access("/dev/shm", os.W_OK):
        found.append(("in memory", "/dev/shm"))
    return found


if __name__ == "__main__":
    main()
