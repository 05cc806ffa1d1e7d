"""A daemon delivers what the runs of its jobs send, and what anybody else's did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.daemon.stage import Stage
from tests.daemon.test_commands import job
from tests.exec.stage import until
from tests.outbox.post import Post
from tests.outbox.receivers import Receiver, receiver


@pytest.fixture
def to() -> Iterator[Receiver]:
    with receiver(remembers=True) as made:
        yield made


def declared(to: Receiver) -> str:
    return f'[destinations.billing]\nkind = "http"\nurl = "{to.url}"\nremembers = "1h"\n'


def test_what_a_function_sends_is_delivered(stage: Stage, to: Receiver) -> None:
    stage.configuration(declared(to))
    stage.module(
        """
@ledger.job("export", duly.daily("UTC"), catch_up=duly.LATEST)
def export(run):
    run.send("billing", {"day": run.label})
"""
    )
    daemon = stage.daemon()

    until(lambda: sum(to.effects.values()) == 1, "it is delivered")
    daemon.until_said("export:2026-10-05[UTC] message billing to billing delivered")

    assert daemon.stop() == 0
    assert stage.book.rows("select name, state from duly_message") == [("billing", "delivered")]


def test_what_a_command_sends_is_delivered(stage: Stage, to: Receiver) -> None:
    (stage.folder / "line").write_text('{"destination": "billing", "body": 1}\n')
    stage.configuration(declared(to) + job("cat line >> $DULY_OUTBOX"))
    daemon = stage.daemon(modules=())

    until(lambda: sum(to.effects.values()) == 1, "it is delivered")

    assert daemon.stop() == 0


def test_two_daemons_send_what_another_process_left_once(stage: Stage, to: Receiver) -> None:
    post = Post(stage.book)
    stage.book.job()
    runs = [post.complete(stage.book.take(f"2026-09-{day:02}"), "a", "b") for day in range(10, 16)]
    stage.book.complete(stage.book.take("2026-10-05"))
    stage.configuration(declared(to) + job("true", name="other"))
    daemons = [stage.daemon("--poll", "100ms", modules=()) for _ in range(2)]

    for daemon in daemons:
        daemon.until_said("1 jobs on")
    until(lambda: all(post.tally(run).is_settled for run in runs), "all are delivered")

    assert [daemon.stop() for daemon in daemons] == [0, 0]
    assert sum(to.requests.values()) == 12
