"""Schedule flags: from what was written to a schedule, the same for `exec`, `next` and `jobs apply`, and for a file of jobs,
whose keys they are. Pure but for the host's zone, which only an error message names, and the file of a calendar.

What was given is a mapping from a flag's name to its values as written: `{"cron": ["30 2 * * *"], "zone": ["UTC"]}`.
"""

from __future__ import annotations

import os

from duly.errors import Misuse, ScheduleError, TimeInvalid
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


def as_flag(name: str, value: str = "") -> str:
    """As it is typed on a command line: `--period daily`."""
    return f"--{name} {value}".rstrip()


def as_key(name: str, value: str = "") -> str:
    """As it is written in a file: `period = "daily"`."""
    key = name.replace("-", "_")
    return f'{key} = "{value}"' if value else key


def schedule_given(
    given: Mapping[str, Sequence[str]], *, typed: Sequence[str] = (), write: Writes = as_flag
) -> Schedule | None:
    """The schedule that the flags describe; None where none is given.

    `typed` is the whole command, for the line to type instead; `write` is how an error names a flag. Raises `Misuse` for
    flags that do not fit together or miss the zone, `ScheduleError` for a value that is no schedule.
    """
    flags = {name: list(values) for name, values in given.items() if values}
    if not flags:
        return None
    kind = _kind(flags, typed, write)
    for name, values in flags.items():
        if len(values) > 1 and name not in REPEATABLE:
            raise Misuse(f"{write(name)} is given twice: {values[0]} and {values[1]}; leave one out")
        if name not in (*KINDS, *_FITS[kind]):
            takes = ", ".join(write(fit) for fit in _FITS[kind])
            raise Misuse(f"{write(name)} does not fit {_kind_as(write, kind)}, which takes {takes}; leave it out")
    try:
        return _schedule(kind, flags, typed, write)
    except ScheduleError as e:
        field, _, why = str(e).partition(": ")
        e.args = (f"{write(field)}: {why}" if field in FLAGS else f"{_kind_as(write, kind)}: {e}",)
        raise
    except TimeInvalid as e:
        raise Misuse(f"{write('anchor')}: {e}") from e


def _schedule(kind: str, flags: Mapping[str, Sequence[str]], typed: Sequence[str], write: Writes) -> Schedule:
    single = {name: values[0] for name, values in flags.items() if name not in KINDS}
    file, policy = single.pop("calendar", None), single.pop("days-off", None)
    schedule = _without_calendar(kind, flags, single, typed, write)
    if file is None and policy is None:
        return schedule
    if file is None or policy is None:
        which, what = write("calendar"), write("days-off")
        raise Misuse(f"{which} says which days are off, {what} what is done about them: give both")
    return schedule.on(_calendar(file, write), policy)


def _calendar(file: str, write: Writes) -> Calendar:
    """The calendar in a file, named after it."""
    from duly.schedule.calendar import make_calendar

    try:
        with open(file, encoding="utf-8") as f:
            days = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise Misuse(f"{write('calendar')}: {file} cannot be read: {e}") from e
    return make_calendar(os.path.splitext(os.path.basename(file))[0], days)


def _without_calendar(
    kind: str, flags: Mapping[str, Sequence[str]], single: dict[str, str], typed: Sequence[str], write: Writes
) -> Schedule:
    if kind == "every":
        anchor = parse_instant(single["anchor"]) if "anchor" in single else 0
        return spec.every(flags["every"][0], anchor=anchor)
    if kind == "cron":
        if "zone" not in single and not any(line.lstrip().startswith(("CRON_TZ=", "TZ=")) for line in flags["cron"]):
            raise _no_zone("cron", typed, write)
        return spec.cron(*flags["cron"], zone=single.get("zone"), gap=single.get("gap"), fold=single.get("fold"))
    if "zone" not in single:
        raise _no_zone("period", typed, write)
    make = getattr(spec, kind)
    schedule: Schedule = make(single.pop("zone"), **single)
    return schedule


def _kind(flags: dict[str, list[str]], typed: Sequence[str], write: Writes) -> str:
    """`cron`, `every` or the name of the period."""
    kinds = [name for name in KINDS if name in flags]
    if len(kinds) > 1:
        raise Misuse(f"{write(kinds[0])} and {write(kinds[1])} are two schedules; a job has one, so leave one out")
    if not kinds:
        raise Misuse(
            f"{write(next(iter(flags)))} says how, but not when; add {write('cron')}, {write('period')} or {write('every')}",
            next_step=line_with(typed, "--period", "daily") if typed else None,
        )
    if kinds[0] != "period":
        return kinds[0]
    period = flags["period"][0]
    if period not in PERIODS:
        raise Misuse(f"{write('period')}: {period!r} is no period; write one of {', '.join(PERIODS)}")
    return period


def _kind_as(write: Writes, kind: str) -> str:
    return write(kind) if kind in KINDS else write("period", kind)


def _no_zone(kind: str, typed: Sequence[str], write: Writes) -> Misuse:
    zone = host_zone()
    there = f"this host is in {zone}" if typed else f"this host would write {write('zone', zone)}"
    return Misuse(
        f"{write(kind)} needs a {write('zone')}, or what it means changes with the host; {there}",
        next_step=line_with(typed, "--zone", zone) if typed else None,
    )


def line_with(typed: Sequence[str], *more: str) -> str:
    """A command as it would be typed, with more flags: before `--`, or at its end."""
    from shlex import join

    words = list(typed)
    place = words.index("--") if "--" in words else len(words)
    return join([*words[:place], *more, *words[place:]])


def host_zone() -> str:
    """The name of this host's zone: $TZ, /etc/localtime's target or /etc/timezone; UTC where none says."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if "/" in named and not named.startswith("/"):
        return named
    try:
        target = os.path.realpath("/etc/localtime")
    except OSError:
        target = ""
    _, found, name = target.partition("/zoneinfo/")
    if found and name:
        return "UTC" if name in ("Etc/UTC", "UCT", "Zulu", "Etc/UCT") else name
    try:
        with open("/etc/timezone", encoding="ascii") as f:
            return f.read().strip() or "UTC"
    except (OSError, ValueError):
        return "UTC"
