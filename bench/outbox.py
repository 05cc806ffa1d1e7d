"""What a relay does in a second, for one destination: messages of 200 bytes, flushed, to a receiver that answers at once.

Once with a destination in this process, which costs nothing, once with an HTTP receiver on loopback; with one sending at a time
and with several; each message of a run of its own, and all of one run. On SQLite, and on a PostgreSQL that is started for it.

    python -m bench.outbox [--messages N] [--only sqlite|postgres]
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import duly
from bench.entries import POSTGRES, SQLITE
from bench.figure import Figure, arguments, positive, write
from bench.places import PLACES, NotThere, ready
from duly.outbox.destinations import Delivered, Message, destination_of
from duly.store.migrations import postgres

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
    ledger: duly.Ledger[Any], name: str, make: Callable[[], Any], *, at_once: int, of_one_run: bool, messages: int
) -> float:
    """Send so many, then let a relay deliver them all; messages a second."""
    ledger.destination("there", make, concurrency=at_once)

    @ledger.job(name, duly.daily("UTC"), catch_up=duly.EACH)
    def send(run: duly.Run[Any]) -> None:
        for number in range(messages if of_one_run else 1):
            run.send("there", BODY, name=f"m{number}")

    day = date(2020, 1, 1)
    for number in range(1 if of_one_run else messages):
        send.run(day + timedelta(number))
    began = time.perf_counter()
    assert ledger.deliver()
    return messages / (time.perf_counter() - began)


def measured(title: str, ledger: duly.Ledger[Any], address: str, messages: int) -> list[Figure]:
    """Each kind of receiver, with so many sendings at once."""
    http = partial(destination_of, "there", {"kind": "http", "url": address, "remembers": "forever"})
    kinds: tuple[tuple[str, Callable[[], Any]], ...] = (("in this process", Here), ("HTTP on loopback", http))
    figures = []
    for kind, make in kinds:
        for of_one_run in (False, True):
            for at_once in (1, 4, 16):
                name = f"job-{kind.split()[0]}-{at_once}-{of_one_run}".lower()
                found = per_second(ledger, name, make, at_once=at_once, of_one_run=of_one_run, messages=messages)
                runs = "of one run" if of_one_run else "of a run each"
                what = f"{kind}, {runs}, {at_once} at once"
                print(f"{title:24} {what:48} {found:7.0f} messages a second", flush=True)
                figures.append(Figure("outbox", title, what, found, "messages/s"))
    return figures


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--messages", type=positive, help="how many in each case (500; quick: 50)")
    parser.add_argument("--only", choices=(SQLITE, POSTGRES))
    args = parser.parse_args()
    figures = []
    with Server(("127.0.0.1", 0), Handler) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{there.server_address[1]}"
        for place in PLACES:
            if not place.flushed or args.only not in (None, place.database):
                continue
            try:
                with ready(place) as ground, ground.new_database() as url:
                    if place.database == POSTGRES:
                        postgres.create(url)
                    ledger: duly.Ledger[Any]
                    ledger = (
                        duly.postgres(url)
                        if place.database == POSTGRES
                        else duly.sqlite(url.removeprefix("sqlite:///"))
                    )
                    figures += measured(place.title, ledger, address, args.messages or (50 if args.quick else 500))
                    ledger.close()
            except NotThere as e:
                print(f"{place.title}: {e}")
        there.shutdown()
    write(args.json, figures)


if __name__ == "__main__":
    main()
