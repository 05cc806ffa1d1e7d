"""Output in an event loop: the twin of `work.output`. What reads or flushes a whole file does so in a thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from duly.errors import NotAllowed, OutcomeUnknown
from duly.ledger import states
from duly.ledger.complete import Left, complete_or_raise
from duly.ledger.output import attempts_at, attempts_before, find_output, forget_output
from duly.ledger.resolve import resolve
from duly.ledger.take import look
from duly.times import as_datetime
from duly.work.answers import AlreadyCompleted
from duly.work.output import discard_all, stands, word_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.ledger.named import Named
    from duly.ledger.output import Intent
    from duly.ledger.records import Claim, Run
    from duly.schedule.keys import RunKey
    from duly.store.protocol import AsyncStore


async def earlier_attempts(store: AsyncStore, claim: Claim) -> Sequence[bytes]:
    """The ids of the attempts before this one; of the first there are none, and the ledger is not asked."""
    return await store.read(attempts_before(claim)) if claim.number > 1 else ()


async def found_in_place(store: AsyncStore, claim: Claim) -> Intent | None:
    """The output of an earlier attempt, if it stands in its place: as `work.output.found_in_place`."""
    if claim.number == 1 or (intent := await store.read(find_output(claim.run))) is None:
        return None
    if not await asyncio.to_thread(stands, intent):
        await store.write(forget_output(claim))
        return None
    discard_all(intent, await store.read(attempts_before(claim)))
    return intent


async def found_done(store: AsyncStore, standing: Run) -> bool:
    """Whether an unknown run turns out to be done: as `work.output.found_done`."""
    if standing.state != states.UNKNOWN or (intent := await store.read(find_output(standing.id))) is None:
        return False
    if not await asyncio.to_thread(stands, intent):
        return False
    try:
        await store.write(resolve(standing.id, word_of(intent), done=True))
    except NotAllowed:  # its attempt may yet report
        return False
    discard_all(intent, await store.read(attempts_at(standing.id)))
    return True


async def done_after_all(store: AsyncStore, named: Named) -> AlreadyCompleted | None:
    """The answer for a run of unknown outcome whose file turns out to stand: as `work.output.done_after_all`."""
    if not isinstance(named.answer, OutcomeUnknown) or named.row is None:
        return None
    row = await store.read(look(named.row.id))
    if row is None or not await found_done(store, row):
        return None
    return AlreadyCompleted(str(named.key), row.fence, as_datetime(await store.now()))


async def completed_in_place(store: AsyncStore, key: RunKey, claim: Claim) -> AlreadyCompleted | None:
    """Complete a run that was claimed, if its file turns out to stand: as `work.output.completed_in_place`."""
    found = await found_in_place(store, claim)
    if found is None:
        return None
    await store.write(complete_or_raise(claim, Left(found.path)))
    return AlreadyCompleted(str(key), claim.number, as_datetime(await store.now()))
