"""A relay that delivers to a mail server, a broker and another database is killed before and after it has sent.

The row of an inbox is there once, whatever happens. A mail server and a broker look at no id: they take a message again, under
the same id, by which whoever reads it knows it. Who says of them that they `remember` says that of those readers.
"""

from __future__ import annotations

import signal
from collections import Counter

import psycopg
import pytest

from duly.ledger.message_states import DELIVERED, UNKNOWN
from duly.outbox.destinations.inbox import TABLE
from duly.times import MINUTE
from tests.books import Book
from tests.outbox import mortal
from tests.outbox.destinations.brokers import needed
from tests.outbox.destinations.test_amqp import Broker
from tests.outbox.destinations.test_smtp import server as mail_server
from tests.outbox.post import Post
from tests.servers import Server

NAMES = ("a", "b", "c")
# How often the message comes in whose sending the relay is killed.
COMES_IN = pytest.mark.parametrize(("point", "comes_in"), [("before-sending", 1), ("after-sending", 2)])


def all_is_delivered(book: Book, settings: dict[str, object], point: str) -> None:
    """One relay is killed at its second message; another one goes on when the lease of that is over."""
    post = Post(book)
    run = post.sent(*NAMES)

    assert mortal.relay(book.path, settings, point, after=1) == -signal.SIGKILL
    assert post.states(run)["a"] == DELIVERED
    assert post.states(run)["b"] != DELIVERED
    book.clock.advance(5 * MINUTE)
    assert mortal.relay(book.path, settings) == 0

    assert set(post.states(run).values()) == {DELIVERED}


@COMES_IN
def test_a_mail_comes_again_with_the_same_message_id(point: str, comes_in: int, book: Book) -> None:
    with mail_server() as (port, kept):
        settings: dict[str, object] = {
            "kind": "smtp",
            "url": f"smtp://127.0.0.1:{port}",
            "from": "duly@shop.example",
            "to": ["ada@example.com"],
            "starttls": "never",
            "remembers": "1d",
        }
        all_is_delivered(book, settings, point)

    ids = [str(mail["Message-ID"]) for _, mail in kept.mails]
    assert Counter(ids) == {f"<key-of-{name}@shop.example>": comes_in if name == "b" else 1 for name in NAMES}
    assert ids == sorted(ids)


@COMES_IN
def test_a_message_comes_to_a_broker_again_with_the_same_id(point: str, comes_in: int, book: Book) -> None:
    broker = Broker(needed("rabbitmq", 5672, says=b"AMQP\x00\x00\x09\x01", hears=b"\x01\x00\x00"))
    try:
        broker.queue()
        url = f"amqp://127.0.0.1:{broker.port}/"
        all_is_delivered(book, {"kind": "amqp", "url": url, "routing_key": broker.name, "remembers": "1d"}, point)
        ids = []
        while (found := broker.take()) is not None:
            ids.append(found.properties["message_id"])
    finally:
        broker.close()

    assert Counter(ids) == {f"key-of-{name}": comes_in if name == "b" else 1 for name in NAMES}
    assert ids == sorted(ids)


@pytest.mark.parametrize("point", ["before-sending", "after-sending"])
def test_a_mail_server_of_which_nobody_says_that_it_remembers_gets_nothing_again(point: str, book: Book) -> None:
    post = Post(book)
    run = post.sent(*NAMES)
    with mail_server() as (port, kept):
        settings: dict[str, object] = {
            "kind": "smtp",
            "url": f"smtp://127.0.0.1:{port}",
            "from": "duly@shop.example",
            "to": ["ada@example.com"],
            "starttls": "never",
        }
        assert mortal.relay(book.path, settings, point, after=1) == -signal.SIGKILL
        for _ in range(2):
            book.clock.advance(60 * MINUTE)
            assert mortal.relay(book.path, settings) == 0
        assert post.states(run)["b"] == UNKNOWN

        post.resolve(run, "b", done=point == "after-sending")  # what a person has read in the mail server's log
        assert mortal.relay(book.path, settings) == 0

    assert [str(mail["Message-ID"]) for _, mail in kept.mails] == [f"<key-of-{name}@shop.example>" for name in NAMES]
    assert set(post.states(run).values()) == {DELIVERED}


@pytest.mark.parametrize("point", ["before-sending", "after-sending"])
def test_the_inbox_of_another_database_has_each_message_once(point: str, book: Book, server: Server) -> None:
    url = server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute(TABLE.format(table="duly_inbox", bytes="bytea", instant="timestamptz").encode())

    all_is_delivered(book, {"kind": "inbox", "url": url}, point)

    with psycopg.connect(url) as connection:
        rows = connection.execute("select key from duly_inbox order by received_at").fetchall()
    assert rows == [(f"key-of-{name}",) for name in NAMES]
