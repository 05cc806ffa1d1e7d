"""Claim: the right to work a run now, for code that makes its own transactions."""

from __future__ import annotations

import os
import sqlite3
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from duly.errors import ClaimLost, DulyError
from duly.ledger import contracts, states
from duly.ledger.complete import complete_or_raise, doubt_or_raise, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.take import look
from duly.redaction import in_few_words
from duly.store.borrowed import is_open
from duly.work.answers import Completed
from duly.work.attempt import Pulse, elapsed_since_first, ending_of, record_ending
from duly.work.exception import error_place
from duly.work.run import Run, Window

if TYPE_CHECKING:
    from duly.ledger.records import Claim as Held
    from duly.ledger.records import Job
    from duly.ledger.records import Run as Row
    from duly.schedule.keys import RunKey
    from duly.store.borrowed import Lent
    from duly.store.protocol import Store
    from duly.work.destinations import Destinations
    from duly.work.keeper import LeaseKeeper


class Claim:
    """A run that this process may work: `with claim:` renews its lease and judges how the block ends.

    An exception ends the attempt by its contract; a block left without `complete` is failed, or under `external` unknown.
    Always true, so that it can be told from `AlreadyCompleted`, `Busy` and `NotDue`.
    """

    def __init__(
        self,
        store: Store,
        keeper: LeaseKeeper,
        job: Job,
        key: RunKey,
        held: Held,
        row: Row,
        pulse: Pulse,
        destinations: Destinations | None = None,
    ) -> None:
        self.run: Run[sqlite3.Connection] = Run(
            store, key, held, row, first_name=job.first_name, destinations=destinations
        )
        self._store = store
        self._keeper = keeper
        self._job = job
        self._held = held
        self._pulse = pulse
        self._ended = False
        self._pid = os.getpid()
        self._borrowed: Lent | None = None

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
        """Whether a person asked this attempt to stop, as its last heartbeat heard: as `Run.cancelled`."""
        return self.run.cancelled

    def __repr__(self) -> str:
        return f"<duly.Claim {self.run.key} attempt {self.run.attempt}>"

    def __bool__(self) -> Literal[True]:
        return True

    def __enter__(self) -> Claim:
        self._keeper.keep(self._held, self._lost, self.run._cancel, self.run._progress_now)
        return self

    def _lost(self) -> None:
        """A renewal was refused: another attempt took the run over, unless a transaction of the caller's completed it."""
        try:
            completed = self._borrowed is not None and self._is_completed()
        except DulyError:  # it cannot be told now; the caller's next word will be
            return
        if not completed:
            self.run._supersede()

    def __del__(self) -> None:
        """A claim that is forgotten shows no pulse; its lease runs out."""
        if hasattr(self, "_pulse"):
            self._pulse.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pid != os.getpid():  # a forked child leaves the block: the attempt is its parent's
            self._pulse.stop()
            return
        try:
            self.run._abandon()
            if not self._ended and not self._may_yet_commit(error):
                self._judge(error)
        except ClaimLost:
            if error is None:
                raise
            error.add_note(f"duly: another attempt had taken {self.run.key} over")
        except DulyError as e:
            if error is None:
                raise
            error.add_note(f"duly: how this attempt ended could not be recorded: {e}")
        finally:
            self.close()

    def complete(self, tx: Lent | None = None, *, output: str | None = None) -> Completed:
        """Complete the run in the caller's transaction, which the caller commits; without one, in `claim.run.tx` if that was
        read, else in one of duly's own; those are committed here.

        Raises `ClaimLost` when another attempt took the run over or it was completed already: that ends the caller's
        transaction, and nothing of it commits. Raises `NoTransaction` and `WrongLedger`, before anything is written.
        After it this object claims nothing: the caller may still roll back, so ask the ledger.
        """
        if not (tx is None or self.run._owns(tx)):
            self.run._refuse_file_elsewhere()
        left = self.run._left(output)
        operation = complete_or_raise(self._held, left)
        if tx is None or self.run._owns(tx):
            self.run._complete(operation, left)
            self._over()
        else:
            self._store.run_in(tx, operation)
            self._borrowed = tx
            self.run._completed = True
        return Completed(self.key, self.run.attempt)

    def fail(self, cause: str) -> None:
        """End the attempt as failed, for a reason in a few words that holds no secret. Raises `ClaimLost`."""
        self._end(self._ending(in_few_words(cause), cancelled=False))  # its own word

    def doubt(self, cause: str) -> None:
        """Say that a remote effect may or may not have happened: the run is unknown until that is known."""
        self.run._abandon()
        self._store.write(doubt_or_raise(self._held, in_few_words(cause)))
        self._over()

    def release(self) -> None:
        """Give the run back untouched: nothing was done. Raises `ClaimLost`."""
        self.run._abandon()
        self._store.write(release_or_raise(self._held, "released"))
        self._over()

    def close(self) -> None:
        """Stop renewing the lease and let the file lock go. The claim stays in the ledger until it ends or lapses."""
        self._keeper.drop(self._held)
        self.run._abandon()
        self._pulse.stop()

    def _over(self) -> None:
        """The attempt has said its word: it gives up lease and lock, or a renewal would take a doubt back."""
        self._ended = True
        self.close()

    def _may_yet_commit(self, error: BaseException | None) -> bool:
        """Whether the caller's transaction, in which the run was completed, has committed or is still to end."""
        if self._borrowed is None:
            return False
        return self._is_completed() or (error is None and is_open(self._borrowed))

    def _is_completed(self) -> bool:
        """Whether the ledger has this attempt's completion."""
        row = self._store.read(look(self._held.run))
        return row is not None and row.attempt_id == self._held.attempt_id and row.state == states.COMPLETED

    def _judge(self, error: BaseException | None) -> None:
        if error is not None:
            self._end(self._ending(type(error).__qualname__, cancelled=self.cancelled), error_place(error))
        elif self._held.contract == contracts.EXTERNAL and not self.cancelled:
            self._end(Ending(states.UNKNOWN, "left without completing"))
        else:
            cause = "left without completing"
            self._end(self._ending(cause, cancelled=self.cancelled), cause)

    def _ending(self, cause: str, *, cancelled: bool) -> Ending:
        elapsed = elapsed_since_first(self._store, self._held)
        return ending_of(self._job, self._held, cause, elapsed=elapsed, cancelled=cancelled)

    def _end(self, ending: Ending, error: str = "") -> None:
        self.run._abandon()
        record_ending(
            self._store, self._job, self._held, ending, error=error or ending.cause, progress=self.run._progress_now()
        )
        self._over()
