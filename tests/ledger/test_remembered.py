"""A claim from memory: the same as one from the beginning where nothing has changed, and none at all where anything has."""

from __future__ import annotations

import pytest

from duly.ledger.ask import Statement, drive
from duly.ledger.named import Named
from duly.ledger.records import AlreadyCompleted, Busy, Claim, Claimer
from duly.ledger.register import Declaration, declare
from duly.ledger.remembered import Recalled, Remembered, Untouched, claim_remembered, peek_remembered, recall, remember
from duly.records import replace
from duly.schedule.calendar import make_calendar
from duly.schedule.keys import nominal_text
from duly.schedule.spec import EARLIEST, cron, daily, every
from duly.times import DAY as DAYS
from duly.times import HOUR, parse_instant
from duly.work.identity import new_attempt_id
from tests.books import Book

DAY, NEXT_DAY = "2026-10-04", "2026-10-05"
NEAR_A_DAY = (
    2 * 3 * 86_400
)  # as far as the name of a window can lie that was opened over a day: its length, and two days


def memory_of(book: Book, job: str = "export") -> Remembered | None:
    """What a process remembers that has claimed a run of the job just now."""
    known = book.declare(job)
    assert not isinstance(known, Exception)
    return remember(known, book.declaration(job))


def place(book: Book, window: str = NEXT_DAY) -> Recalled:
    remembered = memory_of(book)
    assert remembered is not None
    found = recall(remembered, window)
    assert found is not None
    return found


def claim(
    book: Book, at: Recalled, *, payload: str | None = None, attempt: bytes | None = None
) -> Claim | AlreadyCompleted | None:
    """Claim from memory; None where nothing was claimed, and nothing written."""
    claimer = Claimer(attempt or new_attempt_id(), "host/1@1+a", "test", payload)
    before = [book.everything(), book.rows("select * from duly_line")]
    named = book.write(claim_remembered(at, claimer))
    answer = None if named is None else named.answer
    assert answer is None or isinstance(answer, (Claim, AlreadyCompleted))
    if not isinstance(answer, Claim):
        assert [book.everything(), book.rows("select * from duly_line")] == before
    return answer


# -- the same as from the beginning -------------------------------------------------------------------------------------


def test_it_makes_the_row_that_a_claim_from_the_beginning_makes(book: Book) -> None:
    columns = (
        "revision, state, fence, due - window_start, window_end - window_start, resolution, version, zone_facts, opened_at,"
        " payload, failures, retry_at, asked_at, settled_at, was, cause, first_started_at, started_at, lease_until,"
        " contract, remembers, owner, trigger"
    )
    book.job(overlap=1)
    first = book.take(DAY)

    second = claim(book, place(book))

    assert isinstance(second, Claim)
    one, other = book.rows(f"select {columns} from duly_run order by nominal")
    assert one[:-1] == other[:-1]
    assert (second.lease_until, second.number, second.contract) == (first.lease_until, 1, "transactional")


def test_what_it_says_of_its_run_is_what_the_row_says(book: Book) -> None:
    book.job()

    answer = claim(book, place(book), payload="json1:aa")

    assert isinstance(answer, Claim)
    assert answer.row == book.run(answer.run)


def test_its_run_is_completed_like_any_other(book: Book) -> None:
    book.job()
    answer = claim(book, place(book))
    assert isinstance(answer, Claim)

    book.complete(answer)

    assert book.attempts(answer.run) == [(1, "completed")]
    assert claim(book, place(book)) == AlreadyCompleted(answer.run, book.clock.now(), 1)


def test_it_notes_its_run_on_the_line(book: Book) -> None:
    book.job()

    answer = claim(book, place(book))

    assert isinstance(answer, Claim)
    assert book.rows("select holder_series, holder_nominal, holder_revision from duly_line") == [
        (answer.run.series, answer.run.nominal, answer.run.revision)
    ]
    assert book.ask(DAY) == book.ask(DAY)  # busy: the line is held
    assert not isinstance(book.ask(DAY), Claim)


def test_the_same_attempt_is_told_its_claim_again(book: Book) -> None:
    """The reply was lost, and the claim is asked for once more, from memory or from the beginning."""
    book.job()
    me = new_attempt_id()
    first = claim(book, place(book), attempt=me)
    assert isinstance(first, Claim)

    assert claim(book, place(book), attempt=me) == first
    again = book.ask(NEXT_DAY, attempt=me)
    assert isinstance(again, Claim)
    assert (again.number, again.started_at) == (first.number, first.started_at)


