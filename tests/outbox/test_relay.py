"""The relay: what it makes of what destinations say, how it waits, and that it begins nothing too late."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duly.ledger.deliver import at_once_by_rate
from duly.ledger.message_states import DEAD, DELIVERED, PENDING, REFUSED, UNKNOWN
from duly.outbox import relay as relays
from duly.outbox.destinations import (
    FOREVER,
    NEVER,
    CannotTell,
    Delivered,
    DidNot,
    Happened,
    Message,
    NotSent,
    Refused,
    Unknown,
)
from duly.outbox.relay import Told
from duly.outbox.routes import Route
from duly.times import HOUR, MINUTE, SECOND
from duly.work.relay import relay_of
from tests.books import Book
from tests.outbox.post import Post


class Scripted:
    """A destination that answers as it is told, and keeps what it was asked."""

    kind = "scripted"
    key_form = ""
    max_length = None

    def __init__(self, *answers: object, remembers: int | None = NEVER, reads_own_writes: bool = False) -> None:
        self.answers = list(answers)
        self.remembers = remembers
        self.reads_own_writes = reads_own_writes
        self.asked: list[Message] = []
        self.closed = 0

    def deliver(self, message: Message, *, seconds: float) -> Delivered | NotSent | Refused | Unknown:
        return self._next(message)  # type: ignore[return-value]  # as it was told

    def probe(self, message: Message, *, seconds: float) -> Happened | DidNot | CannotTell:
        return self._next(message)  # type: ignore[return-value]

    def _next(self, message: Message) -> object:
        self.asked.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


def deliver(book: Book, to: Scripted, *, tries: int = 3, make: Callable[[], Scripted] | None = None) -> list[Told]:
    """A relay that works until nothing is due; what it told."""
    told: list[Told] = []
    route = Route("billing", make or (lambda: to), concurrency=1, tries=tries, retry_delay=MINUTE, retry_ceiling=MINUTE)
    relay_of(book.store, {"billing": route}, told.append).deliver()
    return told


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (Delivered("201"), DELIVERED, "201"),
        (NotSent("refused"), PENDING, "refused"),
        (Refused("422"), REFUSED, "422"),
        (Unknown("no answer"), UNKNOWN, "no answer"),
        (Unknown("a stored 500", stored=True), UNKNOWN, "a stored 500"),
    ],
)
def test_what_a_destination_says_becomes_of_its_message(answer: object, state: str, said: str, book: Book) -> None:
    post = Post(book)
    run = post.sent()

    told = deliver(book, Scripted(answer))

    assert [(one.name, one.state, one.said) for one in told] == [("a", state, said)]
    assert post.message(run).state == state


def test_a_destination_that_raises_says_nothing_of_the_message(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    post = Post(book)
    run = post.sent()

    deliver(book, Scripted(RuntimeError("iban DE02")))

    assert post.message(run).state == UNKNOWN
    assert post.message(run).cause == "RuntimeError in the destination"


def test_it_is_tried_as_often_as_the_route_says_and_not_before_its_time(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    to = Scripted(NotSent("1"), NotSent("2"), NotSent("3"))

    states = []
    for _ in range(4):
        deliver(book, to)
        deliver(book, to)
        states.append(post.message(run).state)
        book.clock.advance(MINUTE)

    assert states == [PENDING, PENDING, DEAD, DEAD]
    assert [message.attempt for message in to.asked] == [1, 2, 3]


def test_a_receiver_that_asks_for_time_is_given_it(book: Book) -> None:
    post = Post(book)
    run = post.sent()

    deliver(book, Scripted(NotSent("503", retry_after=10 * MINUTE)))

    assert post.message(run).due_at == book.clock.now() + 10 * MINUTE


def test_an_unknown_message_goes_again_with_its_key_and_the_instant_of_its_first_sending(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    began = book.clock.now()
    to = Scripted(Unknown("no answer"), Delivered("200, replayed"), remembers=FOREVER)
    deliver(book, to)
    book.clock.advance(MINUTE)

    deliver(book, to)

    assert [(m.key, m.attempt, m.first_sent_at) for m in to.asked] == [("key-of-a", 1, began), ("key-of-a", 2, began)]
    assert post.message(run).state == DELIVERED


@pytest.mark.parametrize(
    ("own_writes", "findings"),
    [(False, [DidNot("404"), DidNot("404")]), (True, [DidNot("404")])],
    ids=["twice", "once"],
)
def test_what_a_probe_denies_is_sent(own_writes: bool, findings: list[DidNot], book: Book) -> None:
    post = Post(book)
    run = post.sent()
    to = Scripted(Unknown("no answer"), *findings, Delivered("201"), reads_own_writes=own_writes)

    for _ in range(len(findings) + 1):
        deliver(book, to)
        book.clock.advance(5 * MINUTE)

    assert to.answers == []
    assert post.message(run).state == DELIVERED


def test_a_probe_that_cannot_tell_asks_again_later(book: Book) -> None:
    post = Post(book)
    run = post.sent()
    to = Scripted(Unknown("no answer"), CannotTell("503"), Happened("batch 4711"))

    for _ in range(3):
        deliver(book, to)
        book.clock.advance(5 * MINUTE)

    assert post.message(run).state == DELIVERED


def test_tries_are_counted_anew_when_a_probe_has_denied_a_message(book: Book) -> None:
    """Neither a doubt nor a question that nobody answered is a sending that surely failed."""
    post = Post(book)
    run = post.sent()
    blind = [CannotTell("no answer came")] * 3
    to = Scripted(
        Unknown("no answer"), *blind, DidNot("404"), NotSent("1"), NotSent("2"), NotSent("3"), reads_own_writes=True
    )

    states = []
    for _ in range(7):
        deliver(book, to)
        states.append(post.message(run).state)
        book.clock.advance(5 * MINUTE)

    assert states == [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, PENDING, PENDING, DEAD]


def test_what_was_taken_before_the_host_slept_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another may have it by now: the clock that goes on in a sleep says so."""
    book = Book(tmp_path / "jobs.db")
    post = Post(book)
    run = post.sent()
    to = Scripted(Delivered("201"), Delivered("201"))
    ticks: Iterator[float] = iter([0.0, 3600.0])
    monkeypatch.setattr(relays, "awake", lambda: next(ticks, 3600.0))

    deliver(book, to)

    assert len(to.asked) == 1
    assert post.attempts()[0] == (1, "not sent", "too late to begin: this host stood still")
    assert post.message(run).state == DELIVERED


