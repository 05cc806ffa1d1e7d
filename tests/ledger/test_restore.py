"""A ledger that went back in time: what left the database since is in doubt, and what did not is done again."""

from __future__ import annotations

import pytest

from duly.errors import Misuse
from duly.ledger.records import Claim
from duly.ledger.restore import doubt_since
from duly.times import DAY, HOUR
from tests.books import WORD, Book


def restored(book: Book, at: int) -> list[str]:
    """Say that the ledger is whole up to an instant; the names of the runs that are in doubt then."""
    doubted = book.write(doubt_since(at, WORD))
    names = book.rows("select nominal, stored_nominal from duly_run_readable")
    by_name = {int(stored): str(nominal)[:10] for nominal, stored in names}
    return sorted(by_name[run.nominal] for run in doubted)


def test_what_is_owed_since_is_unknown_and_not_taken_again(book: Book) -> None:
    book.job(contract="external")
    book.work_all()
    copied = book.clock.now()
    book.clock.advance(2 * DAY)  # two days passed, of which the copy knows nothing

    doubted = restored(book, copied)

    assert doubted == ["2026-10-06", "2026-10-07"]
    assert book.work_all() == []
    ((_, reason, _),) = book.events("restored")
    assert reason == WORD.reason


def test_what_would_have_committed_in_this_database_is_done_again(book: Book) -> None:
    book.job(contract="transactional")
    book.work_all()
    copied = book.clock.now()
    book.clock.advance(2 * DAY)

    assert restored(book, copied) == []
    assert len(book.work_all()) == 2


@pytest.mark.parametrize(("remembers", "doubted"), [(3 * DAY, []), (HOUR, ["2026-10-06", "2026-10-07"])])
def test_an_idempotent_run_is_in_doubt_once_its_destination_has_forgotten(
    book: Book, remembers: int, doubted: list[str]
) -> None:
    book.job(contract="idempotent", remembers=remembers)
    book.work_all()
    copied = book.clock.now()
    book.clock.advance(2 * DAY)

    assert restored(book, copied) == doubted


def test_a_person_says_what_happened_and_the_run_goes_on(book: Book) -> None:
    book.job(contract="external")
    book.work_all()
    copied = book.clock.now()
    book.clock.advance(2 * DAY)
    restored(book, copied)
    _, first, _ = book.find("2026-10-06")
    _, second, _ = book.find("2026-10-07")

    book.resolve(first, done=True)
    book.resolve(second, done=False)

    assert (book.state(first), book.work_all()) == ("completed", ["export:2026-10-07[UTC]"])


def test_numbers_rise_beyond_those_that_may_have_been_given_out(book: Book) -> None:
    """I3: an attempt of the time that is lost has a number; a later one must have a higher one."""
    book.job(contract="external")
    claim = book.take()
    book.fail(claim, retry_in=0)
    copied = book.clock.now()
    lost = book.take()  # the copy knows nothing of it
    book.amend("update duly_run set state = 'failed', fence = 1, retry_at = 0, attempt_id = null")

    restored(book, copied)
    book.resolve(claim.run, done=False)
    again = book.take()

    assert again.number > lost.number + 100
    assert again.attempt_id != lost.attempt_id


def test_an_attempt_that_runs_still_may_report(book: Book) -> None:
    book.job(contract="external")
    claim = book.take()

    restored(book, book.clock.now() - HOUR)
    assert book.state(claim.run) == "unknown"
    book.complete(claim)

    assert book.state(claim.run) == "completed"


def test_an_instant_to_come_is_refused(book: Book) -> None:
    book.job(contract="external")

    with pytest.raises(Misuse, match="still to come"):
        restored(book, book.clock.now() + DAY)


def test_what_waits_for_a_person_is_in_doubt_too(book: Book) -> None:
    """Somebody may have retried it in the time that is lost."""
    book.job(contract="external")
    claim = book.take()
    book.fail(claim, retry_in=None)

    assert restored(book, book.clock.now()) == ["2026-10-05"]
    assert not isinstance(book.ask("2026-10-05"), Claim)


def test_a_line_with_more_due_than_one_step_opens_is_looked_at_to_its_end(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.ledger.policy.OPEN_AT_ONCE", 2)
    book.job(contract="external")
    book.work_all()
    copied = book.clock.now()
    book.clock.advance(7 * DAY)

    assert len(restored(book, copied)) == 7
