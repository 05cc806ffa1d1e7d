"""The stories of a message that is received, told of every kind of connection: key, effect and answer commit together."""

from __future__ import annotations

from contextlib import suppress

import pytest

import duly
from tests.borrowed.callers import Caller
from tests.borrowed.conftest import Open
from tests.borrowed.shop import Shop
from tests.borrowed.test_stories import every_kind, on_postgres, with_savepoints

KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"
ORDER = {"sku": "lamp", "pieces": 2}


def keys(shop: Shop) -> list[str]:
    """The keys that are on record, as someone else sees them."""
    return [key for (key,) in shop.book.rows("select key from duly_received order by key")]


def answers(shop: Shop) -> int:
    found: int = shop.book.rows("select count(*) from duly_answer")[0][0]
    return found


@every_kind
def test_key_effect_and_answer_commit_together(shop: Shop, caller: Caller) -> None:
    caller.begin()
    received = caller.receive(KEY, ORDER)
    assert received
    caller.apply("order")
    caller.answer(received, b"no 17", status=201, headers={"Location": "/orders/17"})
    assert (shop.effects, keys(shop), answers(shop)) == ([], [], 0)

    caller.commit()

    assert (shop.effects, keys(shop), answers(shop)) == (["order"], [KEY], 1)


@every_kind
def test_a_later_delivery_is_answered_as_the_first_was_and_leaves_the_transaction_to_its_caller(
    shop: Shop, caller: Caller
) -> None:
    caller.begin()
    caller.answer(caller.receive(KEY, ORDER), b"no 17", status=201, headers={"Location": "/orders/17"})
    caller.commit()
    caller.begin()
    caller.apply("before")

    again = caller.receive(KEY, ORDER)

    assert not again
    assert isinstance(again, duly.Replayed)
    assert again.answer is not None
    assert (again.answer.status, again.answer.headers, again.answer.body) == (
        201,
        (("Location", "/orders/17"),),
        b"no 17",
    )
    caller.apply("after")
    caller.commit()
    assert (shop.effects, keys(shop), answers(shop)) == (["after", "before"], [KEY], 1)


@every_kind
def test_rolled_back_it_was_never_there(shop: Shop, caller: Caller) -> None:
    caller.begin()
    received = caller.receive(KEY, ORDER)
    caller.apply("order")
    caller.answer(received, b"no 17")
    caller.rollback()
    assert (shop.effects, keys(shop), answers(shop)) == ([], [], 0)

    caller.begin()
    assert caller.receive(KEY, ORDER)
    caller.commit()

    assert keys(shop) == [KEY]


@every_kind
def test_one_that_committed_without_an_answer_is_told_to_be_that(shop: Shop, caller: Caller) -> None:
    caller.begin()
    assert caller.receive(KEY, ORDER)
    within = caller.receive(KEY, ORDER)
    caller.commit()

    caller.begin()
    again = caller.receive(KEY, ORDER)
    caller.rollback()

    assert (within.answer, again.answer) == (None, None)
    assert not within
    assert not again


@every_kind
def test_another_payload_is_refused_and_leaves_the_transaction_to_its_caller(shop: Shop, caller: Caller) -> None:
    caller.begin()
    assert caller.receive(KEY, {"pieces": 2, "sku": "lamp"})
    assert not caller.receive(KEY, {"sku": "lamp", "pieces": 2})
    caller.apply("before")

    with pytest.raises(duly.PayloadConflict, match=KEY):
        caller.receive(KEY, {"sku": "lamp", "pieces": 3})

    caller.apply("after")
    caller.commit()
    assert shop.effects == ["after", "before"]


@every_kind
def test_an_unknown_key_from_below_the_horizon_is_refused_and_leaves_the_transaction_to_its_caller(
    shop: Shop, caller: Caller
) -> None:
    caller.begin()
    assert caller.receive("first", remembers="30d", first_sent="2026-10-01T00:00:00Z")
    caller.commit()
    shop.book.amend("update duly_source set horizon = ?", 1_790_812_800_000_000)  # 2026-10-01T00:00:00Z
    caller.begin()
    caller.apply("before")

    with pytest.raises(duly.BelowHorizon, match=KEY):
        caller.receive(KEY, ORDER, remembers="30d", first_sent="2026-09-30T23:59:59.999999Z")
    with pytest.raises(duly.UndatedKey):
        caller.receive(KEY, ORDER, remembers="30d")
    assert not caller.receive("first", remembers="30d", first_sent="2026-10-01T00:00:00Z")
    assert caller.receive(KEY, ORDER, remembers="30d", first_sent="2026-10-01T00:00:00Z")

    caller.apply("after")
    caller.commit()
    assert shop.effects == ["after", "before"]


