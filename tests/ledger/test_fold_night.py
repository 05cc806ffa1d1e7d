"""The night on which clocks go back, for jobs that fire in both passes: nominals are not in the order of time.

Berlin, 25 October 2026: 02:00 to 03:00 happens twice, from 00:00Z and from 01:00Z.
"""

from __future__ import annotations

from duly.ledger.open import Taken
from duly.ledger.take import skipped_by_range
from duly.schedule.spec import cron
from duly.times import MINUTE, parse_instant
from tests.books import Book

QUARTERS = cron("*/15 * * * *", zone="Europe/Berlin")


def asleep_until(book: Book, instant: str) -> str:
    """A job under `latest` that nobody poked from one o'clock on; what the poke at an instant works."""
    book.clock.set("2026-10-24T23:00:00Z")
    book.job(schedule=QUARTERS, catch_up="latest")
    book.work_all()
    book.clock.set(instant)
    (key,) = book.work_all()
    return key


def test_the_second_pass_is_worked_after_the_first_was_slept_through(book: Book) -> None:
    assert asleep_until(book, "2026-10-25T00:50:00Z") == "export:2026-10-25T02:45:00[Europe/Berlin]"

    worked = []
    for quarter in range(4):
        book.clock.set("2026-10-25T01:00:00Z")
        book.clock.advance(quarter * 15 * MINUTE or 1)
        worked += book.work_all()

    assert worked == [
        "export:2026-10-25T02:00:00~2[Europe/Berlin]",
        "export:2026-10-25T02:15:00~2[Europe/Berlin]",
        "export:2026-10-25T02:30:00~2[Europe/Berlin]",
        "export:2026-10-25T02:45:00~2[Europe/Berlin]",
    ]


def test_each_window_that_was_dropped_is_in_a_range_and_no_other(book: Book) -> None:
    book.clock.set("2026-10-24T22:00:00Z")  # midnight
    book.job(schedule=QUARTERS, catch_up="latest")
    (first,) = book.work_all()
    for until in ("2026-10-25T00:35:00Z", "2026-10-25T01:20:00Z", "2026-10-25T03:05:00Z"):
        book.clock.set(until)
        book.work_all()
    series = book.find_key(first).series

    states = {}
    for occurrence in QUARTERS.after(book.clock.now() - 6 * 60 * MINUTE):
        if occurrence.due > book.clock.now() + 30 * MINUTE:
            break
        row = book.rows("select state from duly_run where nominal = ?", occurrence.nominal)
        by_range = book.store.read(skipped_by_range(series, occurrence.nominal))
        states[occurrence.due] = row[0][0] if row else "dropped" if by_range else "none"

    owed = {due: state for due, state in states.items() if book.clock.now() >= due > min(states)}
    coming = [state for due, state in states.items() if due > book.clock.now()]
    assert list(owed.values()).count("completed") == 4
    assert set(owed.values()) <= {"completed", "dropped", "none"}
    assert [
        state for due, state in owed.items() if due > parse_instant("2026-10-24T22:00:00Z") and state == "none"
    ] == []
    assert set(coming) == {"none"}


def test_a_run_that_is_named_is_not_dropped_by_latest_when_it_fails(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    claim = book.take("2026-10-01")
    book.fail(claim, retry_in=0)

    again = book.poke()

    assert isinstance(again, Taken)
    assert again.run.id == claim.run
