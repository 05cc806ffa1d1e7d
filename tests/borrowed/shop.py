"""A shop whose ledger lies in the database of its business, on either database: effects, runs, and what became of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duly
from tests.books import LATE, Book, PostgresBook

KEY = "export:2026-10-05[UTC]"


class Shop:
    """A ledger with the daily job `export`, and a table for what its runs are to cause."""

    def __init__(self, book: Book, database: str) -> None:
        self.book = book
        self.database = database
        self.book.job("export")
        self.book.amend("create table effect (note varchar(40) primary key)")
        self.ledger: duly.Ledger[Any] = self.opened()

    def opened(self) -> duly.Ledger[Any]:
        """The ledger, as another process opens it."""
        return duly.postgres(self.book.path) if self.database == "postgresql" else duly.sqlite(self.book.path)

    def take(self) -> duly.Claim:
        claim = self.ledger.take(KEY)
        assert isinstance(claim, duly.Claim)
        return claim

    def lose(self, claim: duly.Claim) -> duly.Claim:
        """Let another attempt take the run over, as when the first one's process sleeps."""
        claim.close()
        self.book.clock.advance(LATE)
        return self.take()

    @property
    def effects(self) -> list[str]:
        """What was committed, as someone else sees it."""
        return [note for (note,) in self.book.rows("select note from effect order by note")]

    @property
    def state(self) -> str | None:
        """The run's state, as someone else sees it; None where no run was ever made."""
        rows = self.book.rows("select state from duly_run")
        return None if not rows else str(rows[0][0])

    @property
    def history(self) -> list[tuple[int, str]]:
        """Number and outcome of each attempt that has ended."""
        return self.book.rows("select number, outcome from duly_attempt order by number")

    @property
    def messages(self) -> list[tuple[str, str, bytes]]:
        """Name, state and body of each message, as someone else sees it."""
        rows = self.book.rows(
            "select m.name, m.state, b.body from duly_message m join duly_message_body b on b.series = m.series "
            "and b.nominal = m.nominal and b.revision = m.revision and b.number = m.number order by m.number"
        )
        return [(name, state, bytes(body)) for name, state, body in rows]

    def close(self) -> None:
        self.ledger.close()
        self.book.store.close()


def on_sqlite(folder: Path) -> Shop:
    """A shop in an SQLite file."""
    return Shop(Book(folder / "shop.db"), "sqlite")


def on_postgres(url: str) -> Shop:
    """A shop in a PostgreSQL database that has an empty ledger."""
    return Shop(PostgresBook(url), "postgresql")
