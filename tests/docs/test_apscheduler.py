"""The page about APScheduler: its program runs, and its job works the window of its own next time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "apscheduler.md").read_text(encoding="utf-8")

FIRE = """
import threading
from datetime import datetime, timedelta
from apscheduler.events import EVENT_ALL

ended = threading.Event()
events = []

def told(event):
    if hasattr(event, "retval"):
        events.append(event)
        ended.set()

scheduler.add_listener(told, EVENT_ALL)
yesterday = datetime.now(job.trigger.timezone).replace(hour=2, minute=30, second=0, microsecond=0, fold=0) - timedelta(days=1)
job.trigger.end_date = yesterday + timedelta(hours=3)
job.modify(next_run_time=job.trigger.get_next_fire_time(None, yesterday))
assert ended.wait(60)
scheduler.shutdown()
assert events[0].exception is None, events[0].traceback
assert sqlite3.connect("jobs.db").execute("select count(*) from closed").fetchone() == (1,)
print(events[0].retval.key)
"""


def test_its_job_works_the_window_of_the_time_for_which_it_is_called(tmp_path: Path) -> None:
    (program,), (shell,) = blocks(PAGE, "python"), blocks(PAGE, "sh")

    ended = subprocess.run(
        [sys.executable, "-c", f"{program}\n{FIRE}"],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    key = ended.stdout.strip()
    environ = here(tmp_path) | {"DULY_LEDGER": f"sqlite:///{tmp_path}/jobs.db"}
    shown = subprocess.run(["sh", "-c", shell], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert key.startswith("close-day:")
    assert key.removeprefix("close-day:").partition("[")[0] in shown.stdout, shown
