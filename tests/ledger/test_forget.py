"""Forgetting: the horizon rises over what is settled for long enough, and nothing below it is ever worked again (I7)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from duly.errors import BelowHorizon, NotAllowed, RunSkipped
from duly.evidence.verdict import window_of
from duly.ledger.address import by_window
from duly.ledger.ask import one
from duly.ledger.forget import Forgettable, forget_batch, forgettable, raise_horizon
from duly.ledger.records import AlreadyCompleted, Claim, Series
from duly.ledger.register import FIND_SERIES, find
from duly.schedule.spec import cron, daily
from duly.times import DAY
from tests.books import Book


def days_later(book: Book, days: int) -> None:
    for _ in range(days):
        book.clock.advance(DAY)
        book.work_all()


def found(book: Book, *, retain: int = 2 * DAY, series: Series | None = None) -> Forgettable | None:
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.series is not None
    return book.store.read(forgettable(known, series or known.series, settled_by=book.clock.now() - retain))


def forget(book: Book, *, retain: int = 2 * DAY) -> int:
    """Raise the horizon as far as it may, then delete what lies below it, in small batches; how many runs went."""
    what = found(book, retain=retain)
    if what is None:
        return 0
    return carry_out(book, what)


def carry_out(book: Book, what: Forgettable) -> int:
    book.write(raise_horizon(what, by="ops@example", reason="two days are enough"))
    return sweep(book, what.series, settled_by=what.settled_by)


def sweep(book: Book, series: Series, *, settled_by: int, many: int = 2) -> int:
    """Delete what lies below the horizon, so many runs in a transaction; how many went."""
    gone = 0
    while not (batch := book.write(forget_batch(series, many, settled_by=settled_by))).is_last:
        gone += batch.gone.runs
    return gone


def test_what_is_settled_for_long_enough_is_forgotten_with_all_that_hangs_on_it(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    book.work_all()
    days_later(book, 5)

    gone = forget(book)

    assert gone == 4  # 5 to 8 October were settled two days ago; the 9th and 10th were not
    assert [nominal[:10] for nominal, _ in book.runs()] == ["2026-10-09", "2026-10-10"]
    for table in ("duly_attempt", "duly_event", "duly_text", "duly_renewal", "duly_progress"):
        ((below,),) = book.rows(
            f"select count(*) from {table} t join duly_series s on s.id = t.series where t.nominal < s.horizon"
        )
        assert below == 0, table


def test_a_late_retry_of_what_was_forgotten_is_refused(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    book.work_all()
    days_later(book, 5)
    forget(book)

    answer = book.ask("2026-10-06")
    window = book.store.read(window_of(book.store.read(by_window("export", "", "2026-10-06")), book.clock.now()))

    assert isinstance(answer, BelowHorizon)
    assert window.verdict.word == "pruned"
    assert book.work_all() == []
    with pytest.raises(BelowHorizon):
        book.skip("2026-10-06")
    with pytest.raises(NotAllowed):
        book.unskip("2026-10-06")


def test_what_a_person_says_of_what_was_forgotten_is_refused_as_that(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    book.work_all()
    days_later(book, 5)
    _, run, _ = book.find("2026-10-06")
    forget(book)

    for word in (book.retry, book.reopen, lambda run: book.resolve(run, done=True)):
        with pytest.raises(BelowHorizon):
            word(run)


@pytest.mark.parametrize("state", ["failed", "unknown", "running", "open"])
def test_what_is_not_settled_holds_the_horizon(book: Book, state: str) -> None:
    book.job(schedule=daily("UTC"), overlap=1, contract="external", lease=300 * DAY)
    book.work_all()
    book.clock.advance(DAY)
    claim = book.take("2026-10-06")
    match state:
        case "failed":
            book.fail(claim, retry_in=None)
        case "unknown":
            book.doubt(claim)
        case "open":
            book.release(claim)
            book.amend("update duly_run set retry_at = null where state = 'open'")
    for day in range(7, 12):
        book.clock.advance(DAY)
        book.complete(book.take(f"2026-10-{day:02}"))

    forget(book)

    assert next(nominal[:10] for nominal, _ in book.runs()) == "2026-10-06"
    assert isinstance(book.ask("2026-10-05"), BelowHorizon)


def test_a_window_that_was_settled_late_is_kept_for_as_long_as_any(book: Book) -> None:
    book.job(schedule=daily("UTC"), overlap=1)
    claim = book.take("2026-10-05")
    book.fail(claim, retry_in=0)
    for day in range(6, 11):
        book.clock.advance(DAY)
        book.complete(book.take(f"2026-10-{day:02}"))
    book.complete(book.take("2026-10-05"))

    assert forget(book) == 0
    assert isinstance(book.ask("2026-10-05"), AlreadyCompleted)


def test_what_was_never_opened_is_not_forgotten(book: Book) -> None:
    """Five days passed and nobody poked: they are owed, however long ago."""
    book.job(schedule=daily("UTC"))
    book.work_all()
    book.clock.advance(30 * DAY)

    forget(book)

    assert book.work_all()[0] == "export:2026-10-06[UTC]"


def test_a_skipped_range_is_settled_too(book: Book) -> None:
    book.job(schedule=daily("UTC"), catch_up="latest")
    book.work_all()
    days_later(book, 1)
    book.clock.advance(10 * DAY)
    book.work_all()
    days_later(book, 4)

    forget(book)

    assert book.ranges() == []
    assert isinstance(book.ask("2026-10-10"), BelowHorizon)


def test_windows_that_were_dropped_a_moment_ago_are_kept_for_as_long_as_any(book: Book) -> None:
    """Why nobody worked them is to be found for as long as anything, however old they are."""
    book.job(schedule=daily("UTC"), catch_up="latest")
    book.work_all()
    book.clock.advance(10 * DAY)
    book.work_all()
    days_later(book, 1)

    assert forget(book) == 1
    assert book.ranges() == [("2026-10-06", "2026-10-15")]
    assert isinstance(book.ask("2026-10-10"), RunSkipped)
    days_later(book, 2)
    forget(book)

    assert book.ranges() == []


def test_the_night_on_which_an_hour_comes_twice_is_forgotten_in_one_piece(book: Book) -> None:
    """At 02:40 the second time, 02:15 and 02:30 of both passes are settled; of the second 02:45 is still to come."""
    book.clock.set("2026-10-24T22:20:00Z")
    book.job(schedule=cron("*/15 * * * *", zone="Europe/Berlin"))
    book.work_all()
    book.clock.set("2026-10-25T01:40:00Z")
    book.work_all()

    forget(book, retain=0)
    book.clock.set("2026-10-25T03:00:00Z")
    worked = book.work_all()

    assert [key.partition(":")[2] for key in worked][:2] == [
        "2026-10-25T02:45:00~2[Europe/Berlin]",
        "2026-10-25T03:00:00[Europe/Berlin]",
    ]


def test_runs_outside_the_schedule_are_forgotten_and_their_ids_stay_taken(book: Book) -> None:
    book.job()
    claim = book.ask_adhoc("rebuild-1")
    assert isinstance(claim, Claim)
    book.complete(claim)
    book.clock.advance(5 * DAY)
    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.line is not None
    series = book.store.read(one(FIND_SERIES, Series, line=known.line.id, zone="", grain="adhoc"))
    assert series is not None
    what = found(book, series=series)
    assert what is not None

    assert carry_out(book, what) == 1

    assert isinstance(book.ask_adhoc("rebuild-1"), BelowHorizon)
    assert isinstance(book.ask_adhoc("rebuild-2"), Claim)


def test_what_came_meanwhile_holds_the_horizon_back(book: Book) -> None:
    """Between the look and the lock somebody reopens a run."""
    book.job(schedule=daily("UTC"))
    book.work_all()
    days_later(book, 5)
    what = found(book)
    assert what is not None

    reopened = book.reopen(book.find("2026-10-07")[1])
    carry_out(book, what)

    assert book.rows("select horizon from duly_series") == [(reopened.nominal,)]
    assert isinstance(book.ask("2026-10-06"), BelowHorizon)
    assert isinstance(book.ask("2026-10-07"), Claim)


def test_what_was_settled_meanwhile_is_kept_for_as_long_as_any(book: Book) -> None:
    """Between the look and the lock somebody completes a window of long ago, which nobody had named before."""
    book.job(schedule=daily("UTC"))
    book.work_all()
    days_later(book, 5)
    what = found(book)
    assert what is not None

    assert book.once("export:2026-01-01[UTC]")
    assert carry_out(book, what) == 4
    assert isinstance(book.ask("2026-01-01"), AlreadyCompleted)
    assert isinstance(book.ask("2026-01-02"), BelowHorizon)

    days_later(book, 3)
    assert sweep(book, what.series, settled_by=book.clock.now() - 2 * DAY) == 1
    assert isinstance(book.ask("2026-01-01"), BelowHorizon)


def test_claims_and_forgetting_at_once_never_work_a_run_below_the_horizon(book: Book) -> None:
    book.job(schedule=daily("UTC"), overlap=1)
    book.work_all()
    days_later(book, 6)
    answers: list[Any] = []

    def name_all() -> None:
        answers.extend(book.ask(f"2026-10-{day:02}") for day in range(1, 10))

    def forget_all() -> None:
        for retain in (4, 3, 2, 1, 0):
            forget(book, retain=retain * DAY)

    both = [threading.Thread(target=each) for each in (name_all, forget_all)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    assert len(answers) == 9
    below = book.rows(
        "select r.state from duly_run r join duly_series s on s.id = r.series "
        "where r.nominal < s.horizon and r.state in ('open', 'running')"
    )
    assert below == []
