"""A ledger for each story."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.books import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """An empty ledger, at three in the morning of 2026-10-06 in UTC."""
    return Book(tmp_path / "jobs.db")
