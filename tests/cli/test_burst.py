"""A host where 64 jobs start in the same second: cron at 03:00."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

JOBS = 64


def test_64_jobs_at_once_all_complete(tmp_path: Path) -> None:
    """No ledger is there when they start, so they also race to make it."""
    path = tmp_path / "ledger.db"
    source = str(Path(__file__).parent.parent.parent / "src")
    flags = ["--ledger", f"sqlite:///{path}", "--period", "daily", "--zone", "UTC", "--", "true"]

    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "duly", "exec", f"job-{n}", *flags],
            env={**os.environ, "PYTHONPATH": source},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for n in range(JOBS)
    ]
    said = [job.communicate()[0] for job in jobs]

    assert Counter(job.returncode for job in jobs) == {0: JOBS}, said
    assert said == [""] * JOBS
    connection = sqlite3.connect(path)
    assert connection.execute("select count(*) from duly_run where state = 'completed'").fetchone() == (JOBS,)
    assert connection.execute("select outcome, count(*) from duly_attempt group by 1").fetchall() == [
        ("completed", JOBS)
    ]
    connection.close()
