"""Routes: how each declared destination is served. What the receiver takes is the destination's own word; how much of it at
once, how often, and when it is given up, is said here.

    [destinations.billing]
    kind = "http"                     and what that kind takes
    concurrency = 4                   sendings at once, by all relays together
    rate = "10/s"                     at most, by all relays together
    timeout = "30s"                   of one sending
    tries = 10                        sendings that surely failed; then the message is dead, and waits for a person
    retry_delay = "5s"                before the second try; doubles, jittered
    retry_ceiling = "1h"
    probe_after = "1m"                after a doubt, before the receiver is asked what happened, and between two such questions
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.outbox.destinations import destination_of
from duly.records import record
from duly.times import DAY, HOUR, MINUTE, SECOND, duration_text, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from duly.outbox.destinations import Destination

PER = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
MOST_AT_ONCE = 256


@record
class Route:
    """A destination by name, who makes it, and how it is served. Times in microseconds; `interval` 0: as fast as it goes."""

    name: str
    make: Callable[[], Destination]
    concurrency: int = 4
    interval: int = 0
    timeout: int = 30 * SECOND
    tries: int = 10
    retry_delay: int = 5 * SECOND
    retry_ceiling: int = HOUR
    probe_after: int = MINUTE

    def __repr__(self) -> str:
        return f"<Route to {self.name}>"


KEYS = ("concurrency", "rate", "timeout", "tries", "retry_delay", "retry_ceiling", "probe_after")


def route_of(
    name: str,
    settings: Mapping[str, object],
    make: Callable[[], Destination] | None = None,
    *,
    hidden: Collection[str] = (),
) -> Route:
    """The route of a destination, by its settings as duly.toml has them; `make` makes one that no kind stands for.

    `hidden`: variables of the environment that none of its commands may see, as the one that holds the ledger's URL.
    Raises `Misuse`, naming destination and field. Connects nothing.
    """
    own = {key: value for key, value in settings.items() if key in KEYS}
    others = {key: value for key, value in settings.items() if key not in KEYS}
    if make is None:
        make = partial(destination_of, name, others, hidden=hidden)
        make()  # what is wrong with it is said where it is declared
    elif others:
        raise Misuse(f"destination {name}: {next(iter(others))!r} says nothing to a destination that is made in code")
    return Route(
        name,
        make,
        concurrency=_count(name, "concurrency", own.get("concurrency", 4), MOST_AT_ONCE),
        interval=_interval(name, own.get("rate")),
        timeout=_duration(name, "timeout", own.get("timeout", "30s"), least=SECOND, most=HOUR),
        tries=_count(name, "tries", own.get("tries", 10), 10_000),
        retry_delay=_duration(name, "retry_delay", own.get("retry_delay", "5s")),
        retry_ceiling=_duration(name, "retry_ceiling", own.get("retry_ceiling", "1h")),
        probe_after=_duration(name, "probe_after", own.get("probe_after", "1m")),
    )


def _count(name: str, key: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise Misuse(f"destination {name}: {key} is a whole number between 1 and {most}, not {value!r}")
    return value


def _duration(name: str, key: str, value: object, *, least: int = 1, most: int = 366 * DAY) -> int:
    if not isinstance(value, str):
        raise Misuse(f'destination {name}: {key} is a duration, as {key} = "30s"')
    try:
        micros = parse_duration(value)
    except Misuse as e:
        raise Misuse(f"destination {name}: {key}: {e}") from e
    if not least <= micros <= most:
        raise Misuse(f"destination {name}: {key} lies between {duration_text(least)} and {duration_text(most)}")
    return micros


def _interval(name: str, value: object) -> int:
    if value is None:
        return 0
    many, slash, unit = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not slash or not many.isascii() or not many.isdigit() or int(many) < 1 or unit not in PER:
        raise Misuse(f'destination {name}: rate is a number of messages in a time, as rate = "10/s", or "600/m"')
    return max(PER[unit] // int(many), 1)
