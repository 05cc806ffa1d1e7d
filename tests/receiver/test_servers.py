"""Servers behind the middleware, of each kind, on each database: a key is applied once, whatever is killed or comes twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http.client import HTTPException
from queue import Queue
from random import Random
from threading import Event, Thread

import pytest

from duly.ledger.receive import forget_received_batch, raise_source_horizon
from duly.times import DAY, MINUTE, SECOND
from tests.books import Book
from tests.receiver.conftest import KEY, Shop


def applied(book: Book) -> list[str]:
    return [note for (note,) in book.rows("select note from applied order by note")]


def count(book: Book, table: str) -> int:
    found: int = book.rows(f"select count(*) from {table}")[0][0]
    return found


# -- once ---------------------------------------------------------------------------------------------------------------


def test_a_key_is_applied_once_and_answered_the_same_each_time(book: Book, shop: Shop) -> None:
    first = shop.ask()
    again = shop.ask(key=KEY)  # bare

    assert (first.status, first.body, first.is_replay) == (201, b"applied lamp", False)
    assert (again.status, again.body, again.is_replay) == (201, b"applied lamp", True)
    assert applied(book) == ["lamp"]
    assert count(book, "duly_receiving") == 0


def test_of_headers_a_replay_has_those_that_describe_the_answer_and_no_cookie(book: Book, shop: Shop) -> None:
    first, again = shop.ask(), shop.ask()

    assert first.headers["set-cookie"].startswith("session=1")
    assert "set-cookie" not in again.headers
    assert again.headers["location"] == first.headers["location"] == "/orders/lamp"
    assert again.headers["content-type"] == first.headers["content-type"]
    assert "session" not in str(book.rows("select headers from duly_answer"))


def test_an_answer_that_was_stored_with_the_effect_is_the_one_that_is_replayed(book: Book, shop: Shop) -> None:
    shop.ask(do="store")

    again = shop.ask(do="store")

    assert (again.status, again.body, again.is_replay) == (201, b"stored lamp", True)
    assert applied(book) == ["lamp"]


def test_so_are_its_headers_each_as_often_as_it_was_said(book: Book, shop: Shop) -> None:
    shop.ask(do="store")

    again = shop.ask(do="store")

    assert again.headers["link"] == "</a>, </b>"
    assert again.headers["x-who"] == "Zo\xeb"
    assert again.headers["content-length"] == str(len(b"stored lamp"))


def test_an_answer_without_a_body_is_replayed_without_one(book: Book, shop: Shop) -> None:
    shop.ask(do="store,empty")

    again = shop.ask(do="store,empty")

    assert (again.status, again.body, again.is_replay) == (204, b"", True)
    assert again.headers["x-who"] == "Zo\xeb"


def test_each_key_is_its_own(book: Book, shop: Shop) -> None:
    shop.ask()
    other = shop.ask("chair", key='"another"')

    assert (other.status, other.is_replay) == (201, False)
    assert applied(book) == ["chair", "lamp"]


def test_what_needs_no_key_passes(book: Book, shop: Shop) -> None:
    told = shop.ask(method="PUT", key=None)

    assert (told.status, told.is_replay) == (201, False)
    assert count(book, "duly_received") == 0


# -- refused --------------------------------------------------------------------------------------------------------------


def test_without_a_key_nothing_is_applied(book: Book, shop: Shop) -> None:
    missing, invalid = shop.ask(key=None), shop.ask(key='"open')

    assert (missing.status, missing.code) == (400, "key-missing")
    assert (invalid.status, invalid.code) == (400, "key-invalid")
    assert applied(book) == []


def test_the_same_key_with_something_else_is_refused(book: Book, shop: Shop) -> None:
    shop.ask()

    other, elsewhere = shop.ask("chair"), shop.ask(do="store")

    assert (other.status, other.code) == (422, "payload-differs")
    assert (elsewhere.status, elsewhere.code) == (422, "payload-differs")
    assert applied(book) == ["lamp"]


def test_a_key_without_a_time_is_refused_unless_it_says_its_time_itself(book: Book, shop: Shop) -> None:
    undated = shop.ask(first_sent=None)
    dated = shop.ask(key="01996abc-0000-7000-8000-000000000000", first_sent=None)  # 2025-09-21, a UUIDv7

    assert (undated.status, undated.code) == (400, "key-undated")
    assert dated.status == 201
    assert applied(book) == ["lamp"]


def test_a_very_late_duplicate_of_a_key_that_was_forgotten_is_never_applied(book: Book, shop: Shop) -> None:
    shop.ask()
    book.clock.advance(31 * DAY)
    book.write(raise_source_horizon("orders", by="ops@example", reason="old"))
    assert shop.ask().is_replay
    assert book.write(forget_received_batch("orders", 100)) == 1

    late = shop.ask()

    assert (late.status, late.code) == (422, "forgotten")
    assert applied(book) == ["lamp"]


def test_a_request_that_is_too_long_is_not_read_to_its_end(book: Book, shop: Shop) -> None:
    told = shop.ask("the beginning of it", headers={"Content-Length": str((1 << 20) + 1)})

    assert (told.status, told.code) == (413, "too-long")
    assert applied(book) == []


# -- meanwhile ------------------------------------------------------------------------------------------------------------


def test_who_comes_while_the_first_is_being_worked_is_told_so_at_once(book: Book, shop: Shop) -> None:
    first = shop.stopped_at("stop-before")

    meanwhile = shop.ask(do="stop-before")
    other = shop.ask("chair", do="stop-before")

    assert (meanwhile.status, meanwhile.code) == (409, "in-progress")
    assert meanwhile.headers["retry-after"] == "60"
    assert (other.status, other.code) == (422, "payload-differs")
    shop.go_on()
    told = first()
    assert told is not None
    assert told.status == 201
    assert shop.ask(do="stop-before").is_replay
    assert applied(book) == ["lamp"]


def test_a_mark_that_lapsed_while_its_server_still_works_lets_nothing_be_applied_twice(book: Book, shop: Shop) -> None:
    """The mark is a courtesy: the guard is the key in the application's own transaction."""
    first = shop.stopped_at("stop-before")
    book.clock.advance(MINUTE)

    second = shop.stopped_at("stop-before")

    shop.go_on()
    shop.go_on()
    told = [answer for answer in (first(), second()) if answer is not None]
    assert applied(book) == ["lamp"]
    # Whoever comes second within the application has its answer replayed, or is told that the first is at it.
    assert [answer.status for answer in told if not answer.is_replay].count(201) == 1
    assert len(told) == 2
    assert {answer.status for answer in told} <= {201, 409}
    assert shop.ask(do="stop-before").is_replay


