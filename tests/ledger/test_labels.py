"""Versions that code declares by a label: the review of the code is their review, and no old host turns them back."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable

import pytest

from duly.errors import Misuse, NameInvalid, Refused, ScheduleChanged
from duly.ledger.open import Idle, Taken, claim_next
from duly.ledger.peek import peek
from duly.ledger.records import Claimer, Known
from duly.ledger.register import Declaration, find
from duly.ledger.versions import apply
from duly.schedule.keys import check_label
from duly.schedule.spec import Schedule, cron, daily, every, from_spec, monthly, weekly
from duly.schedule.words import flags_of
from duly.times import MINUTE
from duly.work.identity import new_attempt_id
from duly.work.schedule_flags import schedule_given
from tests.books import Book

DAYS, LATER, NIGHTS = daily("UTC"), daily("UTC", at="06:00"), daily("Europe/Berlin")


def declared(schedule: Schedule, version: str = "") -> Declaration:
    return Declaration(
        "export", "", schedule, {"catch_up": "each", "contract": "transactional"}, "dev@example", version=version
    )


def poke(book: Book, schedule: Schedule, version: str = "") -> Taken | Idle | Refused | Misuse:
    """A host that runs the code of this schedule and label."""
    claimer = Claimer(new_attempt_id(), "host/2@2+b", "poke")
    answer = book.write(claim_next(declared(schedule, version), claimer, as_of=None, tried=frozenset()))
    if isinstance(answer, Taken):
        book.complete(answer.claim)
    return answer


def known(book: Book) -> Known:
    found = book.store.read(find("export", ""))
    assert found is not None
    return found


def in_force(book: Book) -> tuple[int, str]:
    version = known(book).version
    assert version is not None
    return version.number, version.label


def refused(answer: object) -> str:
    assert isinstance(answer, ScheduleChanged), answer
    return f"{answer} / {answer.next_step}"


def test_a_first_registration_needs_no_label_and_keeps_the_one_it_has(book: Book) -> None:
    poke(book, DAYS, "2026-10-a")

    assert in_force(book) == (1, "2026-10-a")


def test_another_schedule_with_a_label_that_is_new_is_put_in_force(book: Book) -> None:
    poke(book, DAYS, "2026-10-a")

    poke(book, NIGHTS, "2026-11-a")

    assert in_force(book) == (2, "2026-11-a")
    ((by, reason, detail),) = book.events("version_applied")
    assert (by, reason) == ("dev@example", "version 2026-11-a in code")
    assert "another zone, UTC → Europe/Berlin" in detail
    book.clock.set("2026-10-08T12:00:00Z")
    keys = []
    while isinstance(taken := poke(book, NIGHTS, "2026-11-a"), Taken):
        keys.append(str(taken.key))
    assert keys == ["export:2026-10-06[UTC]", "export:2026-10-07[Europe/Berlin]"]


def test_without_a_label_another_schedule_is_refused_with_the_plan_as_next_step(book: Book) -> None:
    poke(book, DAYS)

    said = refused(poke(book, LATER))

    assert "in force is version 1: daily in UTC. Nothing was run" in said
    assert said.endswith("duly jobs plan export --period daily --zone UTC --at 06:00")
    assert in_force(book) == (1, "")


def test_a_label_that_was_replaced_does_not_come_back(book: Book) -> None:
    """A deploy rolls: the old host goes on with the code of before, and cannot turn the schedule back."""
    poke(book, DAYS, "2026-10-a")
    poke(book, LATER, "2026-11-a")

    said = refused(poke(book, DAYS, "2026-10-a"))

    assert "version: 2026-10-a of export was replaced" in said
    assert "in force is version 2 (2026-11-a)" in said
    assert in_force(book) == (2, "2026-11-a")


def test_a_label_that_a_person_replaced_does_not_come_back_either(book: Book) -> None:
    poke(book, DAYS, "2026-10-a")
    book.write(apply("export", LATER, by="ops@example", reason="the feed is late"))

    assert "was replaced" in refused(poke(book, DAYS, "2026-10-a"))
    assert not isinstance(poke(book, LATER), ScheduleChanged)


def test_a_label_means_one_schedule(book: Book) -> None:
    poke(book, DAYS, "2026-10-a")

    said = refused(poke(book, LATER, "2026-10-a"))

    assert "2026-10-a of export is daily in UTC in the ledger, and declared as: daily in UTC, worked at 06:00" in said
    assert in_force(book) == (1, "2026-10-a")


def test_the_same_schedule_under_a_new_label_is_known_by_it_and_changes_no_window(book: Book) -> None:
    poke(book, DAYS, "2026-10-a")
    before = book.rows("select nominal, window_start, window_end from duly_run")

    poke(book, DAYS, "2026-10-b")

    assert in_force(book) == (2, "2026-10-b")
    assert not isinstance(poke(book, DAYS, "2026-10-a"), ScheduleChanged), "it is the same schedule"
    assert in_force(book) == (2, "2026-10-b")
    poke(book, LATER, "2026-11-a")
    for label in ("2026-10-a", "2026-10-b"):
        assert "was replaced" in refused(poke(book, DAYS, label))
    assert book.rows("select nominal, window_start, window_end from duly_run order by due")[:1] == before


def test_going_back_takes_a_label_of_its_own(book: Book) -> None:
    poke(book, DAYS, "a")
    poke(book, LATER, "b")

    poke(book, DAYS, "c")

    assert in_force(book) == (3, "c")


def test_a_look_at_a_new_version_says_that_there_is_something_to_write(book: Book) -> None:
    poke(book, DAYS, "a")

    with book.no_commit():
        seen = book.store.read(peek(declared(LATER, "b"), as_of=None, tried=frozenset()))
        assert isinstance(seen, Idle)
        assert seen.writes
        same = book.store.read(peek(declared(DAYS, "a"), as_of=None, tried=frozenset()))
        assert isinstance(same, Idle)
        assert not same.writes


def test_two_hosts_that_bring_the_same_version_make_one(book: Book) -> None:
    poke(book, DAYS, "a")
    answers: list[object] = []

    def deploy(schedule: Schedule, label: str) -> Callable[[], None]:
        def run() -> None:
            claimer = Claimer(new_attempt_id(), "host", "poke")
            answers.append(
                book.open().write(claim_next(declared(schedule, label), claimer, as_of=None, tried=frozenset()))
            )

        return run

    both = [threading.Thread(target=deploy(NIGHTS, "b")) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    assert len(answers) == 2
    assert not any(isinstance(answer, ScheduleChanged) for answer in answers)
    assert in_force(book) == (2, "b")


@pytest.mark.parametrize("label", ["", " ", "a b", "ä", "a" * 101])
def test_what_is_no_label(label: str) -> None:
    with pytest.raises(NameInvalid, match="version"):
        check_label(label)


@pytest.mark.parametrize(
    "schedule",
    [
        DAYS,
        LATER,
        daily("Europe/Berlin", offset="06:00", gap="skip"),
        weekly("UTC", offset="sun"),
        monthly("Europe/Paris", at="02:30", fold="second"),
        cron("30 2 * * *", "0 12 * * *", zone="Europe/Berlin"),
        cron("*/5 * * * *", zone="Europe/Berlin", fold="first"),
        every("15m", anchor=MINUTE),
    ],
    ids=lambda schedule: schedule.words().partition(";")[0],
)
def test_a_schedule_as_flags_is_that_schedule(schedule: Schedule) -> None:
    flags = flags_of(schedule)
    assert flags is not None
    words = shlex.split(flags)
    given: dict[str, list[str]] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(flag.removeprefix("--"), []).append(value)

    assert schedule_given(given) == schedule


def test_lines_with_policies_of_their_own_cannot_be_said_in_flags() -> None:
    lines = [
        {"cron": "0 2 * * *", "gap": "skip", "fold": "first"},
        {"cron": "0 5 * * *", "gap": "skip", "fold": "both"},
    ]

    assert flags_of(from_spec({"kind": "cron", "zone": "Europe/Berlin", "lines": lines})) is None
