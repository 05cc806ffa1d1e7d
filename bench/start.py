"""What `duly exec` costs: a first run (two durable commits) and a duplicate (none) of `true`, beside `python -c pass`.

The three are taken in turn, so that a machine that grows slower or faster meanwhile slows or speeds them alike. Reported:
medians in milliseconds, and each as a multiple of Python's own start.

The command is the installed script, its bytecode cached as an installation leaves it.

    python bench/start.py [TURNS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

DULY = str(Path(sys.executable).with_name("duly"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

SCHEDULES = {
    "UTC": ["--period", "daily", "--zone", "UTC"],
    "zone": ["--period", "daily", "--zone", "Europe/Berlin"],
    "cron": ["--cron", "30 2 * * *", "--zone", "Europe/Berlin"],
}


def took(line: list[str]) -> float:
    """Milliseconds from the start of a process to its end, which is exit 0."""
    began = time.perf_counter()
    pid = os.posix_spawn(line[0], line, os.environ)
    _, status = os.waitpid(pid, 0)
    milliseconds = (time.perf_counter() - began) * 1000
    if status:
        raise SystemExit(f"{line} ended with {os.waitstatus_to_exitcode(status)}")
    return milliseconds


def main(turns: int) -> None:
    """Report each schedule, on disk and in memory."""
    print(
        f"medians of {turns} turns, in ms: python -c pass, first run, duplicate; in brackets as multiples of the first"
    )
    for name, room in rooms():
        for kind, flags in SCHEDULES.items():
            with tempfile.TemporaryDirectory(dir=room) as folder:
                print(f"  {name:10}{kind:6}{one(folder, flags, turns)}", flush=True)


def one(folder: str, flags: Sequence[str], turns: int) -> str:
    """One schedule's figures. A first run is that of a job the ledger does not know: a scope that is new."""
    duly = [DULY, "exec", "job", "--ledger", f"sqlite:///{folder}/ledger.db", *flags]
    took([*duly, "--", "true"])
    alone, first, again = [], [], []
    for turn in range(turns):
        alone.append(took([sys.executable, "-c", "pass"]))
        line = [*duly, "--scope", f"s{turn}", "--", "true"]
        first.append(took(line))
        again.append(took(line))
    base, one_run, duplicate = median(alone), median(first), median(again)
    return f"{base:6.1f}   {one_run:6.1f} [{one_run / base:.2f}]   {duplicate:6.1f} [{duplicate / base:.2f}]"


def rooms() -> list[tuple[str, str]]:
    """Where to try it: a disk, and a file system in memory where there is one."""
    found = [("disk", str(Path.cwd()))]
    if os.access("/dev/shm", os.W_OK):
        found.append(("/dev/shm", "/dev/shm"))
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
