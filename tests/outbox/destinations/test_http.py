"""HTTP: what a receiver does, and what it means. Real sockets on loopback, which misbehave at each point of an exchange."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from duly.errors import Misuse
from duly.outbox.destinations import (
    CannotTell,
    Delivered,
    DidNot,
    Happened,
    NotSent,
    Refused,
    Unknown,
    destination_of,
)
from duly.outbox.destinations.http import Http
from duly.outbox.destinations.settings import Secret
from duly.outbox.destinations.signing import signed
from duly.records import replace
from tests.outbox.destinations.rogue import Caller, Part, Rogue, nobodys_port, rogue
from tests.outbox.destinations.table import BODY_SECRET, MESSAGE, Row, agrees, names

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

URL_SECRET, HEADER_SECRET, TOKEN = "url-5ecret", "header-5ecret", "token-5ecret"
SIGNING_SECRET = "whsec_" + base64.b64encode(b"signing-5ecret-of-24-bytes").decode()
SECRETS = (URL_SECRET, HEADER_SECRET, TOKEN, SIGNING_SECRET, BODY_SECRET)
Seen = tuple[dict[str, str], bytes]  # headers, with the first line under no name; the body
SOON, LATE = 0.4, 20.0  # seconds: where a time-out is what happens; where it would be a failure of the test


# -- parts --------------------------------------------------------------------------------------------------------------


def answers(status: str, *headers: str, body: bytes | None = None) -> Part:
    """Read the request, and answer it. The answer's body has all that it was told, as a debugging receiver's might."""

    def part(caller: Caller) -> None:
        while True:
            request = caller.hear_request()
            echo = request + " ".join(SECRETS).encode() if body is None else body
            lines = (f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(echo)}", "", "")
            caller.say("\r\n".join(lines).encode() + echo)

    return part


def says(raw: bytes, *, then: Callable[[Caller], None] = lambda caller: None) -> Part:
    """Read the request, say these bytes, and then do something: to end the line is what follows."""

    def part(caller: Caller) -> None:
        caller.hear_request()
        caller.say(raw)
        then(caller)

    return part


def closes_after_the_head(caller: Caller) -> None:
    caller.hear(b"\r\n\r\n")


def resets_after_the_head(caller: Caller) -> None:
    caller.hear(b"\r\n\r\n")
    caller.reset()


def closes_after_the_request(caller: Caller) -> None:
    caller.hear_request()


def resets_after_the_request(caller: Caller) -> None:
    caller.hear_request()
    caller.reset()


def never_answers(caller: Caller) -> None:
    caller.hear_request()
    caller.say_nothing()


def never_reads(caller: Caller) -> None:
    caller.gone.wait()


def drips(caller: Caller) -> None:
    """A byte now and then: no single wait is long, and the answer never ends."""
    caller.hear_request()
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"." * 10_000:
        if caller.gone.wait(0.02):
            return
        caller.say(bytes([byte]))


def says_no_and_closes_before_the_body(caller: Caller) -> None:
    caller.hear(b"\r\n\r\n")
    caller.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    caller.say_nothing()


def is_no_tls(caller: Caller) -> None:
    caller.hear(b"\x01")  # a ClientHello
    caller.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def closes_in_the_handshake(caller: Caller) -> None:
    caller.hear(b"\x01")


# -- how a row is told --------------------------------------------------------------------------------------------------


def to(port: int, scheme: str = "http", host: str = "127.0.0.1", **settings: Any) -> Destination:
    """A destination there, with a secret in each place where it may have one."""
    table = {
        "kind": "http",
        "url": f"{scheme}://ada:{URL_SECRET}@{host}:{port}/orders?of=shop",
        "headers": {"X-Team": "ops"},
        "headers_env": {"X-Token": "DULY_T_HEADER"},
        "signing_secret_env": "DULY_T_SIGNING",
        **settings,
    }
    return destination_of("shop", table)


@contextmanager
def against(part: Part | None, **settings: Any) -> Iterator[tuple[Destination, Rogue | None]]:
    """A destination and its receiver; None: nobody listens."""
    if part is None:
        yield to(nobodys_port(), **settings), None
        return
    with rogue(part) as receiver:
        destination = to(receiver.port, **settings)
        yield destination, receiver
        destination.close()


def plain(part: Part | None, seconds: float = LATE, **settings: Any) -> Callable[[], object]:
    def told() -> object:
        with against(part, **settings) as (destination, _):
            return destination.deliver(MESSAGE, seconds=seconds)

    return told


def nowhere() -> object:
    return to(80, host="no-such-host.invalid").deliver(MESSAGE, seconds=LATE)


def in_tls(part: Part) -> Callable[[], object]:
    def told() -> object:
        with rogue(part) as receiver:
            return to(receiver.port, "https").deliver(MESSAGE, seconds=LATE)

    return told


def by_a_stranger() -> object:
    """A certificate of an authority that nobody here knows."""
    with rogue(answers("200 OK"), tls=_of(trustme.CA())) as receiver:
        return to(receiver.port, "https").deliver(MESSAGE, seconds=LATE)


def without_our_certificate(folder: Path) -> object:
    """A receiver that wants to see ours, of which we have none. Under TLS 1.3 it says so when we have begun to speak."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    tls = _of(authority)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    with rogue(answers("200 OK"), tls=tls) as receiver:
        return to(receiver.port, "https", ca_file=str(folder / "ca.pem")).deliver(MESSAGE, seconds=LATE)


