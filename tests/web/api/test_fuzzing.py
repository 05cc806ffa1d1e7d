"""Whatever the description allows, and what it does not, is answered as it says. `python -m campaigns.api` asks for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.web.api.openapi import description
from tests.books import Book, PostgresBook
from tests.servers import Server
from tests.web.api.fuzzing import fuzz, seeded

AT = "2026-10-23T00:00:00Z"


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_every_answer_is_as_the_description_says(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if database == "sqlite":
        _ask(Book(tmp_path / "ledger.db", at=AT), tmp_path)
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        _ask(PostgresBook(url, at=AT), tmp_path)


def _ask(book: Book, folder: Path) -> None:
    try:
        with seeded(book) as port:
            found = fuzz(port, folder, examples=3, seed=1, seconds=20)
    finally:
        book.store.close()

    operations = sum(len(path) for path in description()["paths"].values())
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"Tested: {operations}" in found.stdout, found.stdout + found.stderr
