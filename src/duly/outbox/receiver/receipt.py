"""Receipts: what `receive` answers, and how an answer is stored in the transaction of the effect."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from duly.errors import Misuse, TimeInvalid
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
# What is for whoever was answered first, and what is of one connection or of one sending and is said anew at each replay.
NEVER_STORED = ("set-cookie", "set-cookie2", "www-authenticate", "proxy-authenticate", "authentication-info")
OF_ONE_SENDING = (
    "connection",
    "content-length",
    "idempotent-replayed",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
WITHOUT_BODY = (204, 205, 304)  # RFC 9110, 15.3.5, 15.3.6 and 15.4.5
_IN_NAMES = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


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
    if not _is_text(text):
        raise TimeInvalid(f"remembers: write it like 30d, or {FOREVER}, not {text!r}")
    return FOR_EVER if text == FOREVER else parse_duration(text)


def instant_of(moment: datetime | str | None) -> int | None:
    """An instant from an aware datetime or ISO 8601 text. Raises `TimeInvalid`."""
    if moment is None:
        return None
    if not isinstance(moment, str | datetime):
        raise TimeInvalid(f"first_sent: give a datetime with a zone, or text like 2026-10-25T01:00:00Z, not {moment!r}")
    return parse_instant(moment) if isinstance(moment, str) else from_datetime(moment)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def stored_form(body: bytes | str, status: int | None, headers: Headers) -> ledger.Answer:
    """An answer as it is stored. Raises `Misuse` for one that cannot be given again, or not to others."""
    plain = _bytes_of(body)
    if len(plain) > LONGEST_ANSWER:
        raise Misuse(f"body: an answer of {len(plain)} bytes is not stored; {LONGEST_ANSWER} are the most")
    if status is not None and not _is_status(status):
        raise Misuse(f"status: {status!r} is no status of HTTP that ends a request; 200 to 599 are")
    if status in WITHOUT_BODY and plain:
        raise Misuse(f"status: an answer {status} has no body, and this one has {len(plain)} bytes")
    return ledger.Answer(None if status is None else int(status), json.dumps(_pairs_of(headers)), plain)


def _is_status(status: object) -> bool:
    return isinstance(status, int) and not isinstance(status, bool) and 200 <= status <= 599


def _bytes_of(body: bytes | str) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if not isinstance(body, str):
        raise Misuse(f"body: give bytes or text, not {type(body).__name__}")
    try:
        return body.encode()
    except UnicodeEncodeError:
        raise Misuse("body: a text with surrogates that stand alone cannot be stored; give bytes") from None


def _pairs_of(headers: Headers) -> list[tuple[str, str]]:
    try:
        pairs = [(name, value) for name, value in (headers.items() if isinstance(headers, Mapping) else headers)]
    except (TypeError, ValueError):
        raise Misuse("headers: give a mapping, or pairs of a name and a value") from None
    return [(name, _header_value(name, value)) for name, value in pairs]


def _header_value(name: object, value: object) -> str:
    """A header's value as text, if the header can be sent, and is for whoever asks again (RFC 9110, 5.1 and 5.5)."""
    if not isinstance(name, str) or not name or not _IN_NAMES.issuperset(name):
        raise Misuse(f"headers: {name!r} is no name of a header")
    if name.lower() in NEVER_STORED:
        what = "a cookie" if "cookie" in name.lower() else "a challenge"
        raise Misuse(f"headers: {name}: {what} is for whoever was answered first, and is not stored for others")
    if name.lower() in OF_ONE_SENDING:
        raise Misuse(f"headers: {name} is said anew whenever the answer is sent, and is not stored")
    if not isinstance(value, str | int):
        raise Misuse(f"headers: {name}: give text, not {type(value).__name__}")
    text = str(value)
    if text != text.strip(" \t") or any(
        char > "\xff" or (char < " " and char != "\t") or char == "\x7f" for char in text
    ):
        raise Misuse(
            f"headers: {name}: a value is of Latin-1, without control characters, line ends and blanks at its ends"
        )
    return text


def read_form(answer: ledger.Answer) -> Answer:
    """A stored answer, read."""
    return Answer(answer.status, tuple((name, value) for name, value in json.loads(answer.headers)), answer.body)


def replayed(key: str, replay: ledger.Replay) -> Replayed:
    """A replay in the caller's terms."""
    return Replayed(key, as_datetime(replay.received_at), None if replay.answer is None else read_form(replay.answer))
