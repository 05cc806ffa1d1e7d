"""Life: a stream that says when the ledger is another, to as many as may listen, and ends with its server."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from duly.schedule.spec import daily
from duly.store.reader import open_to_read
from duly.web import dashboard
from duly.web.credentials import Credentials
from duly.web.life import AT_MOST
from duly.web.reading import Reader
from duly.web.settings import Settings
from tests.books import EACH_DATABASE, Book, book_on
from tests.story import Story
from tests.web.conftest import Browser, served
from tests.web.test_command import web

TOKEN = "correct-horse-battery-staple"


class Listener:
    """Somebody who listens, from the first byte on."""

    def __init__(self, port: int, **headers: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", "/life", headers={"Host": f"localhost:{port}", **named})
        self.answer: HTTPResponse = self._connection.getresponse()

    def next(self) -> str | None:
        """The next stamp that is said; None at the end of the stream."""
        while line := self.answer.readline():
            if line.startswith(b"data:"):
                return line.removeprefix(b"data:").strip().decode()
        return None

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@contextmanager
def listening(browser: Browser, **headers: str) -> Iterator[Listener]:
    listener = Listener(browser.port, **headers)
    try:
        yield listener
    finally:
        listener.close()


def of_page(page: str) -> str:
    """The stamp that a page was read after."""
    found = re.search(r'data-stamp="([^"]+)"', page)
    assert found is not None, page
    return found[1]


def until_they_agree(listener: Listener, browser: Browser, shows: str = "") -> str:
    """The page, as soon as it shows something and was read after what the listener heard. A server counts a moment late."""
    while True:
        heard, page = listener.next(), browser.get("/job/export")
        assert heard is not None
        if heard == of_page(page) and shows in page:
            return page


@pytest.fixture(params=EACH_DATABASE)
def changing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """A ledger in which a run waits to be taken, on each database."""
    with book_on(request, tmp_path) as book:
        book.job("export", daily("UTC"))
        book.declare()
        yield book


def test_a_listener_hears_what_the_page_was_read_after_and_then_that_it_is_another(changing: Book) -> None:
    """And one who reads nothing of what he is told holds nobody."""
    with served(dashboard(changing.path)) as browser, listening(browser), listening(browser) as listener:
        assert "s-running" not in until_they_agree(listener, browser)

        claim = changing.take()
        assert "running" in until_they_agree(listener, browser, "s-running")
        changing.complete(claim)

        assert "s-complete" in until_they_agree(listener, browser, "s-complete")


def test_a_stream_is_not_held_back_and_has_its_headers(changing: Book) -> None:
    with served(dashboard(changing.path)) as browser, listening(browser, Accept_Encoding="gzip") as listener:
        assert listener.next(), "at once, though there is little to compress yet"
        headers = {name.lower(): value for name, value in listener.answer.getheaders()}

    assert headers["content-type"].startswith("text/event-stream")
    assert "content-encoding" not in headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert "default-src 'self'" in headers["content-security-policy"]


def test_who_may_not_look_may_not_listen(quiet: Book) -> None:
    with served(dashboard(quiet.path, Settings(credentials=Credentials(TOKEN, ())))) as browser:
        assert browser.ask("/life").status == 401
        assert browser.ask("/life", Host="evil.example", Authorization=f"Bearer {TOKEN}").status == 421
        with listening(browser, Authorization=f"Bearer {TOKEN}") as listener:
            assert listener.next()


def test_a_look_without_a_body_is_no_listener(quiet: Book) -> None:
    with served(dashboard(quiet.path)) as browser:
        assert browser.ask("/life", "HEAD").headers["content-type"].startswith("text/event-stream")


class Counting(Reader):
    """A reader that counts how often it was asked for a stamp."""

    looks = 0

    async def stamp(self) -> str:
        self.looks += 1
        return await super().stamp()


def test_no_more_listen_than_may_and_one_look_serves_them_all(quiet: Book) -> None:
    reader = Counting(lambda: open_to_read(quiet.path), keeps=False)
    with served(dashboard(reader)) as browser, ExitStack() as all_of_them:
        listeners = [all_of_them.enter_context(listening(browser)) for _ in range(AT_MOST)]
        assert len({listener.next() for listener in listeners}) == 1
        assert reader.looks < AT_MOST, "one a second, however many listen"

        with listening(browser) as refused:
            assert refused.answer.status == 503
            assert refused.answer.getheader("retry-after") == "30"
        assert browser.ask("/").status == 200, "pages are answered all the same"

        listeners[0].close()
        while (answer := Listener(browser.port)).answer.status == 503:  # until the server has noticed
            answer.close()
        assert answer.next()
        answer.close()


def test_that_the_ledger_is_away_is_said_and_that_it_is_back(quiet: Book, tmp_path: Path) -> None:
    quiet.store.close()
    with served(dashboard(quiet.path)) as browser, listening(browser) as listener:
        first = listener.next()
        os.rename(quiet.path, tmp_path / "aside.db")
        assert listener.next() == ""
        os.rename(tmp_path / "aside.db", quiet.path)

        assert listener.next() == first


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_server_that_ends_waits_for_no_listener(tmp_path: Path, number: signal.Signals) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close", daily("UTC"))
    story.complete("close")

    with web(story) as (browser, process, _), listening(browser) as listener:
        assert listener.next()
        process.send_signal(number)
        assert listener.next() is None, "the stream has an end, as it should"
        _, talk = process.communicate(timeout=30)

    assert process.returncode == 0
    assert "timeout" not in talk, "nothing had to be cancelled"
    assert "GET /life 200" in talk
