"""A shop that receives messages, as a process that can be killed: `python -m tests.outbox.shop PLACE REMEMBERS`.

    POST /orders         behind our own middleware: a key is applied once while it is remembered
    POST /calls          applied each time it comes, and can be looked for
    POST /letters        applied each time it comes, and nobody can look for it
    GET  /orders/KEY     200 where it was applied, 404 where it was not

What is applied is a row of the shop's own database, in which the ledger is that receives. A parent holds the port and the
children that serve it: one after the other, for a header `Dies` kills the child by SIGKILL at a point of that request.

- `before`: nothing was done;
- `within`: the key is received and the effect written, and neither is committed;
- `after`: they are committed, and no answer is stored;
- `answered`: the answer is stored, and nothing was said to the client.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import psycopg

import duly
from duly.outbox.receiver.wsgi import IdempotencyKey

POINTS = ("before", "within", "after", "answered")
PR_SET_PDEATHSIG = 1  # prctl(2)
BUSY = 20  # seconds that the application waits for another writer of SQLite


class Application:
    """What the shop does, and where it dies of it."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        if environ["REQUEST_METHOD"] == "GET":
            status = "200 OK" if self._has(environ["PATH_INFO"].rpartition("/")[2]) else "404 Not Found"
            start_response(status, [("Content-Type", "text/plain")])
            return [b""]
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
        key = environ["HTTP_IDEMPOTENCY_KEY"].strip('"')
        die(environ, "before")
        with self._transaction() as tx:
            request = environ.get("duly.request")
            if request is None or request.receive(tx):
                tx.execute(f"insert into applied (key, body) values ({self._mark}, {self._mark})", (key, body))
            die(environ, "within")
        die(environ, "after")
        start_response("201 Created", [("Content-Type", "text/plain")])
        return [f"applied {key}".encode()]

    @property
    def _mark(self) -> str:
        return "%s" if "://" in self._place else "?"

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        connected: Any = (
            psycopg.connect(self._place) if "://" in self._place else sqlite3.connect(self._place, timeout=BUSY)
        )
        with closing(connected) as connection, connection:
            yield connection

    def _has(self, key: str) -> bool:
        with self._transaction() as tx:
            found = tx.execute(f"select count(*) from applied where key = {self._mark}", (key,)).fetchone()
        return bool(found[0])


def die(environ: dict[str, Any], point: str) -> None:
    if environ.get("HTTP_DIES") == point:
        os.kill(os.getpid(), signal.SIGKILL)


def application_of(place: str, remembers: str) -> Callable[..., Any]:
    """The application behind its middleware, which guards `/orders` alone."""
    ledger = duly.postgres(place) if "://" in place else duly.sqlite(place)

    def source(environ: dict[str, Any]) -> str | None:
        return "orders" if environ["PATH_INFO"] == "/orders" else None

    guarded = IdempotencyKey(Application(place), ledger, source=source, remembers=remembers)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        answer = guarded(environ, start_response)
        die(environ, "answered")
        return answer

    return application


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve(door: socket.socket, place: str, remembers: str) -> None:
    """Be a child: answer until somebody kills this process."""
    server = Server(("127.0.0.1", 0), Quiet, bind_and_activate=False)
    server.socket.close()
    server.socket = door
    server.server_name, server.server_port = "127.0.0.1", door.getsockname()[1]
    server.setup_environ()
    server.set_app(application_of(place, remembers))
    server.serve_forever()


def die_with_parent() -> None:
    """No shop outlives who started it, however that ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(place: str, remembers: str) -> None:
    """Hold the port, and a child behind it. The whole group is killed by whoever started it."""
    die_with_parent()
    door = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(door.getsockname()[1], flush=True)  # noqa: T201  whoever started it reads it
    while True:
        child = os.fork()
        if child == 0:
            die_with_parent()
            serve(door, place, remembers)
        _, ended = os.waitpid(child, 0)
        if os.WTERMSIG(ended) != signal.SIGKILL:
            sys.exit(f"a shop ended by itself: {ended}")


if __name__ == "__main__":
    main(*sys.argv[1:])
