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

# What the transaction of a run does not do yet in an event loop.
NOT_YET = {
    "test_once_it_is_over_it_says_so": "aiosqlite says first that its connection is closed, with a ValueError",
    "test_abandoned_before_it_began_it_is_nothing": "aiosqlite has no thread before the first await, and says so",
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


@pytest.fixture(autouse=True)
def not_yet(request: pytest.FixtureRequest) -> None:
    """Stories of which it is known that they fail, and that have to go from the list when they do not."""
    reason = NOT_YET.get(request.function.__name__)
    if reason is not None and request.node.callspec.params["candidate"] == "async":
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason, raises=ValueError))


class TestSqlite(conformance.Suite):
    """A file for all stories."""
