"""What a request with a key is, and what it is answered where the application is not asked: no server is needed for that."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from duly.errors import BelowHorizon, ClaimLost, LedgerBusy, Misuse, NoLedger, PayloadConflict, ReceiptBusy, UndatedKey
from duly.ledger.receive import Delivery
from duly.outbox.receiver.door import Request, to_store
from duly.outbox.receiver.http import (
    Response,
    delivery_or_problem,
    in_progress,
    is_final,
    kept,
    parse_key,
    problem_of,
    replay_of,
    rules_of,
    whole_headers,
)
from duly.outbox.receiver.receipt import Answer, Replayed, read_form, stored_form
from duly.times import SECOND, parse_instant

KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (f'"{KEY}"', KEY),  # draft-ietf-httpapi-idempotency-key-header, 2.1
        (KEY, KEY),  # as many clients send it
        (f' "{KEY}"\t', KEY),
        (f'"{KEY}";a=1', KEY),  # parameters of RFC 8941 are ignored
        (r'"a\"b\\c"', 'a"b\\c'),
        ("order-17", "order-17"),
        ("x" * 255, "x" * 255),
        ("x" * 256, None),
        ('""', None),
        ("", None),
        ('"open', None),
        ('"a" b', None),
        (r'"a\b"', None),
        ('"a\\', None),
        ("a,b", None),  # a header that came twice
        ('"a", "b"', None),
        ('"a b"', None),
        ("a b", None),
        ("ä", None),
        ("a\x00", None),
    ],
)
def test_a_key_is_a_string_of_rfc_8941_or_bare(value: str, key: str | None) -> None:
    assert parse_key(value) == key


def asked(keys: Any = (KEY,), first_sent: Any = (), **more: Any) -> Delivery | Response:
    described = {"method": "POST", "target": "/orders?", "body": b"lamp", "source": "orders", **more}
    return delivery_or_problem(rules_of(remembers="30d"), keys=keys, first_sent=first_sent, **described)


def code_of(told: object) -> tuple[int, str]:
    assert isinstance(told, Response)
    assert ("Content-Type", "application/problem+json") in told.headers
    said = json.loads(told.body)
    assert said["status"] == told.status
    return told.status, said["code"]


def test_without_a_key_or_with_one_that_is_none_nothing_is_delivered() -> None:
    assert code_of(asked(keys=())) == (400, "key-missing")
    assert code_of(asked(keys=("",))) == (400, "key-missing")
    assert code_of(asked(keys=("a b",))) == (400, "key-invalid")
    assert code_of(asked(keys=("a", "b"))) == (400, "key-invalid")
    assert code_of(asked(first_sent=("yesterday",))) == (400, "key-invalid")
    assert code_of(asked(first_sent=("2026-10-05T00:00:00Z", "2026-10-05T00:00:00Z"))) == (400, "key-invalid")


def test_a_delivery_has_the_time_that_its_sender_says() -> None:
    delivery = asked(first_sent=("2026-10-05T06:00:00.25Z",))

    assert isinstance(delivery, Delivery)
    assert delivery.first_sent == parse_instant("2026-10-05T06:00:00.25Z")
    assert (delivery.source, delivery.key) == ("orders", KEY)


def test_its_payload_is_method_target_and_body() -> None:
    same, again = asked(), asked()
    others = [asked(method="PATCH"), asked(target="/orders?dry=1"), asked(body=b"lamps"), asked(target="/refunds?")]

    assert isinstance(same, Delivery)
    assert isinstance(again, Delivery)
    assert same.payload == again.payload
    assert same.receipt != again.receipt
    assert len({other.payload for other in others if isinstance(other, Delivery)} - {same.payload}) == 4


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ReceiptBusy(), (409, "in-progress")),
        (PayloadConflict(), (422, "payload-differs")),
        (BelowHorizon(), (422, "forgotten")),
        (UndatedKey(), (400, "key-undated")),
        (Misuse("first_sent: …"), (400, "key-invalid")),
        (LedgerBusy(), (503, "busy")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_refusal_is_a_problem_that_can_be_told_from_the_others(error: Any, told: tuple[int, str]) -> None:
    response = problem_of(error)

    assert code_of(response) == told


def test_what_is_wrong_with_the_server_is_the_servers_to_see() -> None:
    assert problem_of(NoLedger()) is None
    assert problem_of(ClaimLost()) is None


def test_who_comes_too_early_is_told_when_to_come_again() -> None:
    assert ("Retry-After", "40") in in_progress(39 * SECOND + 1).headers
    assert ("Retry-After", "1") in in_progress(0).headers


def test_a_replay_is_the_answer_as_it_was_and_marked() -> None:
    answer = Answer(201, (("location", "/orders/17"),), b"no 17")

    assert replay_of(answer) == Response(201, (("location", "/orders/17"), ("Idempotent-Replayed", "true")), b"no 17")
    assert replay_of(Answer(None, (), b"")).status == 200


def test_of_headers_those_are_stored_that_were_named_and_never_a_cookie() -> None:
    headers = [
        ("Location", "/orders/17"),
        ("Set-Cookie", "session=1"),
        ("X-Trace", "abc"),
        ("Content-Type", "text/plain"),
    ]

    assert kept(rules_of(), 201, headers) == (("Location", "/orders/17"), ("Content-Type", "text/plain"))
    assert kept(rules_of(stored_headers=("X-Trace",)), 201, headers) == (("X-Trace", "abc"),)
    with pytest.raises(Misuse, match="set-cookie"):
        rules_of(stored_headers=("Location", "Set-Cookie"))


def test_what_a_server_says_of_its_own_trouble_is_not_stored() -> None:
    assert [status for status in (200, 201, 204, 303, 400, 404, 422, 500, 502, 503) if not is_final(status)] == [
        500,
        502,
        503,
    ]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ({"remembers": "a while"}, "duration"),
        ({"undated": "perhaps"}, "undated"),
        ({"lease": "0s"}, "duration"),
        ({"longest_answer": (1 << 20) + 1}, "longest_answer"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rule: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Misuse, match=complaint):
        rules_of(**rule)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Set-Cookie", "session=1"),
        ("WWW-Authenticate", "Basic"),
        ("proxy-authenticate", "Basic"),
        ("Connection", "close"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "3"),
        ("Idempotent-Replayed", "true"),
        ("X-Who", "\u0141ukasz"),
        ("X-Who", "a\r\nSet-Cookie: session=1"),
        ("X-Who", "a\nb"),
        ("X-Who", "a\x00"),
        ("X-Who", " a"),
        ("X-Who", b"a"),
        ("X Who", "a"),
        ("X-Who:", "a"),
        ("X-Wh\xf6", "a"),
        ("", "a"),
    ],
)
def test_a_header_that_cannot_be_given_again_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(Misuse, match="headers: ") as refused:
        stored_form(b"", 200, [("X-Before", "a"), (name, value)])

    assert name in str(refused.value) or repr(name) in str(refused.value)
    assert "session" not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "status", "headers", "complaint"),
    [
        (b"", 100, (), "status: 100"),
        (b"", 199, (), "status: 199"),
        (b"", 600, (), "status: 600"),
        (b"", "200", (), "status: '200'"),
        (b"", True, (), "status: True"),
        (b"a", 204, (), "status: an answer 204"),
        ("a", 304, (), "status: an answer 304"),
        (5, 200, (), "body"),
        ("\ud800", 200, (), "body"),
        (b"", 200, 5, "headers"),
        (b"", 200, "ab", "headers"),
        (b"", 200, [("a", "b", "c")], "headers"),
    ],
)
def test_so_is_every_other_answer_that_is_none(body: Any, status: Any, headers: Any, complaint: str) -> None:
    with pytest.raises(Misuse, match=complaint):
        stored_form(body, status, headers)


def test_what_http_can_carry_is_stored_as_it_is() -> None:
    headers = [("Link", "</a>"), ("Link", "</b>"), ("X-Who", "Zo\xeb\tB"), ("X-None", ""), ("Retry-After", 5)]

    stored = read_form(stored_form("", 204, headers))  # type: ignore[arg-type]

    assert (stored.status, stored.body) == (204, b"")
    assert stored.headers == (*headers[:-1], ("Retry-After", "5"))


@pytest.mark.parametrize("status", [200, 204])
def test_a_whole_response_says_its_length_once_if_it_has_one(status: int) -> None:
    told = whole_headers(Response(status, (("content-length", "7"), ("ETag", "a")), b""))

    assert told == (("ETag", "a"), ("Content-Length", "0"))[: 1 if status == 204 else 2]


@pytest.mark.parametrize("name", ["Content-Length", "Connection", "Transfer-Encoding"])
def test_no_middleware_is_told_to_store_what_is_said_anew(name: str) -> None:
    with pytest.raises(Misuse, match=f"stored_headers: {name.lower()}"):
        rules_of(stored_headers=[name])


def test_an_answer_of_the_applications_that_cannot_be_given_again_is_not_stored_and_ends_nothing() -> None:
    """It is sent all the same, and the mark is taken away."""
    delivery = asked(first_sent=("2026-10-05T00:00:00Z",))
    assert isinstance(delivery, Delivery)
    request = Request(delivery)
    request.outcome = Replayed(KEY, datetime.now(UTC), None)

    assert to_store(rules_of(), request, Response(204, (), b"")) is not None
    assert to_store(rules_of(), request, Response(204, (), b"a body")) is None
    assert to_store(rules_of(), request, Response(201, (("Location", "/\u0141"),), b"")) is None
