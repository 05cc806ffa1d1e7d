"""Catch-up policies: what each keeps after downtime, and the reason that is recorded of all that it drops."""

from __future__ import annotations

import pytest

from duly.ledger import policy
from duly.ledger.open import Taken
from duly.schedule.spec import daily, every, hourly
from duly.times import DAY, HOUR, MINUTE
from tests.books import Book
from tests.ledger.test_owed import days


def down_for(book: Book, catch_up: str, *, days_down: int = 5, grace: int | None = None) -> None:
    """A job of days that worked the 5th of October, and then nothing for some days."""
    book.job(catch_up=catch_up, grace=grace)
    book.work_all()
    book.clock.advance(days_down * DAY)


# -- each, within limits ------------------------------------------------------------------------------------------------


def test_each_with_max_works_the_newest_so_many_and_says_of_the_others_why_not(book: Book) -> None:
    down_for(book, "each max=2")

    assert book.work_all() == days(9, 10)
    assert book.ranges() == [("2026-10-06", "2026-10-09")]
    assert book.reasons() == ["catch-up each max=2: of those that were owed the newest 2 are kept"]


def test_each_with_max_counts_runs_that_wait_for_their_retry(book: Book) -> None:
    book.job(catch_up="each max=2")
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim, retry_in=MINUTE)
    book.clock.advance(2 * DAY)

    assert book.work_all() == days(6, 7)
    assert book.state(taken.run.id) == "skipped"
    ((_, _, detail),) = book.events("skipped")
    assert detail == "catch-up each max=2: of those that were owed the newest 2 are kept"


def test_each_with_max_does_not_count_what_was_done_by_name(book: Book) -> None:
    down_for(book, "each max=2")
    for day in ("2026-10-10", "2026-10-09", "2026-10-07"):
        book.complete(book.take(day))

    assert book.work_all() == days(6, 8)
    assert book.ranges() == []


@pytest.mark.parametrize("at_once", [1, 3])
def test_each_with_a_high_max_is_opened_in_batches_and_keeps_them_all(
    book: Book, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(policy, "OPEN_AT_ONCE", at_once)
    down_for(book, "each max=8", days_down=10)

    assert book.work_all() == days(*range(8, 16))
    assert book.ranges() == [("2026-10-06", "2026-10-08")]


def test_each_with_max_age_works_what_is_young_enough(book: Book) -> None:
    down_for(book, "each max_age=3d")

    # The 7th came due three days and three hours ago.
    assert book.work_all() == days(8, 9, 10)
    assert book.reasons() == ["catch-up each max_age=3d: it was due longer ago than 3d"]


def test_of_two_limits_each_window_is_dropped_by_the_one_that_drops_it(book: Book) -> None:
    down_for(book, "each max=2 max_age=4d")

    assert book.work_all() == days(9, 10)
    assert book.ranges() == [("2026-10-06", "2026-10-07"), ("2026-10-07", "2026-10-09")]
    assert book.reasons() == [
        "catch-up each max=2 max_age=4d: it was due longer ago than 4d",
        "catch-up each max=2 max_age=4d: of those that were owed the newest 2 are kept",
    ]


def test_what_no_policy_keeps_is_all_one_range_and_the_next_window_is_owed(book: Book) -> None:
    book.job(catch_up="each max_age=4h")
    book.work_all()
    book.clock.advance(3 * DAY + 2 * HOUR)

    assert book.work_all() == []
    assert book.ranges() == [("2026-10-06", "2026-10-09")]

    book.clock.set("2026-10-10T00:30:00Z")
    assert book.work_all() == days(9)


# -- latest and fresh ---------------------------------------------------------------------------------------------------


def test_fresh_works_the_newest_window_within_its_grace(book: Book) -> None:
    book.job(catch_up="fresh", grace=HOUR)
    book.clock.set("2026-10-10T00:59:00Z")

    assert book.work_all() == days(9)


def test_fresh_skips_all_that_is_stale_and_says_of_the_newest_that_it_is(book: Book) -> None:
    down_for(book, "fresh", grace=HOUR)

    assert book.work_all() == []
    assert book.ranges() == [("2026-10-05", "2026-10-06"), ("2026-10-06", "2026-10-10"), ("2026-10-10", "2026-10-11")]
    assert book.reasons() == [
        "catch-up fresh: it was due longer ago than its grace",
        "catch-up fresh: a newer window was due",
        "catch-up fresh: it was due longer ago than its grace",
    ]
    book.clock.set("2026-10-12T00:30:00Z")
    assert book.work_all() == days(11)


def test_fresh_drops_a_run_whose_retry_comes_after_its_grace(book: Book) -> None:
    book.job(catch_up="fresh", grace=4 * HOUR)
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.fail(taken.claim, retry_in=HOUR)

    book.clock.set("2026-10-06T05:00:00Z")
    assert book.work_all() == []

    assert book.state(taken.run.id) == "skipped"
    assert book.run(taken.run.id).cause == "catch-up fresh: it was due longer ago than its grace"


def test_latest_with_max_age_leaves_even_the_newest_when_it_is_old(book: Book) -> None:
    book.job(schedule=daily("UTC"), catch_up="latest max_age=2h")
    book.clock.advance(3 * DAY)

    assert book.work_all() == []
    book.clock.set("2026-10-10T01:00:00Z")
    assert book.work_all() == days(9)


@pytest.mark.parametrize("catch_up", ["each max=1", "each max_age=1h", "latest max_age=1h", "fresh"])
def test_no_policy_drops_what_is_worked_unknown_or_waits_for_a_person(book: Book, catch_up: str) -> None:
    book.job(schedule=hourly("UTC"), catch_up=catch_up, contract="external", retries=0, overlap=1)
    running, unknown, failed = (book.take(f"2026-10-06T0{hour}") for hour in (0, 1, 2))
    book.doubt(unknown)
    book.fail(failed, retry_in=None)
    asked = book.take("2026-10-05T23")
    book.fail(asked, retry_in=None)
    book.retry(asked.run)
    for _ in range(3):
        book.clock.advance(20_000_000)
        book.renew(running)
    book.clock.set("2026-10-06T20:10:00Z")
    book.renew(running)

    worked = book.work_all()

    assert "export:2026-10-05T23[UTC]" in worked
    assert [book.state(claim.run) for claim in (running, unknown, failed)] == ["running", "unknown", "failed"]


# -- a week of five-minute windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("catch_up", "worked"), [("latest", 1), ("each max=100", 100)])
def test_of_a_week_of_five_minute_windows_a_few_are_worked_and_the_others_are_on_record(
    book: Book, catch_up: str, worked: int
) -> None:
    book.job("sync", every("5m"), catch_up=catch_up, overlap=1)
    book.work_all("sync")
    book.clock.advance(7 * DAY)

    done = book.work_all("sync")

    assert len(done) == worked
    ((first, beyond),) = book.rows("select from_nominal, to_nominal from duly_skipped")
    assert (beyond - first) // (2 * 300) == 2016 - worked