def test_each_thread_has_a_destination_of_its_own_and_all_are_closed(book: Book) -> None:
    post = Post(book)
    for day in range(1, 5):
        post.sent(window=f"2026-10-0{day}")
    met = threading.Barrier(4)
    made: list[Scripted] = []

    class Meeting(Scripted):
        def deliver(self, message: Message, *, seconds: float) -> Delivered:
            met.wait(10)  # four at once
            return Delivered(threading.current_thread().name)

    def make() -> Scripted:
        made.append(Meeting())
        return made[-1]

    told: list[Told] = []
    relay_of(book.store, {"billing": Route("billing", make, concurrency=4)}, told.append).deliver()

    assert len({one.said for one in told}) == 4
    assert all(one.closed for one in made)


def test_what_a_destination_of_ones_own_says_is_a_few_words_on_one_line(book: Book) -> None:
    post = Post(book)
    run = post.sent()

    deliver(book, Scripted(Refused("no\n" + "x" * 1000)))

    cause = post.message(run).cause
    assert cause is not None
    assert len(cause) <= 300
    assert cause.isprintable()


def test_while_a_relay_serves_it_hears_when_it_is_woken_and_when_it_is_to_stop(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    post = Post(book)
    arrived = threading.Event()

    class Telling(Scripted):
        def deliver(self, message: Message, *, seconds: float) -> Delivered:
            arrived.set()
            return Delivered("201")

    relay = relay_of(book.store, {"billing": Route("billing", Telling)})
    trouble: list[str] = []
    serving = threading.Thread(target=relay.serve, kwargs={"poll": 3600.0, "trouble": trouble.append})
    serving.start()
    run = post.sent()
    relay.wake()

    assert arrived.wait(10)
    relay.stop()
    serving.join(10)
    assert not serving.is_alive()
    assert post.message(run).state == DELIVERED
    assert trouble == []


def test_a_relay_ends_when_it_is_told_to_though_its_ledger_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relays, "SETTLE_SECONDS", 0.1)
    book = Book(tmp_path / "jobs.db")
    Post(book).sent()
    holds, arrived = threading.Event(), threading.Event()

    class Holding(Scripted):
        def deliver(self, message: Message, *, seconds: float) -> Delivered:
            arrived.set()
            holds.wait(10)
            return Delivered("201")

    relay = relay_of(book.store, {"billing": Route("billing", Holding)})
    trouble: list[str] = []
    serving = threading.Thread(target=relay.serve, kwargs={"poll": 3600.0, "trouble": trouble.append})
    serving.start()
    assert arrived.wait(10)
    Path(book.path).rename(tmp_path / "elsewhere.db")
    relay.stop()
    holds.set()
    serving.join(20)

    assert not serving.is_alive()
    assert "messages in doubt: 1" in trouble[-1]


