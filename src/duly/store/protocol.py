"""What a store is: SQLite's and PostgreSQL's stand behind it, and what makes attempts is written against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.ask import Operation

T = TypeVar("T")


class Owned(Protocol):
    """A run's own transaction: begun, worked in through `connection`, and committed with the run's completion."""

    @property
    def connection(self) -> object: ...

    @property
    def is_open(self) -> bool: ...

    def begin(self) -> object: ...

    def drive(self, operation: Operation[T]) -> T: ...

    def complete(self, operation: Operation[T]) -> T: ...

    def commit(self) -> None: ...

    def abandon(self) -> None: ...


class AsyncOwned(Protocol):
    """A run's own transaction in an event loop."""

    @property
    def connection(self) -> object: ...

    @property
    def is_open(self) -> bool: ...

    async def begin(self) -> object: ...

    async def drive(self, operation: Operation[T]) -> T: ...

    async def complete(self, operation: Operation[T]) -> T: ...

    async def commit(self) -> None: ...

    async def abandon(self) -> None: ...


class Store(Protocol):
    """One ledger that is open. Each thread that uses it gets a connection of its own."""

    @property
    def path(self) -> str:
        """How the ledger is named to people: a file, or a URL without its password."""

    @property
    def busy_seconds(self) -> float:
        """How long a write waits for its turn."""

    @property
    def namespace(self) -> str: ...

    @property
    def ledger_id(self) -> str: ...

    @property
    def clock_by_hand(self) -> bool: ...

    @property
    def claim_looks(self) -> bool:
        """Whether a look before `claim_at_once` spares nothing: the claim is one wait, and takes no lock for a duplicate."""

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit."""

    def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself: for an answer that one row gives."""

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it; without `durable` the commit is not flushed."""

    def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """As `write`, of `claim_remembered`: in one wait where the database can. None where nothing was claimed, and also
        where the reply was lost, or the ledger is not what it was: ask it by `write`, for the same attempt.
        """

    def now(self) -> int:
        """The ledger's instant."""

    def owned(self) -> Owned:
        """This thread's transaction for a run's own effect."""

    def begin_pulse(self, attempt_id: bytes) -> int:
        """Show a pulse for an attempt: a descriptor to be closed at its end, -1 where there is none."""

    def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""

    def stamp(self) -> str:
        """What is another as soon as something was committed (see `store.stamp`), more cheaply than any reading."""

    def listen(self, wake: Callable[[], None], is_over: Callable[[], bool]) -> None:
        """Call `wake` when somebody says that there may be work, until it is over. Returns at once where nobody says so."""

    def close(self) -> None:
        """Close this thread's connections."""


class AsyncStore(Protocol):
    """One ledger, used by the tasks of one event loop: as `Store`, awaited. `open` comes first."""

    path: str
    busy_seconds: float
    namespace: str
    ledger_id: str
    clock_by_hand: bool

    @property
    def claim_looks(self) -> bool: ...

    async def open(self) -> None:
        """Open the ledger; again is a no-op."""

    async def read(self, operation: Operation[T]) -> T: ...

    async def glance(self, operation: Operation[T]) -> T: ...

    async def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T: ...

    async def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None: ...

    async def now(self) -> int: ...

    async def owned(self) -> AsyncOwned: ...

    def begin_pulse(self, attempt_id: bytes) -> int: ...

    async def run_in(self, tx: object, operation: Operation[T]) -> T: ...

    async def close(self) -> None: ...