def test_a_duplicate_is_told_by_a_look_alone(book: Book) -> None:
    book.job()
    done = book.take(NEXT_DAY)
    book.complete(done)
    claimer = Claimer(new_attempt_id(), "host/1@1+a", "test")

    with book.no_commit():
        named = book.store.glance(peek_remembered(place(book), claimer))

    assert isinstance(named, Named)
    assert named.answer == AlreadyCompleted(done.run, book.clock.now(), 1)


def test_a_window_that_is_worked_is_busy_by_a_look_alone(book: Book) -> None:
    """Whoever works it may hold the ledger meanwhile: a claim would wait for its turn, to no end."""
    book.job()
    held = book.take(NEXT_DAY)

    named = book.store.glance(peek_remembered(place(book), Claimer(new_attempt_id(), "host/1@1+a", "test")))

    assert isinstance(named, Named)
    assert named.answer == Busy(held.run, held.lease_until, held.owner)


def test_a_look_tells_whether_anybody_has_touched_a_window(book: Book) -> None:
    book.job()
    at, claimer = place(book), Claimer(new_attempt_id(), "host/1@1+a", "test")

    untouched = book.store.glance(peek_remembered(at, claimer))
    book.fail(book.take(NEXT_DAY))
    touched = book.store.glance(peek_remembered(at, claimer))

    assert isinstance(untouched, Untouched)
    assert touched is None


# -- nothing at all -----------------------------------------------------------------------------------------------------


def test_a_run_that_is_worked_is_not_claimed(book: Book) -> None:
    book.job(overlap=1)
    at = place(book)
    book.take(NEXT_DAY)

    assert claim(book, at) is None


def test_nor_one_that_failed(book: Book) -> None:
    book.job(overlap=1)
    at = place(book)
    book.fail(book.take(NEXT_DAY))

    assert claim(book, at) is None


def test_nor_one_that_is_not_due(book: Book) -> None:
    book.job()

    assert claim(book, place(book, "2026-10-06")) is None


def test_nor_one_that_a_range_skips(book: Book) -> None:
    book.job()
    at = place(book)
    book.amend(
        "insert into duly_skipped (series, from_nominal, to_nominal, reason, at, by) values (?, ?, ?, 'holiday', 0, 'ops')",
        at.run.series,
        at.run.nominal,
        at.run.nominal + 1,
    )

    assert claim(book, at) is None


@pytest.mark.parametrize("overlap", [0, 1])
def test_nor_one_below_the_horizon(book: Book, overlap: int) -> None:
    book.job(overlap=overlap)
    at = place(book)
    book.amend("update duly_series set horizon = ?", at.run.nominal + 1)

    assert claim(book, at) is None


@pytest.mark.parametrize("overlap", [0, 1])
def test_nor_one_whose_job_has_other_policies_since(book: Book, overlap: int) -> None:
    book.job(overlap=overlap)
    at = place(book)
    book.write(declare(Declaration("export", "", daily("UTC"), {"lease": 120_000_000}, "dev@example")))

    assert claim(book, at) is None


def test_nor_one_of_a_job_that_has_come_to_an_older_state_by_another_way(book: Book) -> None:
    """A ledger may be restored, and edited after that: how often a job changed says nothing."""
    book.job()
    at = place(book)
    for lease in (120_000_000, 60_000_000):
        book.write(declare(Declaration("export", "", daily("UTC"), {"lease": lease}, "dev@example")))

    assert claim(book, at) is None


def test_two_jobs_are_never_in_the_same_state(book: Book) -> None:
    book.job()
    book.job("report")

    assert len(set(book.rows("select edition from duly_job"))) == 2


def test_nor_a_completed_one_of_a_job_that_is_another_since(book: Book) -> None:
    """The answer may be another: its schedule may have been replaced."""
    book.job()
    at = place(book)
    book.complete(book.take(NEXT_DAY))
    book.amend("update duly_job set owner = 'data-team'")  # by whatever hand it changes

    assert claim(book, at) is None


def test_nor_one_that_was_completed_with_another_payload(book: Book) -> None:
    book.job()
    at = place(book)
    book.complete(book.take(NEXT_DAY, payload="json1:aa"))

    assert claim(book, at, payload="json1:bb") is None
    assert isinstance(claim(book, at, payload="json1:aa"), AlreadyCompleted)
    assert isinstance(claim(book, at), AlreadyCompleted)


def test_nor_one_whose_line_is_held(book: Book) -> None:
    book.job()
    at = place(book)
    holder = book.take(DAY)

    assert claim(book, at) is None

    book.complete(holder)
    assert isinstance(claim(book, at), Claim)


