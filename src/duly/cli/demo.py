"""`duly demo`: see it work, in a ledger of its own that is kept. Fails if anything is not as it says."""

from __future__ import annotations

import os
import sys
from shlex import join, quote
from shutil import which
from tempfile import mkdtemp

from duly.cli import codes
from duly.cli.dispatch import dispatch
from duly.cli.output import note
from duly.demo.stage import NotAsClaimed, Stage
from duly.demo.story import STEPS, days_before, title, today

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.demo.story import Days

HELP = "see it work: workers that race and die, each day credited once"
EXAMPLE = "duly demo"

FAILED = 1

VIEWS = (["status"], ["status", "--grid"], ["runs"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: the demo is the same for everyone."""


def run(args: argparse.Namespace) -> int:
    stage, days = Stage(mkdtemp(prefix="duly-demo-")), days_before(today())
    print(f"A ledger, and the table of a business beside it, in {stage.path}")
    try:
        code = _tell(stage, days)
    finally:
        stage.close()
    return code if code else _show(stage, days)


def _tell(stage: Stage, days: Days) -> int:
    for number, step in enumerate(STEPS, start=1):
        print(f"\n{number}. {title(step, days)}", flush=True)
        try:
            print(f"   ✓ {step(stage, days)}", flush=True)
        except NotAsClaimed as e:
            print(f"   ✗ not as claimed: {e}", flush=True)
            note(f"demo: step {number} ({step.__name__.replace('_', ' ')}) did not end as claimed: {e}")
            note(f"the ledger is kept: {stage.path}")
            return FAILED
    return codes.DONE


def _show(stage: Stage, days: Days) -> int:
    """The ledger as an operator sees it, and where to look further."""
    for words in VIEWS:
        line = [*words, "--ledger", stage.url]
        print(f"\n$ {_typed(line)}", flush=True)
        if code := dispatch(line):
            return code
    print("\nThe ledger is kept; look further:")
    for line in (
        ["explain", "credit", days.third, "--ledger", stage.url],
        ["runs", "show", "credit", days.third, "--ledger", stage.url],
        ["next", "credit", "--ledger", stage.url],
    ):
        print(f"  {_typed(line)}")
    if which("sqlite3"):
        print(f"  sqlite3 {quote(stage.path)} 'select * from duly_run_readable'")
    return codes.DONE


def _typed(words: list[str]) -> str:
    """A command line as it can be typed from here: the program as this one was called."""
    if os.path.basename(sys.argv[0]) == "__main__.py":
        return join([sys.executable, "-m", "duly", *words])
    return join([sys.argv[0], *words])
