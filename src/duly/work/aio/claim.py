"""Claim in an event loop: the right to work a run now, for code that makes its own transactions. The twin of `work.claim`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from duly.errors import ClaimLost, DulyError
from duly.ledger import contracts, states
from duly.ledger.complete import complete_or_raise, doubt_or_raise, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.take import look
from duly.redaction import in_few_words
from duly.store.borrowed import is_open
from duly.work.aio.attempt import elapsed_since_first, record_ending
from duly.work.aio.awaited import Awaited, to_the_end, undivided
from duly.work.aio.run import Run
from duly.work.answers import Completed
from duly.work.attempt import Pulse, ending_of
from duly.work.exception import error_place
from duly.work.run import Window

if TYPE_CHECKING:
    from duly.ledger.records import Claim as Held
    from duly.ledger.records import Job
    from duly.ledger.records import Run as Row
    from duly.schedule.keys import RunKey
    from duly.store.protocol import AsyncStore
    from duly.work.aio.keeper import LeaseKeeper
    from duly.work.destinations import Destinations


class Claim:
    """A run that this process may work: `async with claim:` renews its lease and judges how the block ends.

    As `duly.Claim`. A cancellation ends the attempt as an exception does.
    """

    def __init__(
        self,
        store: AsyncStore,
        keeper: LeaseKeeper,
        job: Job,
        key: RunKey,
        held: Held,
        row: Row,
        pulse: Pulse,
        destinations: Destinations | None = None,
    ) -> None:
        self.run: Run[Any] = Run(store, key, held, row, first_name=job.first_name, destinations=destinations)
        self._store = store
        self._keeper = keeper
        self._job = job
        self._held = held
        self._pulse = pulse
        self._ended = False
        self._borrowed: object | None = None

    @property
    def key(self) -> str:
        """The run's key."""
        return self.run.key

    @property
    def window(self) -> Window:
        """The half-open window [start, end) that the run answers for, in UTC."""
        return self.run.window

    @property
    def superseded(self) -> bool:
        """Whether another attempt took this run over: stop."""
        return self.run.superseded

    @property
    def cancelled(self) -> bool:
        """Whether a person asked this attempt to stop, as its last heartbeat heard. The block is not cancelled for that: it may
        be in the midst of a transaction of its own.
        """
        return self.run.cancelled

    def __repr__(self) -> str:
        return f"<duly.aio.Claim {self.run.key} attempt {self.run.attempt}>"

    def __bool__(self) -> Literal[True]:
        return True

    def __del__(self) -> None:
        """A claim that is forgotten shows no pulse; its lease runs out."""
        if hasattr(self, "_pulse"):
            self._pulse.stop()

    async def __aenter__(self) -> Claim:
        self._keeper.keep(self._held, self._lost, self.run._cancel, self.run._progress_now)
        return self

    def _lost(self) -> None:
        """A renewal was refused: another attempt took the run over, unless a transaction of the caller's completed it."""
        if self._borrowed is None:
            self.run._supersede()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await undivided(self._leave(error))

    async def _leave(self, error: BaseException | None) -> None:
        try:
            await self.run._abandon()
            if not self._ended and not await self._may_yet_commit(error):
                await self._judge(error)
        except ClaimLost:
            if error is None:
                raise
            error.add_note(f"duly: another attempt had taken {self.run.key} over")
        except DulyError as e:
            if error is None:
                raise
            error.add_note(f"duly: how this attempt ended could not be recorded: {e}")
        finally:
            await self.close()

    def complete(self, tx: object = None, *, output: str | None = None) -> Awaited[Completed]:
        """Complete the run in the caller's transaction, which the caller commits; without one, in `claim.run.tx` if that
        was read, else in one of duly's own; those are committed here. As `duly.Claim.complete`.
        """
        return Awaited(self._complete(tx, output))

    async def _complete(self, tx: object, output: str | None) -> Completed:
        if not (tx is None or self.run._owns(tx)):
            self.run._refuse_file_elsewhere()
        left = self.run._left(output)
        operation = complete_or_raise(self._held, left)
        if tx is None or self.run._owns(tx):
            _, cancelled = await to_the_end(self.run._complete(operation, left))
            await self._over()
            if cancelled is not None:
                raise cancelled
        else:
            await self._store.run_in(tx, operation)
            self._borrowed = tx
            self.run._completed = True
        return Completed(self.key, self.run.attempt)

    async def fail(self, cause: str) -> None:
        """End the attempt as failed, for a reason in a few words that holds no secret. Raises `ClaimLost`."""
        await undivided(self._fail(cause))

    async def _fail(self, cause: str) -> None:
        await self._end(await self._ending(in_few_words(cause), cancelled=False))  # its own word

    async def doubt(self, cause: str) -> None:
        """Say that a remote effect may or may not have happened: the run is unknown until that is known."""
        await self.run._abandon()
        await undivided(self._store.write(doubt_or_raise(self._held, in_few_words(cause))))
        await self._over()

    async def release(self) -> None:
        """Give the run back untouched: nothing was done. Raises `ClaimLost`."""
        await self.run._abandon()
        await undivided(self._store.write(release_or_raise(self._held, "released")))
        await self._over()

    async def close(self) -> None:
        """Stop renewing the lease and let the file lock go. The claim stays in the ledger until it ends or lapses."""
        self._keeper.drop(self._held)
        await self.run._abandon()
        self._pulse.stop()

    async def _over(self) -> None:
        self._ended = True
        await self.close()

    async def _may_yet_commit(self, error: BaseException | None) -> bool:
        """Whether the caller's transaction, in which the run was completed, has committed or is still to end."""
        if self._borrowed is None:
            return False
        return await self._is_completed() or (error is None and is_open(self._borrowed))

    async def _is_completed(self) -> bool:
        """Whether the ledger has this attempt's completion."""
        row = await self._store.read(look(self._held.run))
        return row is not None and row.attempt_id == self._held.attempt_id and row.state == states.COMPLETED

    async def _judge(self, error: BaseException | None) -> None:
        if error is not None:
            ending = await self._ending(type(error).__qualname__, cancelled=self.cancelled)
            await self._end(ending, error_place(error))
        elif self._held.contract == contracts.EXTERNAL and not self.cancelled:
            await self._end(Ending(states.UNKNOWN, "left without completing"))
        else:
            cause = "left without completing"
            await self._end(await self._ending(cause, cancelled=self.cancelled), cause)

    async def _ending(self, cause: str, *, cancelled: bool) -> Ending:
        elapsed = await elapsed_since_first(self._store, self._held)
        return ending_of(self._job, self._held, cause, elapsed=elapsed, cancelled=cancelled)

    async def _end(self, ending: Ending, error: str = "") -> None:
        await self.run._abandon()
        await record_ending(
            self._store, self._job, self._held, ending, error=error or ending.cause, progress=self.run._progress_now()
        )
        await self._over()
