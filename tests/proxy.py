"""A proxy between duly and PostgreSQL: it counts how often a client waits, and may swallow a COMMIT or its reply."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

COMMIT = b"Q\x00\x00\x00\x0bcommit\x00"  # as psycopg's simple query protocol sends it; see also extended, below
COMMIT_IN_PARTS = b"\x00commit\x00"  # Parse: an unnamed statement
COMMITS_ITSELF = b"duly.claim_as_remembered("  # a claim is a statement by itself, and so is its transaction


class Proxy:
    """Carries bytes between clients and a server, and cuts one connection at the COMMIT that it is told of."""

    def __init__(self, url: str, *commits: bytes) -> None:
        self._commits = commits or (COMMIT, COMMIT_IN_PARTS, COMMITS_ITSELF)
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = parts._replace(netloc=f"{parts.username or 'postgres'}@127.0.0.1:{port}").geturl()
        self._cut_before = self._cut_after = 0
        self.commits = 0
        self.meanwhile: Callable[[], object] = lambda: (
            None
        )  # when the reply has come, and before its client hears anything
        self.waits = 0  # how often a client asked, and had to wait for an answer before it could know anything
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow_the_reply_of(self, nth: int) -> None:
        """Carry the nth COMMIT from now on to the server, and nothing back."""
        self.commits, self._cut_after = 0, nth

    def swallow(self, nth: int) -> None:
        """Do not even carry the nth COMMIT from now on."""
        self.commits, self._cut_before = 0, nth

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                silent, spoken = threading.Event(), Spoken()
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._carry, args=(*ends, silent, spoken), daemon=True).start()

    def _carry(
        self,
        source: socket.socket,
        sink: socket.socket,
        to_server: bool,
        silent: threading.Event,
        spoken: Spoken,
    ) -> None:
        with hung_up(source), hung_up(sink), suppress(OSError):
            while block := source.recv(65536):
                if to_server:
                    self.waits += spoken.questions(block)
                if to_server and any(commit in block for commit in self._commits):
                    self.commits += 1
                    if self.commits == self._cut_before:
                        self._cut_before = 0
                        return
                    if self.commits == self._cut_after:
                        self._cut_after = 0
                        silent.set()
                if not to_server and silent.is_set():
                    self.meanwhile()
                    return  # the server has answered: it has committed
                sink.sendall(block)

    def close(self) -> None:
        self._listener.close()


class Spoken:
    """What a client says, message by message (PostgreSQL's manual, "Message Formats")."""

    def __init__(self) -> None:
        self._rest = b""
        self._started = False

    def questions(self, block: bytes) -> int:
        """How many messages ended in these bytes that ask for an answer: Query and Sync."""
        self._rest += block
        found = 0
        while (whole := self._whole()) is not None:
            kind, self._rest = self._rest[:1], self._rest[whole:]
            found += kind in (b"Q", b"S") if self._started else 0
            self._started = (
                self._started or whole > 8
            )  # a request for encryption is eight bytes; then comes the first message
        return found

    def _whole(self) -> int | None:
        """The length of the next message, if all of it has come. Those before the first have no kind."""
        head = 1 if self._started else 0
        if len(self._rest) < head + 4:
            return None
        length = head + int.from_bytes(self._rest[head : head + 4], "big")
        return length if len(self._rest) >= length else None


@contextmanager
def hung_up(end: socket.socket) -> Iterator[None]:
    """In the end both sides see that nobody is there: to close it would not wake whoever reads it."""
    try:
        yield
    finally:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
