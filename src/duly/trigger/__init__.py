"""Triggers: what schedulers that are not ours say of what they fired.

Most need not be asked: a trigger is a poke, and the ledger says what is owed (`duly exec`, `job.catch_up()`). Where the
schedule lives elsewhere, and each firing is to work the window that it was for, each source has a file here, all alike:
`read` makes a `Firing` of what the source hands over, an environment, headers or a context (`read_event`, `read_headers`,
`read_context`, where it hands over one thing or another), and raises `TriggerUnclear` where that does not tell. Which window it
was is never guessed from a clock. A manual firing is for no window: it works a run outside the schedule, and never borrows one.

Whatever a source hands over comes from elsewhere and may be anything. It is read by `instant_of`, `number_of` and the others
here: what is not what it should be is a `TriggerUnclear` that names where it was read.

A function that somebody calls works the run that is meant by `fire(job, read…(…))`. Where a framework has tasks, with words of
its own for how they end, `task_of(job)` of its source makes one of a job.

What a firing is for is looked up in the job's own schedule (`schedule/meant.py`), so that whatever fires it, a window has one
key: two schedulers of one job, in a migration or as belt and braces, have one effect.
"""

from __future__ import annotations

from duly.errors import Misuse, ScheduleError, TimeInvalid, TriggerUnclear
from duly.records import record
from duly.schedule.meant import Meant
from duly.times import DAY, MINUTE, Zone, from_datetime, instant_text, parse_instant

