"""`duly import`: schedules that run today, under duly: what would become of them, and with `--write`, done. One verb for each
source; what they print and write is the same (`import_words`).
"""

from __future__ import annotations

from duly.adopt.naming import LONGEST
from duly.cli import import_crontab, import_kubernetes, import_systemd
from duly.errors import Misuse, NameInvalid
from duly.schedule.keys import check_job_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "adopt what runs today: crontab, systemd timers, Kubernetes CronJobs"
EXAMPLE = import_crontab.EXAMPLE

_VERBS = {"crontab": import_crontab, "systemd": import_systemd, "kubernetes": import_kubernetes}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar=" | ".join(_VERBS), required=True)
    for verb in _VERBS.values():
        verb.add_arguments(verbs)


def run(args: argparse.Namespace) -> int:
    _check_prefix(args.prefix)
    code: int = _VERBS[args.verb].run(args)
    return code


def _check_prefix(prefix: str) -> None:
    """Raise `Misuse` for what no job's name may begin with, or what leaves no room for one."""
    try:
        check_job_name(f"{prefix}{'x' * LONGEST}-99")
    except NameInvalid as e:
        raise Misuse(f"--prefix: {e}", next_step="duly import --help") from e
