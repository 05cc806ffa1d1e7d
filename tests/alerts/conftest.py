"""A ledger for each story of alerts, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import Book, PostgresBook
from tests.servers import Server


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """An empty ledger, at three in the morning of 2026-10-06 in UTC."""
    if request.param == "sqlite":
        yield Book(tmp_path / "jobs.db")
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield PostgresBook(url)
