"""No room left for an SQLite ledger: nothing is half committed, the error says what it is, and with room it goes on.

Once on a real file system of eight megabytes, in a name space of mounts of its own, and once at a limit of the size
of files, which needs no rights.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exec.stage import environment

# The story: it fills up what room there is but for a few claims, works, makes room, and works again. `full` and `room` are
# the place's own.
STORY = """
import os, pathlib, resource, signal, sqlite3, sys
import duly
from duly.testing.clock import HandClock

folder = pathlib.Path(sys.argv[1])
path = str(folder / "jobs.db")
clock = HandClock(path, at="2026-10-06T03:00:00Z")
ledger = duly.sqlite(path)

def rows(sql):
    with sqlite3.connect(path) as connection:
        return connection.execute(sql).fetchall()

with sqlite3.connect(path) as connection:
    connection.execute("create table credited (day text, receipt blob)")

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=100, retry_delay=0, overlap=True)
def credit(run):
    run.tx.execute("insert into credited values (?, ?)", (run.label, os.urandom(SIZE)))

def told(act):
    try:
        return type(act()).__name__
    except Exception as e:
        return type(e).__name__

LEFT = 150_000
SIZE = 1000
assert told(lambda: credit.run("2026-10-04")) == "Completed"
"""

LARGE_EFFECT = """
full()
SIZE = {size}
print("said:", told(lambda: credit.run("2026-10-05")))
room()
clock.advance("5m")  # nobody could write down how it ended, so it ends with its lease
SIZE = 1000
print("again:", told(lambda: credit.run("2026-10-05")))
print("days:", *(day for day, in rows("select day from credited order by day")))
print("completed:", *(n[:10] for n, in rows("select nominal from duly_run_readable where state = 'completed' order by 1")))
print("whole:", *rows("pragma integrity_check")[0])
ledger.close()
"""

NO_ROOM_AT_ALL = """
full()
answers = [told(lambda: credit.run(f"2026-09-{day:02}")) for day in range(1, 25)]
print("duplicate:", told(lambda: credit.run("2026-10-04")))
days = [day for day, in rows("select day from credited order by day")]
room()
clock.advance("5m")
print("said:", *sorted(set(answers)))
print("true:", days == sorted(f"2026-09-{n:02}" for n, a in enumerate(answers, 1) if a == "Completed") + ["2026-10-04"])
print("again:", *sorted({told(lambda: credit.run(f"2026-09-{day:02}")) for day in range(1, 25)}))
print("once:", len(rows("select day from credited")) == len(rows("select distinct day from credited")) == 25)
print("whole:", *rows("pragma integrity_check")[0])
ledger.close()
"""

SMALL_FILE_SYSTEM = """
ballast = folder / "ballast"

def full():
    with ballast.open("wb", buffering=0) as f:
        try:
            while f.write(b"x" * 4096):
                pass
        except OSError:
            os.ftruncate(f.fileno(), ballast.stat().st_size - LEFT)

def room():
    ballast.unlink()
"""

LIMITED_FILES = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

def full():
    largest = max(entry.stat().st_size for entry in folder.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + LEFT, unlimited[1]))

def room():
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
"""


def told_by(words: list[str], place: str, story: str, folder: Path) -> dict[str, str]:
    """What a process of its own tells of a story at a place."""
    ended = subprocess.run(
        [*words, sys.executable, "-W", "error", "-c", STORY + place + story, str(folder)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return dict(line.split(": ", 1) for line in ended.stdout.splitlines())


def on_a_small_file_system(story: str, folder: Path) -> dict[str, str]:
    """Tell a story on eight megabytes, which nobody else sees. Skips where mounts are not allowed."""
    unshare = shutil.which("unshare")
    words = [unshare or "", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    mount = f"mount -t tmpfs -o size=8m none '{folder}'"
    if unshare is None or subprocess.run([*words, "sh", "-c", mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system may be mounted here: a full one is not tested, only a limit of the size of files")
    return told_by([*words, "sh", "-c", f'{mount} && exec "$@"', "sh"], SMALL_FILE_SYSTEM, story, folder)


def at_a_limit(story: str, folder: Path) -> dict[str, str]:
    """Tell a story in which no file may grow."""
    return told_by([], LIMITED_FILES, story, folder)


@pytest.mark.parametrize("at", [on_a_small_file_system, at_a_limit])
@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1_000_000, "LedgerUnwritable"),  # it fits into SQLite's cache, and there is no room for the commit
        (6_000_000, "OperationalError"),  # it does not, and the job's own statement fails: its exception is its own
    ],
)
def test_an_effect_for_which_there_is_no_room_is_not_half_committed_and_is_done_once_there_is(
    at: Callable[[str, Path], dict[str, str]], size: int, said: str, tmp_path: Path
) -> None:
    told = at(LARGE_EFFECT.replace("{size}", str(size)), tmp_path)

    assert told["said"] == said
    assert told["again"] == "Completed"
    assert told["days"] == told["completed"] == "2026-10-04 2026-10-05"
    assert told["whole"] == "ok"


@pytest.mark.parametrize("at", [on_a_small_file_system, at_a_limit])
def test_what_is_said_on_a_full_disk_is_true_and_a_duplicate_is_still_one(
    at: Callable[[str, Path], dict[str, str]], tmp_path: Path
) -> None:
    told = at(NO_ROOM_AT_ALL, tmp_path)

    assert set(told["said"].split()) <= {"Completed", "LedgerUnwritable"}
    assert "LedgerUnwritable" in told["said"]
    assert told["duplicate"] == "AlreadyCompleted"
    assert told["true"] == "True"
    assert set(told["again"].split()) <= {"Completed", "AlreadyCompleted"}
    assert (told["once"], told["whole"]) == ("True", "ok")
