"""What code says: `run.send`, `claim.run.send` and `ledger.send`, on each database, for threads and for an event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest

import duly
import duly.aio
from duly.outbox.destinations import FOREVER, CannotTell, Delivered, Message
from duly.work.claim import Claim
from duly.work.letters import letter_of
from tests.servers import Server

DAY = "2026-11-28"
KEY = f"push:{DAY}[UTC]"


class Heard:
    """A destination made in code, that keeps what it was given."""

    kind = "heard"
    remembers = FOREVER
    key_form = ""
    max_length = None
    reads_own_writes = True

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def deliver(self, message: Message, *, seconds: float) -> Delivered:
        self.messages.append(message)
        return Delivered("heard")

    def probe(self, message: Message, *, seconds: float) -> CannotTell:
        return CannotTell("it keeps no books")

    def close(self) -> None:
        pass


class Shop:
    """A ledger with a destination, and the database that it is in."""

    def __init__(self, ledger: duly.Ledger[Any], url: str) -> None:
        self.ledger = ledger
        self.url = url
        self.heard = Heard()
        ledger.destination("billing", lambda: self.heard, concurrency=1)

    def connect(self) -> Any:
        """A transaction of the caller's own, begun."""
        if self.url.startswith("postgresql"):
            return psycopg.connect(self.url)
        return sqlite3.connect(self.url)

    def states(self) -> list[tuple[str, str]]:
        table = "duly.message" if self.url.startswith("postgresql") else "duly_message"
        with closing(self.connect()) as connection:
            found = connection.execute(f"select name, state from {table} order by number").fetchall()
            return [(str(name), str(state)) for name, state in found]

    def take(self) -> Claim:
        claim = self.ledger.take("push", DAY)
        assert isinstance(claim, Claim)
        return claim

    def register(self) -> None:
        @self.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
        def push(run: duly.Run[Any]) -> None:
            raise AssertionError("it is taken by name")

        push.lines()


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "sqlite":
        path = str(tmp_path / "shop.db")
        yield Shop(duly.sqlite(path), path)
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger(clock="system") as url:
        ledger = duly.postgres(url)
        yield Shop(ledger, url)
        ledger.close()


# -- from a job -----------------------------------------------------------------------------------------------------------


def test_messages_leave_when_the_run_is_complete(shop: Shop) -> None:
    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
    def push(run: duly.Run[Any]) -> None:
        run.send("billing", {"units": 10, "b": [1.5, None]})
        run.send("billing", "Dear …", name="letter")
        run.send("billing", b"\x00\x01", name="raw", content_type="application/zip")
        assert shop.states() == []

    push.run(DAY)

    assert shop.states() == [("billing", "pending"), ("letter", "pending"), ("raw", "pending")]
    assert shop.ledger.deliver()
    assert [(m.name, m.body, m.content_type) for m in shop.heard.messages] == [
        ("billing", b'{"b":[1.5,null],"units":10}', "application/json"),
        ("letter", "Dear …".encode(), "text/plain; charset=utf-8"),
        ("raw", b"\x00\x01", "application/zip"),
    ]


@pytest.mark.parametrize("inline", [False, True], ids=["two commits", "inline"])
def test_messages_of_a_run_that_fails_never_were(inline: bool, shop: Shop) -> None:
    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH, inline=inline)
    def push(run: duly.Run[Any]) -> None:
        run.send("billing", {"units": 10})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        push.run(DAY)

    assert shop.states() == []


@pytest.mark.parametrize("inline", [False, True], ids=["two commits", "inline"])
def test_they_commit_with_what_was_written_through_the_runs_transaction(inline: bool, shop: Shop) -> None:
    with closing(shop.connect()) as connection:
        connection.execute("create table balance (units integer)")
        connection.commit()

    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH, inline=inline)
    def push(run: duly.Run[Any]) -> None:
        run.tx.execute("insert into balance values (10)")
        run.send("billing", {"units": 10})

    push.run(DAY)

    assert shop.states() == [("billing", "pending")]


def test_an_attempt_that_is_made_again_has_the_same_keys(shop: Shop) -> None:
    keys = []

    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=1)
    def push(run: duly.Run[Any]) -> None:
        run.send("billing", {}, name="a")
        keys.append([key for _, key in run._left().letters])
        if run.attempt == 1:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        push.run(DAY)
    push.run(DAY)
    shop.ledger.deliver()

    assert keys[0] == keys[1] == [shop.heard.messages[0].key]


def test_the_same_message_again_is_the_same_message(shop: Shop) -> None:
    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
    def push(run: duly.Run[Any]) -> None:
        run.send("billing", {"units": 10})
        run.send("billing", {"units": 10})

    push.run(DAY)

    assert shop.states() == [("billing", "pending")]


@pytest.mark.parametrize("other", [{"body": {"units": 11}}, {"destination": "post", "body": {"units": 10}}])
def test_another_message_under_the_same_name_is_a_conflict(other: dict[str, Any], shop: Shop) -> None:
    shop.ledger.destination("post")

    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
    def push(run: duly.Run[Any]) -> None:
        run.send("billing", {"units": 10}, name="a")
        with pytest.raises(duly.PayloadConflict, match="another message 'a'") as caught:
            run.send(**{"destination": "billing", "name": "a", **other})
        assert "units" not in str(caught.value)

    push.run(DAY)


