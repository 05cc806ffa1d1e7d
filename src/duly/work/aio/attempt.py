"""An attempt in an event loop: claimed whole or not at all, and its end written down. The twin of `work.attempt`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from duly.errors import Misuse, Refused, raise_if_refused
from duly.ledger.complete import release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.records import Claim, Job
from duly.times import SECOND
from duly.work.aio.awaited import to_the_end
from duly.work.attempt import ended, retry_delay
from duly.work.waiting import FIRST_LOOK, LAST_LOOK, LOOK_SECONDS

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.ledger.named import Named
    from duly.ledger.progress import Progress
    from duly.store.protocol import AsyncOwned, AsyncStore

T = TypeVar("T")


class Claiming:
    """The transaction of a claim: one of its own that is committed at once, or inline the one of the effect."""

    def __init__(self, store: AsyncStore, *, inline: bool = False, durable: bool = True) -> None:
        self._store = store
        self._inline = inline
        self._durable = durable
        self.transaction: AsyncOwned | None = None

    async def __aenter__(self) -> Claiming:
        if self._inline:
            self.transaction = await self._store.owned()
            _, cancelled = await to_the_end(self.transaction.begin())
            if cancelled is not None:
                await self.transaction.abandon()
                raise cancelled
        return self

    async def claim(self, operation: Operation[T | Refused | Misuse], claim_of: Callable[[T], Claim | None]) -> T:
        """Run the claiming operation. Cancelled meanwhile, it gives back what it claimed: nobody would work it."""
        if self.transaction is not None:
            return raise_if_refused(await self.transaction.drive(operation))
        answer, cancelled = await to_the_end(self._store.write(operation, durable=self._durable))
        if cancelled is None:
            return raise_if_refused(answer)
        await self._give_back(None if isinstance(answer, (Refused, Misuse)) else claim_of(answer))
        raise cancelled

    async def claim_at_once(self, claim: Operation[Named | None]) -> Named | None:
        """Make a claim from memory; None where it has to be made from the beginning. Cancelled meanwhile, as `claim`."""
        if self.transaction is not None:
            return await self.transaction.drive(claim)
        named, cancelled = await to_the_end(self._store.claim_at_once(claim, durable=self._durable))
        if cancelled is None:
            return named
        await self._give_back(None if named is None else held_of(named))
        raise cancelled

    async def _give_back(self, held: Claim | None) -> None:
        if held is not None:
            await to_the_end(self._store.write(release_or_raise(held, "cancelled")))

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Inline, what was found without claiming is committed too; after a claim the transaction has ended already."""
        if self.transaction is None or not self.transaction.is_open:
            return
        await to_the_end(self.transaction.commit() if kind is None else self.transaction.abandon())


def held_of(named: Named) -> Claim | None:
    """The claim of a run that was named, if it was claimed."""
    return named.answer if isinstance(named.answer, Claim) else None


class Working:
    """The task that works a run, cancelled when a person asks the attempt to stop, as `asyncio.timeout` cancels one."""

    def __init__(self, tell: Callable[[], None]) -> None:
        task = asyncio.current_task()
        assert task is not None  # a coroutine that is awaited runs in one
        self._task = task
        self._asked_before = task.cancelling()
        self._tell = tell
        self._is_stopped = False

    def stop(self) -> None:
        """Cancel the task, wherever it waits now."""
        self._is_stopped = True
        self._tell()
        self._task.cancel()

    def was_stopped_by_us_alone(self) -> bool:
        """Take our cancellation back, if there was one; whether there was, and nobody else's. To be asked once."""
        return self._is_stopped and self._task.uncancel() <= self._asked_before


class Patience:
    """Looks at a holder again and again, until a deadline by the ledger's clock."""

    def __init__(self, store: AsyncStore, deadline: int) -> None:
        self._store = store
        self._deadline = deadline
        self._pause = FIRST_LOOK

    @classmethod
    async def of(cls, store: AsyncStore, micros: int) -> Patience:
        """Patience for so long, from now."""
        return cls(store, await store.now() + micros)

    async def pause(self) -> bool:
        """Wait a little before the next look. False: the deadline has come."""
        left = self._deadline - await self._store.now()
        if left <= 0:
            return False
        await asyncio.sleep(LOOK_SECONDS if self._store.clock_by_hand else min(self._pause, left / SECOND))
        self._pause = min(self._pause * 2, LAST_LOOK)
        return True


async def record_ending(
    store: AsyncStore, job: Job, claim: Claim, ending: Ending, *, error: str, progress: Progress | None = None
) -> None:
    """Write down how an attempt ended, other than by completing. Raises `ClaimLost` if another attempt took it over."""
    retry_in = retry_delay(job, claim, counted=ending.counted) if ending.retry else None
    await store.write(ended(claim, ending, retry_in=retry_in, error=error, progress=progress))


async def elapsed_since_first(store: AsyncStore, claim: Claim) -> int:
    """Microseconds since the first attempt of the claim's revision."""
    return await store.now() - claim.first_started_at
