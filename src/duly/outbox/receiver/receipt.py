"""Receipts: what `receive` answers, and how an answer is stored in the transaction of the effect."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from duly.errors import Misuse
from duly.ledger import receive as ledger
from duly.ledger.receive import (
    APPLY,
    FOR_EVER,
    LONGEST_KEY,
    LONGEST_SOURCE,
    REFUSE,
    Delivery,
    checked_name,
    first_sent_of,
)
from duly.records import record
from duly.store.awaited import Awaited
from duly.store.borrowed import run_in, run_in_async
from duly.times import as_datetime, from_datetime, parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from duly.store.borrowed import Lent

    Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

LONGEST_ANSWER = 1 << 20  # a ledger is no store for files
FOREVER = "forever"


@record
class Answer:
    """What a delivery was answered, as it was stored: `status` is None where none was given."""

    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8 text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@record
class Replayed:
    """The key was received before, at `at`, with the same payload: do nothing. Falsy.

    `answer` is what the first delivery was answered; None where it committed without storing an answer.
    """

    key: str
    at: datetime
    answer: Answer | None

    def __bool__(self) -> Literal[False]:
        return False


class _First:
    """A key that was received in this transaction for the first time: do the effect now; both commit, or neither."""

    def __init__(self, tx: object, receipt: ledger.Receipt) -> None:
        self._tx = tx
        self._receipt = receipt
        self.is_answered = False

    def __repr__(self) -> str:
        return f"<duly.Received {self.key}>"

    @property
    def key(self) -> str:
        """The key that was received."""
        return self._receipt.key


class Received(_First):
    """The key is received in this transaction, for the first time: do the effect now; both commit, or neither. Truthy."""

    def answer(self, body: bytes | str = b"", *, status: int | None = None, headers: Headers = ()) -> None:
        """Store what this delivery is answered, in the same transaction, for deliveries that come later.

        Once. Raises `Misuse` for what cannot be stored, before anything is written, and `ReceiptLost` where the key is not
        in this transaction any more: then nothing of it can be committed.
        """
        run_in(self._tx, ledger.answer_or_raise(self._receipt, stored_form(body, status, headers)))
        self.is_answered = True


class AsyncReceived(_First):
    """`Received`, in an event loop."""

    def answer(self, body: bytes | str = b"", *, status: int | None = None, headers: Headers = ()) -> Awaited[None]:
        """Store what this delivery is answered, as `Received.answer`, awaited."""
        return Awaited(self._answer(stored_form(body, status, headers)))

    async def _answer(self, answer: ledger.Answer) -> None:
        await run_in_async(self._tx, ledger.answer_or_raise(self._receipt, answer))
        self.is_answered = True


def receive_in(tx: Lent, delivery: Delivery) -> Received | Replayed:
    """Receive a delivery in a caller's transaction."""
    return received_or_replayed(tx, delivery, run_in(tx, ledger.receive(delivery)))


async def receive_in_async(tx: object, delivery: Delivery) -> AsyncReceived | Replayed:
    """`receive_in`, for connections whose statements are awaited."""
    return async_received_or_replayed(tx, delivery, await run_in_async(tx, ledger.receive(delivery)))


def received_or_replayed(tx: object, delivery: Delivery, found: ledger.Receipt | ledger.Replay) -> Received | Replayed:
    """What the ledger found, in the caller's terms."""
    return Received(tx, found) if isinstance(found, ledger.Receipt) else replayed(delivery.key, found)


def async_received_or_replayed(
    tx: object, delivery: Delivery, found: ledger.Receipt | ledger.Replay
) -> AsyncReceived | Replayed:
    """`received_or_replayed`, for connections whose statements are awaited."""
    return AsyncReceived(tx, found) if isinstance(found, ledger.Receipt) else replayed(delivery.key, found)


def delivery_of(
    key: str,
    payload: str,
    *,
    source: str,
    remembers: str | None,
    first_sent: datetime | str | None,
    undated: str,
) -> Delivery:
    """A delivery as a caller describes it; `payload` is its hash. Raises `Misuse`, naming the argument."""
    checked_name("key", key, LONGEST_KEY)
    checked_name("source", source, LONGEST_SOURCE)
    if undated not in (REFUSE, APPLY):
        raise Misuse(f"undated: write {REFUSE!r} or {APPLY!r}, not {undated!r}")
    return Delivery(
        source,
        key,
        payload,
        first_sent_of(key, instant_of(first_sent)),
        remembered_for(remembers),
        undated,
        os.urandom(16),
    )


def remembered_for(text: str | None) -> int | None:
    """How long keys are remembered, in microseconds, from `30d` or `forever`; None: nothing is said. Raises `TimeInvalid`."""
    if text is None:
        return None
    return FOR_EVER if text == FOREVER else parse_duration(text)


def instant_of(moment: datetime | str | None) -> int | None:
    """An instant from an aware datetime or ISO 8601 text. Raises `TimeInvalid`."""
    if moment is None:
        return None
    return parse_instant(moment) if isinstance(moment, str) else from_datetime(moment)


def stored_form(body: bytes | str, status: int | None, headers: Headers) -> ledger.Answer:
    """An answer as it is stored. Raises `Misuse` for one that is too long, or that hands out a cookie."""
    plain = body.encode() if isinstance(body, str) else bytes(body)
    if len(plain) > LONGEST_ANSWER:
        raise Misuse(f"body: an answer of {len(plain)} bytes is not stored; {LONGEST_ANSWER} are the most")
    if status is not None and not 100 <= status <= 599:
        raise Misuse(f"status: {status} is no status of HTTP")
    pairs = [(str(n), str(v)) for n, v in (headers.items() if isinstance(headers, Mapping) else headers)]
    if any(name.lower() == "set-cookie" for name, _ in pairs):
        raise Misuse("headers: a cookie is for whoever was answered first, and is not stored for others")
    return ledger.Answer(status, json.dumps(pairs), plain)


def read_form(answer: ledger.Answer) -> Answer:
    """A stored answer, read."""
    return Answer(answer.status, tuple((name, value) for name, value in json.loads(answer.headers)), answer.body)


def replayed(key: str, replay: ledger.Replay) -> Replayed:
    """A replay in the caller's terms."""
    return Replayed(key, as_datetime(replay.received_at), None if replay.answer is None else read_form(replay.answer))
