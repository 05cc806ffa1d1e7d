"""Healthchecks: which check is pinged where, and what its answer means. Real servers on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, NotSent, Refused, Unknown, destination_of
from duly.records import replace
from tests.outbox.destinations.rogue import Caller, Part, nobodys_port, rogue
from tests.outbox.destinations.table import MESSAGE, Row, agrees, names
from tests.outbox.destinations.test_http import answers, closes_after_the_request, never_answers

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination, Message

SECRET = "uuid-5ecret"
SOON, LATE = 0.4, 20.0  # seconds: where a time-out is what happens; where it would be a failure of the test


def alert(state: str = "raised", **more: Any) -> Message:
    said = {
        "open": 1,
        "open_of_job": 1,
        "job": "Close.Day",
        "text": "close-day: late",
        "next_step": "duly explain",
        **more,
    }
    return replace(MESSAGE, body=json.dumps({"schema": "duly.alert.v1", "state": state, **said}).encode())


def to(port: int, **settings: Any) -> Destination:
    url = f"http://127.0.0.1:{port}/{SECRET}"
    return destination_of("check", {"kind": "healthchecks", "url": url, **settings})


def pinged(
    part: Part | None, message: Message | None = None, seconds: float = LATE, **more: Any
) -> Callable[[], object]:
    def outcome() -> object:
        if part is None:
            return to(nobodys_port()).deliver(alert(), seconds=seconds)
        with rogue(part) as receiver:
            return to(receiver.port, **more).deliver(message or alert(), seconds=seconds)

    return outcome


HEALTHCHECKS_ROWS = (
    Row("the connection is refused", NotSent, pinged(None), "the connection was refused"),
    Row(
        "the message is no alert",
        Refused,
        pinged(answers("200 OK"), MESSAGE),
        "it is no alert: a check takes nothing else",
    ),
    Row("the text of the alert is longer than `max_length`", Refused, pinged(answers("200 OK"), max_length=5)),
    Row("200, 201", Delivered, pinged(answers("200 OK")), "200"),
    Row("400, 404: there is no such check", Refused, pinged(answers("404 Not Found")), "404"),
    Row(
        "429 with `Retry-After: 30`",
        NotSent,
        pinged(answers("429 Too Many Requests", "Retry-After: 30")),
        more="not before 30 s",
    ),
    Row("500, 502, 504", Unknown, pinged(answers("502 Bad Gateway")), "502"),
    Row("it closes when it has read the request", Unknown, pinged(closes_after_the_request)),
    Row("it does not answer in time", Unknown, pinged(never_answers, seconds=SOON)),
)


@pytest.mark.parametrize("row", HEALTHCHECKS_ROWS, ids=names(HEALTHCHECKS_ROWS))
def test_what_a_check_says_has_one_meaning(row: Row) -> None:
    agrees(row.how(), row, SECRET)


def heard(message: Message, path: str = "") -> tuple[str, bytes]:
    """The first line of the request that a ping is, and its body."""
    requests: list[bytes] = []

    def takes(caller: Caller) -> None:
        requests.append(caller.hear_request())
        caller.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")

    with rogue(takes) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/{SECRET}{path}"
        outcome = destination_of("check", {"kind": "healthchecks", "url": url}).deliver(message, seconds=LATE)
    assert outcome == Delivered("200")
    head, _, body = requests[0].partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body


@pytest.mark.parametrize(
    ("message", "path", "goes"),
    [
        (alert("raised"), "", "/fail"),
        (alert("recovered", open=0), "", ""),
        (alert("recovered", open=2), "", "/log"),
        (alert("noted", open=0), "", "/log"),
        (alert("raised"), "/", "/fail"),
        (alert("raised"), "?create=1", "/fail?create=1"),
        (alert("recovered", open=2, open_of_job=0), "/{job}", "/close-day"),
        (alert("recovered", open=2, open_of_job=1), "/{job}", "/close-day/log"),
        (alert("raised", job=None), "/{job}", "/duly/fail"),
    ],
)
def test_a_check_is_down_while_anything_is_open(message: Message, path: str, goes: str) -> None:
    line, body = heard(message, path)

    assert line == f"POST /{SECRET}{goes} HTTP/1.1"
    assert body == b"close-day: late\nnext: duly explain\n"


def test_a_ping_may_be_said_twice() -> None:
    assert to(1).remembers is None
    assert to(1, remembers="never").remembers == 0


def test_a_check_cannot_be_asked() -> None:
    assert isinstance(to(1).probe(alert(), seconds=1.0), CannotTell)


def test_its_address_has_to_be_there() -> None:
    with pytest.raises(Misuse, match=r"destinations\.check\.url: it has to be there; write url = "):
        destination_of("check", {"kind": "healthchecks"})
