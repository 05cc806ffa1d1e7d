"""A daemon looks for alerts by itself, and tells them at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.daemon.stage import Stage
from tests.daemon.test_commands import job
from tests.exec.stage import until
from tests.outbox.receivers import Receiver, receiver


@pytest.fixture
def to() -> Iterator[Receiver]:
    with receiver(remembers=True) as made:
        yield made


def declared(to: Receiver) -> str:
    return f'[destinations.ops]\nkind = "http"\nurl = "{to.url}"\nremembers = "forever"\n'


def test_daemons_tell_once_that_a_job_of_nobody_is_late(stage: Stage, to: Receiver) -> None:
    stage.clock.set("2026-10-06T00:10:00Z")
    stage.configuration(declared(to) + '[alerts]\nto = "ops"\n' + job("true", name="other"))
    daemons = [stage.daemon("--poll", "100ms", modules=()) for _ in range(2)]
    for daemon in daemons:
        daemon.until_said("1 jobs on")
    until(lambda: stage.book.rows("select recorded from duly_look") != [(0,)], "somebody has looked")
    until(lambda: stage.book.runs("other") and stage.book.runs("other")[-1][1] == "completed", "other is complete")

    stage.book.job("lonely")
    stage.clock.advance("1h")

    until(lambda: list(to.effects.values()) == [1], "it is told")
    names = stage.book.rows("select name from duly_message")
    assert [daemon.stop() for daemon in daemons] == [0, 0]
    assert names == [("lonely: late",)]
    assert list(to.requests.values()) == [1]


def test_a_ledger_in_python_says_who_is_told(stage: Stage, to: Receiver) -> None:
    stage.configuration(declared(to))
    stage.module(
        """
ledger.alerts("ops", kinds=["failed"])

@ledger.job("export", duly.daily("UTC"), catch_up=duly.LATEST, retries=0)
def export(run):
    raise ValueError
"""
    )
    daemon = stage.daemon("--poll", "100ms")
    until(lambda: stage.book.runs() and stage.book.runs()[-1][1] == "failed", "it has failed")
    stage.clock.advance("1h")

    daemon.until_said("to ops delivered")

    assert daemon.stop() == 0
    assert len(to.effects) == 1
