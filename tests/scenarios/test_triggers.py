"""Scenarios of identity: what other schedulers say of what they fired, and what is made of it."""

from __future__ import annotations

import os
from pathlib import Path

from duly.times import MINUTE, SECOND, parse_instant
from tests.exec.stage import Stage
from tests.trigger import systemctl

NIGHTLY = ("nightly", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")

# -- 4: the suffix of a Job's name went from seconds to minutes ---------------------------------------------------------


def test_jobs_named_in_minutes_and_in_seconds_are_for_the_same_windows(stage: Stage) -> None:
    """The night of the clocks, by the controller of before, by the one of now, and by both."""
    night, next_night = parse_instant("2026-10-25T00:30:00Z"), parse_instant("2026-10-26T01:30:00Z")

    for suffix in (night // SECOND, night // MINUTE, next_night // MINUTE, next_night // SECOND):
        told = {"JOB_NAME": f"nightly-{suffix}", "POD_NAME": f"nightly-{suffix}-abcde"}
        said = stage.exec(*NIGHTLY, "--trigger", "kubernetes", command=stage.effect(), environ=told)
        assert said.code == 0, said

    assert stage.effects() == [f"nightly:2026-10-{day}T02:30:00[Europe/Berlin]" for day in (25, 26)]


def test_a_name_that_is_none_of_the_schedule_runs_nothing(stage: Stage) -> None:
    for at in ("2026-10-25T01:30:00Z", "2026-10-25T00:31:00Z"):  # the second half past two, which is no window of its
        told = {"JOB_NAME": f"nightly-{parse_instant(at) // MINUTE}"}
        said = stage.exec(*NIGHTLY, "--trigger", "kubernetes", command=stage.effect(), environ=told)
        assert said.code == 64
        assert f"no window is due at {at}" in said.talk

    assert stage.effects() == []


# -- 5: the time in the environment of a timer's service is that of its first firing ------------------------------------


def test_the_time_of_a_timers_first_firing_names_no_later_window(stage: Stage) -> None:
    """Three nights, and the service finds the same TRIGGER_TIMER_REALTIME_USEC on each of them."""
    folder = stage.file("bin")
    folder.mkdir()
    nights = {
        "a" * 32: "Sat 2026-10-24 00:30:02",
        "b" * 32: "Sun 2026-10-25 00:30:00",
        "c" * 32: "Mon 2026-10-26 01:30:57",
    }

    for invocation, fired in nights.items():
        answers = {
            systemctl.TIMER: systemctl.of_timer(f"{fired} UTC"),
            systemctl.SERVICE: systemctl.of_service(invocation),
        }
        told = systemctl.environment(systemctl.played(folder, answers), invocation=invocation)
        said = stage.exec(*NIGHTLY, "--trigger", "systemd", command=stage.effect(), environ=on_path(told, folder))
        assert said.code == 0, said

    assert stage.effects() == [f"nightly:2026-10-{day}T02:30:00[Europe/Berlin]" for day in (24, 25, 26)]


# -- 6: a manual run has the interval of a window ------------------------------------------------------------------------


def test_a_manual_run_that_has_the_interval_of_a_window_does_not_settle_it(stage: Stage) -> None:
    """Airflow 2 gives what a person triggers at noon the interval of the day before, which the schedule comes to later."""
    stage.clock.set("2026-10-26T11:00:00Z")
    words = ("days", "--period", "daily", "--zone", "Europe/Berlin", "--trigger", "airflow")
    told = {
        "AIRFLOW_CTX_DAG_ID": "days",
        "AIRFLOW_CTX_TASK_ID": "close",
        "AIRFLOW_CTX_DAG_RUN_ID": "manual__2026-10-26T11:00:00+00:00",
        "AIRFLOW_CTX_TRY_NUMBER": "1",
        "DULY_RUN_TYPE": "manual",
        "DULY_DATA_INTERVAL_START": "2026-10-24 22:00:00+00:00",
        "DULY_DATA_INTERVAL_END": "2026-10-25 23:00:00+00:00",
    }

    stage.exec(*words, command=stage.effect(), environ=told)
    complete = stage.duly("check", "days", "2026-10-25").code
    scheduled = {"DULY_RUN_TYPE": "scheduled", "AIRFLOW_CTX_DAG_RUN_ID": "scheduled__2026-10-24T22:00:00+00:00"}
    stage.exec(*words, command=stage.effect(), environ=told | scheduled)

    by_hand, window = stage.effects()
    assert by_hand.startswith("days:adhoc-days-manual__")
    assert complete == 1
    assert window == "days:2026-10-25[Europe/Berlin]"
    assert stage.duly("check", "days", "2026-10-25").code == 0


def test_a_run_that_a_person_forces_settles_no_window(stage: Stage) -> None:
    """Cloud Scheduler sends the time of the execution then, minutes after a window came due that nobody has worked."""
    forced = {"CLOUD_SCHEDULER_SCHEDULE_TIME": "2026-11-29T01:41:07.204Z", "CLOUD_SCHEDULER_JOB_NAME": "nightly"}

    said = stage.exec(*NIGHTLY, "--trigger", "cloud-scheduler", command=stage.effect(), environ=forced)

    assert said.code == 0, said
    (key,) = stage.effects()
    assert key.startswith("nightly:adhoc-nightly-2026-11-29T01-41-07")
    assert stage.duly("check", "nightly", "2026-11-29T02:30").code == 1


# -- 7: an id that is another one at each attempt -------------------------------------------------------------------------


def test_each_attempt_of_eventbridge_is_at_the_same_window(stage: Stage) -> None:
    words = (*NIGHTLY, "--trigger", "eventbridge", "--retries", "2", "--no-retry")
    told = {
        "SCHEDULER_SCHEDULED_TIME": "2026-11-29T01:30:00Z",
        "SCHEDULER_SCHEDULE_ARN": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly",
    }

    codes = []
    for attempt, execution in enumerate(("d32c5kddcf5bb8c3", "0a1b2c3d4e5f6a7b", "9f8e7d6c5b4a3f2e"), 1):
        this = told | {"SCHEDULER_ATTEMPT_NUMBER": str(attempt), "SCHEDULER_EXECUTION_ID": execution}
        command = stage.effect("exit 3" if attempt == 1 else "")
        codes.append(stage.exec(*words, command=command, environ=this).code)
        stage.clock.advance("10m")

    assert codes == [3, 0, 0]
    assert stage.effects() == ["nightly:2026-11-29T02:30:00[Europe/Berlin]"] * 2
    assert stage.outcomes() == ["failed", "completed"]


def test_an_input_that_nobody_has_filled_in_runs_nothing(stage: Stage) -> None:
    told = {
        "SCHEDULER_SCHEDULED_TIME": "<aws.scheduler.scheduled-time>",
        "SCHEDULER_SCHEDULE_ARN": "<aws.scheduler.schedule-arn>",
    }

    said = stage.exec(*NIGHTLY, "--trigger", "eventbridge", command=stage.effect(), environ=told)

    assert said.code == 64
    assert "SCHEDULER_SCHEDULED_TIME is not set by EventBridge Scheduler" in said.talk
    assert stage.effects() == []


def on_path(told: dict[str, str], folder: Path) -> dict[str, str]:
    """What a service is told, with a PATH on which a shell is too."""
    return {**told, "PATH": f"{folder}:{os.environ['PATH']}"}
