"""A till for stories in an event loop: a ledger on either database, one balance in it, and the ways to look at both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import duly
import duly.aio
from tests.books import Book, PostgresBook

T = TypeVar("T")

Work = Callable[["duly.aio.Run[Any]"], Awaitable[object]]


class Till:
    """One book with a balance beside its ledger, on the morning of 2026-09-15; its jobs are async."""

    def __init__(self, book: Book) -> None:
        self.book = book
        book.clock.set("2026-09-15T03:00:00Z")
        book.amend("create table balance (units integer not null)")
        book.amend("insert into balance values (0)")

    def ledger(self) -> duly.aio.Ledger[Any]:
        """A ledger of its own, as a process opens it."""
        if isinstance(self.book, PostgresBook):
            return duly.aio.postgres(self.book.path, busy_seconds=2)
        return duly.aio.sqlite(self.book.path, busy_seconds=2)

    def play(self, story: Callable[[duly.aio.Ledger[Any]], Coroutine[Any, Any, T]]) -> T:
        """Tell a story in an event loop of its own, with a ledger that is closed after it."""

        async def told() -> T:
            async with self.ledger() as ledger:
                return await story(ledger)

        return asyncio.run(told())

    @property
    def units(self) -> int:
        ((units,),) = self.book.rows("select units from balance")
        return int(units)

    def ends(self) -> list[tuple[str, str | None]]:
        """The outcome of every attempt that has ended, with what is kept of its error."""
        return self.book.rows("select outcome, error from duly_attempt order by series, nominal, revision, number")


async def add_ten(run: duly.aio.Run[Any]) -> None:
    """The effect of the stories: ten units more, with the run's completion."""
    tx = await run.tx
    await tx.execute("update balance set units = units + 10")


def job(ledger: duly.aio.Ledger[Any], work: Work = add_ten, name: str = "credit", **settings: Any) -> duly.aio.Job[Any]:
    """The job of the stories: ten units for each day."""
    return ledger.job(name, duly.daily("UTC"), **{"catch_up": duly.EACH, **settings})(work)
