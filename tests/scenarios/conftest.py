"""Stages and accounts for the stories, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import Book, PostgresBook
from tests.exec.stage import Stage
from tests.faults.account import Account
from tests.scenarios.hosts import Hosts
from tests.servers import Server


@pytest.fixture
def hosts(tmp_path: Path, server: Server) -> Iterator[Hosts]:
    """Commands on hosts that share a ledger in PostgreSQL."""
    with server.ledger() as url:
        hosts = Hosts(tmp_path, url)
        yield hosts
        hosts.close()


@pytest.fixture(params=["sqlite", "postgres"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Commands on one host with a ledger in a file, or on hosts with one in PostgreSQL."""
    if request.param == "postgres":
        hosts: Hosts = request.getfixturevalue("hosts")
        yield hosts
        return
    stage = Stage(tmp_path)
    yield stage
    stage.close()


@pytest.fixture
def on_postgres(server: Server) -> Iterator[Account]:
    """An account with nothing on it, its ledger beside it in PostgreSQL."""
    with server.ledger() as url:
        account = Account(PostgresBook(url))
        yield account
        account.close()


@pytest.fixture(params=["sqlite", "postgres"])
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Account]:
    """An account with its ledger beside it, on each database."""
    if request.param == "postgres":
        on_postgres: Account = request.getfixturevalue("on_postgres")
        yield on_postgres
        return
    account = Account(Book(tmp_path / "jobs.db"))
    yield account
    account.close()
