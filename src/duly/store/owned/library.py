"""The transaction that a run owns through the user's own library: SQLAlchemy or Django begins and commits it, duly says when.

The library's methods are refused by `Guard` where they would end the transaction, and so are statements, by their first
word. What slips through (a driver's own commit behind the library's back) is seen before the completion, which then keeps
nothing more. The completion goes the way of a borrowed transaction: through the library's own execution.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from duly.errors import TransactionOwned
from duly.store.borrowed import run_in
from duly.store.owned.turns import Committed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin
    from duly.store.owned.turns import Turn

T = TypeVar("T")

ENDED = "the run's transaction has ended by an error, or behind duly's back; nothing more of it is kept. Stop"
OVER = "this run is over: nothing can be written through its run.tx any more"


# The guard that is lifted in this thread, or in this task: while duly waits for a database beside an event loop, another task
# may speak to the run's transaction, and is none of duly's.
_lifted: ContextVar[Guard | None] = ContextVar("duly_lifted", default=None)


class Guard:
    """Says what may be done in a run's transaction, and by whom."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._pid = os.getpid()
        self.is_open = False

    @property
    def _is_lifted(self) -> bool:
        return _lifted.get() is self

    @property
    def is_of_parent(self) -> bool:
        """Whether this process was forked while the transaction was its parent's."""
        return self._pid != os.getpid()

    def refuse_end(self) -> None:
        """Raise `TransactionOwned` for whoever would end the transaction, unless that is duly."""
        if not self._is_lifted:
            raise TransactionOwned(None if self.is_open else OVER)

    def refuse_failed(self, driver: Any) -> None:
        """Raise `TransactionOwned` where the commit that is about to be sent would keep nothing, without an error."""
        if self._turn.has_failed(driver):
            raise TransactionOwned(ENDED)

    def check(self, driver: Any, sql: str = "") -> None:
        """Raise `TransactionOwned` unless the transaction is open here, and the statement leaves it so."""
        if self._is_lifted:
            return
        if self.is_of_parent:
            raise TransactionOwned("run.tx belongs to the process that forked this one")
        if not self.is_open:
            raise TransactionOwned(OVER)
        if not self._turn.is_open(driver):
            raise TransactionOwned(ENDED)
        if self._turn.ends(sql):
            raise TransactionOwned

    def end(self) -> None:
        """The transaction is over, though the step that committed it is not: what hooks of the user's do then is theirs."""
        self.is_open = False
        _lifted.set(None)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """For a step of duly's own."""
        before = _lifted.set(self)
        try:
            yield
        finally:
            _lifted.reset(before)


class Library(Protocol):
    """How one library begins, commits and drops the transactions of one thread's runs. A guard is on them."""

    @property
    def lent(self) -> Any:
        """What `run.tx` is."""

    @property
    def driver(self) -> Any:
        """The driver's connection under it."""

    def begin(self) -> None:
        """Begin a transaction, as the library does."""

    def fetch(self, sql: str) -> Any:
        """The first row of a statement that is run in it."""

    def refuse_ended(self) -> None:
        """Raise `TransactionOwned` where the library itself knows that the transaction cannot commit any more."""

    def leave_savepoints(self) -> None:
        """Be in the transaction itself, where the run has left a savepoint open."""

    def commit(self) -> None:
        """Commit, as the library does."""

    def drop(self) -> None:
        """Roll back what has not committed, and let go of it; again is a no-op. Raises nothing of a broken connection."""

    def cause_of(self, error: Exception) -> BaseException | None:
        """The driver's error inside one of the library; None for an error of another kind."""


class OwnedThrough:
    """A thread's transactions for its runs, one after the other, made by a library."""

    def __init__(self, library: Library, guard: Guard, turn: Turn, origin: Origin) -> None:
        self._library = library
        self._guard = guard
        self._turn = turn
        self._origin = origin

    @property
    def connection(self) -> Any:
        """What the run's effect is written through."""
        return self._library.lent

    @property
    def is_open(self) -> bool:
        """Whether a run's transaction is under way."""
        return self._guard.is_open

    def begin(self) -> Any:
        """Begin the transaction. Raises `LedgerBusy`, `LedgerTooNew`, `WrongLedger`, and what the library raises."""
        if self._guard.is_open:
            raise TransactionOwned("this thread's run.tx is open for another run; complete that one first")
        self._turn.take()
        try:
            with self._guard.lifted(), self._meanings():
                self._library.begin()
                self._turn.begin(self._library.driver, self._library.fetch)
                run_in(self._library.lent, nothing(), self._origin)
        except BaseException:
            self.abandon()
            raise
        self._guard.is_open = True
        return self._library.lent

    def drive(self, operation: Operation[T]) -> T:
        """Run an operation of the ledger in the transaction, which stays open. Raises what it raises."""
        try:
            self._library.refuse_ended()
            self._guard.check(self._library.driver)
            return run_in(self._library.lent, operation, self._origin)
        finally:
            operation.close()

    def complete(self, operation: Operation[T]) -> T:
        """Run the completing operation in the transaction and commit both. Raises `ClaimLost`, and nothing is kept."""
        try:
            self._refuse_another()
            self._library.leave_savepoints()
            result = self.drive(operation)
        except BaseException:
            self.abandon()
            raise
        finally:
            operation.close()
        self.commit()
        return result

    def _refuse_another(self) -> None:
        self._library.refuse_ended()
        self._guard.check(self._library.driver)
        with self._meanings():
            if not self._turn.is_same(self._library.fetch):
                raise TransactionOwned(ENDED)

    def commit(self) -> None:
        """Commit the transaction, and be ready for the next run. Raises `Conflict` where it was rolled back instead."""
        try:
            with self._guard.lifted():
                self._commit()
        finally:
            self.abandon()

    def _commit(self) -> None:
        try:
            self._library.commit()
        except Exception as e:
            if not self._guard.is_open:  # it has committed, and a hook of the run's own failed after that
                self._turn.committed()
                raise
            cause = self._library.cause_of(e)
            meaning = None if cause is None else self._turn.judge(cause)
            if meaning is None:
                raise
            if not isinstance(meaning, Committed):
                raise meaning from e
        self._turn.committed()

    def abandon(self) -> None:
        """End the transaction and keep nothing of it; a no-op once it has committed, and in a fork, whose it is not."""
        if self._guard.is_of_parent:
            return
        self._guard.is_open = False
        try:
            with self._guard.lifted():
                self._library.drop()
        finally:
            self._turn.give_up()

    def close(self) -> None:
        """Keep nothing open."""
        self.abandon()
        self._turn.close()

    @contextmanager
    def _meanings(self) -> Iterator[None]:
        """Errors of the driver are told as what they mean for the ledger."""
        try:
            yield
        except Exception as e:
            cause = self._library.cause_of(e)
            meaning = None if cause is None else self._turn.meaning_of(cause)
            if meaning is None:
                raise
            raise meaning from e


async def nothing() -> None:
    """Only what is looked at before every operation: that this is the ledger, and that it may be written."""