def test_a_destination_that_nobody_declared_is_named(shop: Shop) -> None:
    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
    def push(run: duly.Run[Any]) -> None:
        run.send("biling", {"units": 10})

    with pytest.raises(duly.UnknownDestination, match=r"no destination .biling. .* did you mean billing"):
        push.run(DAY)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"name": ""}, "name: 1 to 200"),
        ({"name": "a\n"}, "name: 1 to 200"),
        ({"body": {"secret": {1, 2}}}, "is not JSON"),
        ({"body": "\udc80"}, "surrogates"),
        ({"body": {"a": ["\ud800"]}}, "surrogates"),
        ({"body": {"\udfff": 1}}, "surrogates"),
        ({"name": 5}, "name: give text"),
        ({"content_type": 5}, "content_type: give text"),
        ({"content_type": b"text/plain"}, "content_type: give text"),
        ({"body": b"x" * (1 << 20 | 1)}, "at most 1048576"),
        ({"content_type": "json"}, "content_type"),
    ],
)
def test_what_cannot_be_sent_is_refused_where_it_is_said(message: dict[str, Any], why: str, tmp_path: Path) -> None:
    shop = Shop(duly.sqlite(tmp_path / "shop.db"), str(tmp_path / "shop.db"))

    @shop.ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
    def push(run: duly.Run[Any]) -> None:
        with pytest.raises(duly.Misuse, match=why):
            run.send("billing", **{"body": {}, **message})

    push.run(DAY)
    assert shop.states() == []


def test_a_destination_is_a_text() -> None:
    with pytest.raises(duly.Misuse, match="destination: give text"):
        letter_of(5, {}, name=None, content_type=None)  # type: ignore[arg-type]


# -- from a claim, and in a transaction of the caller's ---------------------------------------------------------------------


def test_messages_of_a_claim_commit_in_the_callers_transaction(shop: Shop) -> None:
    shop.register()
    with shop.take() as claim, closing(shop.connect()) as connection:
        claim.run.send("billing", {"units": 10})
        connection.execute("begin") if shop.url.startswith("/") else None
        claim.complete(connection)
        connection.rollback()
        assert shop.states() == []
        connection.execute("begin") if shop.url.startswith("/") else None
        claim.complete(connection)
        connection.commit()

    assert shop.states() == [("billing", "pending")]


def test_a_claim_that_is_complete_sends_nothing_more(shop: Shop) -> None:
    shop.register()
    with shop.take() as claim:
        claim.complete()
        with pytest.raises(duly.TransactionOwned, match="not after it"):
            claim.run.send("billing", {})


def test_once_and_its_message_commit_together(shop: Shop) -> None:
    shop.register()
    with closing(shop.connect()) as connection:
        connection.execute("begin") if shop.url.startswith("/") else None
        assert duly.once(connection, KEY)
        assert shop.ledger.send(connection, KEY, "billing", {"units": 10})
        assert not shop.ledger.send(connection, KEY, "billing", {"units": 10})
        assert shop.ledger.send(connection, KEY, "billing", {"units": 5}, name="b")
        with pytest.raises(duly.PayloadConflict):
            shop.ledger.send(connection, KEY, "billing", {"units": 11})
        assert shop.states() == []
        connection.commit()

    assert shop.states() == [("billing", "pending"), ("b", "pending")]
    assert shop.ledger.deliver()


def test_a_run_that_is_not_complete_has_no_messages_to_add_to(shop: Shop) -> None:
    shop.register()
    with shop.take() as claim, closing(shop.connect()) as connection:
        connection.execute("begin") if shop.url.startswith("/") else None
        with pytest.raises(duly.NotAllowed, match="complete the run first"):
            shop.ledger.send(connection, KEY, "billing", {})
        connection.rollback()
        claim.complete()


# -- in an event loop -------------------------------------------------------------------------------------------------------


def test_an_async_job_sends_as_any_other(shop: Shop) -> None:
    async def story() -> None:
        made = duly.aio.postgres(shop.url) if shop.url.startswith("postgresql") else duly.aio.sqlite(shop.url)
        ledger: duly.aio.Ledger[Any] = made
        ledger.destination("billing", Heard)

        @ledger.job("push", duly.daily("UTC"), catch_up=duly.EACH)
        async def push(run: duly.aio.Run[Any]) -> None:
            run.send("billing", {"units": 10})

        async with ledger:
            await push.run(DAY)
            claim = await ledger.take("push", "2026-11-27")
            assert isinstance(claim, duly.aio.Claim)
            async with claim:
                claim.run.send("billing", {"units": 11}, name="of the claim")
                await claim.complete()

    asyncio.run(story())

    assert sorted(shop.states()) == [("billing", "pending"), ("of the claim", "pending")]
    shop.ledger.deliver()
    assert {message.run for message in shop.heard.messages} == {KEY, "push:2026-11-27[UTC]"}


def test_once_and_its_message_commit_together_in_an_event_loop(shop: Shop) -> None:
    shop.register()

    async def story() -> None:
        if shop.url.startswith("postgresql"):
            ledger: duly.aio.Ledger[Any] = duly.aio.postgres(shop.url)
            connection: Any = await psycopg.AsyncConnection.connect(shop.url)
        else:
            ledger = duly.aio.sqlite(shop.url)
            connection = await aiosqlite.connect(shop.url)
        ledger.destination("billing")
        assert await duly.aio.once(connection, KEY)
        assert await ledger.send(connection, KEY, "billing", {"units": 10})
        assert not await ledger.send(connection, KEY, "billing", {"units": 10})
        assert shop.states() == []
        await connection.commit()
        await connection.close()
        await ledger.close()

    asyncio.run(story())

    assert shop.states() == [("billing", "pending")]
