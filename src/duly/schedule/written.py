"""Written: from what was written to a schedule, the same for the flags of `exec`, `next` and `jobs apply`, for a file of jobs,
whose keys they are, and for the fields of a page. Pure: files are read, and lines to type proposed, by whoever asks.

What was given is a mapping from a flag's name to its values as written: `{"cron": ["30 2 * * *"], "zone": ["UTC"]}`.
"""

from __future__ import annotations

from duly.errors import Misuse, ScheduleError, TimeInvalid
from duly.records import record
from duly.schedule import spec
from duly.times import parse_instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from duly.schedule.calendar import Calendar
    from duly.schedule.spec import Schedule

    Writes: TypeAlias = Callable[..., str]  # a flag's name, and a value of it, as whoever gave it would write them

# name: (what it takes, what it means); the order is the one of the help
FLAGS = {
    "cron": ("EXPR", "five fields or @daily; may be given several times, all lines are one schedule"),
    "period": ("PERIOD", "hourly, daily, weekly, monthly, quarterly or yearly: the period is owed once it has ended"),
    "every": ("TIME", "an interval, as 15m or 6h, counted in UTC from --anchor"),
    "zone": ("ZONE", "time zone of --cron and --period, as Europe/Berlin or UTC"),
    "at": ("HH:MM", "wall clock after the period's end from which it is due"),
    "offset": ("WHEN", "where a period begins: 06:00 of a day, sun of a week, apr of a quarter or year"),
    "gap": ("POLICY", "a time that the clocks skip: shift_to_transition, shift_forward or skip"),
    "fold": ("POLICY", "a time that the clocks repeat: first, second or both"),
    "anchor": ("INSTANT", "where --every counts from, as 2026-01-01T00:00:00Z"),
    "calendar": (
        "FILE",
        "days off: a list (sat sun 2026-12-28 2021/06-19) or an .ics file; it is named after the file",
    ),
    "days-off": ("POLICY", "what is done about them: skip, next or previous business day"),
}
REPEATABLE = ("cron",)
KINDS = ("cron", "period", "every")
PERIODS = ("hourly", "daily", "weekly", "monthly", "quarterly", "yearly")

_FITS = {
    "cron": ("zone", "gap", "fold", "calendar", "days-off"),
    "every": ("anchor",),
    "hourly": ("zone", "gap", "fold", "calendar", "days-off"),
    "monthly": ("zone", "at", "gap", "fold", "calendar", "days-off"),
    **dict.fromkeys(
        ("daily", "weekly", "quarterly", "yearly"), ("zone", "at", "offset", "gap", "fold", "calendar", "days-off")
    ),
}


@record
class Writing:
    """Where a schedule was written, and so how an error speaks of it.

    `write`: a flag, and a value of it, as they are written there. `calendar`: makes a calendar of what was given for one.
    `with_more`: the line to type instead, with some more flags; None where no line is typed. `zone`: the zone to propose, and
    `where`: the words for whose it is; both are asked for only where none was given.
    """

    write: Writes
    calendar: Callable[[str], Calendar]
    with_more: Callable[..., str | None]
    zone: Callable[[], str]
    where: Callable[[], str]


def schedule_written(given: Mapping[str, Sequence[str]], writing: Writing) -> Schedule | None:
    """The schedule that the flags describe; None where none is given.

    Raises `Misuse` for flags that do not fit together or miss the zone, `ScheduleError` for a value that is no schedule.
    """
    flags = {name: list(values) for name, values in given.items() if values}
    if not flags:
        return None
    write = writing.write
    kind = _kind(flags, writing)
    for name, values in flags.items():
        if len(values) > 1 and name not in REPEATABLE:
            raise Misuse(f"{write(name)} is given twice: {values[0]} and {values[1]}; leave one out")
        if name not in (*KINDS, *_FITS[kind]):
            takes = ", ".join(write(fit) for fit in _FITS[kind])
            raise Misuse(f"{write(name)} does not fit {_kind_as(write, kind)}, which takes {takes}; leave it out")
    try:
        return _schedule(kind, flags, writing)
    except ScheduleError as e:
        field, _, why = str(e).partition(": ")
        e.args = (f"{write(field)}: {why}" if field in FLAGS else f"{_kind_as(write, kind)}: {e}",)
        raise
    except TimeInvalid as e:
        raise Misuse(f"{write('anchor')}: {e}") from e


def lacks_zone(given: Mapping[str, Sequence[str]]) -> bool:
    """Whether what was written is a cron line or a period without the zone that it needs."""
    if given.get("zone"):
        return False
    lines = given.get("cron") or []
    return bool(given.get("period")) or (bool(lines) and not any(_has_zone(line) for line in lines))


def _has_zone(line: str) -> bool:
    return line.lstrip().startswith(("CRON_TZ=", "TZ="))


def _schedule(kind: str, flags: Mapping[str, Sequence[str]], writing: Writing) -> Schedule:
    single = {name: values[0] for name, values in flags.items() if name not in KINDS}
    days, policy = single.pop("calendar", None), single.pop("days-off", None)
    schedule = _without_calendar(kind, flags, single, writing)
    if days is None and policy is None:
        return schedule
    if days is None or policy is None:
        which, what = writing.write("calendar"), writing.write("days-off")
        raise Misuse(f"{which} says which days are off, {what} what is done about them: give both")
    return schedule.on(writing.calendar(days), policy)


def _without_calendar(
    kind: str, flags: Mapping[str, Sequence[str]], single: dict[str, str], writing: Writing
) -> Schedule:
    if kind == "every":
        anchor = parse_instant(single["anchor"]) if "anchor" in single else 0
        return spec.every(flags["every"][0], anchor=anchor)
    if lacks_zone(flags):
        write = writing.write
        raise Misuse(
            f"{write('cron' if kind == 'cron' else 'period')} needs a {write('zone')}, or what it means changes with the host; "
            f"{writing.where()}",
            next_step=writing.with_more("--zone", writing.zone()),
        )
    if kind == "cron":
        return spec.cron(*flags["cron"], zone=single.get("zone"), gap=single.get("gap"), fold=single.get("fold"))
    make = getattr(spec, kind)
    schedule: Schedule = make(single.pop("zone"), **single)
    return schedule


def _kind(flags: dict[str, list[str]], writing: Writing) -> str:
    """`cron`, `every` or the name of the period."""
    write = writing.write
    kinds = [name for name in KINDS if name in flags]
    if len(kinds) > 1:
        raise Misuse(f"{write(kinds[0])} and {write(kinds[1])} are two schedules; a job has one, so leave one out")
    if not kinds:
        raise Misuse(
            f"{write(next(iter(flags)))} says how, but not when; add {write('cron')}, {write('period')} or {write('every')}",
            next_step=writing.with_more("--period", "daily", *([] if "zone" in flags else ["--zone", writing.zone()])),
        )
    if kinds[0] != "period":
        return kinds[0]
    period = flags["period"][0]
    if period not in PERIODS:
        raise Misuse(f"{write('period')}: {period!r} is no period; write one of {', '.join(PERIODS)}")
    return period


def _kind_as(write: Writes, kind: str) -> str:
    return write(kind) if kind in KINDS else write("period", kind)
