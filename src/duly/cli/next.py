"""`duly next`: coming and past occurrences of a job, or of a schedule that is only thought of."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_schedule, add_scope, count_from_1, given_schedule
from duly.cli.ledgers import configured, open_to_look
from duly.cli.output import Cell, glyph_and_word, note, show, table, when
from duly.cli.runs_argument import job_meant, scope_of
from duly.errors import Misuse, NoLedger, UnknownJob
from duly.evidence.explain_words import length
from duly.evidence.foreseen import SCHEMA, Foreseen, Wanted, facts_of, foreseen, foreseen_of, window_as_json
from duly.ledger.address import known_or_raise
from duly.schedule.facts import release_in_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.schedule.lints import Lint
    from duly.schedule.spec import Schedule

HELP = "coming and past occurrences, windows, and what the clocks do to them"
EXAMPLE = (
    "duly next close-day 2026-10-24..2026-10-27\n"
    "  duly next '30 2 * * *' --zone Europe/Paris -n 10\n"
    "  duly next '30 2 * * *' --zone Europe/Paris --around-dst"
)

AT_MOST = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "job",
        metavar="JOB",
        nargs="?",
        help="a job that the ledger knows or the configuration declares, a cron expression, or else a schedule by flags",
    )
    parser.add_argument(
        "range", metavar="RANGE", nargs="?", help="half-open: 2026-11-01..2026-12-01, -3d.., ..2026-12-01"
    )
    parser.add_argument(
        "-n", type=count_from_1, metavar="N", help="how many coming ones (default: 5, after 3 past ones)"
    )
    parser.add_argument(
        "--around-dst",
        nargs="?",
        const="next",
        choices=("next", "previous"),
        help="the occurrences around the next change of the clocks, or the previous one",
    )
    add_schedule(parser)
    add_scope(parser)
    add_format(parser)
    add_ledger(parser)


def run(args: argparse.Namespace) -> int:
    if args.job is not None and (" " in args.job or args.job.startswith("@")):  # no job is named so
        args.cron, args.job, args.range = [args.job, *(args.cron or [])], args.range, None
    schedule = given_schedule(args, "next", [args.job, args.range])
    if schedule is not None:
        if args.range is not None or (args.job is not None and ".." not in args.job):
            raise Misuse("next: a job of the ledger, or a schedule by flags, not both; leave one out")
        seen = foreseen(schedule, _wanted(args, args.job), _instant())
    elif args.job is None:
        raise Misuse("next: name a job, or give a schedule", next_step="duly next --period daily --zone Europe/Paris")
    else:
        seen = _of_job(args)
    if seen.more:
        note(f"only the first {len(seen.placed)} are shown; -n shows more, at most {AT_MOST}")
    records = [window_as_json(seen, place) for place in range(len(seen.placed))]
    show(args, SCHEMA, facts_of(seen), "occurrences", records, lambda: _in_words(seen, args))
    return codes.DONE


def _wanted(args: argparse.Namespace, text: str | None) -> Wanted:
    return Wanted(text, args.n, args.around_dst or "", AT_MOST)


def _instant() -> int:
    from time import time_ns

    return time_ns() // 1000


def _of_job(args: argparse.Namespace) -> Foreseen:
    """What a job of the ledger comes to; or one that only a configuration declares, which is said."""
    wanted = _wanted(args, args.range)

    async def look() -> Foreseen:
        job = await job_meant(args.job)
        return await foreseen_of(await known_or_raise(job, await scope_of(job, args.scope)), wanted)

    try:
        return open_to_look(args.ledger).read(look())
    except (UnknownJob, NoLedger) as e:
        declared = _declared(args.job)
        if declared is None:
            raise
        schedule, file = declared
        why = "there is no ledger yet" if isinstance(e, NoLedger) else "the ledger does not know it yet"
        note(f"{args.job} is shown as {file} declares it; {why}")
        return foreseen(schedule, wanted, _instant())


def _declared(job: str) -> tuple[Schedule, str] | None:
    """The schedule that the configuration has for a job, and the file that has it."""
    layers = configured()
    entry = None if layers is None else layers.job(job)
    if entry is None or entry.declaration.schedule is None:
        return None
    return entry.declaration.schedule, entry.file


def _in_words(seen: Foreseen, args: argparse.Namespace) -> str:
    rows = [_row(seen, place, args) for place in range(len(seen.placed))]
    tzdata = "" if seen.schedule.zone == "UTC" else f"; tzdata {release_in_use(seen.schedule.zone).version}"
    said = [f"{seen.schedule.words()}{tzdata}"]
    if seen.change is not None:
        at = when(seen.change.at, seen.schedule.zone, time=args.time, now=seen.as_of)
        said.append(f"{seen.change.words}: {at}")
    said.append(table(rows) if rows else "no occurrence there")
    if not seen.windows:  # of a schedule that is being written; a job's stands
        said += [_lint_in_words(lint) for lint in seen.lints]
    return "\n".join(said)


def _lint_in_words(lint: Lint) -> str:
    line = f"{lint.line}: " if lint.line else ""
    return f"{lint.code}: {line}{lint.says}\n  instead: {lint.instead}"


def _row(seen: Foreseen, place: int, args: argparse.Namespace) -> list[str | Cell]:
    placed = seen.placed[place]
    occurrence, schedule = placed.occurrence, placed.spell.schedule
    window = seen.windows[place] if seen.windows else None
    bounds = window.bounds if window is not None else None
    due = window.due if window is not None and window.due is not None else occurrence.due
    said: list[str | Cell] = [] if window is None else [glyph_and_word(window.verdict.word)]
    return [
        seen.name(place),
        length(bounds or (occurrence.start, occurrence.end)).rjust(4),
        f"due {when(due, schedule.zone, time=args.time, now=seen.as_of)}",
        *said,
        seen.note(place),
    ]
