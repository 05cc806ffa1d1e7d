"""DAGs of `campaigns.airflow`, read by Airflow 2 and 3: days whose runs have an interval, and fires whose runs have none.

Each has a task in a shell that keeps what it is told, one that is wrapped, and one in Python. The wrapped one fails once.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path

import pendulum
from airflow import DAG
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.timetables.trigger import CronTriggerTimetable

import duly
from duly.trigger.airflow import task_of

try:
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.providers.standard.operators.python import PythonOperator
except ImportError:  # Airflow 2
    from airflow.operators.bash import BashOperator
    from airflow.operators.python import PythonOperator

FOLDER = Path(os.environ["DULY_CAMPAIGN"])
ZONE = "Europe/Berlin"
TOLD = {
    "DULY_RUN_TYPE": "{{ dag_run.run_type }}",
    "DULY_DATA_INTERVAL_START": "{{ dag_run.data_interval_start }}",
    "DULY_DATA_INTERVAL_END": "{{ dag_run.data_interval_end }}",
}
ONCE = 'if [ ! -e "{mark}" ]; then touch "{mark}"; exit 3; fi; echo "$DULY_RUN_KEY" >> "{effects}"'

ledger = duly.sqlite(FOLDER / "python.db")

# Airflow goes on over a missing hour, and takes the second pass of one that there is twice; so the job says it, too.
SCHEDULES = {
    "days": (
        duly.daily(ZONE),
        ("--period", "daily"),
        CronDataIntervalTimetable("0 0 * * *", timezone=ZONE),
        "2026-10-24",
    ),
    "fires": (
        duly.cron("30 2 * * *", zone=ZONE, gap="shift_forward", fold="second"),
        ("--cron", "'30 2 * * *'", "--gap", "shift_forward", "--fold", "second"),
        CronTriggerTimetable("30 2 * * *", timezone=ZONE),
        "2026-03-28",
    ),
}
# Tasks of a DAG that has ended are not begun by Airflow 2, whoever triggers it.
SCHEDULES["hand"] = (*SCHEDULES["days"][:3], "2026-10-01")


def declared(name: str, schedule: duly.Schedule) -> duly.Job[sqlite3.Connection]:
    @ledger.job(name, schedule, catch_up=duly.LATEST)
    def work(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.execute("create table if not exists effect (key text)")
        run.tx.execute("insert into effect values (?)", (str(run.key),))

    return work


for name, (schedule, flags, timetable, first) in SCHEDULES.items():
    start = pendulum.parse(first, tz=ZONE)
    with DAG(
        name,
        schedule=timetable,
        start_date=start,
        end_date=None if name == "hand" else start.add(days=2, hours=12),
        catchup=name != "hand",
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args={"retries": 2, "retry_delay": timedelta(seconds=1)},
    ) as dag:
        told = BashOperator(
            task_id="told",
            bash_command=f"env | grep -E '^(AIRFLOW_CTX|DULY_[RD])' > {FOLDER}/told-{name}-$AIRFLOW_CTX_TRY_NUMBER-$$.env",
            env=TOLD,
            append_env=True,
        )
        once = ONCE.format(mark=f"{FOLDER}/{name}-{{label}}", effects=f"{FOLDER}/{name}.effects")
        wrapped = BashOperator(
            task_id="wrapped",
            bash_command=f"{sys.executable} -m duly exec {name} --ledger sqlite:///{FOLDER}/exec.db --trigger airflow"
            f" {' '.join(flags)} --zone {ZONE} --retries 2 --no-retry -- sh -c '{once}'",
            env=TOLD,
            append_env=True,
        )
        in_python = PythonOperator(task_id="in_python", python_callable=task_of(declared(name, schedule)))
        told >> wrapped >> in_python
