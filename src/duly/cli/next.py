"""`duly next`: coming and past occurrences of a job, or of a schedule that is only thought of."""

from __future__ import annotations

from itertools import islice

from duly.cli import codes
from duly.cli.arguments import add_format, add_ledger, add_schedule, add_scope, count_from_1, given_schedule
from duly.cli.ledgers import open_to_look
from duly.cli.output import Cell, as_json, glyph_and_word, iso, note, show, table, when
from duly.cli.runs_argument import job_meant, scope_of
from duly.errors import Misuse
from duly.evidence.explain import length
from duly.evidence.next import (
    around,
    around_change,
    next_change,
    night_note,
    parse_range,
    previous_change,
    within,
)
from duly.evidence.verdict import Window, windows_of_line
from duly.ledger.address import known_or_raise
from duly.ledger.ask import now as ledger_now
from duly.ledger.spells import Placed, Spell, spells_of_line
from duly.records import record
from duly.schedule.facts import release_in_use
from duly.schedule.keys import nominal_text
from duly.schedule.lints import lints_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.evidence.next import ClockChange
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
        help="a job that the ledger knows, a cron expression, or else a schedule by flags",
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


@record
class _Shown:
    schedule: Schedule
    as_of: int
    placed: list[Placed]
    windows: list[Window]
    more: bool  # the range that was asked for has more

    @property
    def has_other_series(self) -> bool:
        """Whether a window is named in another zone or grain than the schedule's: then each is written with its zone."""
        return any(each.series != (self.schedule.zone, self.schedule.grain) for each in self.placed)


def run(args: argparse.Namespace) -> int:
    if args.job is not None and (" " in args.job or args.job.startswith("@")):  # no job is named so
        args.cron, args.job, args.range = [args.job, *(args.cron or [])], args.range, None
    schedule = given_schedule(args, "next", [args.job, args.range])
    if schedule is not None:
        if args.range is not None or (args.job is not None and ".." not in args.job):
            raise Misuse("next: a job of the ledger, or a schedule by flags, not both; leave one out")
        shown = _of_schedule(args, schedule)
    elif args.job is None:
        raise Misuse("next: name a job, or give a schedule", next_step="duly next --period daily --zone Europe/Paris")
    else:
        shown = open_to_look(args.ledger).read(_of_job(args))
    if shown.more:
        note(f"only the first {len(shown.placed)} are shown; -n shows more, at most {AT_MOST}")
    records = [_as_json(shown, place) for place in range(len(shown.placed))]
    change = _change(args, shown.schedule, shown.as_of)
    facts: dict[str, Json] = {
        "as_of": iso(shown.as_of),
        "schedule": shown.schedule.words(),
        "tzdata": release_in_use(shown.schedule.zone).version,
        "change": None if change is None else {"at": iso(change.at), "says": change.words},
        "lints": [_lint_as_json(lint) for lint in lints_of(shown.schedule, shown.as_of)],
    }
    show(args, "duly.next.v1", facts, "occurrences", records, lambda: _in_words(shown, args))
    return codes.DONE


def _of_schedule(args: argparse.Namespace, schedule: Schedule) -> _Shown:
    from time import time_ns

    instant = time_ns() // 1000
    spells = [Spell(schedule, 1, None, None)]
    past = 3 if args.n is None else 0
    placed, more = _chosen(args, spells, args.job, instant, past=past)
    return _Shown(schedule, instant, placed, [], more)


async def _of_job(args: argparse.Namespace) -> _Shown:
    job = await job_meant(args.job)
    known = await known_or_raise(job, await scope_of(job, args.scope))
    instant = await ledger_now()
    spells = await spells_of_line(known)
    placed, more = _chosen(args, spells, args.range, instant, past=3 if args.n is None else 0)
    windows = await windows_of_line(known, placed, instant)
    return _Shown(spells[-1].schedule, instant, placed, windows, more)


