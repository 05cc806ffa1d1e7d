"""What others wrote is only ever shown: a script in an owner, a scope, a reason or an error is text on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from duly.ledger.complete import fail_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.pause import pause
from duly.ledger.resolve import Word
from duly.schedule.spec import daily
from duly.web import dashboard
from duly.web.actions import ACTIONS
from duly.web.paths import run_path
from tests.books import Book
from tests.web.conftest import FORM, Browser, Hand, served
from tests.web.conftest import KEY as RUN

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'>{{31337*7}}"
SCOPE = "<b onclick=alert(1)>\"'&"


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Browser]:
    """A ledger in which every field that somebody else fills holds a script."""
    book = Book(tmp_path / "ledger.db")
    book.job("export", daily("UTC"), owner=EVIL, scopes=(SCOPE,), contract="external", retries=0)
    taken = book.poke(scope=SCOPE)
    ending = Ending("failed", EVIL, retry=False)
    book.write(fail_or_raise(taken.claim, ending, retry_in=None, error=EVIL))  # type: ignore[union-attr]
    book.write(pause("export", None, Word(EVIL, EVIL), until=None))
    with served(dashboard(book.path)) as browser:
        yield browser
    book.store.close()


KEY = "%3Cb onclick=alert(1)%3E\"'&/export:2026-10-05[UTC]".replace("b onclick", "b%20onclick")

PAGES = (
    *("/", "/grid?from=2026-10-01&n=7", "/grid?unit=hour&from=2026-10-05&n=30", "/job/export"),
    *("/unknown", "/backfill", f"/backfill?job={quote(EVIL)}&range={quote(EVIL)}", f"/unknown?scope={quote(EVIL)}"),
    "/job/export?since=2026-10-05&until=2026-10-06",
    *(
        f"/?job={EVIL}".replace("<", "%3C").replace(" ", "%20").replace('"', "%22"),
        "/%3Cscript%3Ealert(1)%3C/script%3E",
    ),
    "/grid?owner=%3Cscript%3Ealert(1)%3C/script%3E&zone=%3Cscript%3E",
    "/grid?owner=%3Cscript%3Ealert(1)%3C/script%3E%22%27",
)


class _Marks(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.within = ""
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.within = tag

    def handle_endtag(self, tag: str) -> None:
        self.within = ""

    def handle_data(self, data: str) -> None:
        if self.within in ("script", "style") and data.strip():
            self.inline.append(data)


def marks(page: str) -> _Marks:
    read = _Marks()
    read.feed(page)
    return read


def test_nothing_that_others_wrote_becomes_a_mark(hostile: Browser) -> None:
    run = re.search(r'href="(/run/[^"]+)"', hostile.get("/"))
    assert run is not None
    for path in (*PAGES, run[1]):
        page = hostile.ask(path).text
        _is_inert(page, path)
        assert "{{31337*7}}" in page or "219359" not in page, path


def test_a_script_in_any_field_of_an_action_is_refused_or_inert(hand: Hand) -> None:
    hand.doubted()
    said = {"reason": "it rained", "as": "later", "job": "export", "range": "-3d..", "expect": "3", "message": "a"}
    for action in ACTIONS:
        path = action.path.replace("{key:path}", quote(RUN, safe=":")).replace("{id:int}", "1")
        for field in action.fields:
            fields = {each.name: said[each.name] for each in action.fields if each.name in said} | {field.name: EVIL}
            answer = hand.browser.ask(path, "POST", body=urlencode(fields), content_type=FORM)
            assert answer.status < 500, (path, field.name)
            _is_inert(answer.text, f"{path} {field.name}")
            asked = hand.browser.ask(f"{path}?{urlencode(fields)}")
            assert asked.status < 500, (path, field.name)
            _is_inert(asked.text, f"{path} {field.name}")
    for path in ("/", "/unknown", "/backfill", "/job/export", f"/run/{quote(RUN, safe=':')}"):
        page = hand.browser.get(path)
        _is_inert(page, path)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hand.browser.get(f"/run/{quote(RUN, safe=':')}")


def _is_inert(page: str, where: str) -> None:
    read = marks(page)
    assert not [tag for tag, _ in read.elements if tag in ("img", "b onclick=alert(1)")], where
    assert not [name for _, named in read.elements for name in named if name.startswith("on")], where
    assert read.inline == [], where


def test_no_page_has_a_script_or_a_style_within_it(hostile: Browser) -> None:
    for path in PAGES:
        read = marks(hostile.ask(path).text)
        assert read.inline == [], path
        assert not [named for _, named in read.elements if "style" in named], path
        assert all(named.get("src") for tag, named in read.elements if tag == "script"), path


def test_what_was_written_is_readable(hostile: Browser) -> None:
    page = hostile.get("/")

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_run_with_a_scope_of_signs_is_found_by_its_key(hostile: Browser) -> None:
    key = hostile.ask("/job/export/runs.json").document["runs"][0]["key"]

    assert hostile.ask(run_path(key)).status == 200
