"""Tasks of Airflow 2 and 3: the run's interval tells, and only where a schedule made the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

import duly
from duly.errors import TriggerUnclear, WindowInvalid
from duly.schedule.meant import window_meant
from duly.schedule.spells import Spell
from duly.trigger import adhoc_id, read, trigger_words
from duly.trigger.airflow import read_context

BERLIN = "Europe/Berlin"
DAYS = duly.daily(BERLIN)
FIRES = duly.cron("30 2 * * *", zone=BERLIN, gap="shift_forward", fold="second")

# What `campaigns.airflow` printed: Airflow 3.3.2 and 2.11.2, dag, run, logical date, try, interval, type.
RECORDED = {
    "3: a day of 25 hours, as an interval": """\
AIRFLOW_CTX_DAG_ID=days
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=scheduled__2026-10-25T23:00:00+00:00
AIRFLOW_CTX_LOGICAL_DATE=2026-10-24T22:00:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-10-25 23:00:00+00:00
DULY_DATA_INTERVAL_START=2026-10-24 22:00:00+00:00
DULY_RUN_TYPE=DagRunType.SCHEDULED""",
    "3: a second try": """\
AIRFLOW_CTX_DAG_ID=days
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=scheduled__2026-10-24T22:00:00+00:00
AIRFLOW_CTX_LOGICAL_DATE=2026-10-23T22:00:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=2
DULY_DATA_INTERVAL_END=2026-10-24 22:00:00+00:00
DULY_DATA_INTERVAL_START=2026-10-23 22:00:00+00:00
DULY_RUN_TYPE=DagRunType.SCHEDULED""",
    "3: a fire in the missing hour": """\
AIRFLOW_CTX_DAG_ID=fires
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=scheduled__2026-03-29T01:30:00+00:00
AIRFLOW_CTX_LOGICAL_DATE=2026-03-29T01:30:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-03-29 01:30:00+00:00
DULY_DATA_INTERVAL_START=2026-03-29 01:30:00+00:00
DULY_RUN_TYPE=DagRunType.SCHEDULED""",
    "3: a person's": """\
AIRFLOW_CTX_DAG_ID=days
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=manual__2026-11-30T20:41:32.604330+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=None
DULY_DATA_INTERVAL_START=None
DULY_RUN_TYPE=DagRunType.MANUAL""",
    "3: of a backfill": """\
AIRFLOW_CTX_DAG_ID=days
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=backfill__2026-10-20T22:00:00+00:00
AIRFLOW_CTX_LOGICAL_DATE=2026-10-19T22:00:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-10-20 22:00:00+00:00
DULY_DATA_INTERVAL_START=2026-10-19 22:00:00+00:00
DULY_RUN_TYPE=DagRunType.BACKFILL""",
    "2: a day of 25 hours, as an interval": """\
AIRFLOW_CTX_DAG_ID=days
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=scheduled__2026-10-24T22:00:00+00:00
AIRFLOW_CTX_EXECUTION_DATE=2026-10-24T22:00:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-10-25 23:00:00+00:00
DULY_DATA_INTERVAL_START=2026-10-24 22:00:00+00:00
DULY_RUN_TYPE=scheduled""",
    "2: a fire in the missing hour": """\
AIRFLOW_CTX_DAG_ID=fires
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=scheduled__2026-03-29T01:30:00+00:00
AIRFLOW_CTX_EXECUTION_DATE=2026-03-29T01:30:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-03-29 01:30:00+00:00
DULY_DATA_INTERVAL_START=2026-03-29 01:30:00+00:00
DULY_RUN_TYPE=scheduled""",
    "2: a person's, with the interval of a run that was scheduled": """\
AIRFLOW_CTX_DAG_ID=hand
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=manual__2026-11-30T21:19:16+00:00
AIRFLOW_CTX_EXECUTION_DATE=2026-11-30T21:19:16+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-11-29 23:00:00+00:00
DULY_DATA_INTERVAL_START=2026-11-28 23:00:00+00:00
DULY_RUN_TYPE=manual""",
    "2: of a backfill": """\
