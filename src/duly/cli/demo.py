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
from duly.demo.serve import is_installed, serve
from duly.demo.stage import NotAsClaimed, Stage
from duly.demo.story import STEPS, days_before, title, today
from duly.errors import Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.demo.story import Days

HELP = "see it work: workers that race and die, each day credited once"
EXAMPLE = "duly demo --serve"

FAILED = 1

VIEWS = (["status"], ["status", "--grid"], ["runs"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--serve",
        action="store_true",
        help="go on afterwards: a small daemon, and the dashboard of it on 127.0.0.1, until Ctrl-C",
    )


def run(args: argparse.Namespace) -> int:
    if args.serve and not is_installed():  # said before half a minute is spent
        raise Misuse("demo: --serve needs the libraries of the dashboard", next_step="pip install 'duly[web]'")
    stage, days = Stage(mkdtemp(prefix="duly-demo-")), days_before(today())
    print(f"A ledger, and the table of a business beside it, in {stage.path}")
    try:
        code = _tell(stage, days)
    finally:
        stage.close()
    if code or (code := _show(stage, days)):
        return code
    return _serve(stage) if args.serve else _name_dashboard(stage)


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


def _name_dashboard(stage: Stage) -> int:
    """Where all of this is to be seen in a browser, as a line to type."""
    if is_installed():
        print("\nThe same in a browser:")
        print(f"  {_typed(['web', '--ledger', stage.url])}")
    else:
        print("\nThe same in a browser, with the dashboard's libraries: pip install 'duly[web]', then")
        print(f"  {_typed(['web', '--ledger', stage.url])}")
    return codes.DONE


def _serve(stage: Stage) -> int:
    """Let it go on, until somebody ends it."""

    def said(where: str) -> None:
        print(f"\nIt goes on, in a browser: {where}", flush=True)
        print(
            f"  a daemon works what is in {quote(os.path.join(stage.folder, 'duly.toml'))}; Ctrl-C ends both",
            flush=True,
        )

    code = serve(stage, said)
    if code:
        note(f"demo: the daemon ended with {code}; its log is {os.path.join(stage.folder, 'daemon.log')}")
        return FAILED
    print("\nThe daemon and its dashboard have ended; the ledger is kept.")
    return codes.DONE


def _typed(words: list[str]) -> str:
    """A command line as it can be typed from here: the program as this one was called."""
    if os.path.basename(sys.argv[0]) == "__main__.py":
        return join([sys.executable, "-m", "duly", *words])
    return join([sys.argv[0], *words])
