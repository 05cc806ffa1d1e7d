"""What a firing is called, and of what kind it is, means the same whatever the source: one table of them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apscheduler.triggers.cron import CronTrigger
from celery.schedules import crontab

from duly.cli.exec_flags import OPTIONS
from duly.times import MINUTE, SECOND, instant_text, parse_instant
from duly.trigger import SOURCES, Firing, adhoc_id, celery, read, trigger_words
from duly.trigger.apscheduler import RunTimes, _fired
from duly.trigger.apscheduler import read as read_call
from duly.trigger.celery.beat import newest_fire
from duly.trigger.cloud_scheduler import read_headers
from tests.trigger import systemctl

NOW = datetime.now(UTC)
FIRST, NEXT = "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"


def airflow(at: str, attempt: int, run_type: str = "scheduled") -> Firing:
    told = {
        "AIRFLOW_CTX_DAG_ID": "days",
        "AIRFLOW_CTX_DAG_RUN_ID": f"{run_type}__{at}",
        "AIRFLOW_CTX_TASK_ID": "close",
        "AIRFLOW_CTX_TRY_NUMBER": str(attempt),
        "DULY_RUN_TYPE": run_type,
        "DULY_DATA_INTERVAL_START": at,
        "DULY_DATA_INTERVAL_END": at,
    }
    return read("airflow", told)


def backfill(at: str, attempt: int) -> Firing:
    return airflow(at, attempt, "backfill")


def by_hand(at: str, attempt: int) -> Firing:
    return airflow(at, attempt, "manual")


def cloud_scheduler(at: str, attempt: int) -> Firing:
    told = {"CLOUD_SCHEDULER_SCHEDULE_TIME": at, "CLOUD_SCHEDULER_JOB_NAME": "projects/shop/jobs/nightly"}
    return read(
        "cloud-scheduler", {**told, "CLOUD_RUN_EXECUTION": "nightly-x", "CLOUD_RUN_TASK_ATTEMPT": str(attempt - 1)}
    )


def forced(at: str, attempt: int) -> Firing:
    return cloud_scheduler(at.replace(":00Z", ":07Z"), attempt)


def request(at: str, attempt: int) -> Firing:
    return read_headers({"x-cloudscheduler-jobname": "nightly", "x-cloudscheduler-scheduletime": at})


def eventbridge(at: str, attempt: int) -> Firing:
    told = {
        "SCHEDULER_SCHEDULED_TIME": at,
        "SCHEDULER_SCHEDULE_ARN": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly",
        "SCHEDULER_ATTEMPT_NUMBER": str(attempt),
        "SCHEDULER_EXECUTION_ID": f"d32c{attempt}",
    }
    return read("eventbridge", told)


def kubernetes(at: str, attempt: int) -> Firing:
    job = f"nightly-{parse_instant(at) // MINUTE}"
    return read("kubernetes", {"JOB_NAME": job, "POD_NAME": f"{job}-{attempt}"})


def systemd(at: str, attempt: int, folder: Path) -> Firing:
    invocation = str(attempt) * 32
    answers = {
        systemctl.TIMER: systemctl.of_timer(f"@{parse_instant(at) // SECOND}"),
        systemctl.SERVICE: systemctl.of_service(invocation),
    }
    return read("systemd", systemctl.environment(systemctl.played(folder, answers), invocation=invocation))


def message(at: str, attempt: int, *, late: bool = False) -> Firing:
    """Of Celery's: a retry of it has the id that it had."""
    said = {"at": at, "zone": "UTC", "late": late}
    return celery.read(SimpleNamespace(id=f"4711-{at}", retries=attempt - 1, headers={celery.HEADER: said}))


def late_message(at: str, attempt: int) -> Firing:
    return message(at, attempt, late=True)


def call(at: str, attempt: int) -> Firing:
    """Of APScheduler's, which calls once."""
    time = datetime.fromisoformat(at)
    trigger = CronTrigger(hour=time.hour, minute=time.minute, timezone=UTC)
    (found,) = _fired(SimpleNamespace(id="close", trigger=trigger), [time])
    assert isinstance(found, Firing)
    return found


