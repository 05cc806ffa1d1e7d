"""`duly jobs pause` and `duly jobs resume`: start nothing of a job for a while, and see what is owed of it after."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_scope
from duly.cli.change import add_reason, word_of
from duly.cli.ledgers import open_ledger
from duly.cli.output import Cell, document, iso, note, table
from duly.errors import Misuse, TimeInvalid
from duly.evidence import verdict
from duly.ledger.pause import Resumed, pause, resume
from duly.ledger.policy import windows_in
from duly.ledger.records import Known, pause_words, pauses_of
from duly.ledger.register import find
from duly.ledger.spells import spell_in_force
from duly.records import record
from duly.schedule.catch_up import parse_catch_up
from duly.store.tried import write_or_try
from duly.times import parse_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json


def add_pause(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument(
        "--until", metavar="WHEN", help="2026-12-24T18:00 (in the schedule's zone), with Z for UTC, or +2h"
    )
    _add_both(parser)


def add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument(
        "--catch-up",
        metavar="POLICY",
        help="what to work of what was held back, this once: each, latest, fresh, 'each max=3', none; else as the job says",
    )
    _add_both(parser)


def _add_both(parser: argparse.ArgumentParser) -> None:
    add_reason(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run_pause(args: argparse.Namespace) -> int:
    word = word_of(args, "jobs pause")
    store = open_ledger(args.ledger)
    until = None
    if args.until is not None:
        known = store.read(find(args.job, args.scope or ""))
        zone = "UTC" if known is None or known.version is None else known.version.zone
        try:
            until = parse_moment(args.until, zone, store.now())
        except TimeInvalid as e:
            raise Misuse(f"--until: {e}") from e
    paused = write_or_try(store, pause(args.job, args.scope, word, until=until), dry_run=args.dry_run)
    if args.format == "table":
        print(table([_paused_row(known) for known in paused]))
    else:
        lines: list[Json] = [_paused_as_json(known) for known in paused]
        print(document("duly.pause.v1", {"job": args.job, "dry_run": args.dry_run, "lines": lines}))
    note(
        "nothing was changed: this was a dry run"
        if args.dry_run
        else "what is running goes on; nothing else is started"
    )
    return codes.DONE


def run_resume(args: argparse.Namespace) -> int:
    word = word_of(args, "jobs resume")
    policy = None if args.catch_up is None else parse_catch_up(args.catch_up, once=True)
    store = open_ledger(args.ledger)
    resumed = write_or_try(store, resume(args.job, args.scope, word, policy=policy), dry_run=args.dry_run)
    counted = [(each, _counts(each)) for each in resumed]
    if args.format == "table":
        print(table([_resumed_row(each, counts) for each, counts in counted]))
    else:
        lines: list[Json] = [_resumed_as_json(each, counts) for each, counts in counted]
        print(document("duly.resume.v1", {"job": args.job, "dry_run": args.dry_run, "lines": lines}))
    note("nothing was changed: this was a dry run" if args.dry_run else "the next poke works what is owed")
    return codes.DONE


def _name(known: Known) -> str:
    assert known.line is not None
    return f"{known.line.scope}/{known.job.name}" if known.line.scope else known.job.name


# -- paused -------------------------------------------------------------------------------------------------------------


def _paused_row(known: Known) -> list[str | Cell]:
    return [_name(known), Cell("○ paused", verdict.DUE), *(pause_words(each) for each in pauses_of(known)[:1])]


def _paused_as_json(known: Known) -> dict[str, Json]:
    (paused, *_) = pauses_of(known)
    return {**_line_as_json(known), "since": iso(paused.since), "until": iso(paused.until), "reason": paused.why}


def _line_as_json(known: Known) -> dict[str, Json]:
    return {"job": known.job.name, "scope": "" if known.line is None else known.line.scope}


# -- resumed ------------------------------------------------------------------------------------------------------------


@record
class _Counts:
    """How many windows of a line are owed after a pause, and how many were dropped for each reason."""

    owed: int
    dropped: dict[str, int]


def _counts(resumed: Resumed) -> _Counts:
    known, steps = resumed.known, resumed.steps
    owed = (len(steps[-1].rows) if steps else 0) + (len(steps[-1].fresh) if steps else 0)
    dropped: dict[str, int] = {}
    for step in steps:
        for row in step.dropped_rows:
            dropped[row.cause] = dropped.get(row.cause, 0) + 1
        for span in step.dropped:
            windows = sum(1 for _ in windows_in(spell_in_force(known), span.range))
            dropped[span.cause] = dropped.get(span.cause, 0) + windows
    return _Counts(owed, dropped)


def _resumed_row(resumed: Resumed, counts: _Counts) -> list[str | Cell]:
    owed = f"{counts.owed} owed" if counts.owed else "nothing owed"
    dropped = [f"{number} skipped ({cause})" for cause, number in counts.dropped.items()]
    return [_name(resumed.known), Cell("▶ resumed", verdict.RUNNING), "; ".join([owed, *dropped])]


def _resumed_as_json(resumed: Resumed, counts: _Counts) -> dict[str, Json]:
    dropped: list[Json] = [{"windows": number, "reason": cause} for cause, number in counts.dropped.items()]
    return {**_line_as_json(resumed.known), "owed": counts.owed, "skipped": dropped}