def test_a_dead_holder_is_ended_from_the_beginning_not_from_memory(book: Book) -> None:
    book.job()
    at = place(book)
    book.take(DAY)
    book.lapse()

    assert claim(book, at) is None


def test_nor_one_that_was_reopened(book: Book) -> None:
    book.job()
    at = place(book)
    done = book.take(NEXT_DAY)
    book.complete(done)
    book.reopen(done.run)

    assert claim(book, at) is None


def test_a_holder_that_was_noted_before_the_line_was_looked_at_is_no_claim(book: Book) -> None:
    """The line notes the run already, as after a claim whose row is gone: what else has changed still counts."""
    book.job()
    at = place(book)
    book.amend(
        "update duly_line set holder_series = ?, holder_nominal = ?, holder_revision = 1", at.run.series, at.run.nominal
    )
    book.amend("update duly_job set owner = 'data-team'")

    assert claim(book, at) is None


# -- nothing at all, in a zone whose rules may change --------------------------------------------------------------------


def berlin(book: Book, overlap: int) -> Recalled:
    """A day of a job whose line has been worked up to it: what is stored of the day before decides where this one starts."""
    book.job(schedule=daily("Europe/Berlin"), overlap=overlap)
    book.complete(book.take(DAY))
    return place(book)


def add_row(book: Book, at: Recalled, nominal: int, start: int, end: int) -> None:
    """A window of the line that has its row, whoever named it, and under whatever rules."""
    book.amend(
        "insert into duly_run (series, nominal, revision, state, fence, due, window_start, window_end, opened_at, failures)"
        " values (?, ?, 1, 'open', 0, ?, ?, ?, 0, 0)",
        *(at.run.series, nominal, end, start, end),
    )


@pytest.mark.parametrize("overlap", [0, 1])
def test_beside_windows_that_are_stored_as_the_rules_have_them_it_is_claimed(book: Book, overlap: int) -> None:
    book.clock.advance(DAYS)
    at = berlin(book, overlap)
    assert at.beside is not None
    add_row(book, at, at.beside.after, at.occurrence.end, at.occurrence.end + DAYS)

    assert isinstance(claim(book, at), Claim)


@pytest.mark.parametrize("overlap", [0, 1])
def test_beside_windows_without_a_row_too(book: Book, overlap: int) -> None:
    at = berlin(book, overlap)
    book.amend("delete from duly_run")

    assert isinstance(claim(book, at), Claim)


@pytest.mark.parametrize("overlap", [0, 1])
def test_not_where_nobody_has_written_down_what_the_rules_are(book: Book, overlap: int) -> None:
    at = berlin(book, overlap)
    book.amend("update duly_zone_facts set release = '2019a'")

    assert claim(book, at) is None


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("column", ["zone", "source", "fingerprint"])
def test_nor_where_what_is_written_down_is_of_other_rules(book: Book, overlap: int, column: str) -> None:
    at = berlin(book, overlap)
    book.amend(f"update duly_zone_facts set {column} = 'another'")

    assert claim(book, at) is None


@pytest.mark.parametrize("overlap", [0, 1])
def test_nor_where_the_window_before_ends_earlier_as_it_is_stored(book: Book, overlap: int) -> None:
    """This one starts there: there would be a hole."""
    at = berlin(book, overlap)
    book.amend("update duly_run set window_end = window_end - ?", HOUR)

    assert claim(book, at) is None
    assert book.run(book.take(NEXT_DAY).run).window_start == at.occurrence.start - HOUR


@pytest.mark.parametrize("overlap", [0, 1])
def test_nor_where_the_window_before_was_settled_without_a_time_of_its_own(book: Book, overlap: int) -> None:
    """Its time falls to this one."""
    at = berlin(book, overlap)
    book.amend("update duly_run set window_start = null, window_end = null")
    book.amend("update duly_line set opened_until = opened_until - ?", 9 * DAYS)

    assert claim(book, at) is None
    assert book.run(book.take(NEXT_DAY).run).window_start == at.occurrence.start - DAYS


@pytest.mark.parametrize("overlap", [0, 1])
def test_nor_where_the_line_was_opened_into_it(book: Book, overlap: int) -> None:
    """By rules under which the window before ended later, and was passed over here."""
    at = berlin(book, overlap)
    book.amend("delete from duly_run")
    book.amend("update duly_line set opened_until = ?", at.occurrence.start + HOUR)

    assert claim(book, at) is None
    assert book.run(book.take(NEXT_DAY).run).window_start == at.occurrence.start + HOUR


