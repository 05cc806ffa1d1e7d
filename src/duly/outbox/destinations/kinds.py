"""The kinds of destinations: a name, a module. What a kind needs is imported when one of it is declared."""

from __future__ import annotations

from duly.errors import Misuse
from duly.outbox.destinations.settings import Settings, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from duly.outbox.destinations import Destination

KINDS = ("http", "smtp", "inbox", "command", "healthchecks", "amqp", "nats", "redis")


def kind_of(name: str, table: Mapping[str, object], hidden: Collection[str] = ()) -> Destination:
    """The destination that a table declares. Raises `Misuse`, naming the field."""
    settings = Settings(name, table, hidden)
    kind = settings.text("kind", as_in="http")
    if kind not in KINDS:
        raise Misuse(f"{settings.key('kind')}: there is no {kind!r}; {nearest(kind, KINDS)}")
    made = maker_of(kind)(settings)
    settings.done()
    return made


def maker_of(kind: str) -> Callable[[Settings], Destination]:
    """Who makes a destination of this kind of its settings."""
    from importlib import import_module

    made: Callable[[Settings], Destination] = import_module(f"duly.outbox.destinations.{kind}").declared
    return made
