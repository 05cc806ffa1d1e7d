"""`manage.py duly` of a real Django project: the page about Django, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.test_readme import ROOT, blocks
from tests.servers import Server
from tests.story import SOURCE

PAGE = (ROOT / "docs" / "django.md").read_text(encoding="utf-8")
SETTINGS, JOBS = blocks(PAGE, "python")

BEFORE = """
import json, os
SECRET_KEY = "a test"
DATABASES = {"default": json.loads(os.environ["DATABASE"])}
INSTALLED_APPS = ["shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
MANAGE = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
MODELS = """
from django.db import models

class Export(models.Model):
    day = models.DateField(primary_key=True)
"""
MORE = """

@ledger.job("bill", duly.cron("0 0 * * *", zone="UTC"), catch_up=duly.EACH, retries=0)
def bill(run):
    with run.tx.cursor():
        Export.objects.create(day="1999-01-01")
        raise ZeroDivisionError
"""


class Project:
    """A project in a folder, with what the page says that it has."""

    def __init__(self, folder: Path, where: str) -> None:
        self.folder = folder
        (folder / "shop").mkdir()
        (folder / "manage.py").write_text(MANAGE)
        (folder / "settings.py").write_text(BEFORE + SETTINGS)
        (folder / "shop" / "__init__.py").touch()
        (folder / "shop" / "models.py").write_text(MODELS)
        (folder / "shop" / "jobs.py").write_text(JOBS)
        self._database: dict[str, object] = {"ENGINE": "django.db.backends.sqlite3", "NAME": where}
        if where.startswith("postgresql://"):
            url = urlsplit(where)
            named: dict[str, object] = {
                "USER": url.username,
                "PASSWORD": url.password,
                "HOST": url.hostname,
                "PORT": url.port,
            }
            self._database = {"ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:]} | named
        self.manage("makemigrations", "shop")

    def manage(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return self._call([sys.executable, "-W", "error", "manage.py", *words], environ)

    def shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        return self._call(["sh", "-e", "-c", commands], {})

    def _call(self, words: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
        ours = {"DATABASE": json.dumps(self._database), "PYTHONPATH": SOURCE, "NO_COLOR": "1", "PYTHONUTF8": "1"}
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        return subprocess.run(
            words, cwd=self.folder, env={**kept, **ours, **path, **environ}, capture_output=True, text=True, check=False
        )

    def exports(self) -> list[str]:
        said = self.manage(
            "shell", "-c", "from shop.models import Export\nprint([str(each.day) for each in Export.objects.all()])"
        )
        return re.findall(r"\d{4}-\d\d-\d\d", said.stdout)


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "sqlite":
        return Project(tmp_path, str(tmp_path / "shop.db"))
    server: Server = request.getfixturevalue("server")
    return Project(tmp_path, server.new_database())


def newest() -> date:
    """The newest day that is due at 02:30 in Berlin, or one that was: midnight may come while a test is told."""
    return (datetime.now(UTC) - timedelta(days=1, hours=3)).date()


def test_the_page_migrates_works_what_is_owed_once_and_shows_it(project: Project) -> None:
    (block,) = blocks(PAGE, "sh")

    said = project.shell(block)
    again = project.manage("duly", "work")

    assert said.returncode == 0, said
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    (day,) = project.exports()
    assert day in said.stdout
    assert date.fromisoformat(day) in {newest() - timedelta(days=1), newest(), newest() + timedelta(days=1)}


def test_a_window_is_worked_by_name_and_the_ledger_is_the_projects(project: Project) -> None:
    project.manage("migrate")

    first = project.manage("duly", "work", "export-day", "--window", "2026-10-25", "-v")
    second = project.manage("duly", "work", "export-day", "--window", "2026-10-25", "-v", "--settings=settings")
    shown = project.manage("duly", "runs", "export-day", "--json")
    early = project.manage("duly", "work", "export-day", "--window", "2099-01-01")

    assert first.stderr == "duly: export-day:2026-10-25[Europe/Berlin]  completed\n"
    assert second.stderr == "duly: export-day:2026-10-25[Europe/Berlin]  was complete\n"
    assert [run["key"] for run in json.loads(shown.stdout)["runs"]] == ["export-day:2026-10-25[Europe/Berlin]"]
    assert project.exports() == ["2026-10-25"]
    assert early.returncode == 75
    assert project.manage("duly", "explain", "export-day", "2026-10-25").returncode == 0


def test_what_a_job_raises_leaves_no_effect_and_the_others_are_worked(project: Project) -> None:
    project.manage("migrate")
    jobs = project.folder / "shop" / "jobs.py"
    jobs.write_text(jobs.read_text() + MORE)

    said = project.manage("duly", "work")
    waits = project.manage("duly", "check", "bill")
    one = project.manage("duly", "work", "export-day")

    assert said.returncode == 1
    assert "ZeroDivisionError" in said.stderr
    assert "1999-01-01" not in project.exports()
    assert len(project.exports()) == 1
    assert (waits.returncode, one.returncode) == (1, 0)


def test_the_window_that_a_scheduler_elsewhere_meant_is_worked(project: Project) -> None:
    project.manage("migrate")
    due = datetime(2026, 10, 26, 1, 30, tzinfo=UTC)

    said = project.manage(
        *("duly", "work", "export-day", "--trigger", "kubernetes"),
        JOB_NAME=f"export-{int(due.timestamp()) // 60}",
        POD_NAME="export-x",
    )

    assert said.returncode == 0, said
    assert project.exports() == ["2026-10-25"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("work", "exprot-day"), "declares no job 'exprot-day', but export-day"),
        (("work", "--window", "2026-10-25"), "name that, and one of the two"),
        (("work", "--jobs", "shop.job:ledger"), "there is no module 'shop.job' here"),
        (("stauts",), "did you mean status?"),
        (("work", "export-day", "--trigger", "kubernetes"), "JOB_NAME is not set"),
    ],
)
def test_what_cannot_be_understood_is_told_with_a_next_step(words: tuple[str, ...], what: str, tmp_path: Path) -> None:
    project = Project(tmp_path, str(tmp_path / "shop.db"))
    project.manage("migrate")

    said = project.manage("duly", *words)

    assert said.returncode == 64
    assert what in said.stderr
    assert "try: " in said.stderr


def test_djangos_own_way_to_call_it_answers_with_the_code(tmp_path: Path) -> None:
    project = Project(tmp_path, str(tmp_path / "shop.db"))
    project.manage("migrate")
    call = (
        "from django.core.management import call_command\ncall_command('duly', 'work', 'export-day', '--window', {!r})"
    )

    well = project.manage("shell", "-c", call.format("2026-10-25"))
    early = project.manage("shell", "-c", call.format("2099-01-01"))

    assert (well.returncode, early.returncode) == (0, 75), (well, early)
    assert "work [JOB…]" in project.manage("duly", "--help").stdout


IN_A_PROGRAM = """
import os
from django.core.management import call_command

os.environ["DULY_LEDGER"] = "sqlite:////nowhere/else.db"
before = dict(os.environ)
call_command("duly", "work", "export-day", "--window", "2026-10-25")
for words in (("status",), ("runs", "export-day", "--config", "duly.toml"), ("stauts",), ("check", "export-day", "2026-10-24")):
    try:
        call_command("duly", *words)
    except SystemExit as e:
        print("code", e.code)
    assert dict(os.environ) == before
call_command("duly", "exec", "export-day", "--window", "2026-10-25", "--", "false")
print("unchanged", dict(os.environ) == before)
"""


def test_a_program_that_calls_it_has_the_environment_that_it_had(tmp_path: Path) -> None:
    project = Project(tmp_path, str(tmp_path / "shop.db"))
    project.manage("migrate")
    (tmp_path / "duly.toml").write_text("")

    said = project.manage("shell", "-c", IN_A_PROGRAM)

    assert said.returncode == 0, said
    assert "2026-10-25" in said.stdout
    assert said.stdout.splitlines()[-1] == "unchanged True"
    assert "nowhere" not in said.stdout + said.stderr


def test_who_named_a_ledger_that_is_not_there_is_told(tmp_path: Path) -> None:
    project = Project(tmp_path, str(tmp_path / "shop.db"))

    said = project.manage("duly", "status")

    assert said.returncode == 69
    assert "named by DATABASES of the settings" in said.stderr


def test_the_code_is_that_of_the_first_job_that_went_wrong_and_a_jobs_own_error_is_1(tmp_path: Path) -> None:
    project = Project(tmp_path, str(tmp_path / "shop.db"))
    project.manage("migrate")
    jobs = project.folder / "shop" / "jobs.py"
    busy = MORE.replace("raise ZeroDivisionError", "raise duly.LedgerBusy('of another ledger')")
    jobs.write_text(jobs.read_text() + busy)

    said = project.manage("duly", "work")

    assert said.returncode == 1
    assert "of another ledger" in said.stderr
    assert len(project.exports()) == 1
