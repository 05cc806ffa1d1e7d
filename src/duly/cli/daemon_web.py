"""The dashboard of a daemon: `duly daemon --web PORT` serves it from the daemon's own process, to look and nothing else.

The deal: where it cannot listen, nothing is begun. Once the daemon works, its dashboard is a guest: it has a thread for its
server and one for its pages, reads by the daemon's store, ends with it, and when it fails the jobs are worked as before.
"""

from __future__ import annotations

import argparse
import logging
import threading

from duly.cli.web import listen, place_of, server_of, settings_of
from duly.errors import Misuse
from duly.web import NEEDED, need

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from duly.store.protocol import Store
    from duly.web.settings import Settings

LOOPBACK = "127.0.0.1"
ENDS_SECONDS = 10


class Beside:
    """A dashboard that listens, and serves when there is a store. `end` is safe at any time."""

    def __init__(self, where: str, ledger: str | None) -> None:
        """Listen at `[ADDRESS:]PORT`. Raises `Misuse` where that cannot be had, or where anybody could look."""
        need((*NEEDED, "uvicorn"))
        host, port = _place(where)
        self._settings: Settings = _settings(host, port, ledger)
        self._listening: socket.socket = listen(host, port, "--web")
        self._stop: Callable[[], None] = self._listening.close
        self._thread: threading.Thread | None = None

    def serve(self, store: Store, note: Callable[[str], None]) -> None:
        """Serve the pages of a ledger, in a thread of its own."""

        from duly.web.app import dashboard
        from duly.web.reading import Reader

        # The daemon's log has a line for each attempt, and none for each page.
        logging.getLogger("duly.web").setLevel(logging.WARNING)
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        # One thread for all pages: however many are asked for, those that work jobs share the interpreter with one.
        reader = Reader(lambda: store, keeps=True, threads=1)
        server = server_of(dashboard(reader, self._settings))

        def run() -> None:
            try:
                server.run(sockets=[self._listening])
            except BaseException as e:  # whatever it is, it is no reason to work no job
                note(f"duly: the dashboard has ended, and the jobs are worked as before: {type(e).__name__}")
            finally:
                self._listening.close()

        def stop() -> None:
            server.should_exit = True

        self._stop = stop
        self._thread = threading.Thread(target=run, name="duly-dashboard", daemon=True)
        note(f"duly: dashboard on {place_of(self._listening)}/")
        self._thread.start()

    def end(self) -> None:
        """End it, and wait for it, but not for ever: a page that hangs holds up no daemon that has ended."""
        self._stop()
        if self._thread is not None:
            self._thread.join(ENDS_SECONDS)


def _place(where: str) -> tuple[str, int]:
    address, _, port = where.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise Misuse(
            f"--web: {where[:100]!r} is no place to listen; write a port, as 8327, or an address and a port",
            next_step="duly daemon --web 8327",
        )
    return address or LOOPBACK, int(port)


def _settings(host: str, port: int, ledger: str | None) -> Settings:
    """The settings of `duly web` with these flags, and none that lets anything be changed."""
    flags = argparse.Namespace(
        host=host,
        port=port,
        allow_writes=False,
        allow_host=[],
        root_path="",
        token_file=None,
        basic_file=None,
        trust_header=None,
        trust_from=[],
        ledger=ledger,
    )
    try:
        return settings_of(flags)
    except Misuse as e:
        raise Misuse(
            f"--web: {host} is an address that others reach; set $DULY_WEB_TOKEN and write the address itself, or run "
            "`duly web`, which has flags for who may look, beside the daemon",
            next_step=e.next_step,
        ) from e
