"""`duly completion`: what makes a shell complete commands, flags and the names of jobs; it is made from the parsers themselves.

    python -m duly.cli.completion bash > share/bash-completion/completions/duly      or `make share`

A shell finds by itself where in the tree of commands it is; only names of the ledger are asked for, by `--names`. Then a
ledger that cannot be read has none: a shell that complains while somebody types is worse than one that is silent.
"""

from __future__ import annotations

import os
import sys

from duly.cli import codes
from duly.errors import DulyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "what makes bash, zsh or fish complete commands, flags and names of jobs"
EXAMPLE = (
    "duly completion bash > ~/.local/share/bash-completion/completions/duly\n"
    "  duly completion zsh > ~/.zfunc/_duly                            with ~/.zfunc in $fpath\n"
    "  duly completion fish > ~/.config/fish/completions/duly.fish"
)

_PATIENCE_SECONDS = "2"  # for a server that is away, while somebody waits for what he types


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from argparse import SUPPRESS

    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    parser.add_argument("--names", choices=("jobs", "scopes", "zones"), help=SUPPRESS)
    parser.add_argument("--ledger", help=SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.names is not None:
        for name in _names(args.names, args.ledger):
            print(name)
        return codes.DONE
    if args.shell is None:
        from duly.errors import Misuse

        raise Misuse("completion: which shell? bash, zsh or fish", next_step="duly completion bash")
    from duly.cli.completion_scripts import SCRIPTS

    print(SCRIPTS[args.shell](), end="")
    return codes.DONE


def _names(kind: str, ledger: str | None) -> list[str]:
    if kind == "zones":
        from zoneinfo import available_timezones

        return sorted(available_timezones())
    from duly.cli.ledgers import open_to_look
    from duly.evidence.names import job_names, scope_names

    os.environ.setdefault("PGCONNECT_TIMEOUT", _PATIENCE_SECONDS)
    try:
        return open_to_look(ledger).read(job_names() if kind == "jobs" else scope_names())
    except (DulyError, OSError):
        return []


if __name__ == "__main__":
    from duly.cli import main

    sys.exit(main(["completion", *sys.argv[1:]]))
