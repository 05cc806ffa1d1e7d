"""Receivers that misbehave on purpose: a listener on loopback, and for each connection the next of its parts to play."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Part = Callable[["Caller"], None]


class Caller:
    """One connection, as the receiver sees it."""

    def __init__(self, line: socket.socket, gone: threading.Event) -> None:
        self.line = line
        self.gone = gone
        self.heard = b""

    def hear(self, *until: bytes) -> bytes:
        """Read until one of these has come. What came is kept; the end of the line ends the part."""
        while not any(each in self.heard for each in until):
            block = self.line.recv(65536)
            if not block:
                raise EOFError
            self.heard += block
        return self.heard

    def hear_request(self) -> bytes:
        """Read a request of HTTP to its end."""
        head = self.hear(b"\r\n\r\n").partition(b"\r\n\r\n")[0]
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        whole = len(head) + 4 + (int(lengths[0].partition(b":")[2]) if lengths else 0)
        while len(self.heard) < whole:
            block = self.line.recv(65536)
            if not block:
                raise EOFError
            self.heard += block
        request, self.heard = self.heard[:whole], self.heard[whole:]
        return request

    def say(self, what: bytes) -> None:
        """Send these bytes."""
        self.line.sendall(what)

    def reset(self) -> None:
        """Break the line off: what was not read is gone, and the other side gets an error."""
        self.line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.line.close()

    def say_nothing(self) -> None:
        """Keep the line, and say nothing, until the other side lets go of it or the test is over."""
        self.line.settimeout(0.05)
        while not self.gone.is_set():
            try:
                if not self.line.recv(65536):
                    return
            except TimeoutError:
                continue


class Rogue:
    """A receiver. `parts`: what it does with each connection, the last one for all that follow."""

    def __init__(self, *parts: Part, tls: ssl.SSLContext | None = None) -> None:
        self._parts = parts
        self._tls = tls
        self._gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.heard: list[bytes] = []
        self.connections = 0
        self._ended = threading.Semaphore(0)
        threading.Thread(target=self._accept, daemon=True).start()

    def ended(self) -> None:
        """Wait until one more connection is over."""
        assert self._ended.acquire(timeout=20)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                part = self._parts[min(self.connections, len(self._parts) - 1)]
                self.connections += 1
                threading.Thread(target=self._play, args=(line, part), daemon=True).start()

    def _play(self, line: socket.socket, part: Part) -> None:
        caller = Caller(line, self._gone)
        try:
            if self._tls is not None:
                caller.line = self._tls.wrap_socket(line, server_side=True)
            part(caller)
        except ssl.SSLError:
            with suppress(OSError):  # the alert is said; a line that is closed with something unread would swallow it
                while line.fileno() >= 0 and line.recv(65536):
                    pass
        except (OSError, EOFError):
            pass
        finally:
            self.heard.append(caller.heard)
            with suppress(OSError):
                caller.line.close()
            with suppress(OSError):
                line.close()
            self._ended.release()

    def close(self) -> None:
        """Nobody is there any more."""
        self._gone.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def rogue(*parts: Part, tls: ssl.SSLContext | None = None) -> Iterator[Rogue]:
    """A receiver that plays these parts."""
    made = Rogue(*parts, tls=tls)
    try:
        yield made
    finally:
        made.close()


def nobodys_port() -> int:
    """A port of loopback where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port
