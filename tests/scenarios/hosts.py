"""Hosts that share a ledger in PostgreSQL: no file, no lock and no clock in common, only the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.books import PostgresBook
from tests.exec.stage import Stage


class Hosts(Stage):
    """A stage of `duly exec` whose every process may be a host of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.book = PostgresBook(url)
        super().__init__(folder, ledger=url)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.book.rows(sql, *values)

    def close(self) -> None:
        super().close()
        self.book.store.close()
