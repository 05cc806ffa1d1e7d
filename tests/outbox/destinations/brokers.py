"""Brokers at their usual ports on loopback. Where there is none, what it would tell is skipped, and that is said."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.outbox.destinations.rogue import Caller, rogue
from tests.outbox.destinations.table import BODY_SECRET
from tests.proxy import Proxy


def answers(port: int, *, says: bytes = b"", hears: bytes) -> bool:
    """Whether somebody there answers as one of its kind does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as line:
            line.sendall(says)
            return line.recv(100).startswith(hears)
    except OSError:
        return False


def needed(name: str, port: int, *, says: bytes = b"", hears: bytes) -> int:
    """The port, or a skip that says what is not told without it. DULY_TEST_<NAME> names another port."""
    at = int(os.environ.get(f"DULY_TEST_{name.upper()}", port))
    if not answers(at, says=says, hears=hears):
        pytest.skip(f"NO {name.upper()} ANSWERS at 127.0.0.1:{at}, so its destination is not tested against a real one")
    return at


@contextmanager
def swallowing(port: int, what: str = "nothing") -> Iterator[int]:
    """A way to a broker, by the port that is yielded. It swallows the `request` with the message's body, or the
    `reply` to it, and is cut then; or it swallows the reply and stays."""
    over = threading.Event()
    proxy = Proxy(f"any://127.0.0.1:{port}", BODY_SECRET.encode())
    if what == "request":
        proxy.swallow(1)
    if what in ("reply", "reply, and stays"):
        proxy.swallow_the_reply_of(1)
    if what == "reply, and stays":
        proxy.meanwhile = over.wait
    try:
        yield int(proxy.url.rpartition(":")[2])
    finally:
        over.set()
        proxy.close()


@contextmanager
def encrypted(port: int, tls: ssl.SSLContext, *, after: bytes = b"") -> Iterator[int]:
    """A way to a broker that speaks TLS with its clients, by the port that is yielded. `after`: what the broker
    says first ends so, and is passed on in the clear, as NATS does."""

    def part(caller: Caller) -> None:
        with socket.create_connection(("127.0.0.1", port)) as broker:
            greeting = b""
            while after and not greeting.endswith(after):
                greeting += broker.recv(65536)
            if greeting:
                caller.say(greeting.replace(b"{", b'{"tls_required":true,', 1))
                caller.line = tls.wrap_socket(caller.line, server_side=True)
            there = threading.Thread(target=_carry, args=(broker, caller.line), daemon=True)
            there.start()
            _carry(caller.line, broker)
            there.join(20)

    with rogue(part, tls=None if after else tls) as front:
        yield front.port


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(65536):
            sink.sendall(block)
    with suppress(OSError):
        socket.socket.shutdown(sink, socket.SHUT_RDWR)
