"""Whoever looks is killed at each point of an alert's way; a receiver that looks at keys has it once."""

from __future__ import annotations

import signal

import pytest

from duly.times import MINUTE
from duly.work.alerts import Alerting
from tests.alerts.mortal import POINTS, TO, looker
from tests.alerts.watch import Watch
from tests.books import Book
from tests.outbox import mortal
from tests.outbox.receivers import receiver

TOLD = ["export: late"]


def names(book: Book) -> list[str]:
    return [name for (name,) in book.rows("select name from duly_message where state = 'delivered' order by noted_at")]


@pytest.mark.parametrize("point", POINTS)
def test_killed_while_it_looks_the_next_who_looks_tells_it_once(point: str, book: Book) -> None:
    """The next one is a poke of anybody's."""
    Watch(book)
    book.job()
    with receiver(remembers=True) as to:
        assert looker(book.path, to.url, point) == -signal.SIGKILL
        assert names(book) == []

        for _ in range(2):
            assert looker(book.path, to.url) == 0

        assert list(to.requests.values()) == [1]
    assert names(book) == TOLD


@pytest.mark.parametrize("point", mortal.POINTS)
def test_killed_while_it_delivers_the_next_who_looks_delivers_it_once(point: str, book: Book) -> None:
    watch = Watch(book, Alerting(to=(TO,)))
    book.job()
    watch.look()
    with receiver(remembers=True) as to:
        settings = {"kind": "http", "url": to.url, "remembers": "forever"}
        assert mortal.relay(book.path, settings, point) == -signal.SIGKILL
        book.clock.advance(5 * MINUTE)

        assert looker(book.path, to.url) == 0

        assert list(to.effects.values()) == [1]
    assert names(book) == TOLD
