"""`duly due`: would `duly exec` work something now? 0 yes, 1 no, 255 anything else.

Made for systemd's ExecCondition=, which skips the unit on 1 to 254 and fails it on 255. What a configuration declares counts
here as it does for exec: a job that its first poke would register has something to work.
"""

from __future__ import annotations

import os

from duly.cli.arguments import add_ledger, add_quiet, add_scope
from duly.cli.ledgers import configured, is_postgres, named_ledger, open_to_look
from duly.errors import NoLedger, UnknownJob
from duly.evidence.words import ago
from duly.ledger.address import key_of
from duly.ledger.ask import now as ledger_now
from duly.ledger.peek import peek
from duly.ledger.register import Declaration, name_now, renamed
from duly.ledger.scopes import scopes_of
from duly.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "would exec work something now? 0 yes, 1 no, 255 anything else"
EXAMPLE = "ExecCondition=duly due close-day"

OWED, NOT_OWED, ANYTHING_ELSE = 0, 1, 255


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="a job that the ledger knows, or the configuration declares")
    add_quiet(parser, "say it with the exit code alone")
    add_scope(parser)
    add_ledger(parser)


def code_of(error: BaseException) -> int:
    """Anything but a yes or a no, errors of usage too."""
    return ANYTHING_ELSE


@record
class _Answer:
    owed: bool
    why: str


def run(args: argparse.Namespace) -> int:
    layers = configured()
    entry = None if layers is None else layers.job(args.job)
    declared = Declaration(args.job) if entry is None else entry.declaration
    try:
        answers = open_to_look(args.ledger).read(_answers(declared, args.scope))
    except NoLedger:
        if declared.schedule is None or not _exec_would_make(args.ledger):
            raise
        answers = [(args.job, _Answer(True, _FIRST))]
    if not args.quiet:
        for name, answer in answers:
            print(f"{name}: {answer.why}")
    return OWED if any(answer.owed for _, answer in answers) else NOT_OWED


def _exec_would_make(flag: str | None) -> bool:
    """Whether the ledger that is meant is a file that is not there yet."""
    named = named_ledger(flag)
    if is_postgres(named.url) or os.path.lexists(named.path):
        return False
    return named.unnamed or os.path.isdir(os.path.dirname(os.path.abspath(named.path)))


_FIRST = "the ledger does not know it yet; its first poke registers it, and works its newest due window"


async def _answers(declared: Declaration, scope: str | None) -> list[tuple[str, _Answer]]:
    """For each line of the job, as `exec` works each scope in turn, or for the one that was named."""
    job = declared.job
    scopes = [*(declared.scopes or await scopes_of(job))] if scope is None else [scope]
    if not scopes:
        if (now_named := await name_now(job)) is not None:
            raise renamed(job, now_named)
        if declared.schedule is not None:
            return [(job, _Answer(True, _FIRST))]
        raise UnknownJob(f"the ledger knows no job {job!r}; its first `duly exec` registers it and works it")
    return [(f"{one}/{job}" if one else job, await _answer(replace(declared, scope=one))) for one in scopes]


async def _answer(declared: Declaration) -> _Answer:
    seen = await peek(declared, as_of=None, tried=frozenset())
    if isinstance(seen, Exception):
        raise seen
    if seen.writes:
        return _Answer(True, "a poke would work it now")
    if seen.standing is not None:
        return _Answer(False, f"nothing to work: {await key_of(seen.standing.id)} is {seen.standing.state}")
    if seen.next_due is None:
        return _Answer(False, "nothing is owed")
    return _Answer(False, f"nothing is owed; next due {ago(seen.next_due, await ledger_now())}")
