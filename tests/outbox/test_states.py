"""Every state of a message meets every event, through the ledger's own operations on each database: what the table allows
happens, and leads where it says; anything else leaves the message as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from duly.errors import NotAllowed
from duly.ledger import message_states
from duly.ledger.message_states import DEAD, DELIVERED, PENDING, REFUSED, SENDING, SKIPPED, STATES, TRANSITIONS, UNKNOWN
from duly.ledger.parcel import Limits, Parcel
from duly.ledger.records import RunId
from duly.ledger.restore import doubt_since
from duly.times import MINUTE
from tests.books import WORD, Book
from tests.outbox import post as said
from tests.outbox.post import FOREVER, LEASE, PROBE_AFTER, Post

if TYPE_CHECKING:
    from duly.ledger.parcel import Word


class Told:
    """A message brought into a state, with the attempt that had it last."""

    def __init__(self, book: Book, state: str) -> None:
        self.post = Post(book)
        self.run: RunId = self.post.sent("a")
        self.parcel: Parcel = self.post.take_one()
        words: dict[str, Word] = {
            DELIVERED: said.DELIVERED,
            UNKNOWN: said.UNKNOWN,
            REFUSED: said.REFUSED,
            DEAD: said.LAST_TRY,
            PENDING: said.NOT_SENT,
            SKIPPED: said.REFUSED,
        }
        if state in words:
            self.post.report(self.parcel, words[state])
        if state == SKIPPED:
            self.post.skip(self.run)
        assert self.state == state

    @property
    def state(self) -> str:
        return self.post.message(self.run).state


def report(word: Word) -> Callable[[Told], object]:
    return lambda told: told.post.report(told.parcel, word)


def begin(told: Told) -> None:
    told.post.take()


def begin_again(told: Told) -> None:
    told.post.limits = Post(told.post.book, remembers=FOREVER).limits
    told.post.take()


def lapse(told: Told) -> None:
    """A relay that comes when the lease is over; the receiver remembers nothing, and may not be asked yet."""
    told.post.lapse()
    told.post.limits = Limits(said.TO, 16, 0, LEASE, 0, FOREVER // 2)
    told.post.take()


def probe(word: Word) -> Callable[[Told], None]:
    def act(told: Told) -> None:
        told.post.book.clock.advance(PROBE_AFTER)
        for parcel in told.post.take():
            if parcel.probing:
                told.post.report(parcel, word)

    return act


def restore(told: Told) -> None:
    book = told.post.book
    book.write(doubt_since(book.clock.now() - MINUTE, WORD))


ACTS: dict[str, Callable[[Told], object]] = {
    "begin": begin,
    "begin_again": begin_again,
    "deliver": report(said.DELIVERED),
    "fall_back": report(said.NOT_SENT),
    "die": report(said.LAST_TRY),
    "refuse": report(said.REFUSED),
    "doubt": report(said.UNKNOWN),
    "lapse": lapse,
    "restore": restore,
    "resolve_done": lambda told: told.post.resolve(told.run, done=True),
    "resolve_not_done": lambda told: told.post.resolve(told.run, done=False),
    "probe": probe(said.CANNOT_TELL),
    "retry": lambda told: told.post.retry(told.run),
    "skip": lambda told: told.post.skip(told.run),
}

# What a relay comes for finds something else to do in these states, which is another event's story.
_ELSEWHERE = {
    ("begin", UNKNOWN): UNKNOWN,
    ("begin_again", PENDING): SENDING,
    ("begin_again", SENDING): SENDING,
    ("lapse", PENDING): SENDING,
    ("lapse", UNKNOWN): UNKNOWN,
    ("probe", PENDING): SENDING,
    ("probe", SENDING): SENDING,
}
# An attempt that said that it surely failed was not in doubt, and when the message is unknown by its own word it was.
_BY_ITS_OWN_DOUBT = ("deliver", "fall_back", "die", "refuse", "doubt")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", ACTS)
def test_an_event_leads_where_the_table_says_and_else_nowhere(event: str, state: str, book: Book) -> None:
    told = Told(book, state)
    allowed = message_states.allowed(event, state)

    with suppress(NotAllowed):
        ACTS[event](told)

    if allowed:
        assert told.state == TRANSITIONS[event][state]
    else:
        assert told.state == _ELSEWHERE.get((event, state), state)


def test_every_event_but_the_first_is_told(book: Book) -> None:
    assert set(ACTS) == set(TRANSITIONS) - {"send"}


@pytest.mark.parametrize("state", message_states.SETTLED)
def test_nothing_leads_out_of_a_settled_state(state: str) -> None:
    assert not [event for event in TRANSITIONS if message_states.allowed(event, state)]


def test_an_event_that_no_state_has_is_refused_with_the_state_and_what_to_do(book: Book) -> None:
    told = Told(book, DELIVERED)

    with pytest.raises(NotAllowed, match="delivered; it cannot be taken back"):
        told.post.skip(told.run)
