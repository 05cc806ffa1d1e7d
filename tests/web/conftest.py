"""A night in October as a ledger holds it, on each database; and a dashboard of it behind a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import uvicorn

from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.open import Taken
from duly.ledger.register import Declaration
from duly.schedule.spec import cron, daily, hourly
from duly.times import DAY, MINUTE
from duly.web import dashboard
from duly.web.settings import Settings
from tests.books import EACH_DATABASE, Book, book_on

FORM = "application/x-www-form-urlencoded"
THE_DAY = "2026-10-05"
KEY = f"export:{THE_DAY}[UTC]"
WHO = "somebody on this machine (dashboard)"  # who has not to say who they are
HOSTILE = "<script>alert('x')</script>"


class Answer:
    """What a server answered."""

    def __init__(self, status: int, headers: dict[str, str], text: str) -> None:
        self.status = status
        self.headers = headers
        self.text = text

    @property
    def document(self) -> Any:
        """The JSON of it."""
        return json.loads(self.text)

    def __repr__(self) -> str:
        return f"<{self.status} {self.text[:2_000]}>"


class Browser:
    """Asks one server, as a browser of this machine does unless told otherwise."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, method: str = "GET", *, body: str | None = None, **headers: str) -> Answer:
        """The answer to one request; `_` in the name of a header stands for a dash."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body=body, headers={"Host": f"localhost:{self.port}", **named})
            answer = connection.getresponse()
            said = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, said, answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str) -> str:
        """The text of a page that is there."""
        answer = self.ask(path)
        assert answer.status == 200, answer
        return answer.text


@contextmanager
def served(application: Any) -> Iterator[Browser]:
    """The application behind a real server, on a port of its own."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, log_config=None, access_log=False, proxy_headers=False, ws="none", lifespan="on"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Browser(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def night(book: Book) -> None:
    """What stands in the ledger at 04:06 in Berlin, after the night on which the clocks were set back.

    Of `export` 23 October is complete, 24 failed with words of somebody else, and 25, which had 25 hours, is complete. Nobody
    knows whether `pay` of 24 October happened. `rates` is hourly, and since midnight nobody has poked it. `backup` is well.
    """
    berlin = "Europe/Berlin"
    book.job("export", daily(berlin), contract="external", retries=0, owner=HOSTILE)
    book.job("pay", daily("UTC"), contract="external", retries=0, owner="treasury")
    book.job("rates", hourly(berlin), owner="treasury", grace=15 * MINUTE)
    book.job("backup", cron("30 2 * * *", zone=berlin), scopes=("a&b",))
    book.clock.set("2026-10-23T22:30:00Z")
    book.work_all("export")
    book.work_all("pay")
    book.clock.set("2026-10-24T22:30:00Z")
    taken = book.poke("export")
    failed = Ending("failed", HOSTILE, retry=False)
    book.write(fail_or_raise(taken.claim, failed, retry_in=None, error=HOSTILE))  # type: ignore[union-attr]
    book.work_all("pay")
    book.clock.set("2026-10-25T00:45:00Z")
    book.doubt(book.poke("pay").claim)  # type: ignore[union-attr]
    book.clock.set("2026-10-25T23:10:00Z")
    book.work_all("export")
    book.work_all("rates")
    book.clock.set("2026-10-26T01:40:00Z")
    book.work_all("pay")
    book.write(_complete_all(book, "backup", "a&b"))
    book.clock.set("2026-10-26T03:06:00Z")


async def _complete_all(book: Book, job: str, scope: str) -> None:
    from duly.ledger.complete import complete_or_raise
    from duly.ledger.open import Taken, claim_next
    from duly.ledger.records import Claimer
    from duly.work.identity import new_attempt_id

    declared: Declaration = book.declaration(job, scope)
    while isinstance(
        taken := await claim_next(
            declared, Claimer(new_attempt_id(), "host/1@1+a", "cron"), as_of=None, tried=frozenset()
        ),
        Taken,
    ):
        await complete_or_raise(taken.claim)


@pytest.fixture(scope="module", params=EACH_DATABASE)
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    """The night, once for the stories of a file: they only look."""
    with book_on(request, tmp_path_factory.mktemp("night"), at="2026-10-23T00:00:00Z") as book:
        night(book)
        yield book


@pytest.fixture(scope="module")
def browser(book: Book) -> Iterator[Browser]:
    """A dashboard of the night, as it is without any setting."""
    with served(dashboard(book.path, Settings())) as browser:
        yield browser


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[Book]:
    """A ledger in which all is well: three days of a daily job."""
    book = Book(tmp_path / "ledger.db", at="2026-10-05T00:10:00Z")
    book.job("export", daily("UTC"))
    book.work_all()
    for _ in range(2):
        book.clock.advance(DAY)
        book.work_all()
    yield book
    book.store.close()


# -- somebody who changes something -----------------------------------------------------------------------------------


class Hand:
    """Somebody at a dashboard, and the ledger behind it."""

    def __init__(self, book: Book, browser: Browser) -> None:
        self.book = book
        self.browser = browser

    def path(self, action: str, key: str = KEY) -> str:
        return f"/run/{quote(key, safe=':')}/{action}"

    def do(self, action: str, key: str = KEY, **fields: str) -> Answer:
        """Send the form of an action as a browser does."""
        body = urlencode({name.rstrip("_"): value for name, value in fields.items()})
        return self.browser.ask(
            self.path(action, key), "POST", body=body, content_type=FORM, sec_fetch_site="same-origin"
        )

    def state(self) -> str:
        ((state,),) = self.book.rows("select state from duly_run order by nominal desc, revision desc limit 1")
        return str(state)

    def failed(self) -> None:
        """A run that has failed for good."""
        self.book.job(schedule=daily("UTC"), retries=0)
        taken = self.book.poke()
        assert isinstance(taken, Taken)
        ending = Ending("failed", "disk full", retry=False)
        self.book.write(fail_or_raise(taken.claim, ending, retry_in=None, error="x"))

    def doubted(self) -> None:
        """A run of which nobody knows whether it happened."""
        self.book.job(schedule=daily("UTC"), contract="external")
        self.book.doubt(self.book.take(THE_DAY))
        self.book.clock.advance(MINUTE)


@pytest.fixture(params=EACH_DATABASE)
def open_book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """A ledger of its own for each story, at 00:10 after the first day of a daily job."""
    with book_on(request, tmp_path, at="2026-10-06T00:10:00Z") as book:
        yield book


@pytest.fixture
def hand(open_book: Book) -> Iterator[Hand]:
    """Somebody at the dashboard of that ledger, which allows changes."""
    with served(dashboard(open_book.path, Settings(allow_writes=True))) as browser:
        yield Hand(open_book, browser)