def test_a_destination_that_cannot_be_made_is_in_no_other_ones_way(book: Book) -> None:
    post = Post(book)
    run = post.sent()

    def broken() -> Scripted:
        raise RuntimeError

    routes = {"a": Route("a", broken), "billing": Route("billing", lambda: Scripted(Delivered("201")))}
    relay_of(book.store, routes).deliver()

    assert post.message(run).state == DELIVERED


@pytest.mark.parametrize(
    ("next_at", "instant", "interval", "many", "begins"),
    [
        (0, 100 * SECOND, 0, 5, (5, 0)),  # no rate
        (0, 100 * SECOND, 10 * SECOND, 5, (1, 110 * SECOND)),
        (110 * SECOND, 100 * SECOND, 10 * SECOND, 5, (0, 110 * SECOND)),
        (110 * SECOND, 110 * SECOND, 10 * SECOND, 5, (1, 120 * SECOND)),
        # ten in a second: what was not used of the last second may go at once, and no more
        (0, 100 * SECOND, SECOND // 10, 50, (10, 100 * SECOND + SECOND // 10)),
        (100 * SECOND, 100 * SECOND + SECOND // 2, SECOND // 10, 50, (6, 100 * SECOND + 6 * SECOND // 10)),
    ],
)
def test_a_rate_keeps_what_was_not_used_for_a_second(
    next_at: int, instant: int, interval: int, many: int, begins: tuple[int, int]
) -> None:
    assert at_once_by_rate(next_at, instant, interval, many) == begins


@pytest.mark.parametrize("why", ["rate", "place"])
def test_one_who_is_to_end_does_not_wait_for_what_it_may_not_take(why: str, book: Book) -> None:
    post = Post(book)
    first, second = post.sent(), post.sent(window="2026-10-04")
    to = Scripted(Delivered("201"), Delivered("201"))
    route = Route("billing", lambda: to, concurrency=1, interval=HOUR if why == "rate" else 0)
    if why == "place":
        post.take(1)  # by a relay that stands still
    relay = relay_of(book.store, {"billing": route})

    working = threading.Thread(target=relay.deliver, daemon=True)
    working.start()
    working.join(20)
    ended = not working.is_alive()
    relay.stop()
    working.join(20)

    assert ended
    states = sorted((post.message(first).state, post.message(second).state))
    assert states == ([DELIVERED, PENDING] if why == "rate" else [PENDING, "sending"])


def test_a_rate_that_lets_the_next_one_pass_soon_is_waited_for(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    post = Post(book)
    runs = [post.sent(window=f"2026-10-0{day}") for day in (4, 5)]
    to = Scripted(Delivered("201"), Delivered("201"))
    relay = relay_of(book.store, {"billing": Route("billing", lambda: to, interval=5 * SECOND)})
    working = threading.Thread(target=relay.deliver, daemon=True)
    working.start()

    while working.is_alive():
        if to.asked:
            book.clock.advance("100ms")
        working.join(0.01)  # a step of the clock

    assert [post.message(run).state for run in runs] == [DELIVERED, DELIVERED]


def test_what_no_destination_could_be_made_for_was_surely_not_sent(book: Book) -> None:
    post = Post(book)
    run = post.sent()

    def broken() -> Scripted:
        raise ModuleNotFoundError

    told = deliver(book, Scripted(), make=broken)

    said = "the destination cannot be made: ModuleNotFoundError"
    assert [(one.state, one.said) for one in told] == [(PENDING, said)]
    assert post.attempts() == [(1, "not sent", said)]
    book.clock.advance(MINUTE)
    deliver(book, Scripted(Delivered("201")))
    assert post.message(run).state == DELIVERED
