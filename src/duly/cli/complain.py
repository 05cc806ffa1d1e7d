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
    WrongLedger,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def complain(error: DulyError, typed: Sequence[str]) -> int:
    """Say on stderr what is wrong and what to type next; answer the exit code. `typed` is the command line, `duly` first."""
    told = _with_source(error, typed)
    say(f"duly: {told}\n  try: {in_same_ledger(error.next_step or next_step_of(error, typed), typed)}")
    return code_of(error)


def _with_source(error: DulyError, typed: Sequence[str]) -> str:
    """What is wrong with a ledger, with who named it, where it was not the command line."""
    if not isinstance(error, (LedgerUnavailable, WrongLedger)):
        return str(error)
    from duly.cli.ledgers import named_ledger

    try:
        return named_ledger(_typed_value(typed, "--ledger")).said_of(str(error))
    except DulyError:  # it was named when it was opened, and is not any more
        return str(error)


def in_same_ledger(step: str, typed: Sequence[str]) -> str:
    """A next step with the `--ledger` and `--config` that were typed: without them the step would be taken in another."""
    if not step.startswith("duly ") or " -- " in step:
        return step
    from shlex import quote

    from duly.cli.ledgers import shown

    ledger, config = _typed_value(typed, "--ledger"), _typed_value(typed, "--config")
    if config is not None and "--config" not in step and not step.startswith("duly jobs check /"):
        step = f"{step} --config {quote(config)}"
    return step if ledger is None or "--ledger" in step else f"{step} --ledger {quote(shown(ledger))}"


def _typed_value(typed: Sequence[str], flag: str) -> str | None:
    """The value of a flag in a command line, where it was typed."""
    words = list(typed)
    words = words[: words.index("--")] if "--" in words else words
    found = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == flag), None)
    return found or next((word.partition("=")[2] for word in words if word.startswith(f"{flag}=")), None)


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


# Commands whose next word is a verb; the job comes after it, if one does. `runs` has one verb, and may have none.
_WITH_VERBS = {"backfill": None, "db": None, "jobs": None, "runs": "show"}


def _job(typed: Sequence[str]) -> str:
    """The name of the job in a command line, where the word at its place is one."""
    words = list(typed[1:])
    if words[:1] and words[0] in _WITH_VERBS and _WITH_VERBS[words[0]] in (None, *words[1:2]):
        del words[1:2]
    word = words[1] if len(words) > 1 else ""
    return "" if word.startswith("-") or ":" in word or ".." in word else word


def _look_at_ledger(typed: Sequence[str]) -> str:
    """What shows whether the ledger that a command line means is there: a server is asked again, a file is looked at."""
    from shlex import quote

    from duly.cli.ledgers import is_postgres, path_of_ledger, url_of_ledger

    flag = _typed_value(typed, "--ledger")
    return "duly status" if is_postgres(url_of_ledger(flag)) else f"ls -ld {quote(path_of_ledger(flag))}"
