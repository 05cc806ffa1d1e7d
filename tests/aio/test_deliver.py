"""Delivering from an event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import duly
import duly.aio
from duly.outbox.destinations import FOREVER, Delivered, Message
from tests.aio.till import Till


class Shelf:
    """A receiver that keeps what it is given, and may be slow about it."""

    kind, key_form, max_length, reads_own_writes, remembers = "shelf", "key", None, False, FOREVER

    def __init__(self, kept: list[str], came: threading.Event, go: threading.Event) -> None:
        self._kept, self._came, self._go = kept, came, go

    def deliver(self, message: Message, *, seconds: float) -> Delivered:
        self._came.set()
        assert self._go.wait(seconds)
        self._kept.append(message.name)
        return Delivered("it is on the shelf")

    def probe(self, message: Message, *, seconds: float) -> duly.CannotTell:
        return duly.CannotTell("nobody asks")

    def close(self) -> None: ...


async def sent(ledger: duly.aio.Ledger[Any], shelf: Shelf) -> None:
    ledger.destination("shelf", lambda: shelf)

    @ledger.job("post", duly.daily("UTC"), catch_up=duly.LATEST)
    async def post(run: duly.aio.Run[Any]) -> None:
        run.send("shelf", {"day": run.label}, name="letter")

    await post.catch_up()


def test_what_is_due_is_delivered_in_a_thread(till: Till) -> None:
    kept: list[str] = []
    go = threading.Event()
    go.set()

    async def story(ledger: duly.aio.Ledger[Any]) -> bool:
        await sent(ledger, Shelf(kept, threading.Event(), go))
        return await ledger.deliver() and await ledger.deliver()

    assert till.play(story)
    assert kept == ["letter"]


def test_cancelled_it_writes_down_what_was_being_sent(till: Till) -> None:
    kept: list[str] = []
    came, go = threading.Event(), threading.Event()

    async def story(ledger: duly.aio.Ledger[Any]) -> None:
        await sent(ledger, Shelf(kept, came, go))
        delivering = asyncio.ensure_future(ledger.deliver())
        await asyncio.to_thread(came.wait)
        delivering.cancel()
        try:
            await delivering
        except asyncio.CancelledError:
            go.set()

    till.play(story)  # the loop's threads are waited for

    assert till.book.rows("select state from duly_message") == [("delivered",)]
