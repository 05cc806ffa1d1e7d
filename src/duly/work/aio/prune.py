"""Prune, in an event loop: as `duly.work.prune`, awaited."""

from __future__ import annotations

from asyncio import sleep
from typing import TYPE_CHECKING

from duly.errors import LedgerBusy
from duly.ledger.forget import Batch, forget_batch, raise_horizon
from duly.work.prune import BATCH, Pace, refusal, timed, wanted

if TYPE_CHECKING:
    from duly.ledger.forget import Prospect
    from duly.store.protocol import AsyncStore


async def prune(store: AsyncStore, name: str | None, older_than: int | None, *, by: str) -> int:
    """As `duly.work.prune.prune`."""
    await store.open()
    looked = await store.read(wanted(name, None, older_than))
    runs = 0
    for prospect in looked.prospects:
        reason = looked.reason_of(prospect.known.job.name)
        runs += await _prune_series(store, prospect, by=by, reason=reason)
    if looked.refused:
        raise refusal(looked.refused)
    return runs


async def _prune_series(store: AsyncStore, prospect: Prospect, *, by: str, reason: str) -> int:
    if prospect.found is not None:
        await store.write(raise_horizon(prospect.found, by=by, reason=reason))
    runs, pace, after = 0, Pace(BATCH), None
    while True:
        done = await _batch(store, pace, prospect, after)
        runs, after = runs + done.gone.runs, done.last
        if done.is_last:
            return runs


async def _batch(store: AsyncStore, pace: Pace, prospect: Prospect, after: int | None) -> Batch:
    while True:
        batch = forget_batch(prospect.series, pace.many, settled_by=prospect.settled_by, after=after)
        try:
            done, seconds = await store.write(timed(batch))
        except LedgerBusy:
            if not pace.less():
                raise
        else:
            await sleep(pace.after(seconds))
            return done
