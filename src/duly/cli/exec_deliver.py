"""What a poke delivers: when a command has sent messages, what is due goes at once. What is left is for the next who comes."""

from __future__ import annotations

from duly.cli.complain import say
from duly.errors import DulyError
from duly.work.destinations import configured_routes
from duly.work.relay import relay_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.store.protocol import Store

SECONDS = 60.0  # a poke is to end: a backlog is for a daemon, or `duly outbox deliver`


def deliver(store: Store) -> None:
    """Deliver what is due. The runs are complete, whatever comes of this: it changes no exit code."""
    try:
        relay_of(store, configured_routes()).deliver(seconds=SECONDS)
    except DulyError as e:
        say(f"duly: messages are to be delivered yet: {e}\n  try: duly outbox deliver")
