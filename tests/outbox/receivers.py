"""Receivers on loopback: one that remembers keys, and one that does not. Both count what they did."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Receiver:
    """An HTTP server whose effect is to count: each key, and the order in which they came."""

    def __init__(self, *, remembers: bool) -> None:
        self.requests: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        self.order: list[str] = []
        self.swallows = 0  # so many answers are not given, though the effect is there
        self._guard = threading.Lock()
        self._remembers = remembers
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                key = self.headers["Idempotency-Key"].strip('"')
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.apply(key, body):
                    self.send_response(201)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    self.close_connection = True

            def do_GET(self) -> None:
                key = self.path.rpartition("/")[2]
                found = receiver.effects[key] > 0
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def apply(self, key: str, body: bytes) -> bool:
        """Have the effect, unless the key is remembered. False: no answer is given."""
        json.loads(body)
        with self._guard:
            self.requests[key] += 1
            if not (self._remembers and self.effects[key]):
                self.effects[key] += 1
                self.order.append(key)
            self.swallows -= 1
            return self.swallows < 0

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def receiver(*, remembers: bool) -> Iterator[Receiver]:
    """A receiver that remembers every key, or none."""
    made = Receiver(remembers=remembers)
    try:
        yield made
    finally:
        made.close()
