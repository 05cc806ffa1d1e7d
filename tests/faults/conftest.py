"""Servers that a test may stop, and an account with its ledger on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import Book, PostgresBook
from tests.faults.account import Account
from tests.faults.cluster import Cluster, binaries, folder_of, plain_user


@pytest.fixture(scope="session")
def new_cluster() -> Iterator[Cluster]:
    """A server that was made and never started: others begin with copies of its data."""
    place, user = binaries(), plain_user()
    with folder_of(user) as folder:
        made = Cluster(place, folder, user)
        made.make()
        yield made


@pytest.fixture
def cluster(new_cluster: Cluster) -> Iterator[Cluster]:
    """A server for one test, running: it may be stopped, killed and copied."""
    with folder_of(new_cluster.user) as folder:
        cluster = new_cluster.copied_to(folder)
        cluster.start()
        yield cluster
        cluster.close()


@pytest.fixture(scope="session")
def standing_cluster(new_cluster: Cluster) -> Iterator[Cluster]:
    """A server of our own that nobody stops: its roles and settings may be changed."""
    with folder_of(new_cluster.user) as folder:
        cluster = new_cluster.copied_to(folder)
        cluster.start()
        yield cluster
        cluster.close()


@pytest.fixture
def on_postgres(standing_cluster: Cluster) -> Iterator[Account]:
    """An account with nothing on it, its ledger beside it in PostgreSQL."""
    with standing_cluster.databases.ledger() as url:
        account = Account(PostgresBook(url))
        yield account
        account.close()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Account]:
    """The same in an SQLite file."""
    account = Account(Book(tmp_path / "jobs.db"))
    yield account
    account.close()
