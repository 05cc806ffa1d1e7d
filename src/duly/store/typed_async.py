"""A ledger beside a user's own library in an event loop: as `typed`, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from duly.ledger.ask import Operation
    from duly.store.postgres_async import AsyncPostgresStore
    from duly.store.protocol import AsyncOwned
    from duly.store.sqlite_async import AsyncSqliteStore

    Kept = AsyncSqliteStore | AsyncPostgresStore

T = TypeVar("T")


class AsyncTypedStore:
    """One ledger, opened by `find` at the first use, whose runs own the transactions that `own` makes.

    Until then it is known by a name, and by how long a write waits for its turn.
    """

    def __init__(
        self, name: str, busy_seconds: float, find: Callable[[], Awaitable[Kept]], own: Callable[[Kept], AsyncOwned]
    ) -> None:
        self.path = name
        self.busy_seconds = busy_seconds
        self.clock_by_hand = False
        self.ledger_id = self.namespace = ""
        self._find = find
        self._own = own
        self._found: Kept | None = None

    async def open(self) -> None:
        """Find the ledger and open it; again is a no-op. Raises as whatever opens it."""
        if self._found is None:
            await self._keep(await self._find())

    async def _keep(self, found: Kept) -> None:
        if self._found is not None:  # another task has found it meanwhile
            await found.close()
            return
        self.path, self.clock_by_hand = found.path, found.clock_by_hand
        self.ledger_id, self.namespace = found.ledger_id, found.namespace
        self._found = found

    @property
    def ledger(self) -> Kept:
        """The ledger itself."""
        assert self._found is not None  # it was opened
        return self._found

    @property
    def claim_looks(self) -> bool:
        """Whether a look before `claim_at_once` spares nothing."""
        return self.ledger.claim_looks

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit."""
        return await self.ledger.read(operation)

    async def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself: for an answer that one row gives."""
        return await self.ledger.glance(operation)

    async def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it. Raises `LedgerBusy` when its turn does not come."""
        return await self.ledger.write(operation, durable=durable, busy_seconds=busy_seconds)

    async def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """As `write`, of `claim_remembered`: in one wait where the database can."""
        return await self.ledger.claim_at_once(claim, durable=durable)

    async def now(self) -> int:
        """The ledger's instant."""
        return await self.ledger.now()

    async def owned(self) -> AsyncOwned:
        """A transaction for a run's own effect."""
        return self._own(self.ledger)

    def begin_pulse(self, attempt_id: bytes) -> int:
        """Show a pulse for an attempt: a descriptor to be closed at its end, -1 where there is none."""
        return self.ledger.begin_pulse(attempt_id)

    async def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        return await self.ledger.run_in(tx, operation)

    async def close(self) -> None:
        """Close the connections to the ledger; those of the library are the user's. It may be used again."""
        if self._found is not None:
            await self._found.close()
