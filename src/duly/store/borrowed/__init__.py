"""Borrowed transactions: operations in a transaction that the caller began and will commit. One file for each driver."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

from duly.errors import Misuse

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

T = TypeVar("T")


def run_in(tx: object, operation: Operation[T]) -> T:
    """Run an operation in a caller's transaction, by whichever driver it is. Raises `Misuse` for one that is not known."""
    if isinstance(tx, sqlite3.Connection):
        from duly.store.borrowed.sqlite import in_borrowed

        return in_borrowed(tx, operation)
    if _is_psycopg(tx):
        from duly.store.borrowed.postgres import in_borrowed as in_postgres

        return in_postgres(tx, operation)  # type: ignore[arg-type]  # told by its class
    operation.close()
    raise Misuse(f"tx: a {type(tx).__name__} is no connection that duly knows; give one of sqlite3 or psycopg")


def _is_psycopg(tx: object) -> bool:
    """Whether it is a connection of psycopg, told without importing it."""
    return any(kind.__name__ == "Connection" and kind.__module__.startswith("psycopg") for kind in type(tx).__mro__)
