"""Faults: the process of a job is killed at a named point of its run, as by a power cut (SIGKILL).

`mortal` answers the same ledger with a store of the kit's around its own: it sees what is asked of it, and so where a run is.
Which point that is says the variable `DULY_KILL_AT`, for a process that a test starts, or `kill_at`. Without either nothing
happens; a ledger that is not made mortal knows nothing of this.

The points, in the order in which a run comes to them:

- `before-claim`: the claim is written, and not committed;
- `after-claim`: it is committed, and the job's function not yet called;
- `after-effect`: the function has returned, and nothing of the completion is written;
- `before-completion`: the completion is written, and not committed;
- `after-completion`: it is committed, and nobody was told.

An inline job commits its claim with its completion, so it never comes to `after-claim`; a claim that is completed in a
caller's transaction is committed by the caller, so it never comes to `after-completion`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duly.errors import Misuse
from duly.ledger.complete import COMPLETE_IF_HELD
from duly.ledger.named import Named
from duly.ledger.records import Claim
from duly.ledger.take import CLAIM_IF_FREE, TAKE_OVER
from duly.work.ledger import Ledger

if TYPE_CHECKING:
    from duly.ledger.ask import Ask, Operation
    from duly.store.protocol import Owned, Store

T = TypeVar("T")
Tx = TypeVar("Tx")

VARIABLE = "DULY_KILL_AT"
BEFORE_CLAIM, AFTER_CLAIM = "before-claim", "after-claim"
AFTER_EFFECT = "after-effect"
BEFORE_COMPLETION, AFTER_COMPLETION = "before-completion", "after-completion"
POINTS = (BEFORE_CLAIM, AFTER_CLAIM, AFTER_EFFECT, BEFORE_COMPLETION, AFTER_COMPLETION)


def mortal(ledger: Ledger[Tx]) -> Ledger[Tx]:
    """The same ledger, for a process that is to die: jobs declared on it, and claims taken from it, come to the points.

    Raises `Misuse` where `DULY_KILL_AT` names none of them.
    """
    _check(os.environ.get(VARIABLE, POINTS[0]))
    return Ledger(_MortalStore(ledger.store))


@contextmanager
def kill_at(point: str) -> Iterator[None]:
    """In here this process, and those that it starts, die at a point. Raises `Misuse` for what is none."""
    _check(point)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = point
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def _check(point: str) -> None:
    if point not in POINTS:
        raise Misuse(f"{VARIABLE}: {point!r} is no point of a run; name one of {', '.join(POINTS)}")


def _reach(point: str) -> None:
    if os.environ.get(VARIABLE) == point:
        os.kill(os.getpid(), signal.SIGKILL)


# -- seeing where a run is ----------------------------------------------------------------------------------------------


class _Watch(Generic[T]):
    """One operation in its transaction: whether it claims or completes is seen by what it asks."""

    def __init__(self, operation: Operation[T]) -> None:
        self._operation = operation
        self._claims = self._completes = False

    async def operate(self) -> T:
        """The operation itself; at its end nothing of it is committed yet."""
        result = await self
        if self._claims:
            _reach(BEFORE_CLAIM)
        if self._completes:
            _reach(BEFORE_COMPLETION)
        return result

    def committed(self) -> None:
        """Its transaction has committed."""
        if self._claims:
            _reach(AFTER_CLAIM)
        if self._completes:
            _reach(AFTER_COMPLETION)

    def __await__(self) -> Generator[Ask, Any, T]:
        reply: object = None
        try:
            while True:
                question = self._operation.send(reply)
                if question.statement is COMPLETE_IF_HELD:
                    _reach(AFTER_EFFECT)
                    self._completes = True
                reply = yield question
                if question.statement in (CLAIM_IF_FREE, TAKE_OVER) and reply != 0:
                    self._claims = True
        except StopIteration as end:
            result: T = end.value
            if isinstance(result, Named) and isinstance(result.answer, Claim):
                self._claims = True
            return result
        finally:
            self._operation.close()


class _MortalStore:
    """A store, watched."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.path = store.path
        self.busy_seconds = store.busy_seconds
        self.namespace = store.namespace
        self.ledger_id = store.ledger_id
        self.clock_by_hand = store.clock_by_hand
        self.claim_looks = False

    def glance(self, operation: Operation[T]) -> T:
        return self._store.glance(operation)

    def read(self, operation: Operation[T]) -> T:
        return self._store.read(operation)

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        watch = _Watch(operation)
        result = self._store.write(watch.operate(), durable=durable, busy_seconds=busy_seconds)
        watch.committed()
        return result

    def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        return self.write(claim, durable=durable)  # sent together with its commit it would have no point before

    def now(self) -> int:
        return self._store.now()

    def owned(self) -> Owned:
        return _MortalTransaction(self._store.owned())

    def begin_pulse(self, attempt_id: bytes) -> int:
        return self._store.begin_pulse(attempt_id)

    def run_in(self, tx: object, operation: Operation[T]) -> T:
        return self._store.run_in(tx, _Watch(operation).operate())

    def stamp(self) -> str:
        return self._store.stamp()

    def listen(self, wake: Callable[[], None], is_over: Callable[[], bool]) -> None:
        self._store.listen(wake, is_over)

    def close(self) -> None:
        self._store.close()


class _MortalTransaction:
    """A run's own transaction, watched."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned

    @property
    def connection(self) -> object:
        return self._owned.connection

    @property
    def is_open(self) -> bool:
        return self._owned.is_open

    def begin(self) -> object:
        return self._owned.begin()

    def drive(self, operation: Operation[T]) -> T:
        return self._owned.drive(_Watch(operation).operate())

    def complete(self, operation: Operation[T]) -> T:
        watch = _Watch(operation)
        result = self._owned.complete(watch.operate())
        watch.committed()
        return result

    def commit(self) -> None:
        self._owned.commit()

    def abandon(self) -> None:
        self._owned.abandon()
