"""Jobs, their schedule in force, their policies, and the roster of scopes."""

from __future__ import annotations

import pytest

from duly.errors import Misuse, ScheduleChanged, UnknownScope
from duly.ledger.once import once
from duly.ledger.records import Claim, Claimer, Known
from duly.ledger.register import Declaration, check_policies, declare, schedule_of
from duly.schedule.keys import parse_key
from duly.schedule.spec import Schedule, cron, daily, every, hourly, monthly, quarterly, weekly, yearly
from duly.times import MINUTE
from duly.work.identity import new_attempt_id
from tests.books import Book


def test_a_declaration_with_another_schedule_runs_nothing(book: Book) -> None:
    book.job(schedule=daily("UTC"))
    before = book.rows("select * from duly_version"), book.rows("select * from duly_job")

    answer = book.write(declare(Declaration("export", "", daily("UTC", at="02:30"), {"retries": 9}, "dev@example")))

    assert isinstance(answer, ScheduleChanged)
    assert (book.rows("select * from duly_version"), book.rows("select * from duly_job")) == before


def test_a_declaration_without_a_schedule_adopts_the_one_in_force(book: Book) -> None:
    book.job()

    answer = book.write(declare(Declaration("export")))

    assert isinstance(answer, Known)
    assert answer.version is not None
    assert schedule_of(answer.version) == daily("UTC")


def test_other_policies_are_stored_with_an_event_and_those_left_out_keep_their_value(book: Book) -> None:
    book.job(retries=3, lease=MINUTE)

    known = book.write(declare(Declaration("export", "", None, {"retries": 5}, "dev@example")))

    assert isinstance(known, Known)
    assert (known.job.retries, known.job.lease) == (5, MINUTE)
    assert book.events("policies_changed") == [("dev@example", "", "retries: 3 → 5")]


def test_the_same_declaration_again_changes_nothing(book: Book) -> None:
    book.job()
    before = book.rows("select * from duly_event")

    book.declare()

    assert book.rows("select * from duly_event") == before


@pytest.mark.parametrize(
    "schedule",
    [
        daily("Europe/Berlin", at="02:30"),
        daily("UTC", offset="06:00"),
        hourly("Australia/Lord_Howe", fold="first"),
        weekly("UTC", offset="sun"),
        monthly("America/New_York"),
        quarterly("UTC", offset="feb"),
        yearly("Asia/Kolkata", offset="apr", at="06:00"),
        cron("30 2 * * *", "*/5 9-17 * * MON-FRI", zone="Europe/Berlin"),
        every("90m", anchor=17 * 1_000_000),
    ],
    ids=lambda schedule: schedule.words(),
)
def test_a_schedule_is_read_back_as_it_was_stored(book: Book, schedule: Schedule) -> None:
    book.job(schedule=schedule)

    known = book.declare()

    assert isinstance(known, Known)
    assert known.version is not None
    assert schedule_of(known.version) == schedule


# -- the roster ---------------------------------------------------------------------------------------------------------


def test_an_open_roster_takes_a_new_scope_with_an_event(book: Book) -> None:
    book.job()

    assert isinstance(book.ask(scope="acme"), Claim)
    assert book.events("scope_added") == [("dev@example", "", "acme")]


def test_a_closed_roster_refuses_a_scope_that_it_does_not_have(book: Book) -> None:
    book.job()
    book.declare(scope="acme")
    book.job(roster="closed")

    assert isinstance(book.ask(scope="acme"), Claim)
    assert isinstance(book.ask(scope="globex"), UnknownScope)
    assert isinstance(book.poke(scope="globex"), UnknownScope)
    with pytest.raises(UnknownScope):
        book.write(once(parse_key("globex/export:2026-10-04[UTC]"), Claimer(new_attempt_id(), "o", "once")))
    assert book.rows("select scope from duly_line order by scope") == [("",), ("acme",)]


def test_a_scope_is_part_of_the_identity_of_a_run(book: Book) -> None:
    book.job()

    acme, globex = book.take(scope="acme"), book.take(scope="globex")

    assert acme.run.nominal == globex.run.nominal
    assert acme.run.series != globex.run.series


# -- policies that contradict each other --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policies", "field"),
    [
        ({"contract": "external", "remembers": MINUTE}, "remembers"),
        ({"lease": 1}, "lease"),
        ({"lease": 31 * 24 * 60 * MINUTE}, "lease"),
        ({"retries": -1}, "retries"),
        ({"retry_delay": -1}, "retry_delay"),
        ({"retry_ceiling": -1}, "retry_ceiling"),
    ],
)
def test_policies_that_make_no_sense_are_refused_by_name(
    policies: dict[str, int | str | bytes | None], field: str
) -> None:
    with pytest.raises(Misuse, match=f"^{field}:"):
        check_policies(policies)
