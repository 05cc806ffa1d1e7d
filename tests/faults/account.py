"""An account whose ledger lies in the same database, and workers on it: real processes that are told where to stop."""

from __future__ import annotations

from typing import Any

import duly
from tests.books import Book
from tests.work.bank import Worker

KEY = "credit:2026-10-05[UTC]"
DAY = "2026-10-05"

# What every worker does: ten units for a day, as a row of its own, so that only what duly locks is waited for.
CREDIT = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=1000, retry_delay=0, overlap=True)
def credit(run):
    stop("before the effect")
    run.tx.execute(f"insert into credited (day, units) values ('{run.label}', 10)")
    stop("after the effect")

"""


class Account:
    """A ledger, and what was credited to one account, by day."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.url = book.path
        self.clock = book.clock
        self._ledgers: list[duly.Ledger[Any]] = []
        book.amend("create table credited (day text not null, units integer not null)")

    def ledger(self, **settings: Any) -> duly.Ledger[Any]:
        """The ledger, as a process opens it."""
        opened: duly.Ledger[Any]
        opened = duly.postgres(self.url, **settings) if "://" in self.url else duly.sqlite(self.url, **settings)
        self._ledgers.append(opened)
        return opened

    def close(self) -> None:
        """Close what this thread has opened."""
        for ledger in self._ledgers:
            ledger.close()
        self.book.store.close()

    def credit(self, ledger: duly.Ledger[Any] | None = None, **settings: Any) -> duly.Job[Any]:
        """The same job in this process, without a stop."""

        @(ledger or self.ledger()).job(
            "credit",
            duly.daily("UTC"),
            **{"catch_up": duly.EACH, "retries": 1000, "retry_delay": 0, "overlap": True, **settings},
        )
        def credit(run: duly.Run[Any]) -> None:
            run.tx.execute(f"insert into credited (day, units) values ('{run.label}', 10)")

        return credit

    def worker(self, script: str) -> Worker:
        """A process of its own that works with this ledger."""
        return Worker(self.book, script)

    @property
    def days(self) -> list[str]:
        """What was credited, each effect once."""
        return [day for (day,) in self.book.rows("select day from credited order by day")]

    def completed(self) -> list[str]:
        """The days that the ledger says are complete."""
        return [nominal[:10] for nominal, state in self.book.runs("credit") if state == "completed"]

    def history(self) -> list[tuple[int, str]]:
        """Number and outcome of every attempt, the current one too."""
        return self.book.rows(
            "select number, outcome from duly_attempt_readable order by series, nominal, revision, number"
        )
