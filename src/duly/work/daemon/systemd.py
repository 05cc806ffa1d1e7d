"""What systemd is told: that the daemon is ready, what it does, that it stops, and that it is alive.

A datagram to the socket that `$NOTIFY_SOCKET` names (sd_notify(3)). Elsewhere nothing happens.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Says `READY=1`, `STATUS=…`, `STOPPING=1` and, as often as it is asked to, `WATCHDOG=1`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        if self._address[:1] == "@":  # of the abstract namespace (unix(7))
            self._address = "\0" + self._address[1:]
        wanted = environ.get("WATCHDOG_USEC", "")
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        # Half the time, as sd_watchdog_enabled(3) advises.
        self.watchdog_seconds = int(wanted) / 2_000_000 if wanted.isdigit() and int(wanted) and mine else None

    def say(self, *lines: str) -> None:
        """Send the lines, if anybody listens. That nobody does any more, or does not for a while, is no reason to stop."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)  # a queue that is full says already that we are alive
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            pass
