"""Environments for peers, one for each group that can live together: `NAME.txt` says what is in it, each pinned.

They are made below `.venv-bench/` when they are missing or their file has changed, and used again else. One that needs a newer
Python than this one says so in a line `# python 3.12`, and is made with the newest on the path.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MADE = ROOT / ".venv-bench"
NEWEST_FIRST = ("python3.14", "python3.13", "python3.12", "python3.11")


class NotMade(Exception):
    """An environment that cannot be made here. Its message says why."""


@cache
def python_of(name: str) -> str:
    """The Python of an environment; this one's own where the name is empty. Raises `NotMade`."""
    if not name:
        return sys.executable
    wanted = (HERE / f"{name}.txt").read_text()
    folder, stamp = MADE / name, MADE / name / "made-of.txt"
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted):
        print(f"making {folder.relative_to(ROOT)}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _run(_new_enough(wanted), "-m", "venv", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "--requirement", str(HERE / f"{name}.txt"))
        stamp.write_text(wanted)
    return str(python)


def _new_enough(wanted: str) -> str:
    """A Python that the environment can be made with."""
    asked = re.search(r"^# python (\d+)\.(\d+)$", wanted, re.MULTILINE)
    least = (int(asked[1]), int(asked[2])) if asked else (3, 11)
    for python in (sys.executable, *NEWEST_FIRST):
        check = [python, "-c", f"import sys; sys.exit(sys.version_info < {least})"]
        if shutil.which(python) and subprocess.run(check, capture_output=True).returncode == 0:
            return python
    raise NotMade(f"needs Python {least[0]}.{least[1]}, and none is on the path")


def _run(*line: str) -> None:
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise NotMade(f"its environment could not be made: {said[-1] if said else f'exit {done.returncode}'}")
