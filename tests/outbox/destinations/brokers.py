"""Brokers at their usual ports on loopback. Where there is none, what it would tell is skipped, and that is said."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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
