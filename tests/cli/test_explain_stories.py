"""duly explain as somebody reads it who was woken: stories of a night, each told to the decision, and every fact as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.ledger.backfill import pause_backfill
from duly.times import DAY, HOUR, MINUTE
from tests.books import WORD, Book, PostgresBook
from tests.outbox.post import DELIVERED, NOT_SENT, REFUSED, Post
from tests.servers import Server
from tests.story import Said, here


@pytest.fixture(params=["sqlite", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    if request.param == "sqlite":
        yield Book(tmp_path / "jobs.db")
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield PostgresBook(url)


def explain(book: Book, *words: str) -> Said:
    said = here(book.path, "explain", *words)
    assert said.code == 0, said
    return said


def told(book: Book, window: str = "2026-10-05", job: str = "export") -> list[str]:
    """What is said beyond the schedule and the window."""
    return explain(book, job, window).out.splitlines()[4:]


def test_it_failed_and_waits_and_was_paused_meanwhile(book: Book) -> None:
    book.job(contract="external", retries=2)
    claim = book.take()
    book.clock.advance(3 * MINUTE)
    book.fail(claim, retry_in=30 * MINUTE)

    assert told(book)[1:] == [
        "It is late: it has been due for longer than its grace, 1h.",
        "So a poke takes it again from Tue 6 Oct 03:33Z on, in 30m: retry 1 of 2.",
    ]
    book.pause()
    assert told(book)[-1].endswith(
        "retry 1 of 2, unless it is paused then: export is paused by ops@example: looked into it."
    )
    book.clock.advance(HOUR)
    assert told(book)[-1] == "So nothing starts it: export is paused by ops@example: looked into it."
    book.resume()
    book.complete(book.take())
    _, paused, *others = told(book)
    assert paused == "At Tue 6 Oct 03:03Z ops@example paused export: looked into it; until it is resumed."
    assert "At Tue 6 Oct 04:03Z ops@example resumed export: looked into it." in others


def test_its_host_was_killed_and_a_person_said_what_became_of_it(book: Book) -> None:
    book.job(contract="external")
    book.take()
    book.lapse()

    gone = "" if isinstance(book, PostgresBook) else ", and its process shows no pulse"
    assert told(book)[1:] == [
        f"Its lease was over at Tue 6 Oct 03:01Z{gone}: whoever worked it is gone.",
        "export is complete through Mon 5 Oct 00:00Z, where this window holds it.",
        "So nothing runs it again until somebody says what happened: a second effect could be worse than none.",
    ]
    assert here(book.path, "resolve", "export", "2026-10-05", "--as", "done", "--evidence", "batch 4711").code == 0
    began, doubted, said, so = told(book)
    assert began.endswith("and reported no end that could be believed; it was said later.")
    assert doubted == "At Tue 6 Oct 03:02Z duly said that its outcome is unknown: its attempt vanished."
    assert said.endswith(" resolved it: batch 4711; done.")
    assert so.startswith("So it is complete since")


def test_nobody_called_all_weekend(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(3 * DAY)

    assert told(book, "2026-10-07") == [
        "It is late: it has been due for longer than its grace, 1h.",
        (
            "Nothing has asked for the work of export since it came due: its windows are open up to Tue 6 Oct 00:00Z. "
            "Look at what calls duly for it."
        ),
        "So the next poke skips it: catch-up latest: a newer window was due, export:2026-10-08[UTC].",
    ]
    assert told(book, "2026-10-06")[2] == "export is complete through Tue 6 Oct 00:00Z, where this window holds it."
    book.work_all()
    assert told(book, "2026-10-07")[0].startswith(
        "It never had a row: it lies in a range that was skipped by dev@example"
    )


def test_all_its_retries_failed(book: Book) -> None:
    book.job(contract="external", retries=1)
    book.fail(book.take())
    book.fail(book.take(), retry_in=None)
    book.job("without", contract="external", retries=0)
    book.fail(book.take(job="without"), retry_in=None)

    assert told(book)[-3:] == [
        "Nothing tries it again by itself: its one retry is used.",
        "export is complete through Mon 5 Oct 00:00Z, where this window holds it.",
        "So it waits for a person: retry it, or skip it.",
    ]
    assert "Nothing tries it again by itself: without has no retries." in told(book, job="without")


def test_its_messages_are_told_in_their_order_with_what_each_waits_for(book: Book) -> None:
    post = Post(book)
    run = post.sent("invoice", "mail", "books")
    post.report(post.take_one(), DELIVERED)
    post.report(post.take_one(), NOT_SENT)
    post.report(post.take_one(), REFUSED)
    before = told(book)
    post.retry(run, "mail")

    assert before[1:4] == [
        "Message 1 of 3, invoice to billing, was delivered at Tue 6 Oct 03:00Z.",
        (
            "Message 2 of 3, mail to billing, was refused: 422; it waits for a person, and what comes after it for that. Sent "
            "2 times: at Tue 6 Oct 03:00Z not sent (the connection was refused), at Tue 6 Oct 03:00Z refused (422)."
        ),
        "Message 3 of 3, books to billing, waits for mail, which comes before it.",
    ]
    assert before[-1].startswith("So its effect is there, and not all of its messages are: completed, 1/3 delivered")
    assert (
        told(book)[1]
        == "At Tue 6 Oct 03:00Z ops@example retried message mail to billing, which was refused: looked into it."
    )


def test_many_messages_that_just_went_are_one_sentence(book: Book) -> None:
    post = Post(book)
    post.sent("a", "b", "c", "d", "e")
    for _ in range(4):
        post.report(post.take_one(), DELIVERED)

    assert told(book)[1:3] == [
        "Messages 1 to 4, a to d, were delivered, the last of them at Tue 6 Oct 03:00Z.",
        "Message 5 of 5, e to billing, is to be delivered, and is sent from Tue 6 Oct 03:00Z on.",
    ]


def test_a_backfill_asked_for_it(book: Book) -> None:
    book.job()
    book.work_all()
    number = book.backfill("2026-10-01", "2026-10-04")

    assert told(book, "2026-10-02") == [
        f"Backfill {number} asked for it: 2026-10-01..2026-10-04, by ops@example at Tue 6 Oct 03:00Z: looked into it.",
        f"So backfill {number} owes it: whoever works that does it in its turn.",
    ]
    book.write(pause_backfill(number, WORD))
    first, last = told(book, "2026-10-02")
    assert first.endswith("; it is paused, by ops@example: looked into it.")
    assert last == f"So backfill {number} owes it, and is paused: nothing works it until that is resumed."


def test_every_fact_is_there_for_a_program(book: Book) -> None:
    post = Post(book)
    run = post.sent("invoice", "mail")
    post.report(post.take_one(), REFUSED)

    said = explain(book, "export", "2026-10-05", "--json").document

    assert said["schema"] == "duly.explain.v1"
    assert said["run"]["state"] == "undelivered"
    assert said["versions"] == [
        {
            "number": 1,
            "label": "",
            "schedule": "daily in UTC",
            "zone": "UTC",
            "grain": "day",
            "effective_from": None,
            "in_force": True,
        }
    ]
    (attempt,) = said["attempts"]
    assert (attempt["outcome"], attempt["number"]) == ("completed", 1)
    assert [(one["name"], one["state"], [each["outcome"] for each in one["sendings"]]) for one in said["messages"]] == [
        ("invoice", "refused", ["refused"]),
        ("mail", "pending", []),
    ]
    assert (said["grace_seconds"], said["contract"], said["needs_a_person"]) == (3600, "transactional", True)
    assert said["complete_through"] == "2026-10-05T00:00:00Z"
    assert said["next_step"] == "duly outbox show export 2026-10-05"
    assert len(said["sentences"]) == 7
    assert book.state(run) == "completed"


def test_every_fact_of_a_window_that_never_ran_too(book: Book) -> None:
    book.job(catch_up="latest")
    book.work_all()
    book.clock.advance(2 * DAY)

    said = explain(book, "export", "2026-10-06", "--json").document

    assert said["attempts"] == said["events"] == said["messages"] == []
    assert said["next_poke_drops_it"] == "catch-up latest: a newer window was due"
    assert said["newer_window"] == "export:2026-10-07[UTC]"
    assert said["opened_until"] == said["complete_through"] == said["last_completed"] == "2026-10-06T00:00:00Z"
    book.pause()
    assert explain(book, "export", "2026-10-06", "--json").document["pause"]["reason"] == WORD.reason
