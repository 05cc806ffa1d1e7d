"""HTTP: what a request with an `Idempotency-Key` is, and what it is answered where the application is not asked. Pure.

The header is that of draft-ietf-httpapi-idempotency-key-header: a string of RFC 8941, `"8e03978e-…"`; it is also taken bare, as
many clients send it. Problems are those of RFC 9457, told apart by `code`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from duly.errors import (
    BelowHorizon,
    Conflict,
    DulyError,
    LedgerCorrupt,
    LedgerUnavailable,
    Misuse,
    NoLedger,
    PayloadConflict,
    ReceiptBusy,
    UndatedKey,
)
from duly.ledger import receive as ledger
from duly.ledger.receive import LONGEST_KEY
from duly.outbox.receiver.receipt import (
    LONGEST_ANSWER,
    NEVER_STORED,
    OF_ONE_SENDING,
    Answer,
    delivery_of,
)
from duly.records import record
from duly.times import SECOND, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KEY = "Idempotency-Key"
FIRST_SENT = "Duly-First-Sent"
REPLAYED = "Idempotent-Replayed"

METHODS = ("POST", "PATCH")  # those that are not idempotent by themselves (RFC 9110, 9.2.2)
# What a later delivery may be told of the first answer. A cookie is for whoever was answered first.
STORED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-location",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
)

_REASONS = {
    400: "Bad Request",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    422: "Unprocessable Content",
    503: "Service Unavailable",
}


@record
class Response:
    """A whole response: status, headers and body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@record
class Rules:
    """How a middleware guards what is behind it. Durations are in microseconds."""

    remembers: str | None
    undated: str
    lease: int
    methods: tuple[str, ...]
    stored_headers: tuple[str, ...]
    longest_request: int
    longest_answer: int


def rules_of(
    *,
    remembers: str | None = None,
    undated: str = "refuse",
    lease: str = "1m",
    methods: Sequence[str] = METHODS,
    stored_headers: Sequence[str] = STORED_HEADERS,
    longest_request: int = 1 << 20,
    longest_answer: int = 256 << 10,
) -> Rules:
    """The rules of a middleware. `remembers` and `undated` are those of `duly.receive`. Raises `Misuse`, naming the argument.

    `lease` is how long a key counts as being worked after its server was killed. Of the `methods` a key is asked for. Of the
    answer the `stored_headers` are kept, never a cookie. A request that is longer than `longest_request` bytes is refused; an
    answer longer than `longest_answer` is not stored.
    """
    if not isinstance(lease, str):
        raise Misuse(f"lease: write it like 1m, not {lease!r}")
    delivery_of("key", "", source="source", remembers=remembers, first_sent=None, undated=undated)
    names = tuple(name.lower() for name in stored_headers)
    if banned := sorted(set(names) & set(NEVER_STORED)):
        raise Misuse(
            f"stored_headers: {', '.join(banned)} is for whoever was answered first, and is not stored for others"
        )
    if banned := sorted(set(names) & set(OF_ONE_SENDING)):
        raise Misuse(f"stored_headers: {', '.join(banned)} is said anew whenever an answer is sent, and is not stored")
    if not 0 <= longest_answer <= LONGEST_ANSWER:
        raise Misuse(f"longest_answer: {LONGEST_ANSWER} bytes are the most that is stored")
    return Rules(
        remembers,
        undated,
        parse_duration(lease),
        tuple(method.upper() for method in methods),
        names,
        longest_request,
        longest_answer,
    )


# -- what came in -------------------------------------------------------------------------------------------------------


def delivery_or_problem(
    rules: Rules,
    *,
    source: str,
    method: str,
    target: str,
    keys: Sequence[str],
    first_sent: Sequence[str],
    body: bytes,
) -> ledger.Delivery | Response:
    """What a request delivers, or what it is answered where that cannot be told.

    The payload is method, target and body: a key that is used again for something else has another one.
    """
    key = _key_of(keys)
    if isinstance(key, Response):
        return key
    if len(first_sent) > 1:
        return problem(400, "key-invalid", f"Send one {FIRST_SENT}.")
    payload = sha256(f"{method} {target}\n".encode("utf-8", "surrogateescape") + body).hexdigest()
    try:
        return delivery_of(
            key,
            f"http:{payload}",
            source=source,
            remembers=rules.remembers,
            first_sent=first_sent[0] if first_sent else None,
            undated=rules.undated,
        )
    except Misuse as e:
        return problem(400, "key-invalid", f"{KEY} or {FIRST_SENT}: {e}")


