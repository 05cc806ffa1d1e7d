"""manage: `manage.py duly …` of a Django project.

`work` works what its own jobs owe, or the window that is named; every other word is a command of duly's, on the ledger in the
project's database.
"""

from __future__ import annotations

import os
import sys

from duly.cli import codes, main
from duly.cli.arguments import Parser, add_scope
from duly.cli.complain import complain, say
from duly.cli.ledgers import Meaning
from duly.errors import THE_JOBS, DulyError, Misuse, meaning_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from duly.work.answers import AlreadyCompleted, Busy, Completed, NotDue
    from duly.work.job import Job
    from duly.work.ledger import Ledger

HELP = "Works the project's jobs (work [JOB…]), or runs a command of duly's on the project's ledger (status, check, …)."
EXAMPLE = "python manage.py duly work close-day --window yesterday"


def run(words: list[str], *, alias: str, jobs: str | None) -> int:
    """Run `manage.py duly` with these words, on the ledger in a database of this alias; answer the exit code.

    `jobs` is where the project's jobs are, as `shop.jobs:ledger`.
    """
    if not words or words[0] in ("-h", "--help", "help"):
        print(f"{HELP}\n\nexample:\n  {EXAMPLE}\n")
        return main(words)
    if words[0] == "work":
        return _work(words[1:], jobs)
    from duly.work.typed import url_of_alias

    try:
        url = url_of_alias(alias)
    except DulyError as e:
        return complain(e, ["duly", *words])
    with Meaning(url, "DATABASES of the settings"):
        return main(words)


def _work(words: list[str], jobs: str | None) -> int:
    try:
        args = _parser().parse_args(words)
        return _work_all(args, args.jobs or jobs)
    except DulyError as e:
        return complain(e, ["duly", "work", *words])


def _parser() -> Parser:
    parser = Parser(prog="manage.py duly work", description=HELP, epilog=f"example:\n  {EXAMPLE}")
    parser.add_argument("job", metavar="JOB", nargs="*", help="jobs of the project's (default: all of them)")
    parser.add_argument("--window", metavar="W", help="work this window, as 2026-11-28, of one job")
    parser.add_argument(
        "--trigger", metavar="SOURCE", help="work the window that a scheduler elsewhere meant, of one job"
    )
    parser.add_argument(
        "--jobs", metavar="MODULE:LEDGER", help="where the jobs are (default: DULY_JOBS of the settings)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is done also when all is well")
    add_scope(parser)
    return parser


def _work_all(args: argparse.Namespace, where: str | None) -> int:
    chosen = _chosen(args.job, _ledger(where))
    if args.window is None and args.trigger is None:
        return _first_wrong([_catch_up(job, args) for job in chosen])
    if len(args.job) != 1 or (args.window and args.trigger):
        raise Misuse(
            "work: --window and --trigger each name a run of one job; name that, and one of the two", next_step=EXAMPLE
        )
    return _work_one(chosen[0], args)


def _ledger(where: str | None) -> Ledger[Any]:
    from duly.work.daemon.modules import ledger_named
    from duly.work.ledger import Ledger

    if not where:
        raise Misuse(
            "work: nothing says where the project's jobs are; add DULY_JOBS = 'shop.jobs:ledger' to the settings",
            next_step="python manage.py duly work --jobs shop.jobs:ledger",
        )
    ledger = ledger_named(where)
    if not isinstance(ledger, Ledger):
        raise Misuse(f"{where}: it is a ledger of duly.aio; Django's transactions do not work in an event loop")
    return ledger


def _chosen(names: list[str], ledger: Ledger[Any]) -> list[Job[Any]]:
    """The jobs of these names, or all."""
    known = ledger.jobs
    for name in names:
        if name not in known:
            raise Misuse(f"work: the project declares no job {name!r}, but {', '.join(known) or 'none at all'}")
    return [known[name] for name in names or known]


def _catch_up(job: Job[Any], args: argparse.Namespace) -> int:
    """Work what a job owes; the code of the first thing that went wrong."""
    try:
        for done in job.catch_up(scope=args.scope):
            _tell(args, f"{done.key}  completed")
    except ExceptionGroup as failures:
        return _first_wrong([_failed(failure, job) for failure in failures.exceptions])
    return codes.DONE


def _first_wrong(found: list[int]) -> int:
    """The command's code, of several: the first that is not 0."""
    return next((code for code in found if code), codes.DONE)


def _work_one(job: Job[Any], args: argparse.Namespace) -> int:
    from duly.work.answers import AlreadyCompleted, Completed

    try:
        answer = _answer(job, args)
    except Exception as e:
        return _failed(e, job)
    if isinstance(answer, (Completed, AlreadyCompleted)):
        _tell(args, f"{answer.key}  {'completed' if answer else 'was complete'}")
        return codes.DONE
    say(f"duly: {answer}")
    return codes.TRY_AGAIN


def _answer(job: Job[Any], args: argparse.Namespace) -> Completed | AlreadyCompleted | Busy | NotDue:
    if args.trigger is None:
        return job.run(args.window, scope=args.scope or "", trigger="manage.py")
    from duly.trigger import read
    from duly.trigger.fire import fire

    return fire(job, read(args.trigger, os.environ), scope=args.scope or "")


def _failed(error: Exception, job: Job[Any]) -> int:
    """Say what went wrong; its code, which is 1 for what the job itself has raised."""
    if isinstance(error, DulyError) and meaning_of(error) != THE_JOBS:
        return complain(error, ["duly", "explain", job.name])
    from duly.redaction import traceback_of

    say(traceback_of(error))
    return 1


def _tell(args: argparse.Namespace, text: str) -> None:
    """On a terminal, or where it is asked for: cron mails on output."""
    if args.verbose or sys.stderr.isatty():
        say(f"duly: {text}")
