"""The relay of a ledger that is open: `outbox.relay` with ids and an owner of this process."""

from __future__ import annotations

from duly.outbox.relay import Relay, Told
from duly.work.identity import new_attempt_id, owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duly.outbox.routes import Route
    from duly.store.protocol import Store


def relay_of(store: Store, routes: Mapping[str, Route], tell: Callable[[Told], None] = lambda told: None) -> Relay:
    """A relay that serves these destinations."""
    return Relay(store, routes, new_id=new_attempt_id, owner=owner(), tell=tell)
