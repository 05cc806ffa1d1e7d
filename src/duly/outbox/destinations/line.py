"""Lines: how a destination reaches its receiver, and a deadline for all that is said on a line.

A socket's time-out is for one call: a receiver that sends a byte every second is never late by it. A `Deadline` is for the
whole sending. At its end the line is cut off, whoever is reading or writing there, and what was going on fails as it does when
a receiver goes away.

What fails in `connected` failed before a byte of the message was said: it is surely not sent.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from itertools import count
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

        alarm = _watch.set(self._at, cut)
        try:
            yield
        finally:
            alarm.off()


class Alarm:
    """Something to do at an instant, unless it is turned off before. When `off` has returned, it is not being done either."""

    __slots__ = ("_do", "_lock")

    def __init__(self, do: Callable[[], None]) -> None:
        self._do: Callable[[], None] | None = do
        self._lock = threading.Lock()

    @property
    def is_off(self) -> bool:
        """Whether there is nothing to do any more."""
        return self._do is None

    def ring(self) -> None:
        """Do it."""
        with self._lock:
            if self._do is not None:
                self._do()
                self._do = None

    def off(self) -> None:
        """Never do it."""
        with self._lock:
            self._do = None


class Watch:
    """One thread that rings all alarms of this process. A thread for each would cost more than a message does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def set(self, at: float, do: Callable[[], None]) -> Alarm:
        """An alarm at an instant of the monotonic clock."""
        alarm = Alarm(do)
        with self._changed:
            heappush(self._alarms, (at, next(self._numbers), alarm))
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="duly-deadlines", daemon=True)
                self._thread.start()
            elif self._alarms[0][2] is alarm:
                self._changed.notify()
        return alarm

    def _keep(self) -> None:
        while True:
            self._next().ring()

    def _next(self) -> Alarm:
        """The next alarm that is due, when it is. Those that were turned off are passed over without waking for them."""
        with self._changed:
            while True:
                while self._alarms and self._alarms[0][2].is_off:
                    heappop(self._alarms)
                wait = self._alarms[0][0] - monotonic() if self._alarms else None
                if wait is not None and wait <= 0:
                    return heappop(self._alarms)[2]
                self._changed.wait(wait)


_watch = Watch()


def _anew() -> None:
    """A child of a fork has none of its parent's threads."""
    global _watch
    _watch = Watch()


os.register_at_fork(after_in_child=_anew)


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


class Certificates:
    """Which certificates are believed (the system's authorities, or a file's), and our own. What changed is read anew."""

    def __init__(self, ca_file: str | None, certificate: str | None = None, key: str | None = None) -> None:
        self._ca_file, self._certificate, self._key = ca_file, certificate, key
        self._read: tuple[object, ssl.SSLContext] | None = None

    def context(self) -> ssl.SSLContext:
        """How they are checked. Raises `NoLine`."""
        try:
            files = [os.stat(each).st_mtime_ns for each in (self._ca_file, self._certificate, self._key) if each]
            if self._read is None or self._read[0] != files:
                made = ssl.create_default_context(cafile=self._ca_file)
                if self._certificate is not None:
                    made.load_cert_chain(self._certificate, self._key)
                self._read = files, made
            return self._read[1]
        except (OSError, ValueError):  # ssl.SSLError is an OSError
            raise NoLine("a file of certificates cannot be read") from None
