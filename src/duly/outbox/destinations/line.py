"""Lines: how a destination reaches its receiver, and a deadline for all that is said on a line.

A socket's time-out is for one call: a receiver that sends a byte every second is never late by it. A `Deadline` is for the
whole sending. At its end the line is cut off, whoever is reading or writing there, and what was going on fails as it does when
a receiver goes away.

What fails in `connected` failed before a byte of the message was said: it is surely not sent.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class NoLine(Exception):
    """The receiver could not be reached: nothing of the message was said. Its text says why, in words of ours."""


class Deadline:
    """When a sending has to be over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = monotonic() + seconds
        self.passed = False

    def left(self) -> float:
        """Seconds that are left, and never none: a time-out of 0 would mean something else."""
        return max(self._at - monotonic(), 0.001)

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return self.passed or monotonic() >= self._at

    def why(self, otherwise: str) -> str:
        """The cause of what failed: that time was up, or another."""
        return f"no answer within {self._seconds:g} s" if self.is_over else otherwise

    @contextmanager
    def over(self, line: Callable[[], socket.socket | None]) -> Iterator[None]:
        """Cut the line off when the deadline has passed. `line`: the socket that is used by then, or None."""

        def cut() -> None:
            self.passed = True
            if (at := line()) is not None:
                with suppress(OSError, ValueError):
                    # Not SSLSocket's own, which would change the socket under whoever reads from it.
                    socket.socket.shutdown(at, socket.SHUT_RDWR)

        timer = threading.Timer(self.left(), cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def connected(host: str, port: int, deadline: Deadline, *, tls: ssl.SSLContext | None = None) -> socket.socket:
    """A line to the receiver, encrypted and its certificate checked if `tls` is given. Raises `NoLine`."""
    plain = _reached(host, port, deadline)
    if tls is None:
        return plain
    return encrypted(plain, host, deadline, tls)


def encrypted(plain: socket.socket, host: str, deadline: Deadline, tls: ssl.SSLContext) -> socket.socket:
    """The same line, encrypted. Raises `NoLine`, and closes it then."""
    try:
        with deadline.over(lambda: plain):
            plain.settimeout(deadline.left())
            return tls.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as e:
        plain.close()
        raise NoLine(f"its certificate is not valid: {e.verify_message}") from None
    except (OSError, ValueError):
        plain.close()
        raise NoLine(deadline.why("the TLS handshake failed")) from None


def _reached(host: str, port: int, deadline: Deadline) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoLine("its name has no address") from None
    cause = "its name has no address"
    for i, (family, kind, protocol, _, address) in enumerate(addresses):
        line = socket.socket(family, kind, protocol)
        try:
            line.settimeout(deadline.left() / (len(addresses) - i))  # one that does not answer leaves time for the next
            line.connect(address)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError:
            cause = "no connection in time"
        except ConnectionRefusedError:
            cause = "the connection was refused"
        except OSError:
            cause = "no connection"
        else:
            line.settimeout(deadline.left())
            return line
        line.close()
    raise NoLine(cause)


def context(ca_file: str | None, certificate: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """How certificates are checked: by the system's authorities, or those of a file. Raises `NoLine`."""
    try:
        made = ssl.create_default_context(cafile=ca_file)
        if certificate is not None:
            made.load_cert_chain(certificate, key)
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        raise NoLine("a file of certificates cannot be read") from None
    return made


def bounded(text: str) -> str:
    """A cause or an evidence, short enough for a line."""
    return text if len(text) <= 200 else text[:199] + "…"
