"""Progress: how far an attempt says that it is, and what is known of one whose end nobody saw."""

from __future__ import annotations

from duly.evidence.runs import Attempt, history
from duly.ledger.address import by_window
from duly.ledger.progress import Progress, progress_of, report
from duly.ledger.records import Claim
from tests.books import Book, PostgresBook, let_die


def told(book: Book, claim: Claim) -> Progress | None:
    return book.store.read(progress_of(book.run(claim.run)))


def attempts(book: Book) -> list[Attempt]:
    async def seen() -> list[Attempt]:
        return (await history(await by_window("export", "", "2026-10-05"))).attempts

    return book.store.read(seen())


def test_the_last_word_counts(book: Book) -> None:
    book.job()
    claim = book.take()
    assert told(book, claim) is None

    for done in (1, 14):
        assert book.write(report(claim, Progress(done, 20)))

    assert told(book, claim) == Progress(14, 20, book.clock.now())


def test_neither_the_run_nor_its_lease_is_touched(book: Book) -> None:
    book.job()
    claim = book.take()
    before = book.everything()

    book.write(report(claim, Progress(1, None)))

    assert book.everything() == before


def test_an_attempt_that_was_taken_over_tells_nothing_more_and_its_successor_begins_anew(book: Book) -> None:
    book.job()
    first = book.take()
    book.write(report(first, Progress(7, 20)))
    book.lapse()
    second = book.take()

    assert not book.write(report(first, Progress(8, 20)))

    assert told(book, second) is None
    assert [attempt.progress and attempt.progress.words for attempt in attempts(book)] == [None, None]
    book.write(report(second, Progress(1, None)))
    assert [attempt.progress and attempt.progress.words for attempt in attempts(book)] == [None, "1 done"]


def test_of_a_superseded_attempt_it_is_said_whether_it_shows_a_pulse_where_that_can_be_told(book: Book) -> None:
    book.job()
    first = book.take()
    book.lapse()
    book.take()

    superseded, current = attempts(book)

    assert (superseded.was_superseded, current.was_superseded) == (True, False)
    if isinstance(book, PostgresBook):
        assert (superseded.alive, superseded.pulse_words) == (None, "superseded, maybe alive")
        return
    assert (superseded.alive, superseded.pulse_words) == (False, "superseded, no pulse")
    pulse = book.hold_pulse(first)
    superseded, _ = attempts(book)
    let_die(pulse)
    assert (superseded.alive, superseded.pulse_words) == (True, "superseded, still alive")
