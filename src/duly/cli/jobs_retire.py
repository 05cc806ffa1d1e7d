"""`duly jobs retire`: a job of which nothing more comes due; `--undo` takes it back."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger
from duly.cli.change import add_reason, reason_given
from duly.cli.jobs_scopes import add_skip_owed
from duly.cli.ledgers import open_ledger
from duly.cli.output import Cell, as_json, glyph_and_word, iso, line_name, note, show, table, typed, when, window_name
from duly.errors import Misuse
from duly.evidence.verdict import Window, line_zone, window_of_row
from duly.ledger.ask import now as ledger_now
from duly.ledger.ends import Ended
from duly.ledger.records import Known, Run
from duly.ledger.resolve import Word
from duly.ledger.retire import bring_back, retire_job
from duly.records import record
from duly.store.tried import write_or_try
from duly.work.identity import actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.store.protocol import Store

EXAMPLE = (
    "duly jobs retire close-day --reason 'the new system does it' --dry-run\n"
    "  duly jobs retire close-day --undo --from 2026-11-28 --reason 'it does not'"
)


def add_arguments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`retire`, as a verb of `duly jobs`."""
    retiring = verbs.add_parser(
        "retire",
        help="let nothing more of a job come due, or take that back",
        description="Let nothing of a job come due from now on. Its record stays, and what is owed of it.",
        epilog=f"example:\n  {EXAMPLE}",
    )
    retiring.add_argument("job", metavar="JOB")
    add_skip_owed(retiring)
    retiring.add_argument("--undo", action="store_true", help="let it come due again; what did meanwhile is skipped")
    retiring.add_argument(
        "--from", dest="since", metavar="W|INSTANT", help="with --undo: the first window that is owed"
    )
    add_reason(retiring)
    retiring.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    add_format(retiring)
    add_ledger(retiring)


@record
class _Left:
    """What is left of a job that was retired: windows that stay owed, and windows that were skipped."""

    owed: list[Window]
    skipped: list[Window]


def run(args: argparse.Namespace) -> int:
    if args.undo and args.skip_owed:
        raise Misuse("--skip-owed goes with a retirement, not with --undo")
    if args.since is not None and not args.undo:
        raise Misuse("--from goes with --undo", next_step=f"duly jobs retire {args.job} --undo --reason '…'")
    word = Word(actor(), reason_given(args, f"jobs retire {args.job}"))
    store = open_ledger(args.ledger)
    return _undo(args, store, word) if args.undo else _retire(args, store, word)


def _retire(args: argparse.Namespace, store: Store, word: Word) -> int:
    left = write_or_try(store, _retired(args.job, word, skip_owed=args.skip_owed), dry_run=args.dry_run)
    facts: dict[str, Json] = {"job": args.job, "dry_run": args.dry_run, "change": "retired"}
    records = [as_json(window) for window in (*left.owed, *left.skipped)]
    show(args, "duly.retire.v1", facts, "runs", records, lambda: _in_words(args, left))
    if args.dry_run:
        note("nothing was changed: this was a dry run")
    elif left.owed:
        note(
            f"what was owed before stays owed: work it, or skip it; `duly jobs retire {args.job} --undo` takes it back"
        )
    else:
        note(f"nothing more comes due of it; `duly jobs retire {args.job} --undo` takes it back")
    return codes.DONE


async def _retired(name: str, word: Word, *, skip_owed: bool) -> _Left:
    left = _Left([], [])
    for ended in await retire_job(name, word, skip_owed=skip_owed):
        left.owed.extend(await _judged(ended, ended.owed))
        left.skipped.extend(await _judged(ended, ended.skipped))
    return left


async def _judged(ended: Ended, runs: list[Run]) -> list[Window]:
    instant = await ledger_now()
    return [await window_of_row(ended.known, run, instant) for run in runs]


def _in_words(args: argparse.Namespace, left: _Left) -> str:
    rows: list[list[str | Cell]] = []
    for windows, verb in ((left.owed, "skip"), (left.skipped, "")):
        rows += [
            [
                glyph_and_word(window.verdict.word),
                line_name(window),
                window_name(window),
                window.verdict.note,
                typed(window.verdict.verb or verb, window, args.ledger) if verb else "",
            ]
            for window in windows
        ]
    return "\n".join(part for part in (f"{args.job}: retired", table(rows)) if part)


def _undo(args: argparse.Namespace, store: Store, word: Word) -> int:
    lines = write_or_try(store, bring_back(args.job, word, since=args.since), dry_run=args.dry_run)
    zone, now = store.read(line_zone(args.job)), store.now()
    facts: dict[str, Json] = {"job": args.job, "dry_run": args.dry_run, "change": "resumed"}
    records = [_line_as_json(known) for known in lines]
    show(args, "duly.retire.v1", facts, "lines", records, lambda: table([_row(k, zone, args, now) for k in lines]))
    note("nothing was changed: this was a dry run" if args.dry_run else "what comes due of it is owed again")
    return codes.DONE


def _row(known: Known, zone: str, args: argparse.Namespace, now: int) -> list[str | Cell]:
    assert known.line is not None
    name = f"{known.line.scope}/{known.job.name}" if known.line.scope else known.job.name
    if known.line.ends is not None and known.line.ends <= now:
        return [name, f"stays retired since {when(known.line.ends, zone, time=args.time, now=now)}"]
    due = known.line.next_due
    return [name, "resumed", "" if due is None else f"next due {when(due, zone, time=args.time, now=now)}"]


def _line_as_json(known: Known) -> dict[str, Json]:
    assert known.line is not None
    return {
        "key": known.line.scope,
        "scope": known.line.scope,
        "until": iso(known.line.ends),
        "next_due": iso(known.line.next_due),
    }
