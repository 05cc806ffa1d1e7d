"""The lease keeper in an event loop: one task for each claim, as `work.keeper` has one thread for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from duly.errors import DulyError
from duly.ledger.records import Claim
from duly.ledger.take import ASKED_TO_STOP, LOST, beat
from duly.store.protocol import AsyncStore
from duly.times import SECOND
from duly.work.keeper import RENEW_SECONDS
from duly.work.waiting import LOOK_SECONDS


class LeaseKeeper:
    """Keeps leases until they are dropped."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._tasks: dict[bytes, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()  # cancelled, and not yet done with what they had of the store

    def keep(self, claim: Claim, lost: Callable[[], None], asked: Callable[[], None]) -> None:
        """Renew the claim's lease from now on; call `lost` once if another attempt has taken the run over, and `asked` once if
        a person asked this one to stop.
        """
        self._tasks[claim.attempt_id] = asyncio.create_task(self._renew(claim, lost, asked), name="duly-lease-keeper")

    def drop(self, claim: Claim) -> None:
        """Stop renewing: the attempt has ended."""
        task = self._tasks.pop(claim.attempt_id, None)
        if task is not None:
            task.cancel()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def rest(self) -> None:
        """Wait for the renewals that were stopped: a connection that one of them gives back later would stay open."""
        here = asyncio.get_running_loop()
        await asyncio.gather(
            *(task for task in self._stopping if task.get_loop() is here), return_exceptions=True
        )  # of another loop, nobody can wait for them here

    async def _renew(self, claim: Claim, lost: Callable[[], None], asked: Callable[[], None]) -> None:
        renewed_at, is_asked = claim.started_at, False
        while True:
            try:
                renewed_at = await self._pass(claim.lease // 3, renewed_at)
                heard = await self._store.write(beat(claim), busy_seconds=RENEW_SECONDS)
            except DulyError:  # not decided, and nobody can take over while the ledger is busy: soon again
                await asyncio.sleep(max(claim.lease / SECOND / 10, LOOK_SECONDS))
                continue
            if heard == LOST:
                self._tasks.pop(claim.attempt_id, None)
                lost()
                return
            if heard == ASKED_TO_STOP and not is_asked:
                is_asked = True
                asked()

    async def _pass(self, micros: int, since: int) -> int:
        """Let so much time pass. A clock that is set by hand is the ledger's own, and looked at each few milliseconds."""
        if not self._store.clock_by_hand:
            await asyncio.sleep(micros / SECOND)
            return since
        while (now := await self._store.now()) < since + micros:
            await asyncio.sleep(LOOK_SECONDS)
        return now
