"""What another schedule would change, in words and for programs: of `jobs plan`, and of `jobs apply --dry-run`."""

from __future__ import annotations

from duly.cli import codes
from duly.cli.arguments import given_schedule
from duly.cli.ledgers import configured, open_to_look
from duly.cli.output import GLYPHS, Cell, iso, note, show, table, when
from duly.cli.runs_argument import job_meant
from duly.errors import Misuse
from duly.evidence.explain_words import length
from duly.evidence.next import parse_range
from duly.evidence.plan import KEPT, Plan, Planned, plan
from duly.evidence.verdict import COMPLETE, NOT_OWED, PRUNED, SKIPPED, lines
from duly.ledger.ask import now as ledger_now
from duly.ledger.named import TO_FILL_IN
from duly.redaction import shown_url
from duly.schedule.versions import APPEARS, SHIFTS, SPLIT, VANISHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.evidence.next import Range
    from duly.schedule.spec import Schedule
    from duly.schedule.spells import Placed

SHOWN_INTO = 3  # of the windows that one is split into


def run_plan(args: argparse.Namespace) -> int:
    schedule = given_schedule(args, "jobs plan", [args.job, args.range]) or configured_schedule(args.job)
    store = open_to_look(args.ledger)
    args.job = store.read(job_meant(args.job))
    schedule = schedule or configured_schedule(args.job)
    if schedule is None:
        raise Misuse(
            "jobs plan: which schedule? Give it by flags, as `duly exec` takes them, or in a configuration",
            next_step=f"duly jobs plan {args.job} --period daily --zone Europe/Paris",
        )
    made = store.read(planned(args.job, schedule, args.range))
    show_plan(args, made)
    if made.changes:
        note(f"nothing was changed; next: {_apply(args)}")
    return codes.DONE


def configured_schedule(job: str) -> Schedule | None:
    """The schedule that the configuration has for a job; None without one."""
    layers = configured()
    entry = None if layers is None else layers.job(job)
    return None if entry is None else entry.declaration.schedule


async def planned(name: str, schedule: Schedule, text: str | None = None) -> Plan:
    """The plan for a job, in a range as a person writes it."""
    return await plan(name, schedule, None if text is None else await _range(name, text))


async def _range(name: str, text: str) -> Range:
    known = await lines(name)
    zone = known[0].version.zone if known and known[0].version is not None else "UTC"
    return parse_range(text, zone, await ledger_now())


def _apply(args: argparse.Namespace) -> str:
    """The command that does it, with the flags as they were typed."""
    from shlex import join

    from duly.schedule.written import FLAGS

    flags = [
        word for name in FLAGS for value in getattr(args, name.replace("-", "_")) or [] for word in (f"--{name}", value)
    ]
    ledger = ["--ledger", shown_url(args.ledger)] if args.ledger else []
    return join(["duly", "jobs", "apply", args.job, *flags, "--reason", TO_FILL_IN, *ledger])


# -- for programs --------------------------------------------------------------------------------------------------------


def show_plan(args: argparse.Namespace, made: Plan) -> None:
    """Print a plan as `--format` asks."""
    show(args, "duly.plan.v1", _facts(args.job, made), "windows", _records(made), lambda: in_words(args, made))


def plan_as_json(job: str, made: Plan) -> dict[str, Json]:
    """The plan with its windows, for another document."""
    return {**_facts(job, made), "windows": [*_records(made)]}


def _records(made: Plan) -> list[dict[str, Json]]:
    return [_as_json(each) for each in (*made.kept, *made.planned)]


def _facts(job: str, made: Plan) -> dict[str, Json]:
    """What a plan says besides the windows."""
    changes: list[Json] = [*made.changes]
    return {
        "job": job,
        "as_of": iso(made.as_of),
        "changed": bool(made.changes) or made.before is None,
        "version": made.number,
        "schedule": made.schedule.words(),
        "before": None if made.before is None else made.before.words,
        "changes": changes,
        "series": made.series,
        "seam": iso(made.seam),
        "first": None if made.first is None else _placed_as_json(made.first),
        "more": made.more,
    }


def _as_json(each: Planned) -> dict[str, Json]:
    states: dict[str, Json] = {**each.states}
    after = None if each.change is None else each.change.after
    into: list[Json] = [] if each.change is None else [placed.name for placed in each.change.into]
    return {
        "key": each.window.name,
        "what": each.what,
        **_placed_as_json(each.window),
        "after": None if after is None or each.what != SHIFTS else _placed_as_json(after),
        "into": into,
        "states": states,
    }


