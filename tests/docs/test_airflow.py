"""The page about Airflow: its DAGs are built, and their tasks run with what Airflow makes of the templates.

Airflow is not here: its classes are stood for by some that keep what they are given. A real one reads the page in
`campaigns.airflow`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from duly.testing.clock import HandClock
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")

AIRFLOW = """
import re, subprocess, sys
from types import ModuleType

class DAG:
    tasks = {}
    def __init__(self, dag_id, **settings): self.dag_id = dag_id
    def __enter__(self): DAG.now = self
    def __exit__(self, *error): pass

class Operator:
    def __init__(self, **settings):
        self.settings = settings
        DAG.tasks[DAG.now.dag_id] = self

def module(name, **names):
    sys.modules[name] = made = ModuleType(name)
    made.__dict__.update(names)

class AirflowException(Exception): pass
kinds = {name: type(name, (AirflowException,), {}) for name in ("AirflowFailException", "AirflowSkipException")}
exceptions = ModuleType("exceptions")
exceptions.__dict__.update(kinds, AirflowException=AirflowException)
module("airflow", DAG=DAG)
module("airflow.sdk", exceptions=exceptions)
module("airflow.providers")
module("airflow.providers.standard")
module("airflow.providers.standard.operators")
module("airflow.providers.standard.operators.bash", BashOperator=Operator)
module("airflow.providers.standard.operators.python", PythonOperator=Operator)
module("airflow.timetables")
module("airflow.timetables.interval", CronDataIntervalTimetable=lambda cron, timezone: (cron, timezone))
"""

RUN = """
import os
from datetime import UTC
from types import SimpleNamespace

dag_run = SimpleNamespace(
    dag_id="close-day", run_id="scheduled__2026-10-25T23:00:00+00:00", run_type="scheduled",
    data_interval_start=datetime(2026, 10, 24, 22, tzinfo=UTC), data_interval_end=datetime(2026, 10, 25, 23, tzinfo=UTC),
)
told = {"AIRFLOW_CTX_DAG_ID": dag_run.dag_id, "AIRFLOW_CTX_DAG_RUN_ID": dag_run.run_id}
bash = DAG.tasks["close-day"].settings
for name, template in bash["env"].items():
    told[name] = str(getattr(dag_run, re.fullmatch(r"{{ dag_run\\.(\\w+) }}", template)[1]))
assert bash["append_env"]
subprocess.run(["bash", "-c", bash["bash_command"]], env={**os.environ, **told}, check=True)

sqlite3.connect(ledger._store.path).execute("create table export (day text)")
in_python = DAG.tasks["export-day"].settings["python_callable"]
print(in_python(dag_run=dag_run, ti=SimpleNamespace(task_id="export", try_number=1, map_index=-1)))
"""


def test_its_tasks_work_the_window_of_their_interval(tmp_path: Path) -> None:
    HandClock(str(tmp_path / "ledger.db"), at="2026-10-25T23:00:05Z")
    closed = tmp_path / "close.sh"
    closed.write_text('#!/bin/sh\necho "$@" >> closed\n')
    closed.chmod(0o755)
    program = "\n".join(blocks(PAGE, "python")).replace("/var/lib/duly/ledger.db", f"{tmp_path}/ledger.db")

    ended = subprocess.run(
        [sys.executable, "-c", f"{AIRFLOW}\n{program}\n{RUN}"],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "export-day:2026-10-25[Europe/Paris]\n"
    assert (tmp_path / "closed").read_text() == "--day 2026-10-25\n"

    (shell,) = blocks(PAGE, "sh")
    shown = subprocess.run(
        ["sh", "-e", "-c", shell.replace("2026-11-28", "2026-10-25")],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "airflow scheduled close-day/scheduled__2026-10-25T23:00:00+00:00" in shown.stdout


def test_the_nights_are_said_as_the_tests_have_them() -> None:
    (line,) = re.findall(r"^    (--cron .*)$", PAGE, re.MULTILINE)

    assert line == '--cron "30 2 * * *" --zone Europe/Berlin --gap shift_forward --fold second'
    assert 'duly.cron("30 2 * * *", zone="Europe/Berlin", gap="shift_forward", fold="second")' in PAGE
