"""The dashboard within another application: one of Starlette's and one of FastAPI's, each a process that uvicorn serves."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from duly.web import dashboard
from tests.books import Book, PostgresBook
from tests.exec.stage import until
from tests.story import SOURCE
from tests.web.conftest import Answer, Browser, served

# Who somebody is, the application around knows: here by a cookie, as a session has it.
BEFORE = """
import os
from duly.web import dashboard
from duly.web.settings import Settings


def identify(scope):
    cookies = dict(scope["headers"]).get(b"cookie", b"").decode()
    return cookies.removeprefix("session=") or None


board = dashboard(os.environ["LEDGER"], Settings(hosts=("localhost", "shop.example"), identify=identify))
"""

APPLICATIONS = {
    "starlette": """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("the shop")), Mount("/ops/duly", board)])
""",
    "fastapi": """
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI()
app.mount("/ops/duly", board)


@app.get("/", response_class=PlainTextResponse)
def shop() -> str:
    return "the shop"
""",
}


@contextmanager
def process_of(folder: Path, source: str, ledger: str, *words: str) -> Iterator[tuple[Browser, subprocess.Popen[str]]]:
    """An application that uvicorn serves. What nobody closes is said on its stderr."""
    (folder / "site_of_a_shop.py").write_text(source)
    process = subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", "-m", "uvicorn", "site_of_a_shop:app", "--port", "0", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{SOURCE}:{folder}", "LEDGER": ledger},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = ""
        while (found := re.search(r"running on http://127.0.0.1:(\d+)", said)) is None:
            line = process.stderr.readline()
            assert line, said
            said += line
        yield Browser(int(found[1])), process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="module", params=list(APPLICATIONS))
def shop(
    request: pytest.FixtureRequest, book: Book, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Browser, subprocess.Popen[str]]]:
    """An application with the dashboard of the night under /ops/duly."""
    source = BEFORE + APPLICATIONS[request.param]
    with process_of(tmp_path_factory.mktemp("shop"), source, book.path) as served:
        yield served


def as_ana(browser: Browser, path: str, method: str = "GET") -> Answer:
    return browser.ask(path, method, Cookie="session=ana")


def test_every_link_of_a_page_stays_below_its_prefix_and_is_there(shop: tuple[Browser, subprocess.Popen[str]]) -> None:
    browser, _ = shop
    seen: set[str] = set()
    left = ["/ops/duly/"]
    while left and len(seen) < 60:
        path = left.pop()
        answer = as_ana(browser, path)
        assert answer.status == 200, (path, answer)
        links = set(re.findall(r'(?:href|src|action|hx-get|data-src)="([^"#]+)"', answer.text))
        assert all(link.startswith("/ops/duly/") for link in links), (path, links)
        fresh = {link.replace("&amp;", "&") for link in links} - seen
        seen |= fresh
        left += sorted(fresh)

    assert any("/assets/" in path for path in seen)
    assert any("/run/" in path for path in seen)
    assert any(path.endswith("/now.csv") for path in seen)


def test_the_application_around_says_who_somebody_is(shop: tuple[Browser, subprocess.Popen[str]]) -> None:
    browser, _ = shop

    assert browser.ask("/").text == "the shop", "what is not the dashboard's is not asked"
    assert browser.ask("/ops/duly/").status == 401
    assert "<span>ana</span>" in as_ana(browser, "/ops/duly/").text


def test_its_guard_stands_there_too(shop: tuple[Browser, subprocess.Popen[str]]) -> None:
    browser, _ = shop

    assert browser.ask("/ops/duly/", Host="evil.example", Cookie="session=ana").status == 421
    assert browser.ask("/ops/duly/", Host="shop.example", Cookie="session=ana").status == 200
    assert as_ana(browser, "/ops/duly/", "POST").status == 403
    assert "default-src 'self'" in as_ana(browser, "/ops/duly/grid").headers["content-security-policy"]
    assert as_ana(browser, "/ops/duly/nothing").status == 404


def test_without_its_last_slash_it_is_found(shop: tuple[Browser, subprocess.Popen[str]]) -> None:
    browser, _ = shop
    answer = as_ana(browser, "/ops/duly")

    assert answer.status == 307
    assert answer.headers["location"].endswith("/ops/duly/")


@pytest.mark.parametrize("framework", list(APPLICATIONS))
def test_a_prefix_of_a_proxy_goes_before_that_of_the_application(framework: str, quiet: Book, tmp_path: Path) -> None:
    source = BEFORE + APPLICATIONS[framework]

    with process_of(tmp_path, source, quiet.path, "--root-path", "/proxy") as (browser, _):
        page = as_ana(browser, "/ops/duly/grid")

    assert page.status == 200
    assert 'href="/proxy/ops/duly/job/export"' in page.text


@pytest.mark.parametrize("framework", list(APPLICATIONS))
def test_the_application_ends_and_nothing_is_left_open(framework: str, book: Book, tmp_path: Path) -> None:
    """Of what is mounted nobody runs the lifespan."""
    source = BEFORE + APPLICATIONS[framework]

    with process_of(tmp_path, source, book.path) as (browser, process):
        for path in ("/ops/duly/", "/ops/duly/grid", "/ops/duly/nothing"):
            as_ana(browser, path)
        process.send_signal(signal.SIGINT)  # after which the interpreter ends in order
        _, talk = process.communicate(timeout=30)

    assert process.returncode in (0, 1, 130, -signal.SIGINT)
    assert "Exception ignored" not in talk, talk
    assert "ResourceWarning" not in talk, talk
    assert "Traceback" not in talk, talk


def test_an_application_that_is_forgotten_leaves_neither_thread_nor_connection(book: Book) -> None:
    """As those that a test suite makes by the hundred: nobody runs the lifespan of what is mounted, and nobody has to."""
    before = connections_to(book)

    with served(Starlette(routes=[Mount("/duly", dashboard(book.path))])) as browser:
        assert browser.ask("/duly/grid").status == 200
        assert not isinstance(book, PostgresBook) or connections_to(book) > before, (
            "a server's are kept for the next page"
        )

    def is_forgotten() -> bool:
        gc.collect()
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("duly-web")]
        return not threads and connections_to(book) == before

    until(is_forgotten, "its threads and connections are gone")


def connections_to(book: Book) -> int:
    """How many others are connected to the ledger's database; none to a file."""
    if not isinstance(book, PostgresBook):
        return 0
    with psycopg.connect(book.path) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return int(row[0])
