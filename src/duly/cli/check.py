"""`duly check`: did the period complete, or each of a range? 0 yes, 1 no, 2 cannot tell, 3 not yet; or as Nagios has it."""

from __future__ import annotations

from collections import Counter

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_quiet, add_scope
from duly.cli.ledgers import open_to_look
from duly.cli.output import (
    Cell,
    as_json,
    glyph_and_word,
    iso,
    line_complete_as_json,
    line_name,
    note,
    show,
    table,
    typed,
    window_name,
)
from duly.cli.runs_argument import addressed, echo, known_job, run_argument
from duly.errors import BelowHorizon, DulyError, LedgerUnavailable, Misuse, NoSchedule, ScheduleError, WrongLedger
from duly.evidence.check import (
    CANNOT_TELL,
    COMPLETE,
    IN_WORDS,
    NOT_COMPLETE,
    NOT_YET,
    Checked,
    answer_for,
    check_range,
    has_begun,
    newest_due,
    worst,
)
from duly.evidence.complete_through import LineComplete, complete_lines
from duly.evidence.fold import folded, range_name, reasons
from duly.evidence.verdict import Window, grace_text, lines, window_of
from duly.evidence.words import ago, printable
from duly.ledger.address import Addressed
from duly.ledger.ask import now as ledger_now
from duly.records import record
from duly.redaction import shown_url
from duly.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger

HELP = "did the period complete? 0 yes, 1 no, 2 cannot tell, 3 not yet"
EXAMPLE = (
    "duly check close-day                           the newest period that has come due\n"
    "  duly check close-day 2026-11-28\n"
    "  duly check close-day 2026-11-01..2026-12-01    each of a range; the worst answers\n"
    "  duly check close-day -7d.. --nagios            a line for Nagios, Icinga and the like, and their exit codes"
)

# What a plugin answers (Monitoring Plugins, "Plugin return codes"). WARNING, 1, is not used: how late is too late a job's
# grace says, and what is not complete after that is wanted now.
_NAGIOS = {COMPLETE: ("OK", 0), NOT_YET: ("OK", 0), NOT_COMPLETE: ("CRITICAL", 2), CANNOT_TELL: ("UNKNOWN", 3)}
_TOLD_AT_MOST = 3  # periods that a plugin's line names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job, or the key of one run")
    parser.add_argument(
        "window",
        metavar="WINDOW|RANGE",
        nargs="?",
        help="2026-11-28, yesterday …; half-open 2026-11-01..2026-12-01, -7d..; else the newest that is due",
    )
    parser.add_argument("--strict", action="store_true", help="a skipped period is not complete")
    parser.add_argument(
        "--nagios",
        action="store_true",
        help="one line of a plugin; 0 complete or not yet, 2 not complete, 3 cannot tell",
    )
    parser.add_argument("--all", action="store_true", help="every period of a range, a line each, complete ones too")
    add_quiet(parser, "say it with the exit code alone")
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    if not args.nagios:
        seen = _see(args)
        if not args.quiet:
            _print(seen, args)
        return seen.answer
    if args.format != "table" or args.quiet:
        raise Misuse(
            "check: --nagios prints a line of its own; leave --format, --json and -q out", next_step=_line(args)
        )
    try:
        seen = _see(args)
    except (DulyError, OSError) as e:
        print(f"DULY UNKNOWN - {_plain(str(e))}")
        return _NAGIOS[CANNOT_TELL][1]
    word, code = _NAGIOS[seen.answer]
    print(f"DULY {word} - {_plain(_told(seen))} | {_measured(seen)}")
    return code


def code_of(error: BaseException) -> int:
    """2 where the ledger or the schedule cannot be read: a monitor must not take that for an answer."""
    unreadable = (LedgerUnavailable, WrongLedger, NoSchedule, ScheduleError, BelowHorizon)
    if isinstance(error, DulyError) and not isinstance(error, unreadable):
        return codes.code_of(error)
    return CANNOT_TELL


def _line(args: argparse.Namespace) -> str:
    from shlex import join

    scope = ["--scope", args.scope] if args.scope else []
    return join(["duly", "check", *filter(None, [args.job, args.window]), *scope, "--nagios"])


# -- what is asked ------------------------------------------------------------------------------------------------------


