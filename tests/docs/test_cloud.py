"""The page about schedulers of a cloud: its handlers work what the vendors say that is sent, on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.docs.test_readme import ROOT, blocks
from tests.servers import Server
from tests.story import here
from tests.trigger.test_cloud_scheduler import headers
from tests.trigger.test_eventbridge import ARN, INPUT, event

PAGE = (ROOT / "docs" / "cloud.md").read_text(encoding="utf-8")
LAMBDA, CLOUD_RUN = blocks(PAGE, "python")


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with server.ledger() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update duly.clock set at = 1795914000000000")  # 2026-11-28T21:00:00Z
        connection.execute("create table closed (day date); create table exported (day date)")
        monkeypatch.setenv("DATABASE_URL", url)
        yield url


def program(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(text, names)
    return names


def rows(url: str, table: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [str(day) for (day,) in connection.execute(f"select day from {table}")]


def test_the_function_works_the_window_of_the_scheduled_time_once_whatever_the_attempt(url: str) -> None:
    names = program(LAMBDA)
    handler: Callable[..., str] = names["handler"]

    said = [
        handler(event("2026-11-28T01:30:00Z", attempt=attempt, execution=f"{attempt:016x}"), None) for attempt in (1, 2)
    ]
    with pytest.raises(RuntimeError, match="NotDue"):
        handler(event("2026-12-24T01:30:00Z"), None)
    names["ledger"].close()

    assert said == ["close-day:2026-11-27[Europe/Berlin]"] * 2
    assert rows(url, "closed") == ["2026-11-27"]


def test_the_inputs_of_the_page_are_those_of_the_tests() -> None:
    function, container = (json.loads(block) for block in blocks(PAGE, "json"))

    (overrides,) = container["containerOverrides"]
    in_container = {each["name"]: each["value"] for each in overrides["environment"]}
    from duly.trigger import read
    from duly.trigger.eventbridge import variable_of

    assert function == json.loads(INPUT)
    assert in_container == {variable_of(name): value for name, value in function.items()}
    filled = in_container | {
        "SCHEDULER_SCHEDULED_TIME": "2026-11-28T01:30:00Z",
        "SCHEDULER_SCHEDULE_ARN": ARN,
        "SCHEDULER_ATTEMPT_NUMBER": "1",
    }
    assert read("eventbridge", filled).meant is not None


def test_the_service_answers_so_that_the_scheduler_calls_again_only_where_that_helps(url: str) -> None:
    names = program(CLOUD_RUN)
    application: Callable[..., list[bytes]] = names["application"]

    def call(sent: dict[str, object]) -> str:
        said: list[str] = []
        environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent.items()}
        application(environ, lambda status, headers: said.append(status))
        return said[0]

    statuses = [call(headers("2026-11-28T01:30:00Z", "export-day")) for _ in range(2)]
    early = call(headers("2026-12-24T01:30:00Z", "export-day"))
    nobody, elsewhen = call({}), call(headers("2026-11-28T01:31:00Z", "export-day"))
    assert here(url, "skip", "export-day", "2026-11-26", "--reason", "a test").code == 0
    refused = call(headers("2026-11-27T01:30:00Z", "export-day"))
    names["ledger"].close()

    assert statuses == ["200 OK", "200 OK"]
    assert (early, refused) == ("503 Service Unavailable", "409 Conflict")
    assert nobody == elsewhen == "400 Bad Request"
    assert rows(url, "exported") == ["2026-11-27"]
