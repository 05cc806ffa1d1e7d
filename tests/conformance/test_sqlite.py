"""SQLite keeps the contract of a store, for threads and for an event loop."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import count
from typing import Any

import aiosqlite
import pytest

from duly.store.migrations import sqlite
from duly.store.sqlite import SqliteStore
from duly.store.sqlite_async import AsyncSqliteStore
from duly.testing import conformance

KINDS: dict[str, tuple[Any, Any]] = {
    "sync": (SqliteStore, sqlite3.connect),
    "async": (AsyncSqliteStore, aiosqlite.connect),
}


@pytest.fixture(scope="module", params=KINDS)
def candidate(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[conformance.Candidate]:
    folder, numbers = tmp_path_factory.mktemp("ledgers"), count(1)

    def new_ledger(clock: str) -> str:
        path = str(folder / f"{next(numbers)}.db")
        sqlite.create(path, clock=clock)
        return path

    with conformance.Candidate(new_ledger, *KINDS[request.param]) as candidate:
        yield candidate


class TestSqlite(conformance.Suite):
    """A file for all stories."""
