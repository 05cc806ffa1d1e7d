"""A way between one relay and the shop: it carries requests, and at some of them something goes wrong.

What goes wrong, and at which sending of which message, is drawn from a seed and the message's name: not from time. A request
that is not carried, and a reply that is not, end with the connection, as whoever waits for them sees it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from random import Random

# What may go wrong at a sending.
SWALLOWED = ("request swallowed", "reply swallowed", "reply cut off")
RELAY_KILLED = ("relay killed, request not sent", "relay killed, reply not heard", "relay killed, reply just heard")
SHOP_KILLED = ("shop killed before", "shop killed within", "shop killed after", "shop killed answered")
FAULTS = (*SWALLOWED, *RELAY_KILLED, *SHOP_KILLED)
# And at a look-up.
BLIND = ("look-up swallowed", "finding swallowed")


class Weather:
    """Which fault meets the nth sending of a message. `of_each_hundred` sendings so many meet one."""

    def __init__(self, seed: int, of_each_hundred: float) -> None:
        self._seed = seed
        self._rate = of_each_hundred / 100

    def at(self, name: str, nth: int, faults: tuple[str, ...] = FAULTS) -> str | None:
        chance = Random(f"{self._seed} {name} {nth} {faults[0]}")
        return chance.choice(faults) if chance.random() < self._rate else None


class Request:
    """One request of a relay's, with the bytes that it came as."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.method, self.target = head.split(b" ", 2)[:2]
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        self._headers = {name.strip().lower(): value.strip().decode() for name, _, value in lines}
        self._head, self._body = head, body

    @property
    def is_look_up(self) -> bool:
        return self.method == b"GET"

    @property
    def key(self) -> str:
        if self.is_look_up:
            return self.target.rpartition(b"/")[2].decode()
        return self._headers[b"idempotency-key"].strip('"')

    @property
    def first_sent(self) -> str:
        return self._headers[b"duly-first-sent"]

    def carried(self, more: str = "") -> bytes:
        """As the shop is given it: it kills itself where `more` says so, and closes the connection in any case."""
        return self._head + f"\r\nConnection: close{more}\r\n\r\n".encode() + self._body


class Way:
    """A way to the shop. `meets` says what happens to a request, `kill` kills the relay, `passed` hears of answers."""

    def __init__(
        self,
        port: int,
        *,
        meets: Callable[[Request], str | None],
        kill: Callable[[], None],
        passed: Callable[[Request, int], None],
    ) -> None:
        self._shop = ("127.0.0.1", port)
        self._meets, self._kill, self._passed = meets, kill, passed
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = 0
        self._all_quiet = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def wait_until_quiet(self) -> None:
        """Until nothing that was carried is at the shop any more."""
        with self._all_quiet:
            self._all_quiet.wait_for(lambda: self._open == 0)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            while (request := _heard(client)) is not None:
                with self._all_quiet:
                    self._open += 1
                try:
                    if not self._carry(client, request):
                        return
                finally:
                    with self._all_quiet:
                        self._open -= 1
                        self._all_quiet.notify_all()

    def _carry(self, client: socket.socket, request: Request) -> bool:
        """Carry one request, and its reply. False: the connection is lost."""
        fault = self._meets(request)
        if fault in ("request swallowed", "look-up swallowed"):
            return False
        if fault == "relay killed, request not sent":
            self._kill()
            return False
        dies = f"\r\nDies: {fault.removeprefix('shop killed ')}" if fault in SHOP_KILLED else ""
        reply = self._asked(request.carried(dies))
        if fault == "relay killed, reply not heard":
            self._kill()
            return False
        if fault in ("reply swallowed", "finding swallowed") or not _is_whole(reply):
            return False
        if fault == "reply cut off":
            client.sendall(reply[: len(reply) // 2])
            return False
        client.sendall(reply)
        self._passed(request, int(reply.split(None, 2)[1]))
        if fault == "relay killed, reply just heard":
            self._kill()
        return True

    def _asked(self, request: bytes) -> bytes:
        """What the shop answers, as far as it came: it may have been killed by this request or by another."""
        reply = b""
        with suppress(OSError), socket.create_connection(self._shop) as shop:
            shop.sendall(request)
            while block := shop.recv(65536):
                reply += block
        return reply.replace(b"HTTP/1.0", b"HTTP/1.1", 1)  # so that the relay keeps the line, where it keeps any


def _heard(client: socket.socket) -> Request | None:
    """The next request; None where there is none. Raises `EOFError` in the midst of one."""
    heard = b""
    while b"\r\n\r\n" not in heard:
        if not (block := client.recv(65536)):
            if heard:
                raise EOFError
            return None
        heard += block
    head, _, body = heard.partition(b"\r\n\r\n")
    length = _length(head)
    while len(body) < length:
        if not (block := client.recv(65536)):
            raise EOFError
        body += block
    return Request(head, body)


def _length(head: bytes) -> int:
    found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(found[0].partition(b":")[2]) if found else 0


def _is_whole(reply: bytes) -> bool:
    head, end, body = reply.partition(b"\r\n\r\n")
    return end != b"" and b"content-length:" in head.lower() and len(body) == _length(head)