def _key_of(values: Sequence[str]) -> str | Response:
    if not values or not any(value.strip() for value in values):
        return problem(
            400,
            "key-missing",
            f"This operation is applied once for each {KEY}; send one, the same whenever it is retried.",
        )
    key = parse_key(values[0]) if len(values) == 1 else None
    if key is None:
        return problem(
            400, "key-invalid", f"Send one {KEY}, a string of 1 to {LONGEST_KEY} visible characters in double quotes."
        )
    return key


def parse_key(value: str) -> str | None:
    """The key in a header's value: a string of RFC 8941, whose parameters are ignored, or bare; None for anything else."""
    value = value.strip(" \t")
    key = _quoted(value) if value[:1] == '"' else value if not set(value) & set('",;\\') else None
    if not key or len(key) > LONGEST_KEY or not all("!" <= char <= "~" for char in key):
        return None
    return key


def _quoted(value: str) -> str | None:
    key, place = "", 1
    while place < len(value) and value[place] != '"':
        if value[place] == "\\":
            place += 1
            if value[place : place + 1] not in ('"', "\\"):
                return None
        key += value[place : place + 1]
        place += 1
    rest = value[place + 1 :]
    return key if place < len(value) and (not rest or rest[0] == ";") else None


# -- what is answered ---------------------------------------------------------------------------------------------------


def problem(status: int, code: str, detail: str, *, retry_after: int | None = None) -> Response:
    """A problem of RFC 9457. `retry_after` is in microseconds."""
    told = {"type": "about:blank", "title": _REASONS[status], "status": status, "code": code, "detail": detail}
    headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
    if retry_after is not None:
        headers.append(("Retry-After", str(max(1, -(-retry_after // SECOND)))))
    return Response(status, tuple(headers), json.dumps(told).encode())


def in_progress(again_in: int) -> Response:
    """What a delivery is answered while another one of its key is worked."""
    detail = "A request with this key is being worked; ask again later, with the same key."
    return problem(409, "in-progress", detail, retry_after=again_in)


def too_long(rules: Rules) -> Response:
    """What a request is answered that is longer than its server reads."""
    return problem(413, "too-long", f"At most {rules.longest_request} bytes are read of a request with a key.")


def problem_of(error: DulyError) -> Response | None:
    """What a delivery is answered that was not received; None for an error that is not about it.

    Nothing was applied in any of these. A key that was used for something else and one that has been forgotten are not to be
    sent again; 410 would say, of a webhook, that nothing is to be sent here any more.
    """
    match error:
        case ReceiptBusy():
            return in_progress(SECOND)
        case PayloadConflict():
            return problem(
                422, "payload-differs", "This key came with another request; use a key for one request only."
            )
        case BelowHorizon():
            return problem(
                422,
                "forgotten",
                "This key was first sent so long ago that it may have been applied and forgotten; it is not applied again.",
            )
        case UndatedKey():
            return problem(
                400,
                "key-undated",
                f"Keys are remembered for a time; say in {FIRST_SENT} when this one was first sent, as "
                "2026-10-25T01:00:00Z and the same at each delivery, or use a UUIDv7.",
            )
        case Misuse():
            return problem(400, "key-invalid", f"{KEY} or {FIRST_SENT}: {error}")
        case NoLedger() | LedgerCorrupt():
            return None
        case Conflict() | LedgerUnavailable():
            return problem(503, "busy", "Nothing was applied; ask again, with the same key.", retry_after=SECOND)
    return None


def replay_of(answer: Answer) -> Response:
    """What was answered before, marked as that."""
    return Response(answer.status or 200, (*answer.headers, (REPLAYED, "true")), answer.body)


def whole_headers(response: Response) -> tuple[tuple[str, str], ...]:
    """The headers with which a whole response is sent: how long it is said once, where it is said at all (RFC 9110, 8.6)."""
    headers = tuple((name, value) for name, value in response.headers if name.lower() != "content-length")
    if response.status in (204, 304):
        return headers
    return (*headers, ("Content-Length", str(len(response.body))))


def kept(rules: Rules, status: int, headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Of an answer's headers those that are stored."""
    return tuple((name, value) for name, value in headers if name.lower() in rules.stored_headers)


def is_final(status: int) -> bool:
    """Whether an answer may be stored: a 5xx says that its server had trouble, not what became of the request."""
    return 200 <= status < 500
