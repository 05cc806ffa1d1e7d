"""Airflow 2 and 3: what a task knows of the DAG run that it belongs to.

A scheduled run has a data interval. `CronTriggerTimetable`, which a cron string is in Airflow 3, makes it of no length: both
ends are the time that it fires for. `CronDataIntervalTimetable`, which a cron string is in Airflow 2, makes it the period, and
the run's logical date the period's start. So the logical date tells nothing by itself, and is not read; the interval is.

A manual run has an interval too, of the period that ended last, and its name holds when it was triggered: it borrows a window
(apache/airflow#41014, #43547). So the run's type is asked first, and a run that no schedule made is for no window: manual ones,
those of assets and data sets, and those that another DAG triggers. A backfill's run is for the window that it catches up.

A shell gets the names of DAG, run and task, and the number of the try, from `BashOperator`; type and interval by templates:

    env={
        "DULY_RUN_TYPE": "{{ dag_run.run_type }}",
        "DULY_DATA_INTERVAL_START": "{{ dag_run.data_interval_start }}",
        "DULY_DATA_INTERVAL_END": "{{ dag_run.data_interval_end }}",
    }, append_env=True

A task in Python gets them in its context: `task_of(job)` is its callable.
"""

from __future__ import annotations

from duly.errors import AGAIN, DECIDED, THE_JOBS, TriggerUnclear, meaning_of
from duly.trigger import (
    CATCH_UP,
    MANUAL,
    RETRY,
    SCHEDULED,
    Firing,
    Meant,
    instant_of,
    moment_of,
    name_of,
    number_of,
    optional_name_of,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from duly.work.job import Job
    from duly.work.payload import Json

SOURCE = "airflow"

_KINDS = {
    "scheduled": SCHEDULED,
    "backfill": CATCH_UP,
    "manual": MANUAL,
    "asset_triggered": MANUAL,
    "asset_materialization": MANUAL,
    "dataset_triggered": MANUAL,
    "operator_triggered": MANUAL,
}


def read(environment: Mapping[str, str]) -> Firing:
    """What the environment of a BashOperator's command tells. Raises `TriggerUnclear` where the templates are missing."""
    if not environment.get("AIRFLOW_CTX_DAG_ID") or not environment.get("AIRFLOW_CTX_DAG_RUN_ID"):
        raise TriggerUnclear(
            "AIRFLOW_CTX_DAG_ID and AIRFLOW_CTX_DAG_RUN_ID are not set: no task of Airflow has started this"
        )
    if not environment.get("DULY_RUN_TYPE"):
        raise TriggerUnclear(
            "DULY_RUN_TYPE is not set, and Airflow itself does not tell a command which window its run is for: add to the"
            " operator env={'DULY_RUN_TYPE': '{{ dag_run.run_type }}', 'DULY_DATA_INTERVAL_START':"
            " '{{ dag_run.data_interval_start }}', 'DULY_DATA_INTERVAL_END': '{{ dag_run.data_interval_end }}'} and"
            " append_env=True"
        )
    return _firing(
        name_of("AIRFLOW_CTX_DAG_ID", environment["AIRFLOW_CTX_DAG_ID"]),
        name_of("AIRFLOW_CTX_DAG_RUN_ID", environment["AIRFLOW_CTX_DAG_RUN_ID"]),
        task=optional_name_of("AIRFLOW_CTX_TASK_ID", environment.get("AIRFLOW_CTX_TASK_ID")),
        tries=number_of("AIRFLOW_CTX_TRY_NUMBER", environment.get("AIRFLOW_CTX_TRY_NUMBER")),
        run_type=("DULY_RUN_TYPE", environment["DULY_RUN_TYPE"]),
        interval=lambda: (
            _instant("DULY_DATA_INTERVAL_START", environment),
            _instant("DULY_DATA_INTERVAL_END", environment),
        ),
    )


def read_context(context: Mapping[str, Any]) -> Firing:
    """What the context of a task tells, as Airflow hands it to a Python callable. Raises `TriggerUnclear`."""
    try:
        dag_run, task = context["dag_run"], context["ti"]
        ids, task_id, tries = (dag_run.dag_id, dag_run.run_id), task.task_id, task.try_number
        run_type, start, end = dag_run.run_type, dag_run.data_interval_start, dag_run.data_interval_end
    except (AttributeError, LookupError, TypeError) as e:
        raise TriggerUnclear(
            f"the context of the task has no {e}: Airflow hands it to a callable of PythonOperator, or of @task, that takes"
            " **context"
        ) from e
    return _firing(
        name_of("dag_run.dag_id", ids[0]),
        name_of("dag_run.run_id", ids[1]),
        task=name_of("ti.task_id", task_id),
        tries=number_of("ti.try_number", tries),
        run_type=("dag_run.run_type", str(run_type)),
        interval=lambda: (
            None if start is None else moment_of("dag_run.data_interval_start", start),
            None if end is None else moment_of("dag_run.data_interval_end", end),
        ),
    )


def task_of(
    job: Job[Any], *, scope: str = "", payload: Json = None, wait: int | float | str | None = None
) -> Callable[..., str]:
    """A callable of PythonOperator, or of `@task`, that works the window for which its DAG run is. It returns the run's key.

    A window that is complete is a success, so that what comes after the task goes on. What may be tried again (another attempt
    holds it, it is not due yet, the ledger is busy) raises `AirflowException`, which Airflow retries; what waits for a person,
    and what no retry mends, `AirflowFailException`; a window that a person skipped, `AirflowSkipException`. What the job
    raises is raised as it is, an error of another ledger's too.
    """

    def work(**context: Any) -> str:
        from duly.trigger.fire import fire
        from duly.work.answers import AlreadyCompleted, Completed

        try:
            # A task that is mapped is one of several parts of a window, and the first would be taken for all of them.
            if not scope and getattr(context.get("ti"), "map_index", -1) >= 0:
                raise TriggerUnclear("scope: a mapped task works a part of its window; give each a scope of its own")
            answer = fire(job, read_context(context), scope=scope, payload=payload, wait=wait)
        except Exception as e:
            if (meaning := meaning_of(e)) == THE_JOBS:
                raise
            raise _shown(e, meaning) from e
        if isinstance(answer, (Completed, AlreadyCompleted)):
            return answer.key
        raise _exceptions().AirflowException(f"duly: {answer}; this task is to be tried again")

    work.__name__ = work.__qualname__ = job.name
    work.__doc__ = job.__doc__
    return work


def _shown(error: Exception, meaning: str) -> Exception:
    """What Airflow is told of an error of duly's: tried again, skipped, or failed for good."""
    kinds = _exceptions()
    if meaning == DECIDED:
        kind = kinds.AirflowSkipException
    elif meaning == AGAIN:
        kind = kinds.AirflowException
    else:
        kind = kinds.AirflowFailException
    told: Exception = kind(f"duly: {error}")
    return told


def _exceptions() -> Any:
    try:
        from airflow.sdk import exceptions

        _ = exceptions.AirflowSkipException  # not there in Airflow 3.0, which has them where Airflow 2 had
    except (ImportError, AttributeError):
        from airflow import exceptions
    return exceptions


def _firing(
    dag: str,
    run: str,
    *,
    task: str,
    tries: int,
    run_type: tuple[str, str],
    interval: Callable[[], tuple[int | None, int | None]],
) -> Firing:
    """The interval of no length is that of a timetable of fires. That of a run that no schedule made is not looked at."""
    place, text = run_type
    said = text.rpartition(".")[2].lower()  # as Python prints a member of an enumeration, or its value
    kind = _KINDS.get(said)
    if kind is None:
        raise TriggerUnclear(f"{place}: {shown(text)} is none of {', '.join(_KINDS)}")
    name, attempt = f"{dag}/{run}", "/".join(filter(None, (task, str(tries or ""))))
    if kind == MANUAL:
        return Firing(SOURCE, MANUAL, name, attempt, f"the run's type, {said}", None)
    start, end = interval()
    if start is None or end is None:
        raise TriggerUnclear(
            f"data interval: this {said} run of {dag} has none, so that nothing says which window it is for"
        )
    if tries > 1:
        kind = RETRY
    return Firing(SOURCE, kind, name, attempt, "the run's data interval", Meant(end, start if start < end else None))


def _instant(name: str, environment: Mapping[str, str]) -> int | None:
    text = environment.get(name, "")
    return None if text in ("", "None") else instant_of(name, text)  # what a template makes of a run that has none
