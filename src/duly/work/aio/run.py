"""Run in an event loop: what an async job's function is given."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Generic, TypeVar

from duly.errors import CommitUnknown, Conflict, TransactionOwned
from duly.ledger.complete import has_completed
from duly.ledger.records import Claim
from duly.ledger.records import Run as Row
from duly.schedule.keys import RunKey
from duly.times import SECOND
from duly.work.aio.awaited import Awaited, undivided
from duly.work.run import LongTransaction, RunFacts

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from duly.ledger.ask import Operation
    from duly.store.protocol import AsyncOwned, AsyncStore
    from duly.work.destinations import Destinations

Tx = TypeVar("Tx")
T = TypeVar("T")


class Run(RunFacts, Generic[Tx]):
    """One attempt at a run, for an async job's function: as `duly.Run`, with `await run.tx`."""

    def __init__(
        self,
        store: AsyncStore,
        key: RunKey,
        claim: Claim,
        row: Row,
        transaction: AsyncOwned | None = None,
        timeout: int | None = None,
        first_name: str = "",
        destinations: Destinations | None = None,
    ) -> None:
        super().__init__(store.namespace, key, claim, row, timeout, first_name, destinations)
        self._store = store
        self._transaction = transaction
        self._began = time.monotonic()
        self._over = False

    @property
    def tx(self) -> Awaited[Tx]:
        """The run's transaction: begun when it is first awaited, on PostgreSQL with its first statement, which then raises
        what this does. It commits with the completion, or not at all.

        Raises `LedgerBusy` when its turn does not come. Commit, rollback, close and `async with` are refused.
        """
        return Awaited(self._begun())

    async def _begun(self) -> Tx:
        if self._over:
            raise TransactionOwned("this run is over: nothing can be written through its run.tx any more")
        if self._transaction is None:
            self._transaction = await undivided(self._begin())
        return self._transaction.connection  # type: ignore[return-value]  # the ledger's Tx is its driver's connection

    async def _begin(self) -> AsyncOwned:
        transaction = await self._store.owned()
        await transaction.begin()
        self._began = time.monotonic()
        self._transaction = transaction
        return transaction

    async def _complete(self, operation: Operation[T]) -> T:
        """Run the completing operation: in the run's own transaction if it was begun, else in one of the ledger's."""
        if self._over:
            operation.close()
            raise TransactionOwned("this run's transaction has ended, and nothing of it was kept; stop")
        transaction = self._transaction
        if transaction is None:
            written = await self._told(self._store.write(operation))
            self._over = self._completed = True
            return written
        self._transaction, self._over, self._completed = None, True, True
        result = await self._told(transaction.complete(operation))
        held = time.monotonic() - self._began
        if held * SECOND > self._claim.lease / 3:
            warnings.warn(f"{self.key} held its transaction for {held:.1f} s", LongTransaction, stacklevel=4)
        return result

    async def _told(self, completing: Awaitable[T]) -> T:
        """What completing answers; as `duly.Run`'s."""
        try:
            return await completing
        except CommitUnknown as e:
            if not await self._store.read(has_completed(self._claim)):
                raise Conflict("the connection was lost at the commit, and nothing of it was kept; try again") from e
            return None  # type: ignore[return-value]  # completing answers nothing

    def _owns(self, tx: object) -> bool:
        """Whether this is the run's own transaction, now open."""
        return self._transaction is not None and self._transaction.connection is tx

    def _leave(self) -> None:
        """Be over, while the transaction goes on for the next run of its group."""
        self._transaction = None
        self._over = self._completed = True

    async def _abandon(self) -> None:
        """Keep nothing of the run's transaction, if it is still open."""
        transaction, self._transaction, self._over = self._transaction, None, True
        if transaction is not None:
            await undivided(transaction.abandon())
