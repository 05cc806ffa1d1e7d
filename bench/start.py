"""What a wrapper costs: `duly exec -- true`, its first run (two durable commits) and a duplicate (none), beside

    python -c pass       what any program in Python costs that does nothing
    flock -n FILE true   what many crontabs have: a program in C that keeps two runs apart, and remembers nothing
    by hand              the least that somebody would write with typer and SQLAlchemy: a row that claims the run, the command,
                         a row that it is complete (`by_hand.py`, in an environment of its own, made at the first call)

on SQLite and PostgreSQL; with bytecode cached, as an installation leaves it, and without any, as in an image that was made
without. All are taken in turn, so that a machine that grows slower or faster meanwhile slows or speeds them alike. Reported:
medians in milliseconds from the start of the process to its end, and each as a multiple of Python's own start.

    python -m bench.start [--turns N] [--json FILE] [--quick]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.servers import MACHINES_OWN, Server, answers

from bench.environments import python_of
from bench.figure import Figure, arguments, positive, write

DULY = str(Path(sys.executable).with_name("duly"))
BY_HAND = str(Path(__file__).with_name("by_hand.py"))
PLAIN = "python -c pass"

SCHEDULES = {
    "UTC": ["--period", "daily", "--zone", "UTC"],
    "a zone, a period": ["--period", "daily", "--zone", "Europe/Berlin"],
    "a zone, cron": ["--cron", "30 2 * * *", "--zone", "Europe/Berlin"],
}

Line = Callable[[int], list[str]]
Environment = dict[str, str]


class Case(NamedTuple):
    """Lines to be taken in turn, by what they are called, and how often."""

    name: str
    lines: dict[str, Line]
    environment: Environment
    turns: int


def main() -> None:
    """Report each database, with bytecode and without."""
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=positive, help="how often each line is taken (40)")
    args = parser.parse_args()
    turns = args.turns or (5 if args.quick else 40)
    figures: list[Figure] = []
    python = python_of("by_hand")
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(Path(scratch), python, turns):
            figures += reported(case)
    write(args.json, figures)


def cases(scratch: Path, by_hand: str, turns: int) -> Iterator[Case]:
    """Every case, its ledger made and known to have the job."""
    few = max(turns // 8, 2)
    for name, room in rooms():
        with tempfile.TemporaryDirectory(dir=room) as folder:
            url = f"sqlite:///{folder}/ledger.db"
            lines = lines_of(url, f"sqlite:///{folder}/by-hand.db", folder, by_hand)
            yield Case(f"SQLite {name}", lines, cached(), turns)
            if room == str(Path.cwd()):
                yield Case(f"SQLite {name}, no bytecode", lines, nothing_cached(scratch), few)
    if answers(server_url := os.environ.get("DULY_TEST_POSTGRES", MACHINES_OWN)):
        with closing(Server(server_url)) as server:
            url = server.new_database()
            subprocess.run([DULY, "db", "create", "--ledger", url], env=cached(), capture_output=True, check=True)
            lines = lines_of(url, url.replace("postgresql:", "postgresql+psycopg:"), str(scratch), by_hand)
            yield Case("PostgreSQL", lines, cached(), turns)
            yield Case("PostgreSQL, no bytecode", lines, nothing_cached(scratch), few)


def lines_of(url: str, by_hand_url: str, folder: str, by_hand: str) -> dict[str, Line]:
    """What is taken in turn. A first run is that of a scope that is new, or of a run that nobody has claimed."""
    lines: dict[str, Line] = {
        PLAIN: lambda turn: [sys.executable, "-c", "pass"],
        "flock -n FILE true": lambda turn: [str(shutil.which("flock")), "-n", f"{folder}/lock", "true"],
    }
    for kind, flags in SCHEDULES.items():
        duly = [DULY, "exec", "job-" + kind.replace(" ", "-").replace(",", ""), "--ledger", url, *flags]
        took([*duly, "--", "true"], cached())

        def line(turn: int, duly: list[str] = duly) -> list[str]:
            return [*duly, "--scope", f"s{turn}", "--", "true"]

        lines[f"duly exec, {kind}, first run"] = lines[f"duly exec, {kind}, duplicate"] = line
    wrapped = [by_hand, BY_HAND, "--url", by_hand_url, "job"]
    took([*wrapped, "0", "true"], cached())
    for what in ("first run", "duplicate"):
        lines[f"by hand with typer and SQLAlchemy, {what}"] = lambda turn: [*wrapped, str(turn), "true"]
    if not shutil.which("flock"):
        del lines["flock -n FILE true"]
    return lines


def reported(case: Case) -> list[Figure]:
    """Take the lines of a case in turn, and print what they took."""
    times: dict[str, list[float]] = {what: [] for what in case.lines}
    first = time.time_ns()  # no run of an earlier case is met again
    for turn in range(first, first + case.turns):
        for what, line in case.lines.items():
            times[what].append(took(line(turn), case.environment))
    base = median(times[PLAIN])
    print(f"\n{case.name}: medians of {case.turns} turns")
    figures = []
    for what, each in times.items():
        milliseconds = median(each)
        print(f"  {what:<42}{milliseconds:>8.1f} ms {milliseconds / base:>7.2f}", flush=True)
        ratio, of = (None, None) if what == PLAIN else (milliseconds / base, PLAIN)
        figures.append(Figure("start", case.name, what, milliseconds, "ms", ratio, of))
    return figures


def took(line: list[str], environment: Environment) -> float:
    """Milliseconds from the start of a process to its end, which is exit 0."""
    began = time.perf_counter()
    pid = os.posix_spawn(line[0], line, environment)
    _, status = os.waitpid(pid, 0)
    milliseconds = (time.perf_counter() - began) * 1000
    if status:
        raise SystemExit(f"{line} ended with {os.waitstatus_to_exitcode(status)}")
    return milliseconds


# -- where and with what ---------------------------------------------------------------------------------------------------


def rooms() -> list[tuple[str, str]]:
    """Where to try it: a disk, and a file system in memory where there is one."""
    found = [("on disk", str(Path.cwd()))]
    if os.access("/dev/shm", os.W_OK):
        found.append(("in memory", "/dev/shm"))
    return found


def cached() -> Environment:
    """An environment in which bytecode is kept, and nothing says what a ledger is."""
    unwanted = ("DULY_", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def nothing_cached(scratch: Path) -> Environment:
    """An environment in which no bytecode is found, nor kept: also none of Python's own modules."""
    (empty := scratch / "no-bytecode").mkdir(exist_ok=True)
    return {**cached(), "PYTHONPYCACHEPREFIX": str(empty), "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    main()