AIRFLOW_CTX_DAG_ID=hand
AIRFLOW_CTX_DAG_OWNER=airflow
AIRFLOW_CTX_DAG_RUN_ID=backfill__2026-10-23T22:00:00+00:00
AIRFLOW_CTX_EXECUTION_DATE=2026-10-23T22:00:00+00:00
AIRFLOW_CTX_TASK_ID=told
AIRFLOW_CTX_TRY_NUMBER=1
DULY_DATA_INTERVAL_END=2026-10-24 22:00:00+00:00
DULY_DATA_INTERVAL_START=2026-10-23 22:00:00+00:00
DULY_RUN_TYPE=backfill""",
}


def told(name: str, **instead: str) -> dict[str, str]:
    """A recorded environment, with what a story has otherwise."""
    return {**dict(line.split("=", 1) for line in RECORDED[name].splitlines()), **instead}


def window(environment: dict[str, str], schedule: duly.Schedule) -> str:
    found = read("airflow", environment)
    assert found.meant is not None
    return window_meant([Spell(schedule, 1, None, None)], found.meant).name


@pytest.mark.parametrize(
    ("name", "kind", "schedule", "meant"),
    [
        ("3: a day of 25 hours, as an interval", "scheduled", DAYS, "2026-10-25[Europe/Berlin]"),
        ("3: a second try", "retry", DAYS, "2026-10-24[Europe/Berlin]"),
        ("3: a fire in the missing hour", "scheduled", FIRES, "2026-03-29T02:30:00[Europe/Berlin]"),
        ("3: of a backfill", "catch-up", DAYS, "2026-10-20[Europe/Berlin]"),
        ("2: a day of 25 hours, as an interval", "scheduled", DAYS, "2026-10-25[Europe/Berlin]"),
        ("2: a fire in the missing hour", "scheduled", FIRES, "2026-03-29T02:30:00[Europe/Berlin]"),
        ("2: of a backfill", "catch-up", DAYS, "2026-10-24[Europe/Berlin]"),
    ],
)
def test_the_interval_of_a_run_that_a_schedule_made_names_its_window(
    name: str, kind: str, schedule: duly.Schedule, meant: str
) -> None:
    assert read("airflow", told(name)).kind == kind
    assert window(told(name), schedule) == meant


# Clocks in Berlin: 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
# Airflow's own times on these nights, by its timetables of either version: 02:30 is 03:30 in March, the second one in October.
@pytest.mark.parametrize(
    ("schedule", "start", "end", "meant"),
    [
        (FIRES, "2026-10-25 01:30:00+00:00", "2026-10-25 01:30:00+00:00", "2026-10-25T02:30:00[Europe/Berlin]"),
        (FIRES, "2026-10-24 00:30:00+00:00", "2026-10-25 01:30:00+00:00", "2026-10-25T02:30:00[Europe/Berlin]"),
        (FIRES, "2026-03-28 01:30:00+00:00", "2026-03-29 01:30:00+00:00", "2026-03-29T02:30:00[Europe/Berlin]"),
        (
            duly.cron("30 * * * *", zone=BERLIN),
            "2026-10-25 00:30:00+00:00",
            "2026-10-25 01:30:00+00:00",
            "2026-10-25T02:30:00~2[Europe/Berlin]",
        ),
        (
            duly.cron("30 * * * *", zone=BERLIN),
            "2026-10-25 00:30:00+00:00",
            "2026-10-25 00:30:00+00:00",
            "2026-10-25T02:30:00[Europe/Berlin]",
        ),
        (
            duly.hourly(BERLIN),
            "2026-10-25 01:00:00+00:00",
            "2026-10-25 02:00:00+00:00",
            "2026-10-25T02~2[Europe/Berlin]",
        ),
        (DAYS, "2026-03-28 23:00:00+00:00", "2026-03-29 22:00:00+00:00", "2026-03-29[Europe/Berlin]"),
        (DAYS, "2026-03-29 22:00:00+00:00", "2026-03-29 22:00:00+00:00", "2026-03-29[Europe/Berlin]"),
        # A timetable of fires with an interval of a day's length, which on this night is an hour too short.
        (DAYS, "2026-10-24 23:00:00+00:00", "2026-10-25 23:00:00+00:00", "2026-10-25[Europe/Berlin]"),
        # The day's window, whenever it is due: a task that comes before is told so, and is tried again.
        (
            duly.daily(BERLIN, at="02:30"),
            "2026-10-24 22:00:00+00:00",
            "2026-10-25 23:00:00+00:00",
            "2026-10-25[Europe/Berlin]",
        ),
    ],
)
def test_on_nights_of_the_clocks_the_window_is_the_one_of_airflows_interval(
    schedule: duly.Schedule, start: str, end: str, meant: str
) -> None:
    run = told("3: a fire in the missing hour", DULY_DATA_INTERVAL_START=start, DULY_DATA_INTERVAL_END=end)

    assert window(run, schedule) == meant


def test_a_job_with_other_policies_than_airflows_refuses_those_nights_and_names_its_own_time() -> None:
    with pytest.raises(WindowInvalid, match=r"2026-03-29T02:30:00\[Europe/Berlin\] at 2026-03-29T01:00:00Z"):
        window(told("3: a fire in the missing hour"), duly.cron("30 2 * * *", zone=BERLIN))


@pytest.mark.parametrize(
    "run_type",
    [
        "manual",
        "DagRunType.MANUAL",
        "asset_triggered",
        "dataset_triggered",
        "operator_triggered",
        "asset_materialization",
    ],
)
def test_a_run_that_no_schedule_made_is_for_no_window_whatever_interval_it_has(run_type: str) -> None:
    found = read("airflow", told("3: a second try", DULY_RUN_TYPE=run_type))

    assert (found.kind, found.meant) == ("manual", None)


def test_each_try_of_a_manual_run_is_at_the_same_run_and_no_other_dags() -> None:
    first = read("airflow", told("3: a person's"))
    second = read("airflow", told("3: a person's", AIRFLOW_CTX_TRY_NUMBER="2"))
    elsewhere = read("airflow", told("3: a person's", AIRFLOW_CTX_DAG_ID="nights"))

    assert adhoc_id(first) == adhoc_id(second) != adhoc_id(elsewhere)
    assert trigger_words(second).endswith(" told/2")


def test_the_number_of_the_try_is_a_reference_and_no_part_of_what_is_meant() -> None:
    first = read("airflow", told("3: a second try", AIRFLOW_CTX_TRY_NUMBER="1"))
    second = read("airflow", told("3: a second try"))

    assert first.meant == second.meant
    assert first.run == second.run
    assert (first.kind, second.kind) == ("scheduled", "retry")


@pytest.mark.parametrize(
    ("instead", "what"),
    [
        ({"DULY_RUN_TYPE": ""}, "DULY_RUN_TYPE is not set"),
        ({"DULY_RUN_TYPE": "{{ dag_run.run_type }}"}, "is none of scheduled, backfill"),
        ({"DULY_DATA_INTERVAL_END": "None"}, "nothing says which window"),
        ({"DULY_DATA_INTERVAL_START": ""}, "nothing says which window"),
        ({"DULY_DATA_INTERVAL_END": "2026-10-25 23:00"}, "DULY_DATA_INTERVAL_END"),
        ({"AIRFLOW_CTX_DAG_RUN_ID": ""}, "no task of Airflow"),
    ],
)
def test_what_cannot_be_told_is_refused(instead: dict[str, str], what: str) -> None:
    with pytest.raises(TriggerUnclear, match=what):
        read("airflow", told("3: a second try", **instead))


def test_the_logical_date_is_not_read() -> None:
    run = told("3: a day of 25 hours, as an interval")
    del run["AIRFLOW_CTX_LOGICAL_DATE"]

    assert window(run, DAYS) == "2026-10-25[Europe/Berlin]"


# -- a task in Python ----------------------------------------------------------------------------------------------------


def context(run_type: str = "scheduled", tries: int = 1, map_index: int = -1) -> dict[str, Any]:
    """What Airflow hands to a callable, as far as it is read: the day of 25 hours."""
    dag_run = SimpleNamespace(
        dag_id="days",
        run_id=f"{run_type}__2026-10-25T23:00:00+00:00",
        run_type=run_type,
        data_interval_start=datetime(2026, 10, 24, 22, tzinfo=UTC),
        data_interval_end=datetime(2026, 10, 26, 0, tzinfo=timezone(timedelta(hours=1))),
    )
    return {"dag_run": dag_run, "ti": SimpleNamespace(task_id="close", try_number=tries, map_index=map_index)}


def test_a_task_in_python_and_a_command_are_told_the_same() -> None:
    command = read("airflow", told("3: a day of 25 hours, as an interval", AIRFLOW_CTX_TASK_ID="close"))
    task = read_context(context())

    assert (task.kind, task.meant, task.attempt) == (command.kind, command.meant, command.attempt)
