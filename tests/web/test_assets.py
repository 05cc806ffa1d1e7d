"""Assets: others' files are what their manifest says, with their licences, and all that a page asks for is there and in the
wheel.
"""

from __future__ import annotations

import re
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

import duly.web
from duly.web.assets import FOLDER, Assets, manifest
from tests.web.conftest import Browser

VENDORED = Path(FOLDER) / "vendored"
ROOM = Path(duly.web.__file__).parent


def test_others_files_are_what_was_published() -> None:
    said = manifest()

    for name, file in said.items():
        assert sha256((VENDORED / name).read_bytes()).hexdigest() == file["sha256"], name
        assert file["version"] in file["from"]
        assert file["from"].startswith("https://registry.npmjs.org/")
        assert len((VENDORED / file["licence_file"]).read_text()) > 400
    there = {path.name for path in VENDORED.iterdir()}
    assert there == {*said, *(file["licence_file"] for file in said.values()), "manifest.json"}


def test_a_page_asks_nobody_else_for_anything(browser: Browser) -> None:
    for path in ("/", "/grid", "/job/export", "/nothing"):
        page = browser.ask(path).text
        asked = re.findall(r"(?:src|href|action|data-src|hx-get)=\"([^\"#]*)", page)
        assert asked
        assert all(link.startswith("/") and not link.startswith("//") for link in asked if link), path


def test_what_pages_ask_for_is_there_and_named_by_its_digest(browser: Browser) -> None:
    found = set()
    for path in ("/", "/grid", "/job/export"):
        found |= set(re.findall(r"\"(/assets/[^\"]+)\"", browser.get(path)))

    assert len(found) >= 4
    for path in found:
        answer = browser.ask(path)
        assert answer.status == 200
        digest, name = path.split("/")[2:]
        assert sha256(answer.text.encode()).hexdigest().startswith(digest)
        assert answer.headers["content-type"].partition(";")[0] in ("text/css", "text/javascript", "image/svg+xml"), (
            name
        )


@pytest.mark.parametrize("path", ["/assets/../settings.py", "/assets/%2e%2e/settings.py", "/assets/manifest.json"])
def test_no_other_file_is_served(browser: Browser, path: str) -> None:
    assert browser.ask(path).status == 404


def test_our_script_and_style_hold_nothing_that_the_policy_forbids() -> None:
    for path in Path(FOLDER).glob("*.js"):
        text = path.read_text()
        assert not re.search(r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write", text), (
            path
        )
    for path in Path(FOLDER).glob("*.css"):
        assert "url(" not in path.read_text()
        assert "@import" not in path.read_text()


def test_every_file_has_a_path() -> None:
    assert {"duly.css", "duly.js", "plot.js", "duly.svg", "htmx.min.js"} <= set(Assets()._paths)


def test_the_wheel_has_templates_and_assets(tmp_path: Path) -> None:
    """Asked of the builder itself: a file that is not packed is missed only where it was installed."""
    builders = pytest.importorskip(
        "hatchling.builders.wheel", reason="hatchling, which builds the wheel, is not installed"
    )
    wheel = next(
        iter(builders.WheelBuilder(str(ROOM.parents[2])).build(directory=str(tmp_path), versions=["standard"]))
    )

    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    for path in (*ROOM.glob("templates/*"), *ROOM.glob("assets/**/*")):
        if path.is_file():
            assert f"duly/web/{path.relative_to(ROOM)}" in names
