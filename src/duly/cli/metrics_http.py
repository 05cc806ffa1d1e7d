"""The metrics served: `/metrics`, and nothing else. Each request looks at the ledger anew."""

from __future__ import annotations

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from typing import TYPE_CHECKING

from duly.cli import codes
from duly.cli.complain import say
from duly.errors import Misuse
from duly.evidence.metrics import OPEN_METRICS, TEXT, open_metrics_text, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.evidence.metrics import Scrape

HERE = ("localhost", "127.0.0.1", "::1")
SLOW_SECONDS = 10.0  # for a client that says nothing, or takes nothing


def serve(listen: str, scrape: Callable[[], Scrape]) -> int:
    """Serve the metrics at an address until told to end. Raises `Misuse` for one that cannot be had."""
    host, port = address(listen)
    try:
        server = Server(host, port, scrape)
    except OSError as e:
        raise Misuse(f"--listen: {host} port {port} cannot be had: {e.strerror}", next_step="duly metrics") from e
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    with server:
        say(f"duly: metrics at http://{server.name}/metrics")
        server.serve_forever()
    return codes.DONE


def address(listen: str) -> tuple[str, int]:
    """Host and port of `9469`, `:9469`, `10.0.0.7:9469` or `[::1]:9469`. Raises `Misuse`."""
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdecimal() or int(port) > 65_535 or (":" in host and "[" not in listen):
        raise Misuse(f"--listen: {listen!r} is no [HOST:]PORT", next_step="duly metrics --listen 127.0.0.1:9469")
    return host or "127.0.0.1", int(port)


class Server(ThreadingHTTPServer):
    """Serves what `scrape` answers, at one address."""

    daemon_threads = True

    def __init__(self, host: str, port: int, scrape: Callable[[], Scrape]) -> None:
        if ":" in host:
            self.address_family = AF_INET6
        self.scrape = scrape
        self.one_at_a_time = threading.Lock()  # who asks often gets no more of the ledger than who asks once
        self.is_local = host in HERE
        super().__init__((host, port), _Handler)
        bound = str(self.server_address[0])
        self.name = f"{f'[{bound}]' if ':' in bound else bound}:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = SLOW_SECONDS
    protocol_version = "HTTP/1.1"
    server_version = "duly"
    sys_version = ""

    def do_GET(self) -> None:
        if self.server.is_local and not _names_here(self.headers.get("Host", "")):
            # A page of the web that had its own name point here would read whose jobs there are.
            self._answer(421, "text/plain", "this address is served by the name localhost only\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(404, "text/plain", "there is only /metrics\n")
        else:
            with self.server.one_at_a_time:
                scrape = self.server.scrape()
            if "application/openmetrics-text" in self.headers.get("Accept", ""):
                self._answer(200, OPEN_METRICS, open_metrics_text(scrape))
            else:
                self._answer(200, TEXT, text(scrape))

    do_HEAD = do_GET  # noqa: N815  as http.server calls it

    def _answer(self, status: int, kind: str, content: str) -> None:
        body = content.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape each few seconds is no news."""


def _names_here(host: str) -> bool:
    """Whether a Host header names this machine to itself. Pure."""
    name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return name.strip("[]").lower() in HERE