# The source, and what its first and second attempt at a firing are; the same where it does not tell.
SAYS: list[tuple[Callable[[str, int], Firing], str, str]] = [
    (airflow, "scheduled", "retry"),
    (backfill, "catch-up", "retry"),
    (by_hand, "manual", "manual"),
    (cloud_scheduler, "scheduled", "retry"),
    (forced, "manual", "manual"),
    (request, "scheduled", "scheduled"),
    (eventbridge, "scheduled", "retry"),
    (kubernetes, "scheduled", "scheduled"),
    (message, "scheduled", "retry"),
    (late_message, "catch-up", "retry"),
    (call, "catch-up", "catch-up"),
]


def check_says(fired: Callable[[str, int], Firing], first: str, second: str) -> None:
    one, again, other = fired(FIRST, 1), fired(FIRST, 2), fired(NEXT, 1)

    assert (one.kind, again.kind) == (first, second)
    assert one.run == again.run != other.run
    assert one.meant == again.meant
    assert (one.meant is None) == (one.kind == "manual")
    assert one.meant is None or one.meant != other.meant
    assert adhoc_id(one) == adhoc_id(again) != adhoc_id(other)
    assert one.run in trigger_words(one)
    assert "/" not in (one.attempt, again.attempt)


@pytest.mark.parametrize(("fired", "first", "second"), SAYS)
def test_a_firing_has_one_name_at_each_attempt_and_no_other_firing_has_it(
    fired: Callable[[str, int], Firing], first: str, second: str
) -> None:
    check_says(fired, first, second)


def test_so_it_is_with_a_timer(tmp_path: Path) -> None:
    check_says(lambda at, attempt: systemd(at, attempt, tmp_path), "scheduled", "scheduled")


def test_every_source_is_in_the_table() -> None:
    told = {fired(FIRST, 1).source for fired, _, _ in SAYS} | {"systemd"}

    assert told == {*SOURCES, "celery", "apscheduler"}


# -- late ------------------------------------------------------------------------------------------------------------------


def minutes_ago(minutes: int) -> datetime:
    return NOW.replace(second=0, microsecond=0) - timedelta(minutes=minutes)


def called(*times: datetime, **cron: Any) -> list[str]:
    """Of what kind APScheduler's calls for these times are, now."""
    run_times = list(times)
    trigger = CronTrigger(**(cron or {"minute": "*"}), timezone=UTC)
    return [
        read_call().kind for _ in RunTimes(run_times, _fired(SimpleNamespace(id="close", trigger=trigger), run_times))
    ]


def sent(time: datetime, last_run_at: datetime, now: datetime) -> str:
    """Of what kind the message is that beat sends now."""
    entry = crontab(minute=time.minute, nowfun=lambda: now)
    entry.tz = UTC
    found = newest_fire(entry, last_run_at, now)
    assert found is not None
    nominal, late = found
    assert nominal == time
    return message(instant_text(parse_instant(nominal.isoformat())), 1, late=late).kind


def test_what_comes_more_than_a_minute_after_its_time_is_caught_up_with_by_both_that_know() -> None:
    time = minutes_ago(5)

    assert called(time) == ["catch-up"]
    assert sent(time, time - timedelta(minutes=1), time + timedelta(seconds=61)) == "catch-up"
    assert sent(time, time - timedelta(minutes=1), time + timedelta(seconds=60)) == "scheduled"


def test_what_is_on_time_is_scheduled_though_others_were_missed_before_it() -> None:
    time = minutes_ago(5)
    just_now = datetime.now(UTC).replace(microsecond=0)

    assert called(time, just_now, second="*") == ["catch-up", "scheduled"]
    assert sent(time, time - timedelta(hours=5), time + timedelta(seconds=2)) == "scheduled"


# -- the sources that a command line names -----------------------------------------------------------------------------------


def test_the_flag_names_the_sources_that_there_are() -> None:
    """They stand there once more, because a start would pay for the import of this room."""
    assert OPTIONS["trigger"][1].rpartition(": ")[2].split(", ") == list(SOURCES)


def test_each_source_has_a_module_of_its_name_that_reads_an_environment() -> None:
    from importlib import import_module

    nothing: Mapping[str, str] = {}
    for source in SOURCES:
        module = import_module(f"duly.trigger.{source.replace('-', '_')}")
        assert source == module.SOURCE
        with pytest.raises(ValueError, match=r"is not set|are not set"):
            module.read(nothing)