@every_kind
def test_without_a_time_it_is_refused_where_keys_have_been_forgotten_whatever_is_said_now(
    shop: Shop, caller: Caller
) -> None:
    """It came with its time, was applied and forgotten; now it comes as if keys were remembered for ever."""
    caller.begin()
    assert caller.receive(KEY, ORDER, remembers="1s", first_sent="2026-10-01T00:00:00Z")
    caller.apply("order")
    caller.commit()
    shop.book.amend("update duly_source set horizon = ?", 1_790_812_800_000_001)
    shop.book.amend("delete from duly_received")

    for said in ({}, {"remembers": "forever"}, {"remembers": "1s"}):
        caller.begin()
        with pytest.raises(duly.UndatedKey):
            caller.receive(KEY, ORDER, **said)
        with pytest.raises(duly.BelowHorizon):
            caller.receive(KEY, ORDER, first_sent="2026-10-01T00:00:00Z")
        caller.rollback()

    assert (shop.effects, keys(shop)) == (["order"], [])
    assert shop.book.rows("select remembers from duly_source") == [(1_000_000,)]


@on_postgres
def test_a_key_that_another_transaction_is_at_is_answered_at_once(
    shop: Shop, caller: Caller, open_caller: Open
) -> None:
    caller.begin()
    assert caller.receive("first", ORDER)
    caller.commit()
    other = open_caller()
    other.begin()
    received = other.receive(KEY, ORDER)
    caller.begin()
    caller.apply("before")

    with pytest.raises(duly.ReceiptBusy):
        caller.receive(KEY, ORDER)

    assert caller.receive("another", ORDER)
    caller.apply("after")
    caller.commit()
    other.answer(received, b"no 17")
    other.commit()
    caller.begin()
    assert caller.receive(KEY, ORDER).answer.body == b"no 17"
    caller.rollback()
    assert shop.effects == ["after", "before"]


@on_postgres
def test_so_is_the_first_key_of_a_source(shop: Shop, caller: Caller, open_caller: Open) -> None:
    other = open_caller()
    other.begin()
    assert other.receive("first", ORDER)
    caller.begin()

    with pytest.raises(duly.ReceiptBusy, match="first key of this source"):
        caller.receive(KEY, ORDER)

    other.rollback()
    assert caller.receive(KEY, ORDER)
    caller.commit()
    assert keys(shop) == [KEY]


@on_postgres
@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_above_read_committed_a_rival_that_has_committed_meanwhile_is_a_conflict(
    shop: Shop, open_caller: Open, isolation: str
) -> None:
    rival, caller = open_caller(), open_caller(isolation=isolation)
    rival.begin()
    assert rival.receive("first", ORDER)
    rival.commit()
    caller.begin()
    caller.execute("select 1 from effect")
    rival.begin()
    assert rival.receive(KEY, ORDER)
    rival.commit()

    with pytest.raises(duly.Conflict):
        caller.receive(KEY, ORDER)

    caller.rollback()
    caller.begin()
    assert not caller.receive(KEY, ORDER)
    caller.rollback()
    assert keys(shop) == [KEY, "first"]


@every_kind
def test_an_answer_is_stored_once(shop: Shop, caller: Caller) -> None:
    caller.begin()
    received = caller.receive(KEY, ORDER)
    caller.apply("order")
    caller.answer(received, b"first")

    with pytest.raises(duly.ReceiptLost):
        caller.answer(received, b"second")
    with suppress(Exception):  # some say so, others commit nothing
        caller.commit()

    assert (shop.effects, keys(shop), answers(shop)) == ([], [], 0)


@with_savepoints
def test_an_effect_whose_receipt_went_with_a_savepoint_is_not_committed(shop: Shop, caller: Caller) -> None:
    caller.begin()
    caller.begin_savepoint()
    received = caller.receive(KEY, ORDER)
    caller.rollback_savepoint()
    caller.apply("order")

    with pytest.raises(duly.ReceiptLost):
        caller.answer(received, b"no 17")
    with suppress(Exception):
        caller.commit()

    assert (shop.effects, keys(shop), answers(shop)) == ([], [], 0)


@every_kind
def test_without_a_transaction_nothing_is_received(shop: Shop, open_caller: Open) -> None:
    caller = open_caller(autocommit=True)

    with pytest.raises(duly.NoTransaction):
        caller.receive(KEY, ORDER)

    assert keys(shop) == []


@every_kind
def test_what_cannot_be_stored_is_refused_before_anything_is_written(shop: Shop, caller: Caller) -> None:
    caller.begin()
    received = caller.receive(KEY, b"\x00\xff")

    with pytest.raises(duly.Misuse, match="cookie"):
        caller.answer(received, b"", headers={"Set-Cookie": "session=1"})
    with pytest.raises(duly.Misuse, match="1048577 bytes"):
        caller.answer(received, b"x" * (1 << 20) + b"x")
    with pytest.raises(duly.Misuse, match="status: 42"):
        caller.answer(received, b"", status=42)
    caller.answer(received, b"x" * (1 << 20))

    caller.commit()
    assert answers(shop) == 1


@every_kind
def test_two_endpoints_may_be_sent_the_same_key(shop: Shop, caller: Caller) -> None:
    caller.begin()
    assert caller.receive(KEY, ORDER)
    caller.commit()
    shop.book.amend("update duly_source set name = 'refunds'")

    caller.begin()
    assert caller.receive(KEY, ORDER)
    caller.commit()

    assert keys(shop) == [KEY, KEY]