__all__ = [
    "CATCH_UP",
    "MANUAL",
    "RETRY",
    "SCHEDULED",
    "SOURCES",
    "Firing",
    "Meant",
    "adhoc_id",
    "at_time",
    "instant_of",
    "is_late",
    "moment_of",
    "name_of",
    "number_of",
    "optional_name_of",
    "read",
    "shown",
    "trigger_words",
    "within_reach",
    "zone_of",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULED, CATCH_UP, MANUAL, RETRY = "scheduled", "catch-up", "manual", "retry"

# What `duly exec --trigger` can read from its environment; a source is the module of its name.
SOURCES = ("airflow", "cloud-scheduler", "eventbridge", "kubernetes", "systemd")

_ID = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_LONGEST_ID = 100
_LONGEST_REFERENCE = 120


# What is fired more than so long after its time is fired late. Less is how long a scheduler may take to get to it.
_LATE = MINUTE

_LONGEST_NAME = 1000
_SHOWN = 60

# A time that somebody's schedule may have: what lies beyond is a mistake, and no calendar reaches there.
_REACH = range(2_900_000 * DAY)  # from 1970, and until the year 9909


@record
class Firing:
    """What a source says of one firing: a source fires once for each time that its schedule has, or when a person says so, and
    may make several attempts at it.

    `kind` is the first of these that fits, as far as the source tells:
    - manual: a person fired it, or what is no schedule. It is for no time;
    - retry: it is not the first attempt at this firing;
    - catch-up: it was fired late, more than a minute after its time, or by a backfill of the source's own. Whether others were
      missed before it has no part in that;
    - scheduled: it is none of those, or the source does not tell.

    `run` is what this firing is called: the same for each attempt at it, and another one for each other firing. Of a source
    that has names for its schedules only it is made of name and time (`at_time`). `attempt` is what the source calls this
    attempt at it, empty where it has no name for that. `place` says where the time was read, in words. `meant` is the time that
    it was for; a manual firing, and no other, has none.
    """

    source: str
    kind: str
    run: str
    attempt: str
    place: str
    meant: Meant | None


def read(source: str, environment: Mapping[str, str]) -> Firing:
    """What a source says in the environment of a process that it started. Raises `TriggerUnclear` where that does not tell."""
    from importlib import import_module

    if source not in SOURCES:
        raise Misuse(f"trigger: {source!r} is none of {', '.join(SOURCES)}")
    firing: Firing = import_module(f"duly.trigger.{source.replace('-', '_')}").read(environment)
    return firing


# -- what a source hands over, believed in nothing ---------------------------------------------------------------------------


def instant_of(place: str, text: object) -> int:
    """An instant in ISO 8601, with its offset. Raises `TriggerUnclear`, naming the place where it was read."""
    if not isinstance(text, str) or not text.isprintable():
        raise TriggerUnclear(f"{place}: {shown(text)} is no time")
    try:
        return within_reach(place, parse_instant(text))
    except (TimeInvalid, OverflowError) as e:
        raise TriggerUnclear(f"{place}: {shown(text)} is no time; it is written like 2026-10-25T01:00:00Z") from e


def moment_of(place: str, moment: object) -> int:
    """The instant of a datetime that has its offset. Raises `TriggerUnclear`."""
    from datetime import datetime

    if not isinstance(moment, datetime):
        raise TriggerUnclear(f"{place}: {shown(moment)} is no time")
    try:
        return within_reach(place, from_datetime(moment))
    except (TimeInvalid, OverflowError) as e:
        raise TriggerUnclear(f"{place}: {shown(moment)} names no instant, for want of an offset") from e


def within_reach(place: str, at: int) -> int:
    """An instant that a schedule may have. Raises `TriggerUnclear` for one that is beyond every calendar."""
    if at not in _REACH:
        raise TriggerUnclear(f"{place}: it is a time that no schedule has, before 1970 or too far from now")
    return at


def zone_of(place: str, name: object) -> str:
    """The name of a time zone; empty where none is said. Raises `TriggerUnclear`."""
    if name is None or name == "":
        return ""
    try:
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            raise TypeError
        return Zone(name).name
    except (ScheduleError, TypeError) as e:
        raise TriggerUnclear(f"{place}: there is no time zone {shown(name)}") from e


def number_of(place: str, number: object) -> int:
    """A count, as a number or in digits; 0 where none is said. Raises `TriggerUnclear`."""
    if number is None or number == "":
        return 0
    if type(number) is int and 0 <= number < 10**9:
        return number
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 10:
        return int(number)
    raise TriggerUnclear(f"{place}: {shown(number)} is no number of an attempt")


def name_of(place: str, name: object) -> str:
    """A name, in one line. Raises `TriggerUnclear`."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise TriggerUnclear(f"{place}: {shown(name)} is no name")
    return name


def optional_name_of(place: str, name: object) -> str:
    """A name that may be left out; empty then. Raises `TriggerUnclear`."""
    return "" if name is None or name == "" else name_of(place, name)


def shown(given: object) -> str:
    """What was handed over, in one line and not for ever."""
    text = repr(given[:_SHOWN] if isinstance(given, str) else given)
    return f"{text[:_SHOWN]}…" if len(text) > _SHOWN + 2 or (isinstance(given, str) and len(given) > _SHOWN) else text


# -- what is made of it -----------------------------------------------------------------------------------------------------


def at_time(name: str, at: int) -> str:
    """What a firing is called whose source has a name for its schedule only: `nightly@2026-10-25T00:30:00Z`."""
    return f"{name}@{instant_text(at)}"


def is_late(at: int, fired: int) -> bool:
    """Whether what is for the time `at` was fired late."""
    return fired - at > _LATE


def trigger_words(firing: Firing) -> str:
    """What an attempt has on record of what fired it: `kubernetes scheduled export-29387460 export-29387460-x2p4k`."""
    names = dict.fromkeys((firing.run, firing.attempt))
    words = " ".join(filter(None, (firing.source, firing.kind, *names)))
    return "".join(char if char.isprintable() else "?" for char in words)[:_LONGEST_REFERENCE]


def adhoc_id(firing: Firing) -> str:
    """The id of the run outside the schedule that a manual firing works: the same for each attempt at it.

    What may not stand in an id is replaced; then a digest keeps two names apart that would become one.
    """
    plain = "".join(char if char in _ID else "-" for char in firing.run)
    if plain == firing.run and 1 <= len(plain) <= _LONGEST_ID:
        return plain
    from hashlib import sha256

    digest = sha256(firing.run.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{plain[: _LONGEST_ID - len(digest) - 1]}-{digest}"
