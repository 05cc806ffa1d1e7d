"""A borrowed transaction of psycopg: no commit, no rollback, no savepoint of ours.

A refusal of `once` leaves the transaction as it was. A claim that is gone does not: the guard's error ends it, and since a
savepoint would survive that, the connection is closed too, so that nothing it wrote can be committed (I2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duly.errors import ClaimLost, Conflict, LedgerTooNew, NoTransaction, WrongLedger
from duly.ledger.ask import drive
from duly.store import SCHEMA
from duly.store.postgres import Answers, facts_of, translated

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

T = TypeVar("T")


def in_borrowed(connection: psycopg.Connection[Any], operation: Operation[T], *, ledger_id: str | None = None) -> T:
    """Run an operation in the connection's transaction. `ledger_id` names the ledger that a claim came from.

    Raises `NoTransaction`, `WrongLedger`, `NoLedger`, `Conflict` (another transaction was met, or this one has failed:
    roll back and try the whole of it again) and what the operation raises.
    """
    name = connection.info.dsn
    try:
        _check(connection)
        facts = facts_of(connection)
        if int(facts["min_writer"]) > SCHEMA:
            raise LedgerTooNew
        if ledger_id not in (None, facts["ledger_id"]):
            raise WrongLedger("the claim was made in another ledger than the connection's database holds")
        return drive(operation, Answers(connection, clock_by_hand=facts["clock"] == "hand"))
    except ClaimLost:
        connection.close()
        raise
    except psycopg.Error as e:
        raise translated(e, name=name) from e
    finally:
        operation.close()


def _check(connection: psycopg.Connection[Any]) -> None:
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise Conflict("this transaction has failed already; roll back, and try the whole of it again")
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise NoTransaction
