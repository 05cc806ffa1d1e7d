"""Run in an event loop: what an async job's function is given."""

from __future__ import annotations

import asyncio
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from duly.errors import CommitUnknown, Conflict, DulyError, OutputRefused, TransactionOwned
from duly.ledger.complete import NOTHING, has_completed
from duly.ledger.output import held_or_raise, hold_and_record_output_or_raise, record_output_or_raise
from duly.ledger.records import Claim
from duly.ledger.records import Run as Row
from duly.schedule.keys import RunKey
from duly.times import SECOND
from duly.work.aio.awaited import Awaited, undivided
from duly.work.aio.output import earlier_attempts
from duly.work.run import LongTransaction, RunFacts, as_path

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from os import PathLike
    from pathlib import Path

    from duly.ledger.ask import Operation
    from duly.ledger.complete import Left
    from duly.store.protocol import AsyncOwned, AsyncStore
    from duly.work.destinations import Destinations
    from duly.work.output import Place

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
        self._goes_inline = transaction is not None
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

    def publish(self, path: str | PathLike[str], *, replace: bool = False) -> Awaited[Path]:
        """Where to write a file that stands at `path` once, and only if, the run is complete: as `duly.Run.publish`."""
        return Awaited(self._published(path, replace=replace))

    async def _published(self, path: str | PathLike[str], *, replace: bool) -> Path:
        place = self._placed(path, replace=replace)
        if self._place is None:
            try:
                place.prepare(await earlier_attempts(self._store, self._claim))
            except OutputRefused:
                await self._store.read(held_or_raise(self._claim))
                raise
            self._place = place
        return as_path(self._place)

    async def _put_in_place(self, place: Place, left: Left) -> None:
        """Move the file into place in the run's transaction, begun now if it was not, on record before if it says it all."""
        try:
            intent = await asyncio.to_thread(place.finish)
        except OutputRefused:  # its successor has cleared away what it had written
            await self._store.read(held_or_raise(self._claim))
            raise
        if self._transaction is None and self._leaves_only_its_file(left):
            await self._store.write(record_output_or_raise(self._claim, intent))
            place.is_on_record()
        if self._transaction is None:
            await self._begin()
        assert self._transaction is not None
        await self._transaction.drive(hold_and_record_output_or_raise(self._claim, intent))
        await asyncio.to_thread(place.move)

    async def _take_back(self) -> None:
        """Take the file back, if nothing of what was to be committed with it was."""
        if self._place is not None:
            with suppress(DulyError):  # nobody can tell: it stays
                if not await self._store.read(has_completed(self._claim)):
                    self._place.withdraw()

    async def _complete(self, operation: Operation[T], left: Left = NOTHING) -> T:
        """Run the completing operation: in the run's own transaction if it was begun, else in one of the ledger's.

        `left` is what it leaves, where the run has a file.
        """
        if self._over:
            operation.close()
            raise TransactionOwned("this run's transaction has ended, and nothing of it was kept; stop")
        if self._place is not None:
            try:
                await self._put_in_place(self._place, left)
            except BaseException:
                operation.close()
                raise
        transaction = self._transaction
        if transaction is None:
            written = await self._told(self._store.write(operation))
            self._over = self._completed = True
            return written
        self._transaction, self._over, self._completed = None, True, True
        try:
            result = await self._told(transaction.complete(operation))
        except Exception:
            await self._take_back()
            raise
        if self._place is not None:
            self._place.discard()
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
        try:
            if transaction is not None:
                await undivided(transaction.abandon())
                if self._place is not None:
                    self._place.withdraw()
        finally:
            if self._place is not None:
                self._place.discard()
