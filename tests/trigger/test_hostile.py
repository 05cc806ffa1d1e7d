"""What sources hand over comes from elsewhere and may be anything: what is not what it should be is refused by the name of the
place where it was read, and is neither guessed at nor anybody's traceback. One table for each source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apscheduler.triggers.cron import CronTrigger

from duly.errors import TriggerUnclear
from duly.trigger import celery, read
from duly.trigger.airflow import read_context
from duly.trigger.apscheduler import RunTimes, _fired
from duly.trigger.apscheduler import read as read_call
from duly.trigger.cloud_scheduler import read_headers
from duly.trigger.eventbridge import read_event
from tests.trigger import systemctl

# What no time is: of an environment, and of a mapping that may have anything in it.
NO_TIMES = (
    "",
    " ",
    "\n",
    "tonight",
    "99999-01-01T00:00:00Z",
    "9999-12-31T23:59:59-12:00",
    "9999-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1969-12-31T23:59:00Z",
    "2026-13-01T00:00:00Z",
    "2026-10-25T00:30:00",
    "2026-10-25T00:30:00Z\n",
    "2026-10-25\n00:30:00Z",
    "2026-10-25T00:30:00Z\x1b[31m",
    "２０２６-10-25T00:30:00Z",
    "\ud800",
    "9" * 5000,
)
NO_TEXTS: tuple[object, ...] = (
    None,
    1,
    1.5,
    float("nan"),
    True,
    b"2026-10-25T00:30:00Z",
    [],
    {},
    ["2026-10-25T00:30:00Z"],
)
NO_NAMES = (" ", "two\nlines", "\x1b[31m", "\ud800", "x" * 5000)
NO_NUMBERS = ("x", "-1", "1.5", "２", "²", "9" * 5000, " 1", "1\n")
NO_COUNTS: tuple[object, ...] = (-1, 1.5, True, b"1", [], {}, 10**30)


def refused(place: str, read: Callable[[], object]) -> None:
    """It is, in one line that can be shown, with the place."""
    with pytest.raises(TriggerUnclear) as raised:
        read()
    said = str(raised.value)
    assert place in said
    assert said.isprintable(), said
    assert len(said) < 600


# -- environments -----------------------------------------------------------------------------------------------------------

ENVIRONMENTS: dict[str, Mapping[str, str]] = {
    "airflow": {
        "AIRFLOW_CTX_DAG_ID": "days",
        "AIRFLOW_CTX_DAG_RUN_ID": "scheduled__2026-10-25",
        "AIRFLOW_CTX_TASK_ID": "close",
        "AIRFLOW_CTX_TRY_NUMBER": "1",
        "DULY_RUN_TYPE": "scheduled",
        "DULY_DATA_INTERVAL_START": "2026-10-24 22:00:00+00:00",
        "DULY_DATA_INTERVAL_END": "2026-10-25 23:00:00+00:00",
    },
    "cloud-scheduler": {
        "CLOUD_SCHEDULER_SCHEDULE_TIME": "2026-10-25T00:30:00Z",
        "CLOUD_SCHEDULER_JOB_NAME": "nightly",
        "CLOUD_RUN_EXECUTION": "nightly-x7k2p",
        "CLOUD_RUN_TASK_ATTEMPT": "0",
    },
    "eventbridge": {
        "SCHEDULER_SCHEDULED_TIME": "2026-10-25T00:30:00Z",
        "SCHEDULER_SCHEDULE_ARN": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly",
        "SCHEDULER_ATTEMPT_NUMBER": "1",
        "SCHEDULER_EXECUTION_ID": "d32c5kddcf5bb8c3",
    },
    "kubernetes": {"JOB_NAME": "nightly-29869830", "POD_NAME": "nightly-29869830-x2p4k"},
}
IN_ENVIRONMENTS = (
    ("airflow", "DULY_DATA_INTERVAL_END", NO_TIMES[1:]),
    ("airflow", "DULY_DATA_INTERVAL_START", NO_TIMES[1:]),
    ("airflow", "DULY_RUN_TYPE", ("", "nightly", "scheduled\n", "x" * 5000)),
    ("airflow", "AIRFLOW_CTX_DAG_ID", ("", *NO_NAMES)),
    ("airflow", "AIRFLOW_CTX_DAG_RUN_ID", ("", *NO_NAMES)),
    ("airflow", "AIRFLOW_CTX_TASK_ID", NO_NAMES),
    ("airflow", "AIRFLOW_CTX_TRY_NUMBER", NO_NUMBERS),
    ("cloud-scheduler", "CLOUD_SCHEDULER_SCHEDULE_TIME", NO_TIMES),
    ("cloud-scheduler", "CLOUD_SCHEDULER_JOB_NAME", ("", "jobs/", *NO_NAMES)),
    ("cloud-scheduler", "CLOUD_RUN_EXECUTION", NO_NAMES),
    ("cloud-scheduler", "CLOUD_RUN_TASK_ATTEMPT", NO_NUMBERS),
    ("eventbridge", "SCHEDULER_SCHEDULED_TIME", NO_TIMES),
    ("eventbridge", "SCHEDULER_SCHEDULE_ARN", ("", *NO_NAMES)),
    ("eventbridge", "SCHEDULER_ATTEMPT_NUMBER", ("<aws.scheduler.attempt-number>", *NO_NUMBERS)),
    ("eventbridge", "SCHEDULER_EXECUTION_ID", NO_NAMES),
    ("kubernetes", "JOB_NAME", ("", "Nightly-29869830", "nightly-２９８６９８３０", "x" * 254, *NO_NAMES)),
    ("kubernetes", "POD_NAME", NO_NAMES),
)


@pytest.mark.parametrize("source", ENVIRONMENTS)
def test_what_an_environment_should_have_is_read(source: str) -> None:
    assert read(source, ENVIRONMENTS[source]).meant is not None


@pytest.mark.parametrize(("source", "name", "values"), IN_ENVIRONMENTS)
def test_in_an_environment(source: str, name: str, values: tuple[str, ...]) -> None:
    for value in values:
        refused(name, lambda value=value: read(source, {**ENVIRONMENTS[source], name: value}))  # type: ignore[misc]


@pytest.mark.parametrize(
    "last",
    [
        "n/a",
        "Sun 99999-10-25 00:30:00 UTC",
        "Sun 9999-10-25 00:30:00 UTC",
        "Sun 1969-12-31 00:30:00 UTC",
        "Sun 2026-13-25 00:30:00 UTC",
        "Sun ２０２６-10-25 00:30:00 UTC",
        "@999999999999",
        f"@{'9' * 5000}",
        "@１",
    ],
)
def test_of_a_timer(last: str, tmp_path: Path) -> None:
    path = systemctl.played(
        tmp_path, {systemctl.TIMER: systemctl.of_timer(last), systemctl.SERVICE: systemctl.of_service()}
    )

    refused("LastTriggerUSec of plain.timer", lambda: read("systemd", systemctl.environment(path)))


@pytest.mark.parametrize("value", ["1", "x" * 32, "A" * 32, f"{'a' * 32}\n", "ａ" * 32])
def test_of_a_service(value: str, tmp_path: Path) -> None:
    refused("INVOCATION_ID", lambda: read("systemd", {"INVOCATION_ID": value}))
    refused("TRIGGER_UNIT", lambda: read("systemd", systemctl.environment(str(tmp_path), timer=value)))


# -- events, headers, contexts ------------------------------------------------------------------------------------------------

EVENT: dict[str, Any] = {
    "scheduled-time": "2026-10-25T00:30:00Z",
    "schedule-arn": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly",
    "attempt-number": "1",
    "execution-id": "d32c5kddcf5bb8c3",
}
HEADERS: dict[str, Any] = {
    "X-CloudScheduler-JobName": "nightly",
    "X-CloudScheduler-ScheduleTime": "2026-10-25T00:30:00Z",
}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("scheduled-time", (*NO_TIMES, *NO_TEXTS)),
        ("schedule-arn", ("", *NO_NAMES, *NO_TEXTS)),
        ("attempt-number", (*NO_NUMBERS, *NO_COUNTS)),
        ("execution-id", (*NO_NAMES, *NO_TEXTS[1:])),
    ],
)
def test_in_an_event(name: str, values: tuple[object, ...]) -> None:
    assert read_event(EVENT).meant is not None
    for value in values:
        if not (name == "execution-id" and not value):
            refused(name, lambda value=value: read_event({**EVENT, name: value}))  # type: ignore[misc]


@pytest.mark.parametrize("event", [None, [], "text", 1, [EVENT]])
def test_for_an_event(event: Any) -> None:
    refused("the event", lambda: read_event(event))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("X-CloudScheduler-ScheduleTime", (*NO_TIMES, *NO_TEXTS)),
        ("X-CloudScheduler-JobName", ("", "jobs/", *NO_NAMES, *NO_TEXTS)),
    ],
)
def test_in_headers(name: str, values: tuple[object, ...]) -> None:
    assert read_headers({**HEADERS, 1: 2}).meant is not None  # type: ignore[dict-item]
    for value in values:
        refused(name, lambda value=value: read_headers({**HEADERS, name: value}))  # type: ignore[misc]


def context(**instead: Any) -> dict[str, Any]:
    known = {
        "dag_id": "days",
        "run_id": "scheduled__1",
        "run_type": "scheduled",
        "data_interval_start": datetime(2026, 10, 24, 22, tzinfo=UTC),
        "data_interval_end": datetime(2026, 10, 25, 23, tzinfo=UTC),
        "task_id": "close",
        "try_number": 1,
    } | instead
    return {"dag_run": SimpleNamespace(**known), "ti": SimpleNamespace(**known)}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("data_interval_end", (datetime(2026, 10, 25, 23), datetime.max.replace(tzinfo=UTC), *NO_TIMES, *NO_TEXTS[1:])),
        ("data_interval_start", (datetime(2026, 10, 25), datetime.min.replace(tzinfo=UTC), *NO_TIMES, *NO_TEXTS[1:])),
        ("run_type", ("", "x", *NO_TEXTS)),
        ("dag_id", ("", *NO_NAMES, *NO_TEXTS)),
        ("run_id", ("", *NO_NAMES, *NO_TEXTS)),
        ("task_id", ("", *NO_NAMES, *NO_TEXTS)),
        ("try_number", (*NO_NUMBERS, *NO_COUNTS)),
    ],
)
def test_in_a_context_of_airflows(name: str, values: tuple[object, ...]) -> None:
    assert read_context(context()).meant is not None
    for value in values:
        refused(name, lambda value=value: read_context(context(**{name: value})))  # type: ignore[misc]


@pytest.mark.parametrize(
    "given", [{}, {"dag_run": None, "ti": None}, {"dag_run": context()["dag_run"]}, {**context(), "ti": object()}]
)
def test_for_a_context_of_airflows(given: dict[str, Any]) -> None:
    refused("the context of the task has no", lambda: read_context(given))


# -- messages of Celery's ---------------------------------------------------------------------------------------------------

SAID: dict[str, Any] = {"schedule": "crontab", "at": "2026-10-25T00:30:00Z", "zone": "UTC", "late": False}


def message(said: object = SAID, **instead: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"id": "4711", "retries": 0, "headers": {celery.HEADER: said}} | instead)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("at", (*NO_TIMES, *NO_TEXTS[1:])),
        (
            "zone",
            (
                *("Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "UTC\n", "\ud800", "a\0b", "x" * 5000),
                *NO_TEXTS[1:],
            ),
        ),
    ],
)
def test_in_the_header_of_a_message(name: str, values: tuple[object, ...]) -> None:
    assert celery.read(message()).meant is not None
    for value in values:
        refused(f"the header duly_beat, {name}", lambda value=value: celery.read(message({**SAID, name: value})))  # type: ignore[misc]


def test_for_the_header_of_a_message_or_its_id() -> None:
    for said in ("2026-10-25T00:30:00Z", 1, [], [SAID], True, b"{}"):
        refused("the header duly_beat", lambda said=said: celery.read(message(said)))  # type: ignore[misc]
    for headers in ("text", [SAID], 1):
        refused("headers", lambda headers=headers: celery.read(message(headers=headers)))  # type: ignore[misc]
    for number in (*NO_NUMBERS, *NO_COUNTS):
        refused("retries", lambda number=number: celery.read(message(retries=number)))  # type: ignore[misc]
    names: tuple[object, ...] = (*NO_NAMES, 1, [], {"a": 1})
    for name in names:
        refused("the task's id", lambda name=name: celery.read(message(id=name)))  # type: ignore[misc]


# -- calls of APScheduler's -------------------------------------------------------------------------------------------------


class Broken(CronTrigger):  # type: ignore[misc]
    """A trigger that somebody wrote."""

    def get_next_fire_time(self, *_: object) -> Any:
        raise ZeroDivisionError


class Elsewhere(CronTrigger):  # type: ignore[misc]
    """One whose zone has a name that holds nowhere else."""

    @property
    def timezone(self) -> str:
        return "local\ntime"

    @timezone.setter
    def timezone(self, zone: object) -> None: ...

    def get_next_fire_time(self, previous: object, now: datetime) -> datetime:
        return now


@pytest.mark.parametrize(
    ("trigger", "time", "place"),
    [
        (Broken(), datetime(2026, 10, 25, tzinfo=UTC), "its trigger, Broken: ZeroDivisionError"),
        (Elsewhere(timezone=UTC), datetime(2026, 10, 25, tzinfo=UTC), "close: its trigger's timezone"),
        (CronTrigger(timezone=UTC), datetime(2026, 10, 25), "the run time"),
        (CronTrigger(timezone=UTC), datetime.max.replace(tzinfo=UTC), "the run time"),
        (CronTrigger(timezone=UTC), "2026-10-25", "the run time"),
        (None, datetime(2026, 10, 25, tzinfo=UTC), "its trigger, NoneType"),
    ],
)
def test_of_a_call_and_the_others_are_called(trigger: Any, time: Any, place: str) -> None:
    job = SimpleNamespace(id="close", trigger=trigger)

    for _ in RunTimes([time], _fired(job, [time])):
        refused(place, read_call)
