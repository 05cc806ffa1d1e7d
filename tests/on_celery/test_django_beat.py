"""Beat with its schedule in Django's database: a project of its own, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.exec.stage import environment

pytest.importorskip("django_celery_beat", reason="django-celery-beat is not installed: its scheduler is not told of")

PROJECT = """
import json, queue
from datetime import UTC, datetime, timedelta

import django
from celery import Celery
from django.conf import settings
from django.core.management import call_command

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}},
    INSTALLED_APPS=["django_celery_beat"], USE_TZ=True, TIME_ZONE="UTC", DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    MIGRATION_MODULES={"django_celery_beat": None},
)
django.setup()
call_command("migrate", run_syncdb=True, verbosity=0)
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
from duly.trigger.celery.django_beat import Scheduler

app = Celery("shop", broker="memory://")
app.conf.update(timezone="UTC", broker_transport_options={"polling_interval": 0.01})
hour_ago = datetime.now(UTC) - timedelta(hours=1)
every_minute = CrontabSchedule.objects.create(timezone="Asia/Kolkata")
PeriodicTask.objects.create(name="export", task="work", crontab=every_minute, last_run_at=hour_ago, headers='{"mine": 1}')
interval = IntervalSchedule.objects.create(every=10, period="minutes")
PeriodicTask.objects.create(name="poke", task="work", interval=interval, last_run_at=hour_ago)

def ticked():
    scheduler = Scheduler(app=app)
    while scheduler.tick() == 0:
        pass
    scheduler.close()
    with app.connection_for_read() as connection:
        box = connection.SimpleQueue("celery", no_ack=True)
        while True:
            try:
                headers = box.get(block=False).headers
            except queue.Empty:
                return
            said = {"duly": headers["duly_beat"], "mine": headers.get("mine"), "name": headers["periodic_task_name"]}
            print(json.dumps(said))

ticked()
print(json.dumps("again"))
ticked()
"""


def test_each_message_says_for_which_time_of_its_own_zone_it_is(tmp_path: Path) -> None:
    (tmp_path / "project.py").write_text(PROJECT)
    before = datetime.now(UTC)

    ended = subprocess.run(
        [sys.executable, "project.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )

    after = datetime.now(UTC)
    assert ended.returncode == 0, ended.stderr
    said = [json.loads(line) for line in ended.stdout.splitlines()]
    first = said[: said.index("again")]
    export, poke = sorted(first, key=lambda each: str(each["name"]))
    at = datetime.fromisoformat(export["duly"].pop("at"))
    assert before - timedelta(minutes=1) < at <= after
    assert (at.second, at.microsecond) == (0, 0)
    assert export == {
        "duly": {"entry": "export", "schedule": "TzAwareCrontab", "zone": "Asia/Kolkata", "late": False},
        "mine": 1,
        "name": "export",
    }
    assert poke["duly"] == {"entry": "poke", "schedule": "schedule"}
    # A beat that is started again goes on from what the first wrote down, unless a minute has begun.
    assert all(datetime.fromisoformat(each["duly"]["at"]) > at for each in said[said.index("again") + 1 :])
