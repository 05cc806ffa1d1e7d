"""The page of the record: its commands run, and its thirty lines of Python find whatever was done to a file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.test_outbox import run_the_page
from tests.docs.test_readme import ROOT, blocks
from tests.evidence.test_export import KEY, TAMPERED, anew, lines_of, of_a_week

PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
(CHECK,) = blocks(PAGE, "python")


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    said = run_the_page(PAGE, tmp_path)

    assert said.returncode == 0, said.stderr
    assert "has no end" in said.stdout
    document = json.loads((tmp_path / "events.json").read_text())
    assert [one["reason"] for one in document["events"]] == ["the customer has left"]
    assert "mac" in json.loads((tmp_path / "signed.jsonl").read_text().splitlines()[-1])


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What the page's program says of some lines; it is run here, for a process would take longer than all it does."""

    def run(lines: list[bytes], *words: str, key: bytes | None = None) -> str:
        path = tmp_path / "file.jsonl"
        path.write_bytes(b"".join(lines))
        monkeypatch.setattr(sys, "argv", ["check.py", str(path), *words])
        monkeypatch.delenv("KEY_FILE", raising=False)
        if key is not None:
            (tmp_path / "key").write_bytes(key + b"\n")
            monkeypatch.setitem(os.environ, "KEY_FILE", str(tmp_path / "key"))
        try:
            exec(compile(CHECK, "check.py", "exec"), {})
        except SystemExit as e:
            return str(e.code)
        return capsys.readouterr().out

    return run


def test_the_program_is_thirty_lines() -> None:
    assert len(CHECK.splitlines()) <= 33
    assert "duly" not in CHECK


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_program_passes_what_is_whole_and_finds_what_is_not(tmp_path: Path, check: Callable[..., str]) -> None:
    from tests.books import Book

    book = of_a_week(Book(tmp_path / "jobs.db"))
    lines, signed = lines_of(book), lines_of(book, key=KEY)
    kept = json.loads(lines[-1])["hash"]

    assert check(lines).startswith("6 windows, as they were written")
    assert check(signed, kept, key=KEY).startswith("6 windows")
    for how, tamper in TAMPERED.items():
        assert not check(tamper(lines)).startswith("6 windows"), how
        assert "as they were written" not in check(tamper(lines)), how
    assert check(anew(lines), kept).startswith("written anew")
    assert check(anew(signed), key=KEY) == "not signed with this key"
    assert check(anew(signed, b"another key of his"), key=KEY) == "not signed with this key"
