"""Alerts from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import duly
from duly.errors import Misuse, UnknownDestination
from duly.outbox.destinations import FOREVER, Delivered, Message
from duly.testing.clock import HandClock


class Shelf:
    """A receiver that keeps what it is told."""

    kind, key_form, max_length, reads_own_writes, remembers = "shelf", "key", None, False, FOREVER

    def __init__(self) -> None:
        self.kept: list[str] = []

    def deliver(self, message: Message, *, seconds: float) -> Delivered:
        self.kept.append(message.name)
        return Delivered("it is on the shelf")

    def probe(self, message: Message, *, seconds: float) -> duly.CannotTell:
        return duly.CannotTell("nobody asks")

    def close(self) -> None: ...


def test_a_look_answers_what_is_open_and_puts_it_into_the_outbox(tmp_path: Path) -> None:
    clock = HandClock(str(tmp_path / "jobs.db"), at="2026-10-06T03:00:00Z")
    ledger, shelf = duly.sqlite(tmp_path / "jobs.db"), Shelf()
    ledger.destination("shelf", lambda: shelf)
    ledger.alerts("shelf")

    @ledger.job("export", duly.daily("UTC"), catch_up=duly.LATEST)
    def export(run: duly.Run[Any]) -> None: ...

    export.catch_up()
    assert ledger.look() == []
    clock.advance("1d")

    (alert,) = ledger.look()
    assert (alert.kind, alert.about, alert.told) == ("late", "export", "open")
    assert ledger.deliver()
    assert shelf.kept == ["export: late"]


def test_who_is_told_of_what_has_to_be_there(tmp_path: Path) -> None:
    ledger = duly.sqlite(tmp_path / "jobs.db")

    with pytest.raises(UnknownDestination):
        ledger.alerts("ops")
    with pytest.raises(Misuse, match="kinds: there is no 'lat'"):
        ledger.alerts([], kinds=["lat"])
    with pytest.raises(Misuse, match="every: "):
        ledger.alerts([], every="soon")
