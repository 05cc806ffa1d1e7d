"""Schedule flags: how a schedule is written on a command line and in a file of jobs, with the calendar of a file, and the line
to type instead.
"""

from __future__ import annotations

import os

from duly.errors import Misuse
from duly.schedule.written import Writing, schedule_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duly.schedule.calendar import Calendar
    from duly.schedule.spec import Schedule
    from duly.schedule.written import Writes


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

    `typed` is the whole command, for the line to type instead; `write` is how an error names a flag. Raises as
    `schedule_written`, and `Misuse` for a calendar that cannot be read.
    """
    return schedule_written(
        given,
        Writing(
            write,
            lambda file: _calendar(file, write),
            lambda *more: line_with(typed, *more) if typed else None,
            host_zone,
            lambda: (
                f"this host is in {host_zone()}" if typed else f"this host would write {write('zone', host_zone())}"
            ),
        ),
    )


def _calendar(file: str, write: Writes) -> Calendar:
    """The calendar in a file, named after it."""
    from duly.schedule.calendar import make_calendar

    try:
        with open(file, encoding="utf-8") as f:
            days = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise Misuse(f"{write('calendar')}: {file} cannot be read: {e}") from e
    return make_calendar(os.path.splitext(os.path.basename(file))[0], days)


def line_with(typed: Sequence[str], *more: str) -> str:
    """A command as it would be typed, with more flags: before `--`, or at its end; without the secrets that are in it."""
    from shlex import join

    from duly.redaction import Redaction, secrets_of

    words = list(typed)
    place = words.index("--") if "--" in words else len(words)
    ours, command = Redaction(), Redaction(secrets_of(os.environ))  # a flag's value may well be that of some variable
    return join([*ours.words(words[:place]), *more, *command.words(words[place:])])


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
