"""`duly backfill`: past windows that a person asks for: `plan`, `start`, `pause`, `resume`, `cancel`, `show` and `list`."""

from __future__ import annotations

import os
import sys

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_quiet, add_scope, count_from_0, count_from_1
from duly.cli.bar import Bar, drawn
from duly.cli.change import add_reason, word_of
from duly.cli.ledgers import open_ledger, open_to_look
from duly.cli.output import Cell, document, note, show, table, when
from duly.cli.runs_argument import job_meant, known_job, scope_of
from duly.errors import Misuse
from duly.evidence.backfill import Progress, asked_for, listed, progress
from duly.evidence.backfill_words import (
    SIGNS,
    left_out,
    line_of,
    numbers,
    others,
    why_one_at_a_time,
    window_text,
    works,
)
from duly.evidence.documents.backfill import (
    BACKFILL,
    BACKFILLS,
    PLAN,
    STARTED,
    plan_as_json,
    progress_as_json,
    started_as_json,
)
from duly.ledger.backfill import (
    COMPLETED,
    MISSING,
    NEWEST,
    OLDEST,
    OPEN,
    Asked,
    Plan,
    Started,
    cancel_backfill,
    pause_backfill,
    plan,
    resume_backfill,
    start,
)
from duly.ledger.named import TO_FILL_IN
from duly.redaction import shown_url
from duly.store.tried import write_or_try

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from duly.cli.output import Json
    from duly.ledger.ask import Operation
    from duly.ledger.backfill import Backfill
    from duly.ledger.resolve import Word

HELP = "past windows on request: plan and start JOB RANGE; pause, resume, cancel, show ID; list"
EXAMPLE = (
    "duly backfill plan close-day 2026-01-01..2026-02-01\n"
    "  duly backfill start close-day 2026-01-01..2026-02-01 --concurrency 4 --reason 'the feed was wrong'\n"
    "  duly exec close-day --backfill -- ./close.sh --day {date}"
)

STOP_AFTER = 3  # a command that fails is not to fail for a year of windows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="verb", metavar="plan | start | pause | resume | cancel | show | list", required=True
    )
    planning = verbs.add_parser("plan", help="what would be done; changes nothing", description="what would be done")
    _add_asked(planning)
    starting = verbs.add_parser("start", help="owe the windows from now on", description="owe past windows from now on")
    _add_asked(starting)
    add_reason(starting)
    starting.add_argument(
        "--expect", type=count_from_0, metavar="N", help="how many windows you expect; with completed, required"
    )
    starting.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    for verb, means in _VERBS.items():
        changing = verbs.add_parser(verb, help=means, description=means)
        changing.add_argument("id", type=count_from_1, metavar="ID")
        add_reason(changing)
        changing.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    showing = verbs.add_parser("show", help="how far one is", description="how far a backfill is")
    showing.add_argument("id", type=count_from_1, metavar="ID")
    listing = verbs.add_parser("list", help="the backfills of the ledger, newest first", description="the backfills")
    listing.add_argument("job", metavar="JOB", nargs="?", help="only this job")
    listing.add_argument("-n", type=count_from_1, default=20, metavar="N", help="how many (default: 20)")
    for each in verbs.choices.values():
        if each is listing:
            add_scope(each)
        add_format(each)
        add_ledger(each)


