"""What no ledger can hold, what no page can count, and who does not say what they want: each refused in a word, and soon."""

from __future__ import annotations

import csv
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from threading import Thread

import pytest

import duly.cli.web
from duly.cli.web import server_of
from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import Ending
from duly.schedule.spec import daily
from duly.web import dashboard
from duly.web.settings import Settings
from tests.books import Book
from tests.web.conftest import FORM, KEY, Browser, Hand

# -- what is no text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *("/?job=%00", "/?scope=a%00b", "/?owner=%00", "/now.json?job=%00", "/grid?job=%00", "/grid.csv?owner=%00"),
        *("/unknown?scope=%00", "/backfill?job=%00", "/backfill?job=export&scope=%00", "/backfills.json?job=%00"),
        *("/job/export?scope=%00", "/lab?cron=%00"),
        *("/job/%00", "/job/a%00/job.json", "/run/%00", f"/run/{KEY}%00/retry", f"/run/{KEY}/skip?reason=%00"),
    ],
)
def test_a_name_that_no_database_can_hold_is_refused_and_not_asked_for(browser: Browser, path: str) -> None:
    """PostgreSQL has no NUL in its texts: a ledger that is asked for one looked as though it were out of reach."""
    answer = browser.ask(path)

    assert answer.status in (400, 404), answer


@pytest.mark.parametrize("field", ["job", "scope", "range", "reason", "key"])
def test_a_form_that_holds_what_is_no_text_is_shown_again(hand: Hand, field: str) -> None:
    hand.book.job("export", daily("UTC"))
    said = {"job": "export", "range": "2026-10-05..2026-10-06", "expect": "1", "reason": "lost", field: "a%00b"}
    body = "&".join(f"{name}={value}" for name, value in said.items())

    answer = hand.browser.ask("/backfill/start", "POST", body=body, content_type=FORM)

    assert answer.status == 400, answer
    assert hand.book.rows("select count(*) from duly_backfill") == [(0,)]


@pytest.mark.parametrize("number", ["99999999999999999999", "9" * 5_000, "0", "x", "-1"])
def test_a_number_that_no_ledger_has_is_not_there(browser: Browser, number: str) -> None:
    assert browser.ask(f"/backfill/{number}").status == 404
    assert browser.ask(f"/backfill/{number}/pause").status == 404


# -- what is too much ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/grid", "/grid.json", "/api/v1/grid"])
def test_a_grid_ends_where_the_calendar_does(browser: Browser, path: str) -> None:
    answer = browser.ask(f"{path}?from=9999-12-31")

    assert answer.status == 400
    assert "from: the calendar ends before that" in answer.text
    assert browser.ask(f"{path}?from=9999-12-01").status == 200


def test_a_range_of_all_time_is_not_counted_while_others_wait(hand: Hand) -> None:
    """Of an hourly job it would hold a thread for minutes, and, being started, everybody who writes to a file."""
    hand.book.job("export", daily("UTC"))
    all_time = "range=0001-01-08..9999-12-01"

    shown = hand.browser.get(f"/backfill?job=export&{all_time}")
    sent = f"job=export&{all_time}&expect=1&reason=all+of+it"
    started = hand.browser.ask("/backfill/start", "POST", body=sent, content_type=FORM)

    assert "range: it has more than 200,000 windows" in shown
    assert started.status == 400
    assert "range: it has more than 200,000 windows" in started.text


# -- what is said of a refusal ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/", {"GET", "HEAD"}), (f"/run/{KEY}/retry", {"GET", "HEAD", "POST"}), ("/life", {"GET", "HEAD"})],
)
def test_a_page_says_what_it_is_for(browser: Browser, path: str, allowed: set[str]) -> None:
    answer = browser.ask(path, "OPTIONS")

    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


# -- what others wrote, in a spreadsheet --------------------------------------------------------------------------------

FORMULAS = ("=cmd|' /C calc'!A0", "@SUM(1)", "+1+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "\tx=1")


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_others_wrote_is_no_formula_in_a_table(hand: Hand, formula: str) -> None:
    hand.book.job("export", daily("UTC"), retries=0)
    taken = hand.book.poke("export")
    ending = Ending("failed", formula, retry=False)
    hand.book.write(fail_or_raise(taken.claim, ending, retry_in=None, error=formula))  # type: ignore[union-attr]

    (row,) = csv.DictReader(StringIO(hand.browser.get("/now.csv")))

    assert row["note"] == f"'{formula}"
    assert hand.browser.ask("/now.json").document["needs"][0]["note"] == formula


def test_a_range_is_no_formula(hand: Hand) -> None:
    hand.book.job("export", daily("UTC"))
    sent = "job=export&range=-3d..-1d&expect=2&reason=lost"
    assert hand.browser.ask("/backfill/start", "POST", body=sent, content_type=FORM).status == 303

    (row,) = csv.DictReader(StringIO(hand.browser.get("/backfills.csv")))

    assert row["range"] == "-3d..-1d"


# -- who does not say what they want ------------------------------------------------------------------------------------


@contextmanager
def served_as_by_command(book: Book) -> Iterator[int]:
    """The port of a dashboard behind the server that `duly web` has."""
    server = server_of(dashboard(book.path, Settings(allow_writes=True)))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _is_closed(connection: socket.socket) -> bool:
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    return True


HEAD = b"GET /now.json HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("said", [b"", b"GET / HT", HEAD + b"\r\n", HEAD + b"\r\n" + HEAD])
def test_a_connection_that_asks_nothing_is_closed(quiet: Book, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Else so many of them, of whoever can reach the server, keep it from answering anybody."""
    monkeypatch.setattr(duly.cli.web, "HEAD_SECONDS", 0.3)

    with served_as_by_command(quiet) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
        silent.sendall(said)
        while silent.recv(65_536):  # raises, where it is not closed
            pass


def test_a_page_that_takes_longer_than_a_head_is_answered(quiet: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duly.cli.web, "HEAD_SECONDS", 0.3)

    with served_as_by_command(quiet) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as listens:
        listens.sendall(b"GET /life HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while b"data: " not in heard:
            heard += listens.recv(65_536)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as silent:  # it came later, and is closed
            while silent.recv(65_536):
                pass
        listens.setblocking(False)
        assert not _is_closed(listens)


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [(f"/run/{KEY}/retry", FORM, 400), (f"/api/v1/run/{KEY}/retry", "application/json", 408)],
)
def test_a_body_is_waited_for_so_long_and_no_longer(
    quiet: Book, monkeypatch: pytest.MonkeyPatch, path: str, kind: str, status: int
) -> None:
    monkeypatch.setattr("duly.web.body.PATIENCE_SECONDS", 0.3)

    with served_as_by_command(quiet) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        head = (f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", "Content-Length: 500")
        said = "\r\n".join((*head, 'Idempotency-Key: "k"', "", "{"))
        slow.sendall(said.encode())
        answer = slow.recv(65_536)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
