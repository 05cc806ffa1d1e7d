"""Alerts without a daemon: any poke of the ledger looks, when its own work is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.exec.stage import Stage
from tests.outbox.receivers import Receiver, receiver

CLOSE = ("close", "--period", "daily", "--zone", "UTC", "--at", "06:00")  # 2026-11-28 is due since six
OTHER = ("other", "--every", "15m", "--catch-up", "latest")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.close()


@pytest.fixture
def to() -> Iterator[Receiver]:
    with receiver(remembers=True) as made:
        yield made


def configured(stage: Stage, text: str) -> dict[str, str]:
    """The environment of pokes that know this configuration."""
    stage.file("duly.toml").write_text(text)
    return {"DULY_CONFIG": str(stage.file("duly.toml"))}


def webhook(to: Receiver, more: str = "") -> str:
    return f'[destinations.ops]\nkind = "http"\nurl = "{to.url}"\nremembers = "forever"\n[alerts]\nto = "ops"\n{more}'


def told(stage: Stage) -> list[dict[str, Any]]:
    """What was delivered, in order."""
    rows = stage.rows(
        "select b.body from duly_message m join duly_message_body b using (series, nominal, revision, number) "
        "where m.state = 'delivered' order by m.noted_at, m.nominal"
    )
    return [json.loads(body) for (body,) in rows]


def test_when_every_scheduler_of_a_job_is_dead_a_poke_of_another_tells_that_it_is_late(
    stage: Stage, to: Receiver
) -> None:
    environ = configured(stage, webhook(to))
    stage.exec(*CLOSE, environ=environ)
    stage.exec(*OTHER, environ=environ)
    assert not to.requests

    stage.clock.advance("1d")  # in which nobody pokes anything
    said = stage.exec(*OTHER, environ=environ)

    assert (said.code, said.talk) == (0, "")
    assert [each["text"] for each in told(stage)] == [
        "close: late: 2026-11-29 never started, due 2026-11-30T06:00:00Z (grace 1h)"
    ]
    assert list(to.effects.values()) == [1]


def test_it_is_told_once_and_so_is_that_it_is_well_again(stage: Stage, to: Receiver) -> None:
    environ = configured(stage, webhook(to))
    stage.exec(*CLOSE, environ=environ)
    stage.clock.advance("1d")

    for command in ("false", "false", "true"):
        stage.exec(*OTHER, environ=environ)
        stage.exec(*CLOSE, command=[command], environ=environ)
        if command == "false":
            stage.duly("retry", "close", "2026-11-29", "--reason", "again")
        stage.clock.advance("1m")
    stage.exec(*OTHER, environ=environ)

    assert [(each["kind"], each["state"]) for each in told(stage)] == [("late", "raised"), ("late", "recovered")]


def test_on_late_is_a_webhook_of_the_job_itself(stage: Stage, to: Receiver) -> None:
    job = '[jobs.close]\ncommand = ["true"]\nperiod = "daily"\nzone = "UTC"\nat = "06:00"\ncatch_up = "latest"\n'
    environ = configured(stage, f'{job}on_late = "{to.url}/late"\n')
    stage.exec(*CLOSE, environ=environ)
    stage.clock.advance("1d")

    stage.exec(*OTHER, environ=environ)

    assert list(to.effects.values()) == [1]
    assert stage.rows("select destination from duly_message") == [("on_late.close",)]


def test_on_late_may_be_a_command_which_lies_beside_the_file(stage: Stage) -> None:
    script = stage.file("page.sh")
    script.write_text(f"#!/bin/sh\ncat > '{stage.file('page')}'\n")
    script.chmod(0o755)
    job = '[jobs.close]\ncommand = ["true"]\nperiod = "daily"\nzone = "UTC"\nat = "06:00"\ncatch_up = "latest"\n'
    environ = configured(stage, f'{job}on_late = ["./page.sh"]\n')
    stage.exec(*CLOSE, environ=environ)
    stage.clock.advance("1d")

    stage.exec(*OTHER, environ=environ)

    assert json.loads(stage.file("page").read_text())["job"] == "close"


def test_nobody_looks_before_the_child_has_ended_nor_twice_within_a_minute(stage: Stage, to: Receiver) -> None:
    environ = configured(stage, webhook(to))
    looked = "select looked_at from duly_look"
    at = f"python3 -c \"import sqlite3; print(sqlite3.connect('{stage.path}').execute('{looked}').fetchone()[0])\""
    stage.exec(*OTHER, command=["sh", "-c", f"{at} > '{stage.file('seen')}'"], environ=environ)
    assert stage.file("seen").read_text() == "0\n"
    first = stage.rows(looked)

    stage.clock.advance("59s")
    stage.exec(*OTHER, environ=environ)
    assert stage.rows(looked) == first
    stage.clock.advance("1s")
    stage.exec(*OTHER, environ=environ)

    assert stage.rows(looked) != first


def test_without_alerts_in_the_configuration_nobody_looks(stage: Stage) -> None:
    stage.exec(*OTHER, environ=configured(stage, "[daemon]\nconcurrency = 2\n"))

    assert stage.rows("select number from duly_look") == [(0,)]


@pytest.mark.parametrize(
    ("alerts", "says"),
    [('to = "osp"', "[alerts] to: no destination 'osp' is declared"), ('kinds = ["lat"]', "did you mean late?")],
    ids=["a destination that is not there", "a kind that is none"],
)
def test_a_mistake_in_alerts_is_said_and_changes_no_code(alerts: str, says: str, stage: Stage) -> None:
    environ = configured(stage, f'[destinations.ops]\nkind = "http"\nurl = "http://127.0.0.1:1/"\n[alerts]\n{alerts}\n')

    said = stage.exec(*OTHER, environ=environ)

    assert said.code == 0
    assert says in said.talk
    assert "try: duly jobs check" in said.talk
    assert stage.duly("jobs", "check", **environ).code == 78


def test_a_receiver_that_is_away_changes_no_code_and_is_told_by_a_later_poke(stage: Stage, to: Receiver) -> None:
    environ = configured(stage, webhook(to))
    away = configured(stage, webhook(to).replace(to.url, "http://127.0.0.1:1"))
    stage.exec(*CLOSE, environ=away)
    stage.clock.advance("1d")
    assert stage.exec(*OTHER, environ=away).code == 0
    assert told(stage) == []

    environ = configured(stage, webhook(to))
    stage.clock.advance("1h")
    stage.exec(*OTHER, environ=environ)

    assert [each["about"] for each in told(stage)] == ["close"]