def test_whoever_comes_while_the_first_has_written_waits_for_no_transaction(book: Book, shop: Shop) -> None:
    first = shop.stopped_at("stop-within")

    second = shop.ask(do="stop-within")

    shop.go_on()
    first()
    assert (second.status, second.code, second.headers["retry-after"]) == (409, "in-progress", "60")
    assert applied(book) == ["lamp"]


@pytest.mark.parametrize("database", ["postgres"])
def test_a_key_that_another_transaction_is_at_is_in_progress_whatever_the_application_makes_of_it(
    book: Book, shop: Shop, database: str
) -> None:
    """The mark has lapsed, so that the application is called; its error is told as what it means."""
    first = shop.stopped_at("stop-within")
    book.clock.advance(MINUTE)

    second = shop.ask(do="stop-within")

    shop.go_on()
    told = first()
    assert (second.status, second.code, second.headers["retry-after"]) == (409, "in-progress", "1")
    assert told is not None
    assert told.status == 201
    assert applied(book) == ["lamp"]


def test_a_key_that_falls_below_the_horizon_while_it_is_worked_is_refused_and_said_to_be(
    book: Book, shop: Shop
) -> None:
    first = shop.stopped_at("stop-before")
    book.clock.advance(31 * DAY)
    book.write(raise_source_horizon("orders", by="ops@example", reason="old"))

    shop.go_on()

    told = first()
    assert told is not None
    assert (told.status, told.code) == (422, "forgotten")
    assert applied(book) == []


# -- trouble --------------------------------------------------------------------------------------------------------------


def test_what_the_application_rolled_back_was_never_received_and_may_be_tried_again(book: Book, shop: Shop) -> None:
    failed = shop.ask(do="fail")
    assert failed.status == 500
    assert (applied(book), count(book, "duly_received"), count(book, "duly_receiving")) == ([], 0, 0)

    assert shop.ask(do="fail").status == 500  # no stored answer: it was tried again
    assert applied(book) == []


def test_an_answer_to_what_was_rolled_back_is_not_stored_for_the_delivery_that_committed(
    book: Book, shop: Shop, open_shop: Callable[[], Shop]
) -> None:
    """The first is slow to answer, so that its mark lapses, and it answers before the second does."""
    do, elsewhere = "stop-within,stop-after", open_shop()
    first = shop.stopped_at("stop-within", do=do)
    shop.go_on(back_out=True)
    shop.reaches("stop-after")
    book.clock.advance(MINUTE)
    second = elsewhere.stopped_at("stop-within", do=do)
    elsewhere.go_on()
    elsewhere.reaches("stop-after")

    shop.go_on()
    refused = first()
    elsewhere.go_on()
    told = second()

    again = shop.ask(do=do)
    assert refused is not None
    assert told is not None
    assert (refused.status, told.status) == (400, 201)
    assert (again.status, again.body, again.is_replay) == (201, b"applied lamp", True)
    assert applied(book) == ["lamp"]