def _add_asked(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument("range", metavar="RANGE", help="half-open: 2026-01-01..2026-02-01, 2026-01.., -30d..")
    parser.add_argument(
        "--what",
        default=MISSING,
        metavar="KINDS",
        help="missing (default), failed, skipped, completed, with commas; all: missing, failed and completed",
    )
    parser.add_argument("--order", choices=(OLDEST, NEWEST), default=OLDEST, help="which first (default: oldest)")
    parser.add_argument("--concurrency", type=count_from_1, default=1, metavar="N", help="how many at a time (1)")
    parser.add_argument(
        "--stop-after",
        type=count_from_0,
        default=STOP_AFTER,
        metavar="N",
        help=f"stop when so many of its windows need a person (default: {STOP_AFTER}; 0: never)",
    )
    add_quiet(parser, "do not say how far it is")
    add_scope(parser)


_VERBS = {
    "pause": "start nothing more of it until it is resumed; what is running goes on",
    "resume": "go on with one that is paused or has stopped",
    "cancel": "end it for good; what is running ends as it ends",
}
_CHANGES: dict[str, Callable[[int, Word], Operation[Backfill]]] = {
    "pause": pause_backfill,
    "resume": resume_backfill,
    "cancel": cancel_backfill,
}
_THEN = {
    "pause": "what is running goes on; nothing else of it is started",
    "resume": "`{works} -- COMMAND` works it, and so does every worker of the job",
    "cancel": "what is running ends as it ends; nothing else of it is started",
}


def run(args: argparse.Namespace) -> int:
    match args.verb:
        case "plan":
            return _plan(args)
        case "start":
            return _start(args)
        case "show":
            return _show(args)
        case "list":
            return _list(args)
    return _change(args)


# -- plan and start ------------------------------------------------------------------------------------------------------


async def _asked(args: argparse.Namespace) -> tuple[str, Asked]:
    """The scope and the range that were typed, as the job's schedule reads them."""
    args.job = await job_meant(args.job)
    scope = await scope_of(args.job, args.scope)
    return scope, await asked_for(
        args.job,
        scope,
        args.range,
        what=args.what,
        order=args.order,
        concurrency=args.concurrency,
        stop_after=args.stop_after,
    )


async def _planned(args: argparse.Namespace, tell: Callable[[int], object]) -> Plan:
    scope, asked = await _asked(args)
    return await plan(args.job, scope, asked, tell)


def _bar(args: argparse.Namespace) -> Bar:
    """A year of minutes takes a while to be looked at."""
    return Bar(args.job, "windows looked at", quiet=args.quiet)


def _plan(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    with _bar(args) as bar:
        planned, now = store.read(_planned(args, bar)), store.now()
    if args.format == "table":
        print(_plan_in_words(planned, args, now))
    else:
        print(document(PLAN, plan_as_json(planned)))
    if planned.to_do:
        note(f"nothing was changed; `{_start_line(args, planned)}` starts it")
    return codes.DONE


def _start_line(args: argparse.Namespace, planned: Plan) -> str:
    """The command that starts what was planned, as a person would type it."""
    from shlex import join

    given = ["--scope", args.scope] if args.scope else []
    for flag, default in (("what", MISSING), ("order", OLDEST), ("concurrency", 1), ("stop_after", STOP_AFTER)):
        if (value := getattr(args, flag)) != default:
            given += [f"--{flag.replace('_', '-')}", str(value)]
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    expect = ["--expect", str(planned.to_do)]
    return join(["duly", "backfill", "start", args.job, args.range, *given, *ledger, *expect, "--reason", TO_FILL_IN])


def _start(args: argparse.Namespace) -> int:
    word = word_of(args, "backfill start")
    store = open_ledger(args.ledger)

    async def started(tell: Callable[[int], object]) -> Started:
        scope, asked = await _asked(args)
        return await start(args.job, scope, asked, word, expect=args.expect, tell=tell)

    with _bar(args) as bar:
        try:
            found = write_or_try(store, started(bar), dry_run=args.dry_run)
        except Misuse as e:
            if str(e).startswith("expect:") and e.next_step is None:
                e.next_step = _start_line(args, store.read(_planned(args, bar)))
            raise
    if args.format == "table":
        print(_plan_in_words(found.plan, args, store.now()))
    else:
        print(document(STARTED, started_as_json(found, dry_run=args.dry_run)))
    if args.dry_run:
        note("nothing was changed: this was a dry run")
    else:
        note(f"backfill {found.backfill.id} is active; `duly exec {args.job} --backfill -- COMMAND` works it")
    return codes.DONE


def _plan_in_words(planned: Plan, args: argparse.Namespace, now: int) -> str:
    known, asked = planned.known, planned.asked
    if planned.first is None or planned.last is None:
        under = "" if planned.before is None else " under the schedule in force"
        return f"{line_of(known)}: no window of {asked.text} has come due{under}{left_out(planned)}"
    zone = known.version.zone if known.version is not None else "UTC"
    first, last = (window_text(known, occurrence.nominal) for occurrence in (planned.first, planned.last))
    bounds = " to ".join(when(at, zone, time=args.time, now=now) for at in (planned.first.start, planned.last.end))
    said = [f"{line_of(known)} [{zone}]  {first} to {last}  ({bounds})"]
    rows: list[list[str | Cell]] = [
        [f"  {number}", kind, "to do" if (MISSING if kind == OPEN else kind) in asked.what else ""]
        for kind, number in planned.counts.items()
        if number
    ]
    said.append(table(rows))
    at_a_time = "one at a time" if planned.at_a_time == 1 else f"{planned.at_a_time} at a time"
    stops = "" if asked.stop_after is None else f"; it stops when {asked.stop_after} of them need a person"
    said.append(f"{planned.to_do} to be worked, the {asked.direction} first, {at_a_time}{stops}{left_out(planned)}")
    if why := why_one_at_a_time(planned):
        said.append(why)
    if COMPLETED in asked.what and planned.counts[COMPLETED]:
        said.append(f"{planned.counts[COMPLETED]} are complete and are done again, as new revisions")
    return "\n".join(said)


# -- pause, resume, cancel -----------------------------------------------------------------------------------------------


def _change(args: argparse.Namespace) -> int:
    word = word_of(args, f"backfill {args.verb}")
    store = open_ledger(args.ledger)

    async def changed() -> Progress:
        await _CHANGES[args.verb](args.id, word)
        return await progress(args.id)

    found = write_or_try(store, changed(), dry_run=args.dry_run)
    if args.format == "table":
        print(_in_words(found, args))
    else:
        print(document(BACKFILL, {"dry_run": args.dry_run, **progress_as_json(found)}))
    note("nothing was changed: this was a dry run" if args.dry_run else _then(args.verb, found))
    return codes.DONE


def _then(verb: str, found: Progress) -> str:
    return _THEN[verb].format(works=works(found))


# -- show and list -------------------------------------------------------------------------------------------------------


def _show(args: argparse.Namespace) -> int:
    found = open_to_look(args.ledger).read(progress(args.id))
    if args.format == "table":
        print(_in_words(found, args))
    elif args.format == "json":
        print(document(BACKFILL, progress_as_json(found)))
    else:
        show(args, BACKFILL, {}, "backfills", [{"key": str(args.id), **progress_as_json(found)}], str)
    return codes.DONE


def _list(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    if args.job is not None:
        args.job = store.read(known_job(args.job, args.scope))
    found = store.read(listed(args.job, args.scope, args.n))
    records: list[dict[str, Json]] = [{"key": str(each.backfill.id), **progress_as_json(each)} for each in found]
    show(args, BACKFILLS, {}, "backfills", records, lambda: table([_row(each) for each in found]))
    return codes.DONE


def _state(found: Progress) -> Cell:
    glyph, word = SIGNS[found.backfill.state]
    return Cell(f"{glyph} {found.backfill.state}", word)


def _row(found: Progress) -> list[str | Cell]:
    mine = found.backfill
    return [str(mine.id), _state(found), line_of(found.known), mine.asked, mine.what, numbers(found), mine.reason]


def _in_words(found: Progress, args: argparse.Namespace) -> str:
    mine, now = found.backfill, found.as_of
    zone = found.known.version.zone if found.known.version is not None else "UTC"

    def at(instant: int) -> str:
        return when(instant, zone, time=args.time, now=now)

    rows: list[list[str | Cell]] = [
        [f"backfill {mine.id}", _state(found), line_of(found.known), mine.asked],
        ["asked for", f"{at(mine.asked_at)} by {mine.by}: {mine.reason}"],
        ["windows", f"{mine.what}, the {mine.direction} first, from {at(mine.since)} to {at(mine.until)}"],
        ["at a time", str(found.at_a_time)],
    ]
    if mine.stop_after is not None:
        rows.append(["stops after", f"{mine.stop_after} that need a person"])
    if (mine.said_by, mine.said) != (mine.by, mine.reason):
        rows.append([mine.state, f"by {mine.said_by}: {mine.said}"])
    if found.is_worked_off:
        rows.append(
            ["nothing left", f"`{works(found)} -- COMMAND` finds that and ends it; until then it holds the horizon"]
        )
    is_drawn = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return "\n".join([table(rows), f"{drawn(found.done, found.total)}{others(found)}" if is_drawn else numbers(found)])