@record
class _Seen:
    """What was asked, of which lines, and how far each of these is complete."""

    asked: str
    as_of: int
    checked: list[Checked]
    answers: list[int]  # of each line
    complete: list[LineComplete]
    is_range: bool
    strict: bool

    def code(self, window: Window) -> int:
        """The answer for one window."""
        return answer_for(window, strict=self.strict)

    def counted(self, windows: list[Window]) -> dict[str, int]:
        """How many windows have each answer, by its name."""
        codes = Counter(self.code(window) for window in windows)
        return {word.replace(" ", "_"): codes[code] for code, word in IN_WORDS.items()}

    @property
    def answer(self) -> int:
        return worst(self.answers or [CANNOT_TELL])

    @property
    def windows(self) -> list[Window]:
        return [window for each in self.checked for window in each.windows]


def _see(args: argparse.Namespace) -> _Seen:
    """Raises as those who read do."""
    store = open_to_look(args.ledger)
    is_range = args.window is not None and ".." in args.window
    if is_range:
        args.job = store.read(known_job(args.job, args.scope))
        checked = store.read(check_range(args.job, args.scope, args.window))
    elif args.window is not None or ":" in args.job:
        found, window = store.read(_named(args))
        if not (args.nagios or args.quiet):
            echo(found)
        checked = [Checked(found.known, [window])]
    else:
        args.job = store.read(known_job(args.job, args.scope))
        checked = store.read(_newest(args))
    answers = [worst(each.answers(strict=args.strict)) for each in checked]
    return _Seen(_asked(args), store.now(), checked, answers, _complete(store, checked, args), is_range, args.strict)


def _asked(args: argparse.Namespace) -> str:
    name = f"{args.scope}/{args.job}" if args.scope else str(args.job)
    return f"{name} {args.window}" if args.window else name


def _complete(store: Store | RestingLedger, checked: list[Checked], args: argparse.Namespace) -> list[LineComplete]:
    """How far the lines are complete, where that is shown: it takes some looks."""
    if not checked or not (args.nagios or args.format == "json"):
        return []
    mine = {each.known.line.id for each in checked if each.known.line is not None}
    found = store.read(complete_lines(checked[0].known.job.name))
    return [one for one in found if one.known.line is not None and one.known.line.id in mine]


async def _named(args: argparse.Namespace) -> tuple[Addressed, Window]:
    found = await addressed(run_argument([args.job, args.window], "check"), args.scope)
    return found, await window_of(found, await ledger_now())


async def _newest(args: argparse.Namespace) -> list[Checked]:
    """Of each line of the job, or of the one scope that was named.

    A tenant of next month, and one that left before anything was owed, say nothing of whether the others are complete.
    """
    found = await lines(args.job, args.scope)
    newest = [await newest_due(known) for known in found]
    instant = await ledger_now()
    both = list(zip(found, newest, strict=True))
    told = [(known, window) for known, window in both if has_begun(known, window, instant)] or both
    return [Checked(known, [] if window is None else [window]) for known, window in told]


# -- for people and programs --------------------------------------------------------------------------------------------


def _print(seen: _Seen, args: argparse.Namespace) -> None:
    facts: dict[str, Json] = {"as_of": iso(seen.as_of), "answer": IN_WORDS[seen.answer], "code": seen.answer}
    if args.format == "json":
        facts["lines"] = _lines_as_json(seen)
    show(args, "duly.check.v1", facts, "periods", [as_json(w) for w in seen.windows], lambda: _in_words(seen, args))
    if any(each.more for each in seen.checked):
        looked = max(len(each.windows) for each in seen.checked)
        note(
            f"only the first {looked} periods of a line were looked at, and of the others nothing is said; ask for fewer"
        )


def _lines_as_json(seen: _Seen) -> list[Json]:
    """Each line with its answer, and *complete through* beside *last completed*."""
    complete = {one.known.line.id: one for one in seen.complete if one.known.line is not None}
    told: list[Json] = []
    for checked, answer in zip(seen.checked, seen.answers, strict=True):
        assert checked.known.line is not None
        fields = line_complete_as_json(complete[checked.known.line.id])
        counts: dict[str, Json] = {**seen.counted(checked.windows)}
        told.append({**fields, "answer": IN_WORDS[answer], "code": answer, "counts": counts})
    return told


