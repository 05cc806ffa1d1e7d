"""A relay is killed at each point of a message's way, against a receiver that remembers keys and one that does not."""

from __future__ import annotations

import signal

import pytest

from duly.ledger.message_states import DELIVERED, UNKNOWN
from duly.times import DAY, HOUR, MINUTE
from tests.books import Book
from tests.outbox import mortal
from tests.outbox.mortal import POINTS
from tests.outbox.post import Post
from tests.outbox.receivers import Receiver, receiver

APPLIED = {"before-sending": 0, "after-sending": 1, "before-recording": 1, "before-commit": 1}


def relay(book: Book, to: Receiver, remembers: str, point: str = "none", after: int = 0) -> int:
    """A relay that works until nothing is due, or it dies; how it ended."""
    settings = {"kind": "http", "url": to.url, "remembers": remembers, "look_up": f"{to.url}/{{key}}"}
    return mortal.relay(book.path, settings, point, after)


@pytest.mark.parametrize("point", POINTS)
def test_a_receiver_that_remembers_has_each_effect_once(point: str, book: Book) -> None:
    post = Post(book)
    run = post.sent("a", "b", "c")
    with receiver(remembers=True) as to:
        assert relay(book, to, "forever", point, after=1) == -signal.SIGKILL
        assert post.states(run)["a"] == DELIVERED
        book.clock.advance(5 * MINUTE)

        assert relay(book, to, "forever") == 0

        assert to.order == ["key-of-a", "key-of-b", "key-of-c"]
        assert set(to.effects.values()) == {1}
    assert set(post.states(run).values()) == {DELIVERED}


@pytest.mark.parametrize("point", POINTS)
def test_a_receiver_that_does_not_is_sent_nothing_twice(point: str, book: Book) -> None:
    """And a probe says what happened: nobody has to."""
    post = Post(book)
    run = post.sent("a", "b")
    with receiver(remembers=False) as to:
        assert relay(book, to, "never", point) == -signal.SIGKILL
        assert to.requests["key-of-a"] == APPLIED[point]
        book.clock.advance(5 * MINUTE)
        assert relay(book, to, "never") == 0
        assert post.states(run)["a"] == UNKNOWN
        assert to.requests["key-of-a"] == APPLIED[point]

        for _ in range(2):  # "did not" is believed twice
            book.clock.advance(5 * MINUTE)
            assert relay(book, to, "never") == 0

        assert to.effects == {"key-of-a": 1, "key-of-b": 1}
        assert to.requests == to.effects
    assert set(post.states(run).values()) == {DELIVERED}


@pytest.mark.parametrize("point", POINTS)
def test_without_a_probe_it_waits_for_a_person(point: str, book: Book) -> None:
    post = Post(book)
    run = post.sent("a")
    with receiver(remembers=False) as to:
        assert relay(book, to, "never", point) == -signal.SIGKILL
        was_applied = to.effects["key-of-a"] > 0
        to.effects.clear()  # its books are lost: a look-up finds nothing, and is not believed for ever
        book.clock.advance(2 * MINUTE)
        post.take()
        for _ in range(5):
            book.clock.advance(DAY)
            for parcel in post.take():
                assert parcel.probing
        assert to.requests["key-of-a"] == APPLIED[point]

        post.resolve(run, done=was_applied)
        book.clock.advance(HOUR)
        assert relay(book, to, "never") == 0

        assert to.requests["key-of-a"] == 1
    assert post.states(run) == {"a": DELIVERED}


def test_answers_that_are_lost_cost_repetitions_and_no_second_effect(book: Book) -> None:
    post = Post(book)
    run = post.sent("a", "b", "c")
    with receiver(remembers=True) as to:
        to.swallows = 2
        for _ in range(4):
            assert relay(book, to, "forever") == 0
            book.clock.advance(MINUTE)

        assert to.requests["key-of-a"] == 3
        assert set(to.effects.values()) == {1}
    assert set(post.states(run).values()) == {DELIVERED}


def test_forty_messages_survive_relays_that_die_one_after_the_other(book: Book) -> None:
    post = Post(book)
    book.job()
    days = [f"2026-09-{day:02}" for day in range(10, 20)]
    runs = [post.complete(book.take(day), *(f"{day}-{name}" for name in "abcd")) for day in days]
    with receiver(remembers=True) as to:
        for number in range(12):
            relay(book, to, "forever", POINTS[number % len(POINTS)], after=number % 3)
            book.clock.advance(5 * MINUTE)
        assert relay(book, to, "forever") == 0

        assert len(to.effects) == 40
        assert set(to.effects.values()) == {1}
        for day in days:  # in the order of each run
            assert [key for key in to.order if day in key] == [f"key-of-{day}-{name}" for name in "abcd"]
    assert all(post.tally(run).is_settled for run in runs)
