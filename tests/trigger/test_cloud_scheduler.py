"""Requests of Cloud Scheduler: the schedule time names the window; a forced run has seconds, and names none."""

from __future__ import annotations

import pytest

import duly
from duly.errors import TriggerUnclear, WindowInvalid
from duly.schedule.meant import window_meant
from duly.schedule.spells import Spell
from duly.trigger import Firing, adhoc_id, read
from duly.trigger.cloud_scheduler import read_headers

BERLIN = "Europe/Berlin"
NIGHTLY = duly.cron("30 2 * * *", zone=BERLIN)


def headers(at: str, job: str = "nightly") -> dict[str, object]:
    return {
        "User-Agent": "Google-Cloud-Scheduler",
        "X-CloudScheduler": "true",
        "X-CloudScheduler-JobName": job,
        "X-CloudScheduler-ScheduleTime": at,
    }


def window(firing: Firing, schedule: duly.Schedule) -> str:
    assert firing.meant is not None
    return window_meant([Spell(schedule, 1, None, None)], firing.meant).name


# Clocks in Berlin: 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
@pytest.mark.parametrize(
    ("at", "schedule", "name"),
    [
        ("2026-03-28T01:30:00Z", NIGHTLY, "2026-03-28T02:30:00[Europe/Berlin]"),
        ("2026-03-30T00:30:00Z", NIGHTLY, "2026-03-30T02:30:00[Europe/Berlin]"),
        ("2026-10-25T00:30:00Z", NIGHTLY, "2026-10-25T02:30:00[Europe/Berlin]"),
        ("2026-10-26T01:30:00.000Z", duly.daily(BERLIN, at="02:30"), "2026-10-25[Europe/Berlin]"),
        ("2026-10-25T02:00:00Z", duly.hourly(BERLIN), "2026-10-25T02~2[Europe/Berlin]"),
    ],
)
def test_the_schedule_time_names_the_window_in_headers_of_any_case_and_in_an_environ(
    at: str, schedule: duly.Schedule, name: str
) -> None:
    sent = headers(at)
    lower = {word.lower(): value for word, value in sent.items()}
    wsgi = {f"HTTP_{word.upper().replace('-', '_')}": value for word, value in sent.items()}

    for each in (sent, lower, {**wsgi, "wsgi.version": (1, 0)}):
        assert window(read_headers(each), schedule) == name


@pytest.mark.parametrize(
    "at", ["2026-10-25T09:12:40Z", "2026-10-25T00:30:00.123456Z", "2026-10-25T00:30:00.123456789Z"]
)
def test_a_forced_run_has_seconds_and_borrows_no_window(at: str) -> None:
    found = read_headers(headers(at))

    assert (found.kind, found.meant) == ("manual", None)
    assert adhoc_id(found) == adhoc_id(read_headers(headers(at)))


def test_a_forced_run_on_a_whole_minute_is_refused_where_the_schedule_has_no_such_time() -> None:
    with pytest.raises(WindowInvalid, match="no window is due at 2026-10-25T09:12:00Z"):
        window(read_headers(headers("2026-10-25T09:12:00Z")), NIGHTLY)


def test_a_job_of_cloud_run_is_told_by_whoever_starts_it() -> None:
    told = {
        "CLOUD_SCHEDULER_SCHEDULE_TIME": "2026-10-25T00:30:00Z",
        "CLOUD_SCHEDULER_JOB_NAME": "projects/shop/locations/europe-west1/jobs/nightly",
        "CLOUD_RUN_EXECUTION": "nightly-x7k2p",
        "CLOUD_RUN_TASK_ATTEMPT": "0",
    }

    first = read("cloud-scheduler", told)
    second = read("cloud-scheduler", {**told, "CLOUD_RUN_TASK_ATTEMPT": "1"})

    assert window(first, NIGHTLY) == "2026-10-25T02:30:00[Europe/Berlin]"
    assert (first.kind, second.kind) == ("scheduled", "retry")
    assert (first.run, first.meant) == (second.run, second.meant) == ("nightly@2026-10-25T00:30:00Z", first.meant)
    assert second.attempt == "nightly-x7k2p/1"


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"X-CloudScheduler": "true", "X-CloudScheduler-JobName": "every-five"},  # of the other format: no time
        headers("2026-10-25T00:30:00Z", job=""),
        headers("yesterday"),
    ],
)
def test_what_is_no_request_of_a_cron_job_is_refused(sent: dict[str, object]) -> None:
    with pytest.raises(TriggerUnclear, match="X-CloudScheduler-ScheduleTime"):
        read_headers(sent)


def test_a_job_of_cloud_run_that_is_told_nothing_is_refused() -> None:
    with pytest.raises(TriggerUnclear, match="CLOUD_SCHEDULER_SCHEDULE_TIME"):
        read("cloud-scheduler", {"CLOUD_RUN_EXECUTION": "nightly-x7k2p"})
