"""Whatever a receiver says, a destination answers, and calls nothing a delivery that was not said to be one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly.outbox.destinations import CannotTell, Delivered, DidNot, Happened, NotSent, Refused, Unknown, destination_of
from tests.outbox.destinations import test_amqp, test_nats, test_redis, test_smtp
from tests.outbox.destinations.rogue import Caller, rogue
from tests.outbox.destinations.table import MESSAGE

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

LATE = 20.0
OUTCOMES, FINDINGS = (Delivered, NotSent, Refused, Unknown), (Happened, DidNot, CannotTell)

# What a receiver of each kind may say, in pieces that are put together at random.
PIECES = {
    "http": [
        b"HTTP/1.1 ",
        b"500 ",
        b"\r\n",
        b"\r\n\r\n",
        b"Content-Length: 5",
        b"Transfer-Encoding: chunked",
        b"-1",
        b"zz\r\n",
    ],
    "smtp": [b"220 hi\r\n", b"250-", b"550 no\r\n", b"354 go\r\n", b"\r\n", b"421 ", b"999999 \r\n", b"AUTH PLAIN\r\n"],
    "nats": [
        b'INFO {"headers":true}\r\n',
        b"PONG\r\n",
        b"PING\r\n",
        b"MSG ",
        b"HMSG a 1 2 3\r\n",
        b"-ERR 'x'\r\n",
        b"INFO []\r\n",
    ],
    "redis": [
        b"+PONG\r\n",
        b"$5\r\nhello\r\n",
        b"*2\r\n",
        b"-ERR no\r\n",
        b":7\r\n",
        b"$-1\r\n",
        b"$99\r\n",
        b"*-1\r\n",
        b"$x\r\n",
    ],
    "amqp": [
        b"\x01\x00\x00\x00\x00\x00\x04",
        b"\x00\x0a\x00\x0a",
        b"\xce",
        b"\x01\x00\x01",
        b"AMQP\x00\x00\x09\x01",
        b"\x08",
    ],
}


def http(port: int) -> Destination:
    url = f"http://127.0.0.1:{port}/"
    return destination_of("shop", {"kind": "http", "url": url, "look_up": url, "remembers": "1h"})


KINDS: dict[str, Callable[[int], Destination]] = {
    "http": http,
    "smtp": test_smtp.to,
    "nats": test_nats.to,
    "redis": test_redis.to,
    "amqp": test_amqp.to,
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_said_has_a_meaning(kind: str) -> None:
    words = st.lists(st.sampled_from(PIECES[kind]) | st.binary(max_size=20), max_size=8).map(b"".join)

    @given(words)
    @settings(max_examples=60)
    def told(said: bytes) -> None:
        def babbles(caller: Caller) -> None:
            caller.say(said)
            # Nothing more; but what is said to it is read, or its word would be lost in a reset.
            caller.line.shutdown(socket.SHUT_WR)
            while caller.line.recv(65536):
                pass

        with rogue(babbles) as receiver:
            destination = KINDS[kind](receiver.port)
            outcome = destination.deliver(MESSAGE, seconds=LATE)
            finding = destination.probe(MESSAGE, seconds=LATE)
            destination.close()

        assert isinstance(outcome, OUTCOMES)
        assert isinstance(finding, FINDINGS)
        assert not isinstance(outcome, Delivered) or (kind == "http" and b"HTTP/1.1 2" in said) or kind == "smtp"

    told()
