"""PostgreSQL keeps the contract of a store, for threads and for an event loop, on every server that can be had."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql

from duly.ledger.ask import now
from duly.store.migrations import postgres
from duly.store.postgres import Mark, Past, PostgresStore
from duly.store.postgres_async import AsyncPostgresStore
from duly.testing import conformance
from tests.servers import Server

KINDS: dict[str, tuple[Any, Any]] = {
    "sync": (PostgresStore, psycopg.connect),
    "async": (AsyncPostgresStore, psycopg.AsyncConnection.connect),
}


@pytest.fixture(scope="module", params=KINDS)
def candidate(request: pytest.FixtureRequest, any_server: Server) -> Iterator[conformance.Candidate]:
    def new_ledger(clock: str) -> str:
        url = any_server.new_database()
        postgres.create(url, clock=clock)
        _flush_nothing(url)
        return url

    with conformance.Candidate(new_ledger, *KINDS[request.param]) as candidate:
        yield candidate


def _flush_nothing(url: str) -> None:
    """Nothing here has to survive a crash of the server, and waiting for disks is most of what a story does."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} set synchronous_commit = off").format(name))


class TestPostgres(conformance.Suite):
    """A database for all stories."""


class Preempted(Past):
    """What a store knows of its past, in a thread that has to wait there while another one writes and commits."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store.url, store.busy_seconds)
        self._store = store
        self._waits = True

    def check(self, xid: int, epoch: int, before: Mark) -> None:
        if self._waits:
            self._waits = False
            with ThreadPoolExecutor(1) as another:
                another.submit(self._store.write, now()).result()
        super().check(xid, epoch, before)


def test_of_two_writes_at_once_the_one_that_began_first_may_be_looked_at_last(any_server: Server) -> None:
    """I12: nothing went back; two threads of one process write at once."""
    url = any_server.new_database()
    postgres.create(url)
    store = PostgresStore(url)
    store.past = Preempted(store)

    try:
        assert store.write(now()) > 0
    finally:
        store.close()
        any_server.drop(url)
