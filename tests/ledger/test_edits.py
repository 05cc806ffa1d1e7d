"""Edits of a schedule beside what else happens to its job: scopes that come, windows skipped ahead, others who edit."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from duly.errors import ScheduleChanged
from duly.ledger.open import Taken, claim_next
from duly.ledger.records import Claimer
from duly.ledger.register import Declaration, declare, find
from duly.ledger.versions import Applied, apply
from duly.schedule.spec import Schedule, cron
from duly.store.borrowed import run_in
from duly.times import HOUR
from duly.work.identity import new_attempt_id
from tests.books import Book, PostgresBook

HOURS, SIX_HOURS, WEEKS = (cron(line, zone="UTC") for line in ("0 * * * *", "0 */6 * * *", "0 0 * * 1"))


def edit(book: Book, schedule: Schedule) -> None:
    book.write(apply("export", schedule, by="ops@example", reason="other times"))
    book.adopt("export", schedule)


def bounds(book: Book) -> list[tuple[int, int]]:
    return book.rows(
        "select window_start, window_end from duly_run where window_start is not null order by window_start"
    )


def test_a_scope_that_comes_before_the_seam_begins_there(book: Book) -> None:
    book.clock.set("2026-10-06T10:10:00Z")
    book.job(schedule=cron("0 0 1 * *", zone="UTC"))
    book.work_all()
    edit(book, cron("0 0 * * *", zone="UTC"))  # from 1 November
    book.clock.set("2026-10-10T10:00:00Z")
    book.declare(scope="acme")

    book.clock.set("2026-11-02T00:10:00Z")
    taken = book.poke(scope="acme")

    assert isinstance(taken, Taken)
    assert (taken.run.window_end or 0) - (taken.run.window_start or 0) == 24 * HOUR


@pytest.mark.parametrize("hours", [1, 30])
def test_a_window_skipped_ahead_takes_no_time_from_the_schedule_that_follows(book: Book, hours: int) -> None:
    book.clock.set("2026-11-29T06:10:00Z")
    book.job(schedule=SIX_HOURS)
    book.work_all()
    book.skip("2026-11-29T18:00")
    edit(book, HOURS)  # from noon on

    until = book.clock.now() + 36 * HOUR
    while book.clock.now() < until:
        book.clock.advance(hours * HOUR)
        book.work_all()

    assert all(one[1] == other[0] for one, other in pairwise(bounds(book)))
    skipped = book.rows("select nominal, window_end - window_start from duly_run where state = 'skipped'")
    assert [length for _, length in skipped] == [HOUR]


def test_a_window_skipped_ahead_that_the_new_schedule_lacks_has_no_time(book: Book) -> None:
    book.clock.set("2026-10-06T10:10:00Z")
    book.job(schedule=HOURS)
    book.work_all()
    book.skip("2026-10-06T15:00")
    edit(book, SIX_HOURS)

    book.clock.advance(24 * HOUR)
    book.work_all()

    assert all(one[1] == other[0] for one, other in pairwise(bounds(book)))
    assert book.rows("select window_start from duly_run where state = 'skipped'") == [(None,)]


def test_two_who_edit_at_once_come_one_after_the_other(book: Book) -> None:
    book.clock.set("2026-10-06T10:10:00Z")
    book.job(schedule=HOURS)
    book.work_all()
    said: dict[str, Applied | None] = {}

    def edit_as(name: str, schedule: Schedule) -> None:
        said[name] = book.open().write(apply("export", schedule, by=name, reason="both"))

    both = [threading.Thread(target=edit_as, args=each) for each in (("ana", SIX_HOURS), ("ben", WEEKS))]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    known = book.store.read(find("export", ""))
    assert known is not None
    assert known.version is not None
    assert sorted(applied.number for applied in said.values() if applied is not None) == [2, 3]
    last = max((applied for applied in said.values() if applied is not None), key=lambda applied: applied.number)
    assert (known.version.number, known.version.words) == (3, last.words)


def test_a_poke_that_changes_a_policy_beside_an_edit_meets_no_deadlock(book: Book) -> None:
    """A deployment changes both at once. The poke waits for the edit, then says that its schedule is not in force."""
    book.clock.set("2026-10-06T10:10:00Z")
    book.job(schedule=HOURS)
    book.work_all()
    known = book.declaration()
    changed = Declaration(known.job, known.scope, known.schedule, {**known.policies, "retries": 7}, known.by)
    answers: list[Any] = []

    def poke() -> None:
        claimer = Claimer(new_attempt_id(), "host/2@2+b", "poke")
        answers.append(book.open().write(claim_next(changed, claimer, as_of=None, tried=frozenset())))

    def edit_too() -> None:
        answers.append(book.open().write(apply("export", SIX_HOURS, by="ops@example", reason="both")))

    for _ in range(5):
        both = [threading.Thread(target=each) for each in (poke, edit_too)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()

    assert len(answers) == 10  # nobody met an error
    assert any(isinstance(answer, ScheduleChanged) for answer in answers)


def test_a_scope_that_comes_while_a_schedule_is_edited_is_edited_too(book: Book) -> None:
    """It has begun in a transaction that is still open: whoever edits waits for it, and opens what has begun of its line."""
    if not isinstance(book, PostgresBook):
        pytest.skip("on SQLite one writer works at a time")
    book.clock.set("2026-10-06T10:10:00Z")
    book.job(schedule=HOURS)
    book.work_all()
    editing = threading.Thread(target=edit, args=(book, SIX_HOURS))

    with psycopg.connect(book.path) as caller:
        run_in(caller, declare(book.declaration(scope="acme")))
        editing.start()
        editing.join(1)
    editing.join()

    lines = book.rows("select scope, opened_until from duly_line order by scope")
    ((since,),) = book.rows("select max(effective_from) from duly_version")
    assert lines == [("", since), ("acme", since)]
