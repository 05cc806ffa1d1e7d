"""`duly jobs scopes`: the roster of a job. `list` it, `add` scopes to it, `retire` scopes from it."""

from __future__ import annotations

import sys

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger
from duly.cli.change import add_reason, reason_given
from duly.cli.ledgers import open_ledger, open_to_look
from duly.cli.output import Cell, iso, note, show, table, when
from duly.cli.runs_argument import job_meant
from duly.errors import Misuse, NotAllowed
from duly.evidence.verdict import UNDECLARED, Window, line_zone, window_of_row
from duly.ledger.ask import now as ledger_now
from duly.ledger.records import Line
from duly.ledger.resolve import Word
from duly.ledger.roster import KEPT, RETIRED, Change, add_scopes, lines_of, retire_scopes
from duly.records import record
from duly.store.tried import write_or_try
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.ledger.ask import Operation

EXAMPLE = (
    "duly jobs scopes add bill acme globex --from 2026-11-01 --reason 'contract of 28 October'\n"
    "  duly jobs scopes retire bill --file left.txt --expect 12 --reason 'they left' --dry-run"
)


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`list`, `add` and `retire`, as verbs of `duly jobs scopes`."""
    scopes = verbs.add_parser(
        "scopes",
        help="the roster: list, add or retire scopes",
        description="The scopes of a job: a scope on the roster that never ran is missing, not invisible.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    does = scopes.add_subparsers(dest="does", metavar="list | add | retire", required=True)
    listing = does.add_parser("list", help="every scope, from when and until when")
    listing.add_argument("job", metavar="JOB")
    adding = does.add_parser(
        "add",
        help="put scopes on the roster, or back on it",
        description="Put scopes on the roster. A retired one is resumed: what came due meanwhile is skipped.",
    )
    adding.add_argument("--from", dest="since", metavar="W|INSTANT", help="the first window that is owed (newest due)")
    adding.add_argument("--until", metavar="W|INSTANT", help="the first window that is not owed any more")
    retiring = does.add_parser(
        "retire",
        help="let nothing more come due of scopes",
        description="Let nothing come due of scopes from now on. Their record stays, and what is owed of them.",
    )
    retiring.add_argument("--at", metavar="W|INSTANT", help="the first window that is not owed any more (now)")
    add_skip_owed(retiring)
    for each in (adding, retiring):
        each.add_argument("job", metavar="JOB")
        each.add_argument("scopes", metavar="SCOPE", nargs="*")
        each.add_argument("--file", metavar="PATH", help="more scopes, one a line; - reads standard input")
        each.add_argument("--expect", type=int, metavar="N", help="change nothing unless N scopes would change")
        add_reason(each)
        each.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    for each in (listing, adding, retiring):
        add_format(each)
        add_ledger(each)


def add_skip_owed(parser: argparse.ArgumentParser) -> None:
    """`--skip-owed`."""
    parser.add_argument("--skip-owed", action="store_true", help="skip what is owed and not being worked, too")


def run(args: argparse.Namespace) -> int:
    return _list(args) if args.does == "list" else _change(args)


# -- list ---------------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    store = open_to_look(args.ledger)
    args.job = store.read(job_meant(args.job))
    lines, zone = store.read(lines_of(args.job)), store.read(line_zone(args.job))
    now = store.now()
    records = [_as_json(args.job, line, now) for line in lines]
    show(args, "duly.scopes.v1", {"job": args.job}, "scopes", records, lambda: _in_words(lines, zone, args, now))
    return codes.DONE


def _in_words(lines: list[Line], zone: str, args: argparse.Namespace, now: int) -> str:
    return table([[line.scope or "(none)", *_facts(line, zone, args, now)] for line in lines])


def _facts(line: Line, zone: str, args: argparse.Namespace, now: int) -> list[str | Cell]:
    """From when, until when, and what is odd about it."""

    def at(instant: int) -> str:
        return when(instant, zone, time=args.time, now=now)

    since = "" if line.starts is None else f"from {at(line.starts)}"
    until = "" if line.ends is None else f"{'retired' if line.ends <= now else 'until'} {at(line.ends)}"
    return [since, until, UNDECLARED if line.undeclared_at is not None else ""]


def _as_json(job: str, line: Line, now: int) -> dict[str, Json]:
    return {
        "key": line.scope,
        "job": job,
        "scope": line.scope,
        "from": iso(line.starts),
        "until": iso(line.ends),
        "retired": line.ends is not None and line.ends <= now,
        "next_due": iso(line.next_due),
        "declared": line.undeclared_at is None,
    }


# -- add and retire -----------------------------------------------------------------------------------------------------


@record
class Outcome:
    """What became of a scope, with the windows that its retirement left: those that stay owed, and those skipped."""

    change: Change
    owed: list[Window]
    skipped: list[Window]


def _change(args: argparse.Namespace) -> int:
    word = Word(actor(), reason_given(args, f"jobs scopes {args.does} {args.job}"))
    scopes = _scopes_given(args)
    store = open_ledger(args.ledger)
    outcomes = write_or_try(store, _changed(args, scopes, word), dry_run=args.dry_run)
    zone, now = store.read(line_zone(args.job)), store.now()
    records = [_outcome_as_json(args.job, outcome, now) for outcome in outcomes]
    changed = sum(outcome.change.what != KEPT for outcome in outcomes)
    facts: dict[str, Json] = {"job": args.job, "dry_run": args.dry_run, "changed": changed}
    show(args, "duly.scopes.v1", facts, "scopes", records, lambda: _outcomes_in_words(outcomes, zone, args, now))
    if changed:
        note("nothing was changed: this was a dry run" if args.dry_run else _then(args, outcomes))
    return codes.DONE


def _scopes_given(args: argparse.Namespace) -> list[str]:
    """The scopes that were typed, and those of the file. Raises `Misuse` where there are none."""
    found = list(args.scopes)
    if args.file is not None:
        found += _lines_of_file(args.file)
    if not found:
        raise Misuse(
            f"jobs scopes {args.does}: which scopes? Name them, or give a file with one a line",
            next_step=f"duly jobs scopes list {args.job}",
        )
    return found


def _lines_of_file(path: str) -> list[str]:
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as f:
                text = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise Misuse(f"--file: {path} cannot be read: {e}") from e
    return [line.strip() for line in text.splitlines() if line.strip()]


async def _changed(args: argparse.Namespace, scopes: list[str], word: Word) -> list[Outcome]:
    operation: Operation[list[Change]]
    if args.does == "add":
        operation = add_scopes(args.job, scopes, word, since=args.since, until=args.until)
    else:
        operation = retire_scopes(args.job, scopes, word, at=args.at, skip_owed=args.skip_owed)
    changes = await operation
    changing = sum(change.what != KEPT for change in changes)
    if args.expect is not None and changing != args.expect:
        raise NotAllowed(
            f"jobs scopes {args.does}: {changing} scopes would change, not {args.expect}; nothing was changed",
            next_step=f"duly jobs scopes list {args.job}",
        )
    return [await _outcome(change) for change in changes]


async def _outcome(change: Change) -> Outcome:
    if change.ended is None:
        return Outcome(change, [], [])
    instant = await ledger_now()
    owed = [await window_of_row(change.known, run, instant) for run in change.ended.owed]
    return Outcome(change, owed, [await window_of_row(change.known, run, instant) for run in change.ended.skipped])


def _outcomes_in_words(outcomes: list[Outcome], zone: str, args: argparse.Namespace, now: int) -> str:
    rows: list[list[str | Cell]] = []
    for outcome in outcomes:
        change = outcome.change
        word = "on the roster already" if change.what == KEPT and args.does == "add" else change.what
        rows.append([change.line.scope, word, *_facts(change.line, zone, args, now), left_in_words(outcome)])
    return table(rows)


def left_in_words(outcome: Outcome) -> str:
    """What a retirement left: the windows that stay owed, and those that were skipped."""
    parts = []
    for what, windows in (("still owed", outcome.owed), ("skipped", outcome.skipped)):
        if windows:
            names = ", ".join(window.key.middle for window in windows[:5])
            parts.append(f"{what}: {names}" + (f" and {len(windows) - 5} more" if len(windows) > 5 else ""))
    return "; ".join(parts)


def _outcome_as_json(job: str, outcome: Outcome, now: int) -> dict[str, Json]:
    owed: list[Json] = [str(window.key) for window in outcome.owed]
    skipped: list[Json] = [str(window.key) for window in outcome.skipped]
    line = _as_json(job, outcome.change.line, now)
    return {**line, "change": outcome.change.what, "owed": owed, "skipped": skipped}


def _then(args: argparse.Namespace, outcomes: list[Outcome]) -> str:
    if args.does == "add":
        return "what comes due of them is owed from now on, whether anybody runs them or not"
    if any(outcome.owed for outcome in outcomes if outcome.change.what == RETIRED):
        return "what was owed before stays owed: work it, or skip it"
    return "nothing more comes due of them"
