"""A ledger beside a user's own library: duly's short transactions go their usual way, a run's own goes through the library.

The library is asked where its database is by one of its connections, not by its settings: what a hook or an argument adds to
them is then part of the answer. Whether both are in the same ledger is checked by its id whenever a run's transaction begins.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, TypeVar

from duly.errors import TransactionOwned
from duly.store.owned.library import Guard, Library, OwnedThrough
from duly.store.owned.turns import PostgresTurn, SqliteTurn, Turn
from duly.store.sqlite import SqliteStore, ledger_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.ledger.ask import Operation
    from duly.store.postgres import PostgresStore

    Kept = SqliteStore | PostgresStore

T = TypeVar("T")


class TypedStore:
    """One ledger, opened by `find` when it is first used, whose runs own transactions of the library that `through` makes.

    Each thread gets transactions of its own, and a forked child new ones.
    """

    def __init__(self, find: Callable[[], Kept], through: Callable[[Guard, Turn], Library]) -> None:
        self._find = find
        self._through = through
        self._found: Kept | None = None
        self._finding = threading.Lock()
        self._threads = threading.local()

    @property
    def ledger(self) -> Kept:
        """The ledger itself. Raises as whatever opens it."""
        with self._finding:
            if self._found is None:
                self._found = self._find()
            return self._found

    @property
    def path(self) -> str:
        return self.ledger.path

    @property
    def busy_seconds(self) -> float:
        return self.ledger.busy_seconds

    @property
    def namespace(self) -> str:
        return self.ledger.namespace

    @property
    def ledger_id(self) -> str:
        return self.ledger.ledger_id

    @property
    def clock_by_hand(self) -> bool:
        return self.ledger.clock_by_hand

    @property
    def claim_looks(self) -> bool:
        return self.ledger.claim_looks

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit."""
        return self._ledger_for(operation).read(operation)

    def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself: for an answer that one row gives."""
        return self._ledger_for(operation).glance(operation)

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it. Raises `LedgerBusy` when its turn does not come."""
        self._refuse_open(operation)
        return self._ledger_for(operation).write(operation, durable=durable, busy_seconds=busy_seconds)

    def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """As `write`, of `claim_remembered`: in one wait where the database can."""
        self._refuse_open(claim)
        return self._ledger_for(claim).claim_at_once(claim, durable=durable)

    def _ledger_for(self, operation: Operation[T]) -> Kept:
        """The ledger. An operation for which none is found was not begun, and is not left so."""
        try:
            return self.ledger
        except BaseException:
            operation.close()
            raise

    def _refuse_open(self, operation: Operation[T]) -> None:
        owned = self._of_this_thread()
        if owned is not None and owned.is_open and isinstance(self.ledger, SqliteStore):
            operation.close()
            raise TransactionOwned(
                "this thread's run.tx is open and holds the ledger; do this before it, or after the run"
            )

    def now(self) -> int:
        """The ledger's instant."""
        return self.ledger.now()

    def owned(self) -> OwnedThrough:
        """This thread's transaction for a run's own effect."""
        owned = self._of_this_thread()
        if owned is None:
            turn = turn_of(self.ledger)
            guard = Guard(turn)
            owned = OwnedThrough(self._through(guard, turn), guard, turn, self.ledger.origin)
            self._threads.owned, self._threads.pid = owned, os.getpid()
        return owned

    def _of_this_thread(self) -> OwnedThrough | None:
        owned: OwnedThrough | None = getattr(self._threads, "owned", None)
        if owned is not None and self._threads.pid != os.getpid():
            _forsaken.append(owned)
            del self._threads.owned
            return None
        return owned

    def begin_pulse(self, attempt_id: bytes) -> int:
        """Show a pulse for an attempt: a descriptor to be closed at its end, -1 where there is none."""
        return self.ledger.begin_pulse(attempt_id)

    def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        return self.ledger.run_in(tx, operation)

    def stamp(self) -> str:
        """What is another as soon as something was committed."""
        return self.ledger.stamp()

    def listen(self, wake: Callable[[], None], is_over: Callable[[], bool]) -> None:
        """Call `wake` when somebody says that there may be work, until it is over."""
        self.ledger.listen(wake, is_over)

    def close(self) -> None:
        """Close this thread's connections to the ledger; those of the library are the user's. It may be used again."""
        owned = self._of_this_thread()
        if owned is not None:
            owned.close()
            del self._threads.owned
        self.ledger.close()


# What a forked child has of its parent is kept from the collector, which would end the parent's transaction.
_forsaken: list[OwnedThrough] = []


def turn_of(ledger: Kept) -> Turn:
    """What the ledger's database wants of a run's transaction."""
    return SqliteTurn(ledger) if isinstance(ledger, SqliteStore) else PostgresTurn(ledger)


def in_file(path: str, *, busy_seconds: float) -> SqliteStore:
    """The ledger in an SQLite file, made if it is not there. Raises `Misuse` for a database in memory."""
    return SqliteStore(ledger_path(path), busy_seconds=busy_seconds)


def at_url(url: str, *, busy_seconds: float) -> PostgresStore:
    """The ledger in a PostgreSQL database."""
    from duly.store.postgres import PostgresStore

    return PostgresStore(url, busy_seconds=busy_seconds)
