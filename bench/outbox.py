"""What a relay does in a second, for one destination: messages of 200 bytes, flushed, to a receiver that answers at once.

Once with a destination in this process, which costs nothing, once with an HTTP receiver on loopback; with one sending at a time
and with several; each message of a run of its own, and all of one run.

    python bench/outbox.py [postgresql://…]
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duly
from duly.outbox.destinations import Delivered, Message, destination_of
from duly.store.migrations import postgres

MESSAGES = 500
BODY = "x" * 200


class Here:
    """A destination that answers at once."""

    kind, key_form, max_length, remembers, reads_own_writes = "here", "", None, None, True

    def deliver(self, message: Message, *, seconds: float) -> Delivered:
        return Delivered("here")

    def probe(self, message: Message, *, seconds: float) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Handler(BaseHTTPRequestHandler):
    """A receiver that takes everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def per_second(
    ledger: duly.Ledger[Any], name: str, make: Callable[[], Any], *, at_once: int, of_one_run: bool
) -> float:
    """Send so many, then let a relay deliver them all; messages a second."""
    ledger.destination("there", make, concurrency=at_once)

    @ledger.job(name, duly.daily("UTC"), catch_up=duly.EACH)
    def send(run: duly.Run[Any]) -> None:
        for number in range(MESSAGES if of_one_run else 1):
            run.send("there", BODY, name=f"m{number}")

    day = date(2020, 1, 1)
    for number in range(1 if of_one_run else MESSAGES):
        send.run(day + timedelta(number))
    began = time.perf_counter()
    assert ledger.deliver()
    return MESSAGES / (time.perf_counter() - began)


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder, Server(("127.0.0.1", 0), Handler) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{there.server_address[1]}"
        if url:
            postgres.create(url)
        ledger: duly.Ledger[Any] = duly.postgres(url) if url else duly.sqlite(Path(folder) / "bench.db")
        http = partial(destination_of, "there", {"kind": "http", "url": address, "remembers": "forever"})
        kinds: tuple[tuple[str, Callable[[], Any]], ...] = (("in this process", Here), ("HTTP on loopback", http))
        for kind, make in kinds:
            for of_one_run in (False, True):
                for at_once in (1, 4, 16):
                    name = f"job-{kind.split()[0]}-{at_once}-{of_one_run}".lower()
                    found = per_second(ledger, name, make, at_once=at_once, of_one_run=of_one_run)
                    runs = "of one run" if of_one_run else "of a run each"
                    print(f"{kind:18} {runs:14} {at_once:3} at once   {found:7.0f} messages a second", flush=True)
        ledger.close()
        there.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
