"""A borrowed transaction of psycopg: no commit, no rollback, no savepoint of ours.

A refusal of `once` leaves the transaction as it was. A claim that is gone does not: the guard's error ends it, and since a
savepoint would survive that, the connection is closed too, so that nothing it wrote can be committed (I2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duly.errors import ClaimLost, Conflict, NoTransaction
from duly.ledger.ask import drive
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.postgres import Answers, redacted, translated

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin

T = TypeVar("T")


def in_borrowed(connection: psycopg.Connection[Any], operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the connection's transaction. Raises as `run_in`."""
    try:
        check_transaction(connection)
        answers = Answers(connection)
        answers.clock_by_hand = clock_by_hand(answers(FACTS), origin)
        return drive(operation, answers)
    except ClaimLost:
        connection.close()
        raise
    except psycopg.Error as e:
        raise translated(e, name=redacted(connection.info.dsn)) from e


def is_open(connection: psycopg.Connection[Any]) -> bool:
    """Whether a transaction is under way."""
    return connection.info.transaction_status != TransactionStatus.IDLE


def check_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raise `NoTransaction` where each statement would commit alone, `Conflict` in a transaction that has failed."""
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise Conflict("this transaction has failed already; roll back, and try the whole of it again")
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise NoTransaction
