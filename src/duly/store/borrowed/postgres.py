"""A borrowed transaction of psycopg: no commit, no rollback, no savepoint of ours.

A refusal of `once` leaves the transaction as it was. A claim that is gone does not: the guard's error ends it, and since a
savepoint would survive that, the connection is closed too, so that nothing it wrote can be committed (I2).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from duly.errors import ClaimLost, Conflict, NoTransaction
from duly.ledger.ask import drive
from duly.redaction import shown_url
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.postgres import Answers, is_refusal, translated

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
        # A caller who sends statements together is answered all the same before the next one.
        with connection.pipeline() if _sends_together(connection) else nullcontext():
            return drive(operation, answers)
    except ClaimLost:
        connection.close()
        raise
    except psycopg.IntegrityError as e:
        if not is_refusal(e):
            raise translated(e, name=shown_url(connection.info.dsn)) from e
        connection.close()
        raise ClaimLost from None
    except psycopg.Error as e:
        raise translated(e, name=shown_url(connection.info.dsn)) from e


def _sends_together(connection: psycopg.Connection[Any]) -> bool:
    return connection.info.pipeline_status != PipelineStatus.OFF


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
