"""A stage for each story, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import Book
from tests.daemon.stage import Stage
from tests.ledger.conftest import book

__all__ = ["book"]


@pytest.fixture
def stage(book: Book, tmp_path: Path) -> Iterator[Stage]:
    """A ledger at three in the morning of 2026-10-06 in UTC, without a job."""
    stage = Stage(book, tmp_path)
    yield stage
    stage.close()
