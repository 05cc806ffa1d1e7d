"""The page of the dashboard: its paths, schemas and flags are those that there are, and its example is an application."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from duly.schedule.spec import daily
from duly.web import dashboard
from duly.web.pages import PAGES
from tests.books import Book
from tests.docs.test_readme import ROOT, blocks
from tests.story import duly
from tests.web.browser.pages import PAGES as SHOWN
from tests.web.conftest import served

PAGE = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")


def test_every_page_and_every_document_is_told_of() -> None:
    told = {
        path.replace("NAME", "{name}").replace("KEY", "{key:path}").replace("ID", "{id:int}")
        for path in re.findall(r"`(/[^`?]*)`", PAGE)
    }

    assert {page.path for page in PAGES} <= told
    assert {f"{beside}.json" for page in PAGES for beside in page.documents} <= told


def test_documents_have_the_schemas_that_the_page_names(tmp_path: Path) -> None:
    book = Book(tmp_path / "ledger.db")
    book.job("export", daily("UTC"))
    book.work_all()
    rows = re.findall(r"^\| `([^`]+\.json)`.*? \| `(duly\.\w+\.v1)` \|", PAGE, re.MULTILINE)

    with served(dashboard(book.path)) as browser:
        for path, schema in rows:
            asked = path.replace("NAME", "export").replace("KEY", "export:2026-10-05[UTC]".replace("[", "%5B"))
            query = "?every=1h" if path == "/lab.json" else ""  # of nothing there is no document
            assert browser.ask(asked + query).document["schema"] == schema

    assert len(rows) == sum(len(page.documents) for page in PAGES)


def test_every_flag_has_its_line() -> None:
    helped = duly("web", "--help").out

    flags = set(re.findall(r"^  (--[a-z-]+)", helped, re.MULTILINE)) - {"--ledger", "--config", "--help"}
    assert flags <= set(re.findall(r"--[a-z-]+", PAGE))


@pytest.mark.parametrize("which", [0, 1], ids=["starlette", "fastapi"])
def test_each_example_is_an_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    monkeypatch.chdir(tmp_path)
    book = Book(tmp_path / "jobs.db")
    book.job("export", daily("UTC"))
    code = blocks(PAGE, "python")[which]
    made: dict[str, object] = {}

    exec(compile(code, "docs/web.md", "exec"), made)

    with served(made["app"]) as browser:
        assert browser.ask("/duly/").status == 401


def test_each_picture_is_one_that_is_drawn_and_each_that_is_drawn_is_shown() -> None:
    """`make pictures` draws them; whether they are still true somebody has to look."""
    drawn = {f"{page.name}{'' if scheme == 'light' else '-dark'}.png" for page in SHOWN for scheme in page.pictures}
    shown = set(re.findall(r"!\[[^\]]{5,}\]\(pictures/([^)]+)\)", PAGE))

    assert shown == drawn
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == drawn
    assert all(path.stat().st_size < 100_000 for path in (ROOT / "docs" / "pictures").iterdir())
