"""The lease keeper in an event loop: one task for each claim, as `work.keeper` has one thread for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from duly.errors import DulyError
from duly.ledger.records import Claim
from duly.ledger.take import renew
from duly.store.protocol import AsyncStore
from duly.times import SECOND
from duly.work.keeper import RENEW_SECONDS
from duly.work.waiting import LOOK_SECONDS


class LeaseKeeper:
    """Keeps leases until they are dropped."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._tasks: dict[bytes, asyncio.Task[None]] = {}

    def keep(self, claim: Claim, lost: Callable[[], None]) -> None:
        """Renew the claim's lease from now on; call `lost` once if another attempt has taken the run over."""
        self._tasks[claim.attempt_id] = asyncio.create_task(self._renew(claim, lost), name="duly-lease-keeper")

    def drop(self, claim: Claim) -> None:
        """Stop renewing: the attempt has ended."""
        task = self._tasks.pop(claim.attempt_id, None)
        if task is not None:
            task.cancel()

    async def _renew(self, claim: Claim, lost: Callable[[], None]) -> None:
        renew_at = claim.started_at + claim.lease // 3
        while True:
            await wait_until(self._store, renew_at)
            try:
                held = await self._store.write(renew(claim), busy_seconds=RENEW_SECONDS)
                now = await self._store.now()
            except DulyError:  # not decided, and nobody can take over while the ledger is busy: soon again
                await asyncio.sleep(max(claim.lease / SECOND / 10, LOOK_SECONDS))
                continue
            if not held:
                self._tasks.pop(claim.attempt_id, None)
                lost()
                return
            renew_at = now + claim.lease // 3


async def wait_until(store: AsyncStore, until: int) -> None:
    """Wait until an instant by the ledger's clock. One set by hand is looked at each few milliseconds."""
    while (left := until - await store.now()) > 0:
        await asyncio.sleep(LOOK_SECONDS if store.clock_by_hand else left / SECOND)
