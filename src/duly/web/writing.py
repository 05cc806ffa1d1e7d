"""Writing: the one way in which an action comes to the ledger. It is there only where the server was started to allow changes.

Each action has a key, and is received in the transaction that does it, by the receiver that duly gives to others: a form that
is sent twice, and a client that has lost an answer and asks again, are told what was done the first time.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from duly.evidence.documents.window import document
from duly.ledger.receive import APPLY, Replay, answer_or_raise, receive
from duly.outbox.receiver.receipt import delivery_of, read_form, stored_form
from duly.records import record
from duly.store.tried import write_or_try
from duly.web.reading import Reader, connected

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypeVar

    from duly.ledger.ask import Operation
    from duly.ledger.receive import Delivery
    from duly.store.protocol import Store
    from duly.web.action import Action, Given

    T = TypeVar("T")

SOURCE = "duly dashboard"
THREADS = 2  # a ledger has one writer at a time, or few


@record
class Answered:
    """What an action is answered: a document; `replayed`: it was done before, under this key."""

    document: str
    replayed: bool


class Writer(Reader):
    """Changes one ledger, in threads of its own. `keeps` as of a reader."""

    def __init__(self, open_ledger: Callable[[], Store], *, keeps: bool) -> None:
        super().__init__(open_ledger, keeps=keeps, threads=THREADS)

    async def change(self, operation: Callable[[], Operation[T]], *, dry_run: bool = False) -> T:
        """Run an operation in a transaction and commit it, or only try it.

        Where a connection is lost it is run again: so it has to know what it has done, as `applied` does by its key.
        """
        return await self.within(
            lambda _: self.with_store(lambda store: write_or_try(store, operation(), dry_run=dry_run))  # type: ignore[arg-type]
        )


def delivery(action: Action, given: Given, key: str, *, first_sent: datetime | str | None = None) -> Delivery:
    """An action as it is received, under its key. Raises `Misuse`, naming the field, for what can be no key."""
    told = [action.name, *(f"{name}={given.path[name]}" for name in sorted(given.path))]
    told += [f"{name}={given.fields[name]}" for name in sorted(given.fields)]
    payload = sha256("\0".join(told).encode()).hexdigest()
    return delivery_of(key, payload, source=SOURCE, remembers=None, first_sent=first_sent, undated=APPLY)


async def applied(delivery: Delivery, action: Action, given: Given) -> Answered:
    """Do an action once for its key. Raises as the action, and `PayloadConflict` for a key that came with something else."""
    found = await receive(delivery)
    if isinstance(found, Replay):
        assert found.answer is not None  # it is stored by the transaction that receives the key
        return Answered(read_form(found.answer).text, True)
    done = await action.act(given)
    text = document(done.schema, done.facts)
    await answer_or_raise(found, stored_form(text, 200, {"content-type": "application/json"}))
    return Answered(text, False)


def writer_of(url: str) -> Writer:
    """A writer of the ledger of a URL or a path that is there. Opens nothing yet."""
    if not url.startswith(("postgresql://", "postgres://")):
        from duly.store.sqlite import SqliteStore, ledger_path

        path = ledger_path(url)
        return Writer(lambda: SqliteStore(path, create=False), keeps=False)
    return Writer(lambda: connected(url), keeps=True)