def _placed_as_json(placed: Placed) -> dict[str, Json]:
    zone, grain = placed.series
    occurrence = placed.occurrence
    return {
        "window": placed.middle,
        "zone": zone,
        "grain": grain,
        "due": iso(occurrence.due),
        "window_start": iso(occurrence.start),
        "window_end": iso(occurrence.end),
        "seam": placed.is_seam,
    }


# -- for people ----------------------------------------------------------------------------------------------------------


def in_words(args: argparse.Namespace, made: Plan) -> str:
    """The whole plan in lines."""
    if made.before is not None and not made.changes:
        return f"{args.job}: in force already: {made.schedule.words()}"
    said = [f"{args.job}: version {made.number}: {made.schedule.words()}"]
    if made.before is None:
        return "\n".join([*said, "its first schedule: nothing changes by it", *_first(args, made)])
    said.append(f"in place of version {made.before.number}: {made.before.words}")
    said.append(f"what changes: {', '.join(made.changes)}")
    said += [*_first(args, made), _keys(made)]
    rows = [_row(args, made, each) for each in (*made.kept, *made.planned)]
    more = [f"and more; `duly jobs plan {args.job} RANGE` shows them"] if made.more else []
    return "\n".join([*said, table(rows), *more] if rows else said)


def _first(args: argparse.Namespace, made: Plan) -> list[str]:
    if made.first is None:
        return ["it never has a window"]
    zone, first = made.schedule.zone, made.first.occurrence

    def at(instant: int) -> str:
        return when(instant, zone, time=args.time, now=made.as_of)

    seam = [] if made.seam is None else [f"the seam: {at(made.seam)}; what has begun before it is worked as it was"]
    return [*seam, f"first window: {made.first.name}, {at(first.start)} to {at(first.end)}, due {at(first.due)}"]


def _keys(made: Plan) -> str:
    """What becomes of keys."""
    assert made.before is not None
    zone, grain = made.schedule.zone, made.schedule.grain
    if made.series == "same":
        return f"keys: as before, by {grain} in {zone}"
    old = f"those by {made.before.grain} in {made.before.zone} name what they did, up to the seam"
    if made.series == "returns":
        return f"keys: by {grain} in {zone} again, in the series of before; what it would have named meanwhile is none; {old}"
    first = "" if made.first is None else f" with {made.first.name}"
    return f"keys: a new series by {grain} in {zone} begins{first}; earlier keys of it are refused; {old}"


def _row(args: argparse.Namespace, made: Plan, each: Planned) -> list[str | Cell]:
    occurrence = each.window.occurrence
    return [
        each.window.name,
        length((occurrence.start, occurrence.end)).rjust(4),
        f"due {when(occurrence.due, each.window.series[0], time=args.time, now=made.as_of)}",
        _states(each.states),
        _what(args, made, each),
    ]


def _states(states: dict[str, int]) -> Cell:
    """One state as ever; of several lines, how many are in which."""
    if not states:
        return Cell("")
    word = max(states, key=lambda each: states[each])
    if len(states) == 1:
        return Cell(f"{GLYPHS[word]} {word}".strip(), word)
    return Cell(", ".join(f"{many} {state}" for state, many in states.items()), word)


def _what(args: argparse.Namespace, made: Plan, each: Planned) -> str:
    occurrence = each.window.occurrence
    if each.what == KEPT:
        if occurrence.end > made.as_of:
            return "has begun; it keeps its bounds"
        return (
            "stays as it is" if each.states.keys() <= {COMPLETE, SKIPPED, NOT_OWED, PRUNED} else "stays owed by its key"
        )
    if each.what == APPEARS and each.window.is_seam:
        return "appears, from the seam on"
    if each.what in (APPEARS, VANISHES):
        return each.what
    assert each.change is not None
    if each.what == SPLIT:
        into = [placed.name for placed in each.change.into]
        rest = f" and {len(into) - SHOWN_INTO} more" if len(into) > SHOWN_INTO else ""
        return f"is split: its time goes to {', '.join(into[:SHOWN_INTO])}{rest}"
    after = each.change.after
    assert after is not None  # it has the same name
    return _shifted(args, made, each.window, after)


def _shifted(args: argparse.Namespace, made: Plan, before: Placed, after: Placed) -> str:
    def at(instant: int) -> str:
        return when(instant, after.series[0], time=args.time, now=made.as_of)

    old, new = before.occurrence, after.occurrence
    said = []
    if (old.start, old.end) != (new.start, new.end):
        said.append(f"{at(new.start)} to {at(new.end)}")
    if old.due != new.due:
        said.append(f"due {at(new.due)}")
    if old.off != new.off:
        said.append(f"skipped ({new.off})" if new.off else f"no longer skipped ({old.off})")
    return f"shifts: {', '.join(said) or 'the clocks are read otherwise'}"