def _in_words(seen: _Seen, args: argparse.Namespace) -> str:
    if not seen.windows:
        return f"{args.job}: no period of it lies there" if seen.is_range else f"{args.job}: nothing has ever come due"
    windows = seen.windows
    if seen.is_range and not args.all:
        windows = [window for window in windows if seen.code(window) != COMPLETE]
    rows = [
        _row(group[0], seen, args) if len(group) == 1 else _folded_row(group, args)
        for group in folded(windows, unfold=args.all or not seen.is_range)
    ]
    summed = [_summed_row(each, answer, seen) for each, answer in zip(seen.checked, seen.answers, strict=True)]
    return "\n".join(part for part in (table(rows), table(summed) if seen.is_range else "") if part)


def _row(window: Window, seen: _Seen, args: argparse.Namespace) -> list[str | Cell]:
    said = window.verdict
    due = "" if window.due is None else f"due {ago(window.due, seen.as_of)}"
    late = f", late (grace {grace_text(window)})" if said.late and said.word != "complete" else ""
    step = typed(said.verb, window, args.ledger) if said.verb and seen.code(window) == NOT_COMPLETE else ""
    noted = "; ".join(part for part in (f"{due}{late}", said.note) if part)
    return [glyph_and_word(said.word), line_name(window), window_name(window), noted, step]


def _folded_row(group: list[Window], args: argparse.Namespace) -> list[str | Cell]:
    from shlex import join

    first = group[0]
    scope = ["--scope", first.key.scope] if first.key.scope else []
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    step = join(["duly", "check", first.key.job, args.window, *scope, "--all", *ledger])
    noted = f"{len(group)} of them: {reasons(group)}".removesuffix(": ")
    return [glyph_and_word(first.verdict.word), line_name(first), range_name(group), noted, step]


def _summed_row(checked: Checked, answer: int, seen: _Seen) -> list[str | Cell]:
    """As `close-day: 28 of 30 complete, 2 not complete   not complete`."""
    line = checked.known.line
    name = f"{line.scope}/{checked.known.job.name}" if line is not None and line.scope else checked.known.job.name
    counted = seen.counted(checked.windows)
    others = [f"{number} {word.replace('_', ' ')}" for word, number in counted.items() if number and word != "complete"]
    complete = f"{counted['complete']} of {len(checked.windows)}{'+' if checked.more else ''} complete"
    return [f"{name}: {', '.join([complete, *others])}", IN_WORDS[answer]]


# -- for Nagios ---------------------------------------------------------------------------------------------------------


def _told(seen: _Seen) -> str:
    """What a plugin says: of one period how it stands, of many how many, and the worst of them by name."""
    if not seen.windows:
        return (
            f"{seen.asked}: no period of it lies there" if seen.is_range else f"{seen.asked}: nothing has ever come due"
        )
    if len(seen.windows) == 1:
        return _period(seen.windows[0], seen.as_of)
    of_answer = [window for window in seen.windows if seen.code(window) == seen.answer]
    counted = Counter(window.verdict.word for window in seen.windows)
    many = ", ".join(f"{number} {word}" for word, number in counted.most_common())
    if seen.answer == COMPLETE or not of_answer:
        return f"{seen.asked}: {many}"
    named = [_period(window, seen.as_of) for window in of_answer[:_TOLD_AT_MOST]]
    named += ["…"] if len(of_answer) > _TOLD_AT_MOST else []
    return f"{seen.asked}: {many}: {'; '.join(named)}"


def _period(window: Window, now: int) -> str:
    said = window.verdict
    due = "" if window.due is None else f", due {ago(window.due, now)}"
    late = ", late" if said.late and said.word not in ("complete", "late") else ""
    return f"{line_name(window)} {window_name(window)} {said.word}{late}{due}{f' ({said.note})' if said.note else ''}"


def _measured(seen: _Seen) -> str:
    """Performance data: how many periods have each answer, and how far behind the line is that is furthest behind."""
    said = [f"{name}={number};;;0;{len(seen.windows)}" for name, number in seen.counted(seen.windows).items()]
    through = [one.completeness.through for one in seen.complete if one.completeness.through is not None]
    if through:
        said.append(f"lag={max(0, seen.as_of - min(through)) // SECOND}s;;;0")
    return " ".join(said)


def _plain(text: str) -> str:
    """A text that may stand before the bar of a plugin's line."""
    return printable(" ".join(text.split())).replace("|", "/")
