"""A ledger for each story, on each database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.books import Book, PostgresBook
from tests.servers import Server


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Book:
    """An empty ledger, at three in the morning of 2026-10-06 in UTC."""
    if request.param == "sqlite":
        return Book(tmp_path / "jobs.db")
    server: Server = request.getfixturevalue("server")
    return PostgresBook(server.new_database())
