"""The receiver's side: what comes in under a key is applied once, and a later delivery is answered as the first one was.

`receipt` is for any receiver: `duly.receive` in a transaction of the receiver's own. The rest is HTTP: middleware for the
`Idempotency-Key` header, one file each for `wsgi`, `asgi` and `django`, all alike. What they decide stands once, in `door`;
what a request and a problem look like, in `http`.

The deal of the middleware: *the application receives the key itself*, in the transaction of its effect. Around it the
middleware does what no transaction of the application's can: it answers a later delivery without calling the application, and
one that comes meanwhile at once; it says what is wrong with a key; and it stores the answer where the application has not. A
middleware that wrote the key into a transaction of its own would lose it, or the effect, in a crash between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.errors import Misuse
from duly.ledger.receive import forget_received_batch, raise_source_horizon

if TYPE_CHECKING:
    from typing import Protocol

    from duly.store.protocol import AsyncStore, Store

    class HasStore(Protocol):
        """A ledger that is open: `duly.sqlite(…)`, `duly.postgres(…)`, `duly.sqlalchemy(…)` or `duly.django()`."""

        @property
        def store(self) -> Store: ...

    class HasAsyncStore(Protocol):
        """A ledger of `duly.aio`."""

        @property
        def store(self) -> AsyncStore: ...


def forget(ledger: HasStore, source: str, *, by: str, reason: str = "", batch: int = 1000) -> int:
    """Delete the keys of a source that it need not remember any longer, with their answers; how many there were.

    First the horizon is raised, in a transaction of its own: from then on a key that was first sent before it is refused unless
    it is on record. Then keys below it go, so many in each transaction. May be called at any time, by anybody, and be killed.
    """
    if batch < 1:
        raise Misuse(f"batch: {batch} is no number of keys")
    store: Any = ledger.store
    store.write(raise_source_horizon(source, by=by, reason=reason))
    forgotten = 0
    while gone := store.write(forget_received_batch(source, batch)):
        forgotten += gone
    return forgotten