@pytest.mark.parametrize("overlap", [0, 1])
def test_nor_where_the_window_after_starts_later_as_it_is_stored(book: Book, overlap: int) -> None:
    """This one reaches to it."""
    at = berlin(book, overlap)
    assert at.beside is not None
    add_row(book, at, at.beside.after, at.occurrence.end + HOUR, at.occurrence.end + DAYS)

    assert claim(book, at) is None
    assert book.run(book.take(NEXT_DAY).run).window_end == at.occurrence.end + HOUR


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("name", [-1, 1], ids=["an earlier name", "a later name"])
@pytest.mark.parametrize("place_in_it", [0, 1], ids=["at its start", "at its end"])
def test_nor_over_a_window_that_other_rules_have_named(book: Book, overlap: int, name: int, place_in_it: int) -> None:
    at = berlin(book, overlap)
    edge = at.occurrence.end if place_in_it else at.occurrence.start
    add_row(book, at, at.run.nominal + name * NEAR_A_DAY, edge - HOUR, edge + HOUR)

    assert claim(book, at) is None
    taken = book.run(book.take(NEXT_DAY).run)
    assert (taken.window_start, taken.window_end) == (
        (at.occurrence.start, edge - HOUR) if place_in_it else (edge + HOUR, at.occurrence.end)
    )


# -- what is remembered -------------------------------------------------------------------------------------------------


def test_where_more_has_to_be_looked_at_nothing_is_remembered(book: Book) -> None:
    """Of an ordered job what is owed before a window counts."""
    book.job(ordered=1)

    assert memory_of(book) is None


def test_a_declaration_that_the_ledger_does_not_hold_yet_is_not_remembered(book: Book) -> None:
    book.job()
    known = book.declare()
    assert not isinstance(known, Exception)

    assert remember(known, Declaration("export", "", daily("UTC"), {"lease": 120_000_000})) is None


@pytest.mark.parametrize("window", ["yesterday", "2026-13-01", "2026-10-05T03:00:00Z", "soon"])
def test_a_name_that_has_to_be_looked_up_is_not_placed(book: Book, window: str) -> None:
    book.job()
    remembered = memory_of(book)
    assert remembered is not None

    assert recall(remembered, window) is None


def test_the_first_window_of_all_is_not_placed(book: Book) -> None:
    """There is none before it, which would say where it starts."""
    book.job(schedule=daily("Europe/Berlin"))
    remembered = memory_of(book)
    assert remembered is not None
    first = next(remembered.spell.schedule.after(EARLIEST))

    assert recall(remembered, nominal_text("day", first.nominal, "Europe/Berlin")) is None


def test_a_day_off_is_not_placed(book: Book) -> None:
    book.job(schedule=daily("UTC").on(make_calendar("works", "2026-10-04"), "skip"))
    remembered = memory_of(book)
    assert remembered is not None

    assert recall(remembered, DAY) is None
    assert recall(remembered, NEXT_DAY) is not None


def test_after_an_edit_only_what_the_new_schedule_alone_can_name_is_placed(book: Book) -> None:
    """The date of a fire may name one of the schedule before as well."""
    book.job(schedule=cron("0 5 * * *", zone="UTC"))
    known = book.declare()
    assert not isinstance(known, Exception)
    remembered = remember(known, book.declaration())
    assert remembered is not None

    edited = Remembered(known, replace(remembered.spell, version=2, since=parse_instant("2024-10-04T03:00:00Z")))

    assert recall(remembered, "2024-10-05") is not None
    assert recall(edited, "2024-10-05") is None
    assert recall(edited, "2024-10-08") is not None


def test_its_statements_are_asked_in_one_go(book: Book) -> None:
    """Nothing is read before the last: so all of it can be sent together, with the commit."""
    book.job(schedule=every("5m"))
    at = place(book, "2026-10-05T03:00:00Z")
    asked: list[tuple[str, bool]] = []

    def answer(ask: object) -> None:
        statement = getattr(ask, "statement", None)
        assert isinstance(statement, Statement)
        asked.append((statement.name, bool(getattr(ask, "is_last", False))))

    named: Named | None = drive(claim_remembered(at, Claimer(new_attempt_id(), "host", "test")), answer)

    assert named is None
    assert asked == [
        ("lock_line_if_absent", False),
        ("hold_line_if_free", False),
        ("claim_if_as_remembered", False),
        ("see_as_remembered", True),
    ]