def test_a_5xx_after_the_commit_is_not_stored_and_the_application_is_asked_again(book: Book, shop: Shop) -> None:
    first, again = shop.ask(do="fail-after"), shop.ask(do="fail-after")

    assert (first.status, first.is_replay) == (500, False)
    assert (again.status, again.is_replay) == (500, True)
    assert applied(book) == ["lamp"]
    assert count(book, "duly_answer") == 0


def test_a_refusal_that_the_application_committed_is_an_answer_like_any_other(book: Book, shop: Shop) -> None:
    first, again = shop.ask(do="refuse"), shop.ask(do="refuse")

    assert (first.status, again.status, again.is_replay) == (409, 409, True)
    assert applied(book) == ["lamp"]


def test_an_answer_that_is_too_long_is_not_stored_and_the_application_is_asked_again(book: Book, shop: Shop) -> None:
    first, again = shop.ask(do="long"), shop.ask(do="long")

    assert (first.status, len(first.body), first.is_replay) == (201, 2012, False)
    assert (again.status, len(again.body), again.is_replay) == (201, 2012, True)
    assert applied(book) == ["lamp"]
    assert count(book, "duly_answer") == 0


def test_an_application_that_does_not_receive_the_key_applies_it_each_time(book: Book, shop: Shop) -> None:
    """What is not promised: the middleware stores nothing for an effect that it cannot commit with."""
    shop.ask(do="forgetful")

    again = shop.ask(do="forgetful")

    assert (again.status, again.is_replay) == (201, False)
    assert applied(book) == ["lamp", "lamp"]


@pytest.mark.parametrize("point", ["stop-before", "stop-within", "stop-after"])
def test_a_server_that_is_killed_leaves_all_or_nothing_and_the_next_one_goes_on(
    book: Book, shop: Shop, open_shop: Callable[[], Shop], point: str
) -> None:
    killed = open_shop()
    first = killed.stopped_at(point)
    killed.kill()
    assert first() is None
    was_committed = point == "stop-after"
    assert applied(book) == (["lamp"] if was_committed else [])

    meanwhile = shop.ask(do=point)
    assert (meanwhile.status, meanwhile.code) == (409, "in-progress")  # until its lease has lapsed
    book.clock.advance(MINUTE - SECOND)
    assert shop.ask(do=point).status == 409
    book.clock.advance(SECOND)
    second = shop.stopped_at(point)
    shop.go_on()

    told = second()
    assert told is not None
    assert (told.status, told.is_replay) == (201, was_committed)
    assert applied(book) == ["lamp"]
    assert shop.ask(do=point).is_replay
    assert applied(book) == ["lamp"]


def test_an_answer_that_was_stored_with_the_effect_survives_its_server(
    book: Book, shop: Shop, open_shop: Callable[[], Shop]
) -> None:
    """Nobody has to wait for the lease of the server that was killed, and the application is not asked."""
    do = "store,stop-after"
    killed = open_shop()
    first = killed.stopped_at("stop-after", do=do)
    killed.kill()
    assert first() is None

    told = shop.ask(do=do)

    assert (told.status, told.body, told.is_replay) == (201, b"stored lamp", True)
    assert applied(book) == ["lamp"]


def test_many_senders_who_never_give_up_and_a_server_that_is_killed_twice_apply_each_key_once(
    book: Book, open_shop: Callable[[], Shop]
) -> None:
    """Three senders deliver each message, in orders of their own, until somebody answers that it was applied."""
    notes = [f"note-{number:02}" for number in range(30)]
    shops, is_up = [open_shop()], Event()
    is_up.set()
    answers: Queue[tuple[str, bytes]] = Queue()

    def send(seed: int) -> None:
        for note in Random(seed).sample(notes, len(notes)):
            while True:
                try:
                    told = shops[-1].ask(note, key=note)
                except (OSError, HTTPException):  # nobody knows: again, under the same key
                    is_up.wait()
                    continue
                if told.status == 201:
                    answers.put((note, told.body))
                    break
                assert told.code in ("in-progress", "busy"), told

    senders = [Thread(target=send, args=[seed]) for seed in range(3)]
    for sender in senders:
        sender.start()
    told = [answers.get() for _ in range(20)]
    for _ in range(2):
        is_up.clear()
        shops[-1].kill()
        book.clock.advance(MINUTE)  # what it was at is somebody else's now
        shops.append(open_shop())
        is_up.set()
        told += [answers.get() for _ in range(15)]
    for sender in senders:
        sender.join()
    told += [answers.get() for _ in range(answers.qsize())]

    assert applied(book) == notes
    assert Counter(told) == {(note, f"applied {note}".encode()): 3 for note in notes}
    assert count(book, "duly_received") == len(notes)
