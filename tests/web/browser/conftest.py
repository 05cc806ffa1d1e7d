"""A real browser, Debian's Chromium driven by Playwright, and real `duly web` processes for it to look at.

Playwright's plain calls keep an event loop in the thread that makes them, in which no other loop can be run: so the browser is
there for the tests of this folder alone, and is gone before the next file's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.books import Book
from tests.story import SOURCE
from tests.web.browser.shop import shop
from tests.web.conftest import Answer, Browser, night

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# What a browser would do for itself, and a test has no use for.
QUIET = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--no-sandbox"),
)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """The one browser."""
    driven = pytest.importorskip("playwright.sync_api", reason="playwright, which drives a browser, is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed, and without it no page is seen in a browser")
    with driven.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        yield browser
        browser.close()


class Dashboard:
    """A `duly web` process, which may be killed and started again at the same place."""

    def __init__(self, ledger: str, *words: str, named: bool = True) -> None:
        self._place = ["--ledger", ledger] if named else []
        self._environ = {} if named else {"DULY_LEDGER": ledger}
        self._words = words
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it has said where it is."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
        place = ["--port", str(self.port), *self._place]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "duly", "web", *place, *self._words],
            env={**kept, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **self._environ},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        assert said.startswith("duly: http://"), said + self._process.stderr.read()
        self.port = int(said.rstrip("/\n").rpartition(":")[2])

    def ask(self, path: str) -> Answer:
        """What it answers to somebody else."""
        return Browser(self.port).ask(path)

    def kill(self) -> None:
        """End it as a power cut does."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def dashboard_of(ledger: str, *words: str, named: bool = True) -> Iterator[Dashboard]:
    """A dashboard of a ledger; where it is not named, the environment says which, and the lines to type are short."""
    dashboard = Dashboard(ledger, *words, named=named)
    try:
        yield dashboard
    finally:
        dashboard.kill()


class Night(NamedTuple):
    """The ledger of the night in October, and a dashboard of it."""

    book: Book
    dashboard: Dashboard


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """The shop, once for the stories of a file: they only look."""
    book = shop(tmp_path_factory.mktemp("shown") / "ledger.db")
    with dashboard_of(book.path, "--allow-writes") as dashboard:
        yield dashboard
    book.store.close()


@pytest.fixture
def going_on(tmp_path: Path) -> Iterator[Night]:
    """The night, in which things go on to happen."""
    book = Book(tmp_path / "ledger.db", at="2026-10-23T00:00:00Z")
    night(book)
    with dashboard_of(book.path) as dashboard:
        yield Night(book, dashboard)
    book.store.close()


class Tab:
    """A page of the browser, with whatever it complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")


Open = Callable[..., Tab]


@pytest.fixture
def tab(chromium: Any) -> Iterator[Open]:
    """Opens a tab of its own: `tab(url, color_scheme="dark", java_script_enabled=False)`."""
    opened: list[tuple[Any, Tab]] = []

    def open_(url: str, **settings: Any) -> Tab:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **settings})
        context.set_default_timeout(15_000)
        made = Tab(context.new_page())
        opened.append((context, made))
        made.page.goto(url)
        return made

    yield open_
    for context, _ in opened:
        context.close()


def here(page: Any) -> str:
    """What the line below the grid says."""
    said: str = page.locator(".readout").inner_text()
    return said


def walk(page: Any, key: str, to: str) -> None:
    """Press a key until the line below the grid begins with these words."""
    for _ in range(60):
        if here(page).startswith(to):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {to!r}, but to {here(page)!r}")
