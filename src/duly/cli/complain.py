"""Complaints: an error in words on stderr, ending with one step to take. Shared by every command, `exec` too."""

from __future__ import annotations

import sys

from duly.cli.codes import code_of
from duly.errors import (
    Conflict,
    DulyError,
    KeyInvalid,
    LedgerTooNew,
    LedgerUnavailable,
    NoLedger,
    ScheduleChanged,
    UnknownJob,
    UnknownScope,
    WindowInvalid,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def complain(error: DulyError, typed: Sequence[str]) -> int:
    """Say on stderr what is wrong and what to type next; answer the exit code. `typed` is the command line, `duly` first."""
    say(f"duly: {error}\n  try: {in_same_ledger(error.next_step or next_step_of(error, typed), typed)}")
    return code_of(error)


def in_same_ledger(step: str, typed: Sequence[str]) -> str:
    """A next step with the `--ledger` that was typed: without it the step would be taken in another."""
    words = list(typed)
    words = words[: words.index("--")] if "--" in words else words
    flag = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == "--ledger"), None)
    flag = flag or next((word.partition("=")[2] for word in words if word.startswith("--ledger=")), None)
    if flag is None or not step.startswith("duly ") or "--ledger" in step or " -- " in step:
        return step
    from shlex import quote

    from duly.cli.ledgers import shown

    return f"{step} --ledger {quote(shown(flag))}"


def say(text: str) -> None:
    """Say something on stderr, if anybody listens."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def next_step_of(error: DulyError, typed: Sequence[str]) -> str:
    """One command that can be run, for an error that brought none of its own."""
    match error:
        case Conflict():
            from shlex import join

            return join(typed)
        case NoLedger():
            return "duly exec hello --every 1d -- echo 'the first run makes a ledger'"
        case UnknownJob() | UnknownScope():
            return "duly jobs list"
        case ScheduleChanged() if _job(typed):
            return f"duly jobs show {_job(typed)}"
        case WindowInvalid() | KeyInvalid() if _job(typed):
            return f"duly next {_job(typed)}"
        case LedgerTooNew():
            return "pip install --upgrade duly"
        case LedgerUnavailable():
            return _look_at_ledger(typed)
    command = typed[1] if len(typed) > 1 and not typed[1].startswith("-") else ""
    return f"duly {command} --help" if command else "duly --help"


def _job(typed: Sequence[str]) -> str:
    """The name of the job in a command line, where its third word is one."""
    word = typed[2] if len(typed) > 2 else ""
    return "" if word.startswith("-") or ":" in word or ".." in word else word


def _look_at_ledger(typed: Sequence[str]) -> str:
    """What shows whether the ledger that a command line means is there: a server is asked again, a file is looked at."""
    from shlex import quote

    from duly.cli.ledgers import is_postgres, path_of_ledger, url_of_ledger

    words = list(typed)
    flag = words[words.index("--ledger") + 1] if "--ledger" in words[:-1] else None
    return "duly status" if is_postgres(url_of_ledger(flag)) else f"ls -ld {quote(path_of_ledger(flag))}"
