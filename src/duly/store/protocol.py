"""What a store is: SQLite's and PostgreSQL's stand behind it, and what makes attempts is written against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

T = TypeVar("T")


class Store(Protocol):
    """One ledger that is open. Each thread that uses it gets a connection of its own."""

    path: str  # how the ledger is named to people: a file, or a URL without its password
    busy_seconds: float  # how long a write waits for its turn
    namespace: str
    ledger_id: str
    clock_by_hand: bool

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit."""

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it; without `durable` the commit is not flushed."""

    def now(self) -> int:
        """The ledger's instant."""

    def close(self) -> None:
        """Close this thread's connections."""
