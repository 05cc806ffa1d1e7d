"""A till for each story, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aio.till import Till
from tests.books import Book, PostgresBook
from tests.servers import Server


@pytest.fixture(params=["sqlite", "postgres"])
def till(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Till]:
    if request.param == "sqlite":
        yield Till(Book(tmp_path / "till.db"))
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield Till(PostgresBook(url))
