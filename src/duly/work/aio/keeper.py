"""The lease keeper in an event loop: one task for each claim, as `work.keeper` has one thread for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from duly.errors import DulyError
from duly.ledger.progress import Progress, report
from duly.ledger.records import Claim
from duly.ledger.take import ASKED_TO_STOP, LOST, beat
from duly.store.protocol import AsyncStore
from duly.times import SECOND
from duly.work.keeper import RENEW_SECONDS, REPORT_BUSY_SECONDS, REPORT_SECONDS
from duly.work.waiting import LOOK_SECONDS


class LeaseKeeper:
    """Keeps leases until they are dropped."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._tasks: dict[bytes, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()  # cancelled, and not yet done with what they had of the store

    def keep(
        self,
        claim: Claim,
        lost: Callable[[], None],
        asked: Callable[[], None],
        progress: Callable[[], Progress | None],
    ) -> None:
        """Renew the claim's lease from now on; call `lost` once if another attempt has taken the run over, and `asked` once if
        a person asked this one to stop. Its `progress` is looked at every few seconds, and written when it is another.
        """
        watched = _Watched(self._store, claim, progress)
        renewing = self._renew(claim, lost, asked, watched)
        self._tasks[claim.attempt_id] = asyncio.create_task(renewing, name="duly-lease-keeper")

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

    async def _renew(
        self, claim: Claim, lost: Callable[[], None], asked: Callable[[], None], watched: _Watched
    ) -> None:
        renewed_at, is_asked = claim.started_at, False
        while True:
            try:
                renewed_at = await self._pass(claim.lease // 3, renewed_at, watched)
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

    async def _pass(self, micros: int, since: int, watched: _Watched) -> int:
        """Let so much time pass. A clock that is set by hand is the ledger's own, and looked at each few milliseconds."""
        if not self._store.clock_by_hand:
            ends = monotonic() + micros / SECOND
            while (left := ends - monotonic()) > 0:
                await asyncio.sleep(min(left, REPORT_SECONDS))
                await watched.report()
            return since
        while (now := await self._store.now()) < since + micros:
            await asyncio.sleep(LOOK_SECONDS)
            await watched.report()
        return now


class _Watched:
    """The progress of a claim, written when it is another than it was."""

    def __init__(self, store: AsyncStore, claim: Claim, progress: Callable[[], Progress | None]) -> None:
        self._store = store
        self._claim = claim
        self._progress = progress
        self._written: Progress | None = None

    async def report(self) -> None:
        """Write how far the attempt is. Where others are writing, the next look tells: nothing is decided by it."""
        progress = self._progress()
        if progress is None or progress is self._written:
            return
        with suppress(DulyError):
            operation = report(self._claim, progress)
            await self._store.write(operation, durable=False, busy_seconds=REPORT_BUSY_SECONDS)
            self._written = progress
