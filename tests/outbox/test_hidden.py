"""What holds the ledger's URL is hidden from the command of a destination that code declares, as from one of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import duly
from tests.books import Book
from tests.outbox.post import Post


def test_a_destination_of_code_hides_what_the_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, seen = tmp_path / "duly.toml", tmp_path / "seen"
    file.write_text('[ledger]\nurl_env = "SHOP_LEDGER"\n')
    monkeypatch.setenv("DULY_CONFIG", str(file))
    monkeypatch.setenv("SHOP_LEDGER", "postgresql://ada:s3cret@shop/ledger")
    book = Book(tmp_path / "jobs.db")
    Post(book).sent()
    ledger = duly.sqlite(book.path)
    ledger.destination("billing", kind="command", argv=["sh", "-c", f"env > '{seen}'"])

    assert ledger.deliver()
    assert "DULY_MESSAGE=a" in seen.read_text()
    assert "s3cret" not in seen.read_text()
