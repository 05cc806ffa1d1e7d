"""What a poke delivers: when a command has sent messages, what is due goes at once. What is left is for the next who comes."""

from __future__ import annotations

from duly.cli.complain import say
from duly.errors import ConfigurationInvalid, DulyError
from duly.ledger.messages import backlog
from duly.work.destinations import configured_here
from duly.work.relay import relay_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from duly.outbox.routes import Route
    from duly.store.protocol import Store

SECONDS = 60.0  # a poke is to end: a backlog is for a daemon, or `duly outbox deliver`


def deliver(store: Store, *, only: Collection[str] | None = None) -> None:
    """Deliver what is due, to some destinations or to all. The runs are complete, whatever comes of this: it changes no exit
    code.
    """
    try:
        relay_of(store, _routes(store, only)).deliver(seconds=SECONDS)
    except DulyError as e:
        _say_of(e)


def _routes(store: Store, only: Collection[str] | None) -> dict[str, Route]:
    """Those to which there is something to deliver. A table that is wrong is in no other one's way."""
    layers = configured_here()
    found = {}
    for waiting in store.read(backlog()):
        if only is not None and waiting.destination not in only:
            continue
        try:
            route = layers.destination(waiting.destination)
        except ConfigurationInvalid as e:
            _say_of(e)
            continue
        if route is not None:
            found[waiting.destination] = route
    return found


def _say_of(error: DulyError) -> None:
    say(f"duly: messages are to be delivered yet: {error}\n  try: duly outbox deliver")
