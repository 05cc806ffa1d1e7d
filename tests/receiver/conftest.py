"""A shop behind each kind of server, on each database, and clients of it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import duly
from tests.books import Book, PostgresBook
from tests.servers import Server

ROOT = Path(__file__).parents[2]
SOURCE = str(Path(duly.__file__).parents[1])
KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"
MORNING = "2026-10-06T03:00:00Z"  # when a book is opened

KINDS = ("wsgi", "asgi", "django")


class Told(NamedTuple):
    """What a client was answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_replay(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"

    @property
    def code(self) -> str:
        """Of a problem: which one it is."""
        assert self.headers["content-type"] == "application/problem+json", self
        said = json.loads(self.body)
        assert said["status"] == self.status
        code: str = said["code"]
        return code


class Shop:
    """A process that serves a shop. It may stop at a point, and be killed there."""

    def __init__(self, kind: str, place: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.receiver.serving", kind, place],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
        self.port = int(self._line())
        self.stopped = 0  # requests that wait at a point

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(
        self,
        note: str = "lamp",
        *,
        do: str = "",
        key: str | None = f'"{KEY}"',
        first_sent: str | None = MORNING,
        method: str = "POST",
        headers: dict[str, str] | None = None,
    ) -> Told:
        """Send an order, and wait for its answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {"Content-Type": "text/plain", **(headers or {})}
            if key is not None:
                sent["Idempotency-Key"] = key
            if first_sent is not None:
                sent["Duly-First-Sent"] = first_sent
            client.request(method, f"/orders{'?do=' + do if do else ''}", note.encode(), sent)
            answer = client.getresponse()
            found: dict[str, str] = {}
            for name, value in answer.getheaders():
                found[name.lower()] = f"{found[name.lower()]}, {value}" if name.lower() in found else value
            told = Told(answer.status, found, answer.read())
            if told.status != 204 and not {"content-length", "transfer-encoding"} & told.headers.keys():
                # http.client takes headers that were cut off, as by a SIGKILL between two of wsgiref's writes, for all of them.
                raise http.client.IncompleteRead(told.body)
            return told
        finally:
            client.close()

    def stopped_at(self, point: str, *, do: str = "", **asked: Any) -> Callable[[], Told | None]:
        """Send an order that is worked up to a point; what waits for its answer, which is None where none came."""
        answers: list[Told | None] = []

        def ask() -> None:
            try:
                answers.append(self.ask(do=do or point, **asked))
            except (OSError, http.client.HTTPException):
                answers.append(None)

        thread = threading.Thread(target=ask)
        thread.start()
        self.reaches(point)

        def wait() -> Told | None:
            thread.join()
            return answers[0]

        return wait

    def reaches(self, point: str) -> None:
        """Wait until a request is worked up to a point."""
        assert self._line() == point
        self.stopped += 1

    def go_on(self, *, back_out: bool = False) -> None:
        """Let a request that waits be worked on, or, within its transaction, roll that back."""
        assert self.process.stdin is not None
        self.stopped -= 1
        self.process.stdin.write("x" if back_out else "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more."""
        self.process.kill()
        self.process.communicate()


class Running:
    """Ledgers, each in a shop's database, and servers on them, which one story after the other uses."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._books: dict[str, Book] = {}
        self._shops: dict[tuple[str, str], Shop] = {}

    def book(self, database: str) -> Book:
        """The ledger on a database, as it was when it was opened, and a table for what is applied: it takes a note twice."""
        if database not in self._books:
            book = self._books[database] = self._opened(database)
            book.amend("create table applied (note text not null)")
        book = self._books[database]
        for table in ("duly_answer", "duly_receiving", "duly_received", "duly_source", "duly_event", "applied"):
            book.amend(f"delete from {table}")
        book.clock.set(MORNING)
        return book

    def _opened(self, database: str) -> Book:
        if database == "sqlite":
            return Book(self._folder / "shop.db")
        server: Server = self._request.getfixturevalue("server")
        return PostgresBook(server.new_database())

    def shop(self, kind: str, database: str) -> Shop:
        """A server of this kind."""
        if (kind, database) not in self._shops:
            self._shops[kind, database] = Shop(kind, self._books[database].path)
        return self._shops[kind, database]

    def drop(self, shop: Shop) -> None:
        """Let nobody use a server any more."""
        shop.kill()
        self._shops = {which: each for which, each in self._shops.items() if each is not shop}

    def close(self) -> None:
        for shop in self._shops.values():
            shop.kill()
        for book in self._books.values():
            book.store.close()


@pytest.fixture(scope="session")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(request, tmp_path_factory.mktemp("shops"))
    yield running
    running.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def book(running: Running, database: str) -> Book:
    """The ledger in the shop's database, in which nothing was received yet."""
    return running.book(database)


@pytest.fixture
def shop(running: Running, kind: str, book: Book, database: str) -> Iterator[Shop]:
    """A server of this kind, which is to be left alive."""
    shop = running.shop(kind, database)
    yield shop
    if shop.stopped:  # by a story that failed
        running.drop(shop)


@pytest.fixture
def open_shop(kind: str, book: Book) -> Iterator[Callable[[], Shop]]:
    """Starts servers of this kind on the one database."""
    started: list[Shop] = []

    def start() -> Shop:
        started.append(Shop(kind, book.path))
        return started[-1]

    yield start
    for shop in started:
        shop.kill()
