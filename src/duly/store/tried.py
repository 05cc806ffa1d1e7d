"""Tried: an operation that changes the ledger, run in a transaction that is given up, so that what it would do is known."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from duly.ledger.ask import Operation
    from duly.store.protocol import Store

    T = TypeVar("T")


class _GivenUp(Exception):
    """Carries the outcome of a dry run out of its transaction."""

    def __init__(self, outcome: object) -> None:
        super().__init__()
        self.outcome = outcome


def write_or_try(store: Store, operation: Operation[T], *, dry_run: bool) -> T:
    """Run an operation that changes the ledger, and commit it unless it is only tried. Raises as the operation does."""

    async def tried() -> T:
        raise _GivenUp(await operation)

    if not dry_run:
        return store.write(operation)
    try:
        return store.write(tried())
    except _GivenUp as given_up:
        outcome: T = given_up.outcome  # type: ignore[assignment]  # what `tried` put there
        return outcome
