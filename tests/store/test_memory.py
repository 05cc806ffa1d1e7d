"""A process that asks a ledger for months takes no more for it than after its first hundred questions. Counted, not timed."""

from __future__ import annotations

import gc
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import duly
from duly.ledger.looks import is_time_to_look
from duly.ledger.register import Declaration, declare
from duly.schedule.spec import daily
from duly.store.sqlite import SqliteStore

TIMES = 2_000


def kept_of(ask: Callable[[], object]) -> int:
    """How many blocks of memory are more after so many questions, once those that are asked first have been."""
    for _ in range(500):
        ask()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(TIMES):
        ask()
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(str(tmp_path / "ledger.db"))
    store.write(declare(Declaration("close", "", daily("UTC"), {"catch_up": "each"}, "dev@example")))
    return store


@pytest.mark.parametrize("way", ["read", "glance", "write"])
def test_what_is_asked_leaves_nothing_behind(store: SqliteStore, way: str) -> None:
    assert kept_of(lambda: getattr(store, way)(is_time_to_look(60_000_000))) < TIMES // 4

    store.close()


def test_what_is_asked_in_a_transaction_of_the_callers_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    duly.sqlite(path).close()
    with closing(sqlite3.connect(path)) as connection:
        begin, rollback = sqlite3.Cursor(connection), sqlite3.Cursor(connection)

        def once() -> None:
            begin.execute("begin immediate")
            assert duly.once(connection, "export:2026-11-28[UTC]")
            rollback.execute("rollback")

        assert kept_of(once) < TIMES // 4
