"""A shop's ledger at six minutes past three in Berlin, on the night after the clocks were set back: every state that there is.

`invoices` of one tenant failed in the night and is tried again, and nobody has begun those of another. Nobody knows whether
`payouts` went out. `rates`, hourly, has stood still since midnight. `backup` of the file server has failed for good. `stock` is
being worked; a backfill of `reports` is halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from duly.ledger.complete import complete_or_raise, fail_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.open import Taken, claim_next
from duly.ledger.pause import pause
from duly.ledger.records import Claimer
from duly.ledger.resolve import Word
from duly.schedule.spec import cron, daily, every, hourly, weekly
from duly.times import HOUR, MINUTE, SECOND
from duly.times import parse_instant as at
from duly.work.identity import new_attempt_id
from tests.books import Book

BERLIN = "Europe/Berlin"
Step: TypeAlias = tuple[int, Callable[[], object]]

TENANTS = ("acme", "globex", "initech")
PAUSED = Word("ana", "the new template is not ready")
BEGIN, END = "2026-10-06T00:00:00Z", "2026-10-26T02:06:00Z"


class Shop(Book):
    """A book whose work takes time, on hosts that have names."""

    def claim(self, job: str, scope: str = "", host: str = "batch-1", trigger: str = "cron") -> Taken | None:
        """Take what is owed next, if anything is."""
        claimer = Claimer(new_attempt_id(), f"{host}/4711@1+a", trigger)
        taken = self.write(claim_next(self.declaration(job, scope), claimer, as_of=None, tried=frozenset()))
        return taken if isinstance(taken, Taken) else None

    def do(self, job: str, scope: str = "", *, took: int = 4 * MINUTE, host: str = "batch-1") -> None:
        """Work what is owed."""
        while (taken := self.claim(job, scope, host)) is not None:
            self.clock.advance(took)
            self.write(complete_or_raise(taken.claim))


def shop(path: Path) -> Shop:
    """The ledger, at three in the night."""
    book = Shop(path, at=BEGIN)
    book.job("invoices", daily(BERLIN), scopes=TENANTS, owner="billing", grace=30 * MINUTE)
    book.job("payouts", daily("UTC"), contract="external", retries=0, owner="treasury")
    book.job("backup", cron("30 2 * * *", zone=BERLIN), scopes=("db", "files"), owner="platform", retries=0)
    book.job("stock", every("6h"), owner="warehouse", lease=2 * HOUR)
    book.job("reports", weekly(BERLIN), owner="finance")
    book.job("newsletter", cron("0 9 * * 1-5", zone=BERLIN), owner="marketing")
    for instant, step in sorted([*_days(book), *_last_night(book)], key=lambda each: each[0]):
        book.clock.set(max(instant, book.clock.now()))
        step()
    book.clock.set(END)
    return book


def _days(book: Shop) -> Iterator[Step]:
    """What goes well, day after day."""
    for day in range(6, 27):
        date = f"2026-10-{day:02}"
        midnight = "22" if day < 25 else "23"  # in Berlin, where the day before ended
        for place, tenant in enumerate(TENANTS):
            if day < 25 or (day == 25 and tenant != "acme"):
                took = (3 + (day * (place + 2)) % 5) * MINUTE
                yield at(f"{date}T{midnight}:1{place}:00Z"), partial(book.do, "invoices", tenant, took=took)
        if day not in (11, 25):
            yield at(f"{date}T00:02:00Z"), partial(book.do, "payouts", took=(1 + day % 3) * MINUTE)
        for scope in ("db", "files"):
            if day < 26 or scope == "db":
                took = (12 + day % 7) * MINUTE
                yield (
                    at(f"{date}T{'00' if day < 26 else '01'}:31:00Z"),
                    partial(book.do, "backup", scope, took=took, host="storage-1"),
                )
        if day < 26:
            for hour in (0, 6, 12, 18):
                yield at(f"{date}T{hour:02}:01:00Z"), partial(book.do, "stock", took=(7 + (day + hour) % 9) * MINUTE)
        if day >= 23:
            for hour in range(24):
                if f"{date}T{hour:02}" < "2026-10-25T23":
                    yield at(f"{date}T{hour:02}:04:00Z"), partial(book.do, "rates", took=20 * SECOND)
        if 6 <= day < 23 and day % 7 in (5, 6, 0, 1, 2):
            yield at(f"{date}T07:01:00Z"), partial(book.do, "newsletter")


def _last_night(book: Shop) -> Iterator[Step]:
    """What does not."""
    yield at("2026-10-11T06:00:00Z"), partial(book.skip, "2026-10-10", job="payouts")
    yield at("2026-10-12T00:10:00Z"), partial(book.do, "reports", took=19 * MINUTE)
    yield at("2026-10-19T00:10:00Z"), partial(book.do, "reports", took=23 * MINUTE)
    yield at("2026-10-22T20:00:00Z"), lambda: book.job("rates", hourly(BERLIN), owner="treasury", grace=15 * MINUTE)
    yield at("2026-10-23T12:00:00Z"), lambda: book.write(pause("newsletter", None, PAUSED, until=None))
    yield at("2026-10-25T00:02:00Z"), partial(_doubt, book)
    yield at("2026-10-25T20:00:00Z"), partial(book.backfill, "2026-08-24", "2026-09-21", job="reports")
    for hour in (20, 21):
        yield at(f"2026-10-25T{hour}:02:00Z"), partial(_of_backfill, book)
    yield at("2026-10-25T23:20:00Z"), partial(_fail, book, "invoices", "acme", "HTTP 503 from books.example", 4 * HOUR)
    yield at("2026-10-26T01:40:00Z"), partial(_fail, book, "backup", "files", "No space left on device", None)
    yield at("2026-10-26T02:01:00Z"), partial(book.claim, "stock", "", "batch-2")


def _doubt(book: Shop) -> None:
    taken = book.claim("payouts", host="batch-2")
    assert taken is not None
    book.clock.advance(30 * SECOND)
    book.doubt(taken.claim)


def _of_backfill(book: Shop) -> None:
    assert book.claim("reports") is None, "what is owed by itself goes first"
    taken = book.take_of_backfill("reports")
    book.clock.advance(21 * MINUTE)
    book.complete(taken.claim)


def _fail(book: Shop, job: str, scope: str, why: str, retry_in: int | None) -> None:
    taken = book.claim(job, scope, "batch-2")
    assert taken is not None
    book.clock.advance(MINUTE)
    ending = Ending("failed", "exit 1", retry=retry_in is not None)
    book.write(fail_or_raise(taken.claim, ending, retry_in=retry_in, error=why))
