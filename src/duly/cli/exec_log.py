"""What exec says on stderr as JSON or logfmt. Off the path of a call that asks for neither."""

from __future__ import annotations

from time import time

from duly.cli.complain import say
from duly.work.told import NOTE, account_of, fields_of, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.work.poke import Report


def attempt(form: str, report: Report) -> None:
    """Say how an attempt ended."""
    told = account_of(report)
    say(line(form, "info" if told.is_good else "warning", time(), fields_of(told)))


def note(form: str, message: str, *, level: str = "info", run: str | None = None, next_step: str | None = None) -> None:
    """Say something else, with the run that it is about, and the line to type, where there are such."""
    say(line(form, level, time(), {"event": NOTE, "run": run, "message": message, "next_step": next_step}))
