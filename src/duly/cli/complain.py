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
    Misuse,
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


class Unsaid(Misuse):
    """What only a person can say was left out, or stands as a next step has it: type the same line again, with that in it."""

    def __init__(self, message: str, *flags: tuple[str, str]) -> None:
        super().__init__(message)
        self.flags = flags


def complain(error: DulyError, typed: Sequence[str]) -> int:
    """Say on stderr what is wrong and what to type next; answer the exit code. `typed` is the command line, `duly` first."""
    told, step = said_of(error, typed)
    say(f"duly: {told}\n  try: {step}")
    return code_of(error)


def said_of(error: DulyError, typed: Sequence[str]) -> tuple[str, str]:
    """What is wrong, and what to type next."""
    step = in_same_ledger(error.next_step or next_step_of(error, typed), typed)
    return _with_source(error, typed), step


def _with_source(error: DulyError, typed: Sequence[str]) -> str:
    """What is wrong with a ledger, with who named it, where it was not the command line."""
    if not isinstance(error, (LedgerUnavailable, WrongLedger)):
        return str(error)
    from duly.cli.ledgers import named_ledger

    try:
        named = named_ledger(_typed_value(typed, "--ledger"))
    except DulyError:  # it was named when it was opened, and is not any more
        return str(error)
    if named.source or not isinstance(error, NoLedger):
        return named.said_of(str(error))
    by = "nobody: neither --ledger nor $DULY_LEDGER nor a configuration names one" if named.unnamed else "--ledger"
    return f"{error} (named by {by})"


def in_same_ledger(step: str, typed: Sequence[str]) -> str:
    """A next step with the `--ledger` and `--config` that were typed: without them the step would be taken in another."""
    if not step.startswith("duly ") or " -- " in step:
        return step
    from shlex import quote

    from duly.redaction import shown_url

    ledger, config = _typed_value(typed, "--ledger"), _typed_value(typed, "--config")
    if config is not None and "--config" not in step and not step.startswith("duly jobs check /"):
        step = f"{step} --config {quote(config)}"
    return step if ledger is None or "--ledger" in step else f"{step} --ledger {quote(shown_url(ledger))}"


def _typed_value(typed: Sequence[str], flag: str) -> str | None:
    """The value of a flag in a command line, where it was typed."""
    words = list(typed)
    words = words[: words.index("--")] if "--" in words else words
    found = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == flag), None)
    return found or next((word.partition("=")[2] for word in words if word.startswith(f"{flag}=")), None)


def _without(typed: Sequence[str], flags: Sequence[str]) -> list[str]:
    """A command line without some flags and what they were given."""
    words = list(typed)
    for flag in flags:
        while flag in words:
            place = words.index(flag)
            del words[place : place + 2]
        words = [word for word in words if not word.startswith(f"{flag}=")]
    return words


def say(text: str) -> None:
    """Say something on stderr, if anybody listens."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def next_step_of(error: DulyError, typed: Sequence[str]) -> str:
    """One command that can be run, for an error that brought none of its own."""
    match error:
        case Unsaid():
            from duly.work.schedule_flags import line_with

            return line_with(
                _without(typed, [flag for flag, _ in error.flags]), *(word for each in error.flags for word in each)
            )
        case Conflict():
            from duly.work.schedule_flags import line_with

            return line_with(typed)
        case NoLedger():
            return _look_for_ledger(typed)
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
    from duly.cli.ledgers import is_postgres, path_of_ledger, url_of_ledger

    flag = _typed_value(typed, "--ledger")
    if not is_postgres(url_of_ledger(flag)):
        return look_at(path_of_ledger(flag))
    if typed[1:2] != ["db"]:
        return "duly status"
    from duly.work.schedule_flags import line_with

    return line_with(typed)  # it is to make or mend what `status` would look at


def _look_for_ledger(typed: Sequence[str]) -> str:
    """Where no ledger was found: what else is there, or, where nobody named one, how to. Nothing is made by the way."""
    import os
    from shlex import quote

    from duly.cli.ledgers import named_ledger
    from duly.ledger.named import TO_FILL_IN

    named = named_ledger(_typed_value(typed, "--ledger"))
    if named.unnamed:
        return f"export DULY_LEDGER='{TO_FILL_IN}'"
    return f"ls -l {quote(_that_is_there(os.path.dirname(named.path)))}"


def look_at(path: str) -> str:
    """What shows a file, or, where it is not there, the next folder above it that is."""
    from shlex import quote

    return f"ls -ld {quote(_that_is_there(path))}"


def _that_is_there(path: str) -> str:
    import os

    while path and not os.path.lexists(path):
        path = os.path.dirname(path)
    return path or "."
