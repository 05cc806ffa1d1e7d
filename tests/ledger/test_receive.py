"""Keys that are received: what is remembered of them, for how long, and what is refused when they have been forgotten."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from uuid import UUID

import pytest

from duly.errors import BelowHorizon, Misuse, PayloadConflict, ReceiptBusy, TimeInvalid, UndatedKey
from duly.ledger.ask import count, now
from duly.ledger.receive import (
    APPLY,
    FOR_EVER,
    RECEIVE_IF_NEW,
    REFUSE,
    Answer,
    Delivery,
    Entered,
    InProgress,
    Receipt,
    Replay,
    answer_or_raise,
    enter,
    first_sent_of,
    forget_received_batch,
    leave,
    lock_of,
    peek,
    raise_source_horizon,
    receive,
    time_of_uuid7,
)
from duly.outbox.receiver.receipt import delivery_of
from duly.times import DAY, HOUR, MINUTE, SECOND, parse_instant
from tests.books import Book

MORNING = parse_instant("2026-10-06T03:00:00Z")  # when a book is opened
YES = Answer(200, "[]", b"yes")


def sent(
    key: str = "order-1",
    *,
    at: int | None = MORNING,
    payload: str = "json1:aa",
    remembers: int | None = 30 * DAY,
    undated: str = REFUSE,
    source: str = "orders",
) -> Delivery:
    """A delivery of its own each time."""
    sent.number += 1  # type: ignore[attr-defined]
    receipt = f"r{sent.number:015}".encode()  # type: ignore[attr-defined]
    return Delivery(source, key, payload, at, remembers, undated, receipt)


sent.number = 0  # type: ignore[attr-defined]


def keys(book: Book) -> list[str]:
    return [key for (key,) in book.rows("select key from duly_received order by key")]


def forget(book: Book, source: str = "orders", many: int = 100) -> int:
    """Raise the horizon, then delete a batch; how many keys went."""
    book.write(raise_source_horizon(source, by="ops@example", reason="old"))
    return book.write(forget_received_batch(source, many))


# -- what was forgotten is refused ----------------------------------------------------------------------------------------


def test_a_key_is_remembered_for_as_long_as_was_declared_and_refused_when_it_has_been_forgotten(book: Book) -> None:
    assert isinstance(book.write(receive(sent())), Receipt)
    book.clock.advance(30 * DAY)
    assert forget(book) == 0
    assert isinstance(book.write(receive(sent())), Replay)

    book.clock.advance(1)

    assert forget(book) == 1
    assert keys(book) == []
    with pytest.raises(BelowHorizon, match="order-1"):
        book.write(receive(sent()))
    assert keys(book) == []


def test_the_horizon_says_so_before_anything_is_deleted_and_what_is_on_record_is_replayed(book: Book) -> None:
    book.write(receive(sent()))
    book.clock.advance(31 * DAY)

    horizon = book.write(raise_source_horizon("orders", by="ops@example", reason="old"))

    assert horizon == MORNING + DAY
    assert isinstance(book.write(receive(sent())), Replay)
    with pytest.raises(BelowHorizon):
        book.write(receive(sent("order-2")))
    assert isinstance(book.write(receive(sent("order-3", at=horizon))), Receipt)
    assert book.events("keys_horizon_raised") == [("ops@example", "old", "orders: 2026-10-07T03:00:00Z")]


def test_before_anything_was_forgotten_a_key_may_be_as_old_as_it_likes(book: Book) -> None:
    """Nothing of then has been forgotten, so it was never applied."""
    book.write(receive(sent("first")))

    assert isinstance(book.write(receive(sent("old", at=MORNING - 1000 * DAY))), Receipt)


def test_no_clock_has_to_be_right_for_a_late_duplicate_to_be_refused(book: Book) -> None:
    """The clocks of senders are hours wrong, either way; what is compared with the horizon is the same word each time."""
    for number in range(48):
        book.write(receive(sent(f"order-{number:02}", at=MORNING + (number - 24) * HOUR)))
    book.clock.advance(30 * DAY)

    forgotten = forget(book)

    left = keys(book)
    assert (forgotten, len(left)) == (24, 24)
    for number in range(48):
        again = sent(f"order-{number:02}", at=MORNING + (number - 24) * HOUR)
        if again.key in left:
            assert isinstance(book.write(receive(again)), Replay)
        else:
            with pytest.raises(BelowHorizon):
                book.write(receive(again))


def test_nothing_is_deleted_that_the_horizon_does_not_refuse(book: Book) -> None:
    book.write(receive(sent()))
    book.clock.advance(31 * DAY)

    assert book.write(forget_received_batch("orders", 100)) == 0
    assert keys(book) == ["order-1"]


def test_the_horizon_only_rises(book: Book) -> None:
    book.write(receive(sent()))
    book.clock.advance(31 * DAY)
    horizon = book.write(raise_source_horizon("orders", by="ops@example", reason="old"))
    book.write(receive(sent("order-2", at=MORNING + 31 * DAY, remembers=365 * DAY)))

    assert book.write(raise_source_horizon("orders", by="ops@example", reason="old")) == horizon
    assert len(book.events("keys_horizon_raised")) == 1


def test_who_remembers_for_ever_forgets_nothing_and_asks_no_key_for_its_time(book: Book) -> None:
    assert isinstance(book.write(receive(sent(at=None, remembers=None))), Receipt)
    book.clock.advance(10_000 * DAY)

    assert forget(book) == 0
    assert isinstance(book.write(receive(sent(at=None, remembers=None))), Replay)


@pytest.mark.parametrize("remembers", [None, FOR_EVER])
def test_a_key_without_a_time_is_refused_where_keys_have_been_forgotten_whatever_is_said_now(
    book: Book, remembers: int | None
) -> None:
    """It was applied with its time, and is on record no more."""
    book.write(receive(sent(remembers=DAY)))
    book.clock.advance(2 * DAY)
    assert forget(book) == 1

    with pytest.raises(UndatedKey):
        book.write(receive(sent(at=None, remembers=remembers)))
    with pytest.raises(UndatedKey):
        book.write(enter(sent(at=None, remembers=remembers), lease=MINUTE))

    assert keys(book) == []
    assert isinstance(book.write(receive(sent(at=None, remembers=remembers, undated=APPLY))), Receipt)


def test_the_horizon_is_asked_again_where_the_key_is_written(book: Book) -> None:
    """Whoever looked before it was raised, and writes after: the write itself refuses it."""
    book.write(receive(sent("first")))
    source = book.rows("select id from duly_source")[0][0]
    book.amend("update duly_source set horizon = 1")

    written = {"key": "late", "payload": "json1:aa", "first_sent": None, "receipt": b"r"}
    assert book.write(count(RECEIVE_IF_NEW, source=source, undated=REFUSE, **written)) == 0
    assert book.write(count(RECEIVE_IF_NEW, source=source, undated=APPLY, **written)) == 1


def test_who_says_nothing_of_how_long_keys_are_remembered_changes_nothing(book: Book) -> None:
    book.write(receive(sent(remembers=DAY)))

    book.write(receive(sent("order-2", remembers=None)))
    with pytest.raises(UndatedKey):
        book.write(receive(sent("order-3", at=None, remembers=None)))

    assert book.rows("select remembers from duly_source") == [(DAY,)]
    book.write(receive(sent("order-3", remembers=FOR_EVER)))
    assert book.rows("select remembers from duly_source") == [(None,)]


def test_a_key_without_a_time_is_refused_where_keys_are_forgotten(book: Book) -> None:
    with pytest.raises(UndatedKey, match="UUIDv7"):
        book.write(receive(sent(at=None)))

    assert keys(book) == []


def test_it_is_taken_where_that_was_said_and_applied_again_when_it_was_forgotten(book: Book) -> None:
    """What is not promised: nobody can tell this duplicate from a new key."""
    assert isinstance(book.write(receive(sent(at=None, undated=APPLY))), Receipt)
    book.clock.advance(30 * DAY)
    assert isinstance(book.write(receive(sent(at=None, undated=APPLY))), Replay)
    book.clock.advance(1)
    assert forget(book) == 1

    assert isinstance(book.write(receive(sent(at=None, undated=APPLY))), Receipt)


def test_a_key_that_was_taken_without_a_time_is_refused_when_it_was_forgotten_if_keys_need_one_now(book: Book) -> None:
    book.write(receive(sent(at=None, remembers=None)))
    book.write(receive(sent("order-2")))
    book.clock.advance(31 * DAY)
    assert forget(book) == 2

    with pytest.raises(UndatedKey):
        book.write(receive(sent(at=None)))


def test_a_key_from_the_future_would_never_be_forgotten_and_is_refused(book: Book) -> None:
    assert isinstance(book.write(receive(sent(at=MORNING + DAY))), Receipt)

    with pytest.raises(TimeInvalid, match="ahead"):
        book.write(receive(sent("order-2", at=MORNING + DAY + 1)))


def test_forgetting_goes_by_batches_oldest_first_and_takes_the_answers_along(book: Book) -> None:
    for number in range(5):
        delivery = sent(f"order-{number}", at=MORNING + number * SECOND)
        receipt = book.write(receive(delivery))
        assert isinstance(receipt, Receipt)
        book.write(answer_or_raise(receipt, YES))
    other = sent(source="refunds")
    book.write(receive(other))
    book.clock.advance(31 * DAY)

    assert forget(book, many=2) == 2
    assert keys(book) == ["order-1", "order-2", "order-3", "order-4"]  # of the refunds, the first
    assert forget(book, many=2) == 2
    assert forget(book, many=2) == 1
    assert forget(book, many=2) == 0

    assert book.rows("select count(*) from duly_answer") == [(0,)]
    assert isinstance(book.write(receive(sent(source="refunds"))), Replay)


def test_nobody_has_to_know_a_source_to_forget_nothing_of_it(book: Book) -> None:
    assert forget(book, "never heard of") == 0


def test_how_long_keys_are_remembered_is_what_was_declared_last(book: Book) -> None:
    book.write(receive(sent(remembers=None)))
    book.write(receive(sent("order-2", remembers=DAY)))
    book.clock.advance(2 * DAY)

    assert forget(book) == 2


# -- a key says itself how old it is --------------------------------------------------------------------------------------


def test_a_uuid_of_version_7_says_when_it_was_made() -> None:
    """The example of RFC 9562, appendix A.6: 2022-02-22T19:22:22Z."""
    key = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"

    assert time_of_uuid7(key) == parse_instant("2022-02-22T19:22:22Z")
    assert first_sent_of(key.lower(), MORNING) == parse_instant("2022-02-22T19:22:22Z")


@pytest.mark.parametrize(
    "key",
    [
        str(UUID(int=0)),
        "919108f7-52d1-4320-9bac-f847db4148a8",  # version 4
        "2ed6657d-e927-568b-95e1-2665a8aea6a2",  # version 5
        "017F22E2-79B0-7CC3-18C4-DC0C0C07398F",  # another variant
        "017F22E279B07CC398C4DC0C0C07398F",
        "017F22E2-79B0-7CC3-98C4-DC0C0C07398G",
        "017F22E2-79B0-7CC3-98C4-DC0C0C-7398F",
        "order-17",
    ],
)
def test_no_other_key_does(key: str) -> None:
    assert time_of_uuid7(key) is None
    assert first_sent_of(key, MORNING) == MORNING


@pytest.mark.parametrize("key", ["", " ", "a\nb", " a", "a ", "x" * 256])
def test_what_can_be_no_key_is_refused(key: str) -> None:
    with pytest.raises(Misuse, match="key"):
        delivery_of(key, "", source="orders", remembers="forever", first_sent=None, undated=REFUSE)


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ({"source": ""}, "source"),
        ({"source": "x" * 201}, "source"),
        ({"remembers": "a while"}, "duration"),
        ({"first_sent": "yesterday"}, "instant"),
        ({"undated": "perhaps"}, "undated"),
        ({"key": 5}, "key: give text"),
        ({"key": b"key"}, "key: give text"),
        ({"source": 5}, "source: give text"),
        ({"remembers": 5}, "remembers"),
        ({"remembers": timedelta(days=30)}, "remembers"),
        ({"first_sent": 5}, "first_sent"),
        ({"first_sent": date(2026, 10, 5)}, "first_sent"),
        ({"first_sent": datetime(2026, 10, 5)}, "no offset"),
        ({"undated": 5}, "undated"),
    ],
)
def test_nor_is_what_nobody_can_keep_promised(named: dict[str, object], complaint: str) -> None:
    described = {
        "key": "key",
        "payload": "",
        "source": "orders",
        "remembers": "30d",
        "first_sent": None,
        "undated": REFUSE,
        **named,
    }

    with pytest.raises(Misuse, match=complaint):
        delivery_of(**described)  # type: ignore[arg-type]


def test_a_lock_is_of_the_key_and_its_source() -> None:
    assert len({lock_of("a", "b"), lock_of("b", "a"), lock_of("ab"), lock_of("a\0b"), lock_of("a")}) == 4
    assert -(1 << 63) <= lock_of("orders", "order-1") < 1 << 63


# -- a key that is being worked -------------------------------------------------------------------------------------------


def test_who_comes_meanwhile_is_told_how_long_at_the_latest(book: Book) -> None:
    assert isinstance(book.write(enter(sent(), lease=MINUTE)), Entered)
    book.clock.advance(20 * SECOND)

    assert book.write(enter(sent(), lease=MINUTE)) == InProgress(40 * SECOND)
    assert book.store.read(peek(sent())) == InProgress(40 * SECOND)


def test_another_payload_is_refused_while_the_first_is_being_worked(book: Book) -> None:
    book.write(enter(sent(), lease=MINUTE))

    with pytest.raises(PayloadConflict):
        book.write(enter(sent(payload="json1:bb"), lease=MINUTE))
    with pytest.raises(PayloadConflict):
        book.store.read(peek(sent(payload="json1:bb")))


def test_a_mark_whose_server_was_killed_lapses_by_the_clock_of_the_ledger(book: Book) -> None:
    book.write(enter(sent(), lease=MINUTE))
    book.clock.advance(MINUTE)

    assert book.store.read(peek(sent())) is None
    assert isinstance(book.write(enter(sent(), lease=MINUTE)), Entered)
    assert isinstance(book.write(enter(sent(), lease=MINUTE)), InProgress)


def test_who_leaves_takes_its_own_mark_away_and_no_other(book: Book) -> None:
    slow, next_one = sent(), sent()
    book.write(enter(slow, lease=MINUTE))
    book.clock.advance(MINUTE)
    book.write(enter(next_one, lease=MINUTE))

    book.write(leave(slow, None))
    assert isinstance(book.write(enter(sent(), lease=MINUTE)), InProgress)

    book.write(leave(next_one, None))
    assert isinstance(book.write(enter(sent(), lease=MINUTE)), Entered)


def test_an_answer_is_stored_for_a_key_that_was_committed_and_for_no_other(book: Book) -> None:
    rolled_back, committed = sent(), sent("order-2")
    book.write(enter(rolled_back, lease=MINUTE))
    book.write(enter(committed, lease=MINUTE))
    book.write(receive(committed))

    assert not book.write(leave(rolled_back, YES))
    assert book.write(leave(committed, YES))
    assert not book.write(leave(committed, Answer(500, "[]", b"no")))

    assert book.store.read(peek(sent())) is None
    assert book.store.read(peek(sent("order-2"))) == Replay(committed.receipt, MORNING, YES)


def test_an_answer_is_of_the_delivery_that_committed_or_of_one_that_repeats_it(book: Book) -> None:
    rolled_back, committed, repeated = sent(), sent(), sent()
    book.write(receive(committed))

    assert not book.write(leave(rolled_back, Answer(400, "[]", b"no")))
    assert book.store.read(peek(sent())) is None
    replay = book.write(receive(repeated))
    assert isinstance(replay, Replay)
    assert book.write(leave(repeated, YES, replay.receipt))

    assert book.store.read(peek(sent())) == Replay(committed.receipt, MORNING, YES)


def test_a_key_without_an_answer_is_worked_by_one_at_a_time_too(book: Book) -> None:
    book.write(receive(sent()))
    assert book.store.read(peek(sent())) is None

    assert isinstance(book.write(enter(sent(), lease=MINUTE)), Entered)
    assert isinstance(book.write(enter(sent(), lease=MINUTE)), InProgress)


def test_what_would_be_refused_is_refused_before_it_is_worked(book: Book) -> None:
    book.write(receive(sent()))
    book.clock.advance(31 * DAY)
    forget(book)

    with pytest.raises(BelowHorizon):
        book.write(enter(sent(), lease=MINUTE))
    with pytest.raises(UndatedKey):
        book.write(enter(sent(at=None), lease=MINUTE))
    with pytest.raises(TimeInvalid):
        book.write(enter(sent(at=book.store.read(now()) + 2 * DAY), lease=MINUTE))
    assert book.rows("select count(*) from duly_receiving") == [(0,)]


def test_a_refusal_of_a_new_source_leaves_nothing(book: Book) -> None:
    with pytest.raises(UndatedKey):
        book.write(enter(sent(at=None), lease=MINUTE))

    assert book.rows("select count(*) from duly_source") == [(0,)]


def test_marks_that_lapsed_long_ago_go_with_what_is_forgotten(book: Book) -> None:
    book.write(enter(sent(), lease=MINUTE))
    book.clock.advance(31 * DAY)
    book.write(enter(sent("order-2", at=MORNING + 31 * DAY), lease=MINUTE))

    forget(book)

    assert book.rows("select key from duly_receiving") == [("order-2",)]


def test_a_person_sees_what_was_received_and_no_body(book: Book) -> None:
    delivery = sent()
    receipt = book.write(receive(delivery))
    assert isinstance(receipt, Receipt)
    book.write(answer_or_raise(receipt, Answer(201, "[]", b"a secret")))

    rows = book.rows("select * from duly_received_readable")

    assert rows[0][:4] == ("orders", "order-1", delivery.receipt.hex(), 201)
    assert "secret" not in str(rows)


def test_a_busy_key_has_words_that_say_what_to_do() -> None:
    assert "come again" in str(ReceiptBusy())
