"""`duly check`: did the period complete? 0 yes, 1 no, 2 cannot tell, 3 not yet."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope
from duly.cli.ledgers import open_to_look
from duly.cli.output import Cell, as_json, glyph_and_word, iso, line_name, show, table, typed, window_name
from duly.cli.runs_argument import addressed, echo, known_job, run_argument
from duly.errors import BelowHorizon, DulyError, LedgerUnavailable, NoSchedule, ScheduleError, WrongLedger
from duly.evidence.check import CANNOT_TELL, IN_WORDS, NOT_COMPLETE, answer_of, has_begun, newest_due, worst
from duly.evidence.verdict import Window, grace_text, lines, window_of
from duly.evidence.words import ago
from duly.ledger.address import Addressed
from duly.ledger.ask import now as ledger_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json

HELP = "did the period complete? 0 yes, 1 no, 2 cannot tell, 3 not yet"
EXAMPLE = "duly check close-day                 the newest period that has come due\n  duly check close-day 2026-11-28"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job, or the key of one run")
    parser.add_argument(
        "window", metavar="WINDOW", nargs="?", help="2026-11-28, yesterday …; else the newest that is due"
    )
    parser.add_argument("--strict", action="store_true", help="a skipped period is not complete")
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    if args.window is not None or ":" in args.job:
        found, window = store.read(_named(args))
        echo(found)
        windows: list[Window | None] = [window]
    else:
        args.job = store.read(known_job(args.job, args.scope))
        windows = store.read(_newest(args))
    answers = [CANNOT_TELL if w is None else answer_of(w.verdict, strict=args.strict) for w in windows]
    answer = worst(answers)
    known = [window for window in windows if window is not None]
    facts: dict[str, Json] = {"as_of": iso(store.now()), "answer": IN_WORDS[answer], "code": answer}
    records = [as_json(window) for window in known]
    show(args, "duly.check.v1", facts, "periods", records, lambda: _in_words(known, answers, args, store.now()))
    return answer


def code_of(error: BaseException) -> int:
    """2 where the ledger or the schedule cannot be read: a monitor must not take that for an answer."""
    unreadable = (LedgerUnavailable, WrongLedger, NoSchedule, ScheduleError, BelowHorizon)
    if isinstance(error, DulyError) and not isinstance(error, unreadable):
        return codes.code_of(error)
    return CANNOT_TELL


async def _named(args: argparse.Namespace) -> tuple[Addressed, Window]:
    found = await addressed(run_argument([args.job, args.window], "check"), args.scope)
    return found, await window_of(found, await ledger_now())


async def _newest(args: argparse.Namespace) -> list[Window | None]:
    """Of each line of the job, or of the one scope that was named.

    A tenant of next month, and one that left before anything was owed, say nothing of whether the others are complete.
    """
    found = await lines(args.job, args.scope)
    newest = [await newest_due(known) for known in found]
    instant = await ledger_now()
    told = [window for known, window in zip(found, newest, strict=True) if has_begun(known, window, instant)]
    return told or newest


def _in_words(windows: list[Window], answers: list[int], args: argparse.Namespace, now: int) -> str:
    if not windows:
        return f"{args.job}: nothing has ever come due"
    return table([_row(window, answer, args, now) for window, answer in zip(windows, answers, strict=True)])


def _row(window: Window, answer: int, args: argparse.Namespace, now: int) -> list[str | Cell]:
    said = window.verdict
    due = "" if window.due is None else f"due {ago(window.due, now)}"
    late = f", late (grace {grace_text(window)})" if said.late and said.word != "complete" else ""
    step = typed(said.verb, window, args.ledger) if said.verb and answer == NOT_COMPLETE else ""
    note = "; ".join(part for part in (f"{due}{late}", said.note) if part)
    return [glyph_and_word(said.word), line_name(window), window_name(window), note, step]