def _chosen(
    args: argparse.Namespace, spells: list[Spell], text: str | None, instant: int, *, past: int
) -> tuple[list[Placed], bool]:
    if args.around_dst is not None:
        change = _change(args, spells[-1].schedule, instant)
        if text is not None or change is None:
            zone = spells[-1].schedule.zone
            why = "it has a range of its own; leave RANGE out" if text else f"the clocks of {zone} are not moved"
            raise Misuse(f"--around-dst: {why}")
        return around_change(spells, change), False
    if text is None:
        return around(spells, instant, past=past, coming=min(args.n or 5, AT_MOST)), False
    wanted = parse_range(text, spells[-1].schedule.zone, instant)
    at_most = AT_MOST if args.n is None and wanted.end is not None else min(args.n or 20, AT_MOST)
    found = list(islice(within(spells, wanted, instant), at_most + 1))
    return found[:at_most], len(found) > at_most


def _change(args: argparse.Namespace, schedule: Schedule, instant: int) -> ClockChange | None:
    """The change of the clocks that was asked for."""
    if args.around_dst is None or schedule.kind == "every":
        return None
    return (next_change if args.around_dst == "next" else previous_change)(schedule.zone, instant)


def _lint_as_json(lint: Lint) -> dict[str, Json]:
    return {"code": lint.code, "line": lint.line, "says": lint.says, "instead": lint.instead}


def _as_json(shown: _Shown, place: int) -> dict[str, Json]:
    occurrence, schedule = shown.placed[place].occurrence, shown.placed[place].spell.schedule
    if shown.windows:
        base = as_json(shown.windows[place])
    else:
        middle = nominal_text(schedule.grain, occurrence.nominal, schedule.zone)
        base = {
            "key": middle,
            "window": middle,
            "due": iso(occurrence.due),
            "window_start": iso(occurrence.start),
            "window_end": iso(occurrence.end),
            "zone": schedule.zone,
        }
    return {
        **base,
        "resolution": occurrence.resolution,
        "off": occurrence.off,
        "clocks": night_note(schedule, occurrence),
        "seam": shown.placed[place].is_seam,
    }


def _in_words(shown: _Shown, args: argparse.Namespace) -> str:
    rows = [_row(shown, place, args) for place in range(len(shown.placed))]
    tzdata = "" if shown.schedule.zone == "UTC" else f"; tzdata {release_in_use(shown.schedule.zone).version}"
    said = [f"{shown.schedule.words()}{tzdata}"]
    change = _change(args, shown.schedule, shown.as_of)
    if change is not None:
        at = when(change.at, shown.schedule.zone, time=args.time, now=shown.as_of)
        said.append(f"{change.words}: {at}")
    said.append(table(rows) if rows else "no occurrence there")
    if not shown.windows:  # of a schedule that is being written; a job's stands
        said += [_lint_in_words(lint) for lint in lints_of(shown.schedule, shown.as_of)]
    return "\n".join(said)


def _lint_in_words(lint: Lint) -> str:
    line = f"{lint.line}: " if lint.line else ""
    return f"{lint.code}: {line}{lint.says}\n  instead: {lint.instead}"


def _row(shown: _Shown, place: int, args: argparse.Namespace) -> list[str | Cell]:
    placed = shown.placed[place]
    occurrence, schedule = placed.occurrence, placed.spell.schedule
    window = shown.windows[place] if shown.windows else None
    bounds = window.bounds if window is not None else None
    due = window.due if window is not None and window.due is not None else occurrence.due
    said: list[str | Cell] = [] if window is None else [glyph_and_word(window.verdict.word)]
    return [
        placed.name if shown.has_other_series else nominal_text(schedule.grain, occurrence.nominal, schedule.zone),
        length(bounds or (occurrence.start, occurrence.end)).rjust(4),
        f"due {when(due, schedule.zone, time=args.time, now=shown.as_of)}",
        *said,
        "; ".join(filter(None, ("seam" if placed.is_seam else "", night_note(schedule, occurrence)))),
    ]