def _of(authority: trustme.CA) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    return tls


def too_long() -> object:
    return plain(answers("200 OK"), max_length=10)()


def without_its_secret() -> object:
    return plain(answers("200 OK"), token_file="/nowhere/token")()


def longer_than_it_is_read() -> object:
    """The body does not fit into what the network takes without being read."""
    message = replace(MESSAGE, body=b"x" * 30_000_000)
    with against(never_reads) as (destination, _):
        return destination.deliver(message, seconds=SOON)


def refused_while_it_was_said() -> object:
    message = replace(MESSAGE, body=b"x" * 30_000_000)
    with against(says_no_and_closes_before_the_body) as (destination, _):
        return destination.deliver(message, seconds=1.5)


OK = b"HTTP/1.1 200 OK\r\n"
HTTP_ROWS = (
    Row("its name has no address", NotSent, nowhere),
    Row("the connection is refused", NotSent, plain(None), "the connection was refused"),
    Row("it does not speak TLS", NotSent, in_tls(is_no_tls), "the TLS handshake failed"),
    Row("it goes away in the TLS handshake", NotSent, in_tls(closes_in_the_handshake), "the TLS handshake failed"),
    Row("its certificate is not valid", NotSent, by_a_stranger),
    Row("it does not accept our certificate", NotSent, without_our_certificate),
    Row("a secret of ours is not where it should be", NotSent, without_its_secret, "/nowhere/token cannot be read"),
    Row("the body is longer than `max_length`", Refused, too_long),
    Row("it closes when it has read the headers", Unknown, plain(closes_after_the_head)),
    Row("it resets when it has read the headers", Unknown, plain(resets_after_the_head)),
    Row("it does not read the body", Unknown, longer_than_it_is_read, f"no answer within {SOON} s"),
    Row("it closes when it has read the request", Unknown, plain(closes_after_the_request)),
    Row("it resets when it has read the request", Unknown, plain(resets_after_the_request)),
    Row("it does not answer in time", Unknown, plain(never_answers, SOON), f"no answer within {SOON} s"),
    Row(
        "its answer comes byte by byte and does not end in time",
        Unknown,
        plain(drips, SOON),
        f"no answer within {SOON} s",
    ),
    Row(
        "its answer is no HTTP",
        Unknown,
        plain(says(b"220 mail.example.com ESMTP\r\n")),
        "its answer was no HTTP, or not whole",
    ),
    Row("its answer ends within the status line", Unknown, plain(says(b"HTTP/1.1 20"))),
    Row("its answer ends within the headers", Unknown, plain(says(OK + b"Content-Le", then=Caller.reset))),
    Row(
        "its answer ends within the body",
        Unknown,
        plain(says(OK + b"Content-Length: 10\r\n\r\nhalf")),
        "its answer was cut short",
    ),
    Row(
        "its answer ends within a chunk",
        Unknown,
        plain(says(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nha")),
        "its answer was no HTTP, or not whole",
    ),
    Row(
        "its answer has no length and does not end in time",
        Unknown,
        plain(says(OK + b"\r\nhalf", then=Caller.say_nothing), SOON),
        f"no answer within {SOON} s",
    ),
    Row("its answer has no length and ends with the connection", Delivered, plain(says(OK + b"\r\nall of it")), "200"),
    Row("200, 201, 202, 204", Delivered, plain(answers("201 Created")), "201"),
    Row(
        "2xx with `Idempotent-Replayed: true`",
        Delivered,
        plain(answers("201 Created", "Idempotent-Replayed: true")),
        "201, replayed",
    ),
    Row(
        "303, which is how some say that it is done",
        Unknown,
        plain(answers("303 See Other", "Location: /elsewhere")),
        "303",
    ),
    Row(
        "any other 3xx: a redirect is never followed", Refused, plain(answers("307 Temporary Redirect", "Location: /x"))
    ),
    Row("400, 401, 403, 404 and any 4xx that is not named here", Refused, plain(answers("400 Bad Request")), "400"),
    Row("a whole answer of 4xx while the body is still sent", Refused, refused_while_it_was_said, "413"),
    Row("408", Unknown, plain(answers("408 Request Timeout")), "408"),
    Row("409, another request with this key is at work", Unknown, plain(answers("409 Conflict")), "409"),
    Row(
        "409 with `Retry-After: 5`",
        Unknown,
        plain(answers("409 Conflict", "Retry-After: 5")),
        "409",
        more="not before 5 s",
    ),
    Row("421, 425, 511", NotSent, plain(answers("421 Misdirected Request")), "421"),
    Row("422, this key came with another body", Refused, plain(answers("422 Unprocessable Content")), "422"),
    Row("429", NotSent, plain(answers("429 Too Many Requests")), "429"),
    Row(
        "429 with `Retry-After: 30`",
        NotSent,
        plain(answers("429 Too Many Requests", "Retry-After: 30")),
        "429",
        more="not before 30 s",
    ),
    Row("501, 505", Refused, plain(answers("501 Not Implemented")), "501"),
    Row(
        "503 with `Retry-After`, a date 90 s after the answer's",
        NotSent,
        plain(
            answers(
                "503 Service Unavailable",
                "Date: Mon, 30 Nov 2026 10:00:00 GMT",
                "Retry-After: Mon, 30 Nov 2026 10:01:30 GMT",
            )
        ),
        "503",
        more="not before 90 s",
    ),
    Row(
        "503 without it: a proxy says so of a server that it lost",
        Unknown,
        plain(answers("503 Service Unavailable")),
        "503",
    ),
    Row("500, 502, 504 and any other 5xx", Unknown, plain(answers("500 Internal Server Error")), "500"),
    Row(
        "5xx with `Idempotent-Replayed: true`: what came of the first request",
        Unknown,
        plain(answers("500 Internal Server Error", "Idempotent-Replayed: true")),
        "500, replayed",
        more="and sending it again tells nothing",
    ),
    Row(
        "4xx with `Idempotent-Replayed: true`",
        Refused,
        plain(answers("429 Too Many Requests", "Idempotent-Replayed: true")),
        "429, replayed",
    ),
)


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_T_HEADER", HEADER_SECRET)
    monkeypatch.setenv("DULY_T_SIGNING", SIGNING_SECRET)
    monkeypatch.setenv("DULY_T_TOKEN", TOKEN)


@pytest.mark.parametrize("row", HTTP_ROWS, ids=names(HTTP_ROWS))
def test_what_a_receiver_does_means(row: Row, tmp_path: Path) -> None:
    outcome = row.how(tmp_path) if row.how is without_our_certificate else row.how()

    agrees(outcome, row, *SECRETS)


@pytest.mark.parametrize(
    ("status", "means"),
    [(200, Delivered), (202, Delivered), (204, Delivered), (226, Delivered)]
    + [(status, Refused) for status in (300, 301, 302, 304, 308)]
    + [(status, Refused) for status in (401, 402, 403, 404, 405, 406, 407, 410, 413, 415, 418, 422, 423, 451, 499)]
    + [(status, NotSent) for status in (421, 425, 429, 511)]
    + [(status, Unknown) for status in (103, 303, 408, 409, 500, 502, 503, 504, 507, 520, 599, 600, 999)]
    + [(status, Refused) for status in (501, 505)],
)
def test_every_status_has_a_meaning(status: int, means: type) -> None:
    with against(says(f"HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n".encode())) as (destination, _):
        outcome = destination.deliver(MESSAGE, seconds=LATE)

    assert type(outcome) is means


def test_a_request_has_its_key_its_signature_and_its_secrets_and_is_the_same_each_time() -> None:
    heard: list[Seen] = []
    with rogue(_kept_by(heard)) as receiver:
        destination = to(receiver.port, token_env="DULY_T_TOKEN")
        destination.deliver(MESSAGE, seconds=LATE)
        destination.deliver(replace(MESSAGE, attempt=2, first_sent_at=1), seconds=LATE)

    (first, _), (second, body) = heard
    assert first["idempotency-key"] == second["idempotency-key"] == f'"{MESSAGE.key}"'
    assert second["authorization"] == f"Bearer {TOKEN}"
    assert (second["x-team"], second["x-token"]) == ("ops", HEADER_SECRET)
    assert second["host"] == f"127.0.0.1:{receiver.port}"
    assert body == MESSAGE.body
    assert second["content-type"] == "application/json"
    assert second["webhook-id"] == MESSAGE.key
    content = f"{MESSAGE.key}.{second['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(b"signing-5ecret-of-24-bytes", content, hashlib.sha256)).decode()
    assert second["webhook-signature"] == f"v1,{expected}"


def test_a_name_and_a_password_in_the_url_are_sent_as_a_header_and_not_in_the_line() -> None:
    heard: list[Seen] = []
    with rogue(_kept_by(heard)) as receiver:
        to(receiver.port).deliver(MESSAGE, seconds=LATE)

    ((headers, _),) = heard
    assert headers["authorization"] == "Basic " + base64.b64encode(f"ada:{URL_SECRET}".encode()).decode()
    assert headers[""] == "POST /orders?of=shop HTTP/1.1"


def test_a_receiver_with_a_header_of_its_own_gets_the_bare_key() -> None:
    heard: list[Seen] = []
    with rogue(_kept_by(heard)) as receiver:
        destination = to(receiver.port, key_header="PayPal-Request-Id")
        destination.deliver(MESSAGE, seconds=LATE)

    assert heard[0][0]["paypal-request-id"] == MESSAGE.key
    assert destination.key_form == "PayPal-Request-Id header"


def test_while_a_secret_is_exchanged_both_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "whsec_" + base64.b64encode(b"the-other-secret-24-bytes").decode()
    monkeypatch.setenv("DULY_T_SIGNING", f"{SIGNING_SECRET} {other}")
    heard: list[Seen] = []
    with rogue(_kept_by(heard)) as receiver:
        to(receiver.port).deliver(MESSAGE, seconds=LATE)

    assert len(heard[0][0]["webhook-signature"].split()) == 2


def _kept_by(heard: list[Seen]) -> Part:
    def part(caller: Caller) -> None:
        while True:
            head, _, body = caller.hear_request().partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
            heard.append(({"": first, **headers}, body))
            caller.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    return part


# -- lines that are kept ------------------------------------------------------------------------------------------------


def test_where_keys_are_remembered_a_connection_is_used_again() -> None:
    with against(answers("200 OK"), remembers="24h") as (destination, receiver):
        for _ in range(3):
            destination.deliver(MESSAGE, seconds=LATE)

    assert receiver is not None
    assert receiver.connections == 1


def test_where_they_never_are_each_message_has_a_connection_of_its_own() -> None:
    with against(answers("200 OK")) as (destination, receiver):
        for _ in range(3):
            destination.deliver(MESSAGE, seconds=LATE)

    assert destination.remembers == 0
    assert receiver is not None
    assert receiver.connections == 3


def test_a_connection_that_was_closed_while_it_was_idle_costs_nothing() -> None:
    once = says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    with rogue(once) as receiver:
        destination = to(receiver.port, remembers="forever")
        first = destination.deliver(MESSAGE, seconds=LATE)
        receiver.ended()
        second = destination.deliver(MESSAGE, seconds=LATE)
        destination.close()

    assert (type(first), type(second)) == (Delivered, Delivered)
    assert receiver.connections == 2


def test_after_an_unknown_outcome_no_connection_is_used_again() -> None:
    with rogue(closes_after_the_request, answers("200 OK")) as receiver:
        destination = to(receiver.port, remembers="24h")
        outcomes = [destination.deliver(MESSAGE, seconds=LATE) for _ in range(2)]
        destination.close()

    assert [type(each) for each in outcomes] == [Unknown, Delivered]


# -- probes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "finding"),
    [
        (answers("200 OK"), Happened("200 at the look-up")),
        (answers("204 No Content", body=b""), Happened("204 at the look-up")),
        (answers("404 Not Found"), DidNot("404 at the look-up")),
        (answers("401 Unauthorized"), CannotTell("401 at the look-up")),
        (answers("500 Internal Server Error"), CannotTell("500 at the look-up")),
        (answers("302 Found", "Location: /login"), CannotTell("302 at the look-up")),
        (closes_after_the_head, CannotTell("the connection was lost after the request had begun")),
        (None, CannotTell("the connection was refused")),
    ],
)
def test_a_look_up_tells_what_happened_or_that_it_cannot(part: Part | None, finding: object) -> None:
    with rogue(part or closes_after_the_head) as receiver:
        port = receiver.port if part else nobodys_port()
        found = to(port, look_up=f"http://127.0.0.1:{port}/by-key/{{key}}").probe(MESSAGE, seconds=LATE)

    assert found == finding or (part is closes_after_the_head and type(found) is CannotTell)


def test_a_look_up_names_the_run_in_one_segment() -> None:
    heard: list[Seen] = []
    with rogue(_kept_by(heard)) as receiver:
        to(receiver.port, look_up=f"http://127.0.0.1:{receiver.port}/{{run}}/{{name}}").probe(MESSAGE, seconds=LATE)

    assert heard[0][0][""] == "GET /invoice-export%3A2026-10-05%5BEurope%2FBerlin%5D/invoice HTTP/1.1"


def test_without_a_look_up_nothing_can_be_told() -> None:
    assert to(1).probe(MESSAGE, seconds=LATE) == CannotTell(
        "neither look_up nor probe is declared for this destination"
    )


# -- what is declared ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"url": "api.example.com"},
            'destinations.shop.url: it takes a URL, as url = "https://api.example.com/orders"',
        ),
        ({"signing_secret": SIGNING_SECRET}, "destinations.shop.signing_secret: a secret does not stand here"),
        ({"token_env": "$TOKEN"}, "destinations.shop.token_env: it takes the name of a variable, without $"),
        ({"header": {}}, "destinations.shop.header: no such field; did you mean 'headers'?"),
        ({"remembers": 24}, "destinations.shop.remembers: 24 is not a duration"),
        ({"headers": {"Content-Length": "3"}}, "destinations.shop.headers: 'Content-Length' is no header"),
        ({"kind": "htpp"}, "destinations.shop.kind: there is no 'htpp'; did you mean 'http'?"),
        ({"look_up": "by-key"}, "destinations.shop.look_up: it takes a URL"),
        ({"max_length": "1 MB"}, "destinations.shop.max_length: '1 MB' is not a whole number"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write_and_without_a_secret(
    settings: dict[str, object], said: str
) -> None:
    with pytest.raises(Misuse) as told:
        destination_of("shop", {"kind": "http", "url": f"http://ada:{URL_SECRET}@shop/", **settings})

    assert str(told.value).startswith(said)
    assert not any(secret in str(told.value) for secret in SECRETS)


def test_no_secret_is_in_what_is_printed_of_a_destination_or_a_message() -> None:
    destination = to(1)
    assert isinstance(destination, Http)

    shown = repr(destination) + repr(vars(destination)) + repr(MESSAGE) + str(MESSAGE)

    assert not any(secret in shown for secret in SECRETS)


def test_a_look_up_shows_who_asks() -> None:
    heard: list[Seen] = []
    with rogue(_kept_by(heard)) as receiver:
        to(receiver.port, token_env="DULY_T_TOKEN", look_up=f"http://127.0.0.1:{receiver.port}/{{key}}").probe(
            MESSAGE, seconds=LATE
        )

    assert heard[0][0]["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("held", ["whsec_", "whsec_c2hvcnQ=", "plain-5ecret", "whsec_not base64!"])
def test_a_signing_secret_that_is_none_waits_for_somebody_to_mend_it(
    held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_T_SIGNING", held)
    with rogue(answers("200 OK")) as receiver:
        outcome = to(receiver.port).deliver(MESSAGE, seconds=LATE)

    assert outcome == NotSent("$DULY_T_SIGNING holds no secret like whsec_… (base64 of 16 bytes or more)")
    assert receiver.connections == 0


def test_the_signature_is_the_one_that_its_authors_publish() -> None:
    # The example of docs.svix.com, on verifying by hand.
    message = replace(MESSAGE, key="msg_loFOjxBNrRLzqYUf", body=b'{"event_type":"ping","data":{"success":true}}')

    headers = signed(message, Secret.of_text("it", "whsec_plJ3nmyCDGBKInavdOK15jsl"), at=1731705121)

    assert headers["webhook-signature"] == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="
