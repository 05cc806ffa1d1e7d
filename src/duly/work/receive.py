"""Receive: the receiver's side of a message, in a transaction of the receiver's."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from duly.outbox.receiver.receipt import delivery_of, receive_in
from duly.work.payload import payload_hash

if TYPE_CHECKING:
    from datetime import datetime

    from duly.outbox.receiver.receipt import Received, Replayed
    from duly.store.borrowed import Lent
    from duly.work.payload import Json


def receive(
    tx: Lent,
    key: str,
    payload: bytes | Json,
    *,
    source: str,
    remembers: str | None = None,
    first_sent: datetime | str | None = None,
    undated: str = "refuse",
) -> Received | Replayed:
    """Receive a message in the caller's transaction: `Received` the first time, `Replayed` (falsy) with its answer afterwards.

    `key` is the sender's idempotency key, of `source`: an endpoint's name, and its client's where several may not see each
    other's answers. `payload` is what came, bytes or JSON; only its hash is kept. `remembers` is how long keys are remembered,
    `30d` or `forever`; left out, it stays as it was said last, or is for ever. Where keys are forgotten, `first_sent` is the
    time at which the sender sent the key first, the same at each delivery; a UUIDv7 says so itself. A key without a time is
    then refused, unless `undated="apply"` takes it that one which comes after `remembers` is applied again.

    Raises `PayloadConflict`, `ReceiptBusy` (another transaction is at it: no wait), `BelowHorizon`, `UndatedKey`; none of them
    breaks the transaction. Without one: `NoTransaction`; without the ledger's tables in this database: `NoLedger`; `Conflict`
    as of `duly.once`. `Misuse` names an argument.
    """
    delivery = delivery_of(
        key, hash_of(payload), source=source, remembers=remembers, first_sent=first_sent, undated=undated
    )
    return receive_in(tx, delivery)


def hash_of(payload: bytes | Json) -> str:
    """The scheme and SHA-256 of a payload: of bytes as they came, or of canonical JSON."""
    if isinstance(payload, bytes | bytearray | memoryview):
        return f"bytes:{sha256(payload).hexdigest()}"
    return payload_hash(payload)
