"""A Django project migrates the ledger with its own tables, and duly finds nothing left to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import duly
from duly.store.migrations import postgres, sqlite, steps
from tests.servers import Server

pytest.importorskip("django", reason="Django is not installed: no project of its own migrates a ledger here")

SOURCE = str(Path(duly.__file__).parent.parent)

# A project with an app of its own, beside duly's.
MANAGE = """
import json, os, sys
from django.conf import settings
settings.configure(
    DATABASES={"default": json.loads(os.environ["DATABASE"])},
    INSTALLED_APPS=["shop", "duly.store.migrations.django"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
MODELS = """
from django.db import models

class Export(models.Model):
    day = models.TextField()
"""


class Project:
    """A Django project in a folder, on a database."""

    def __init__(self, folder: Path, where: str) -> None:
        self.folder, self.where = folder, where
        (folder / "shop").mkdir(parents=True)
        (folder / "shop" / "__init__.py").touch()
        (folder / "shop" / "models.py").write_text(MODELS)
        (folder / "manage.py").write_text(MANAGE)
        self.on_postgres = where.startswith("postgresql://")
        self.manage("makemigrations", "shop")

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the project's."""
        return subprocess.run(
            [sys.executable, "-W", "error", "manage.py", *words],
            cwd=self.folder,
            env={**os.environ, "DATABASE": json.dumps(self._database), "PYTHONPATH": SOURCE, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def _database(self) -> dict[str, str | int | None]:
        if not self.on_postgres:
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": self.where}
        url = urlsplit(self.where)
        named = {"USER": url.username, "PASSWORD": url.password, "HOST": url.hostname, "PORT": url.port}
        return {"ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:]} | named

    def lacking(self) -> list[str]:
        """What `duly db migrate` would apply."""
        pending = postgres.pending(self.where) if self.on_postgres else sqlite.pending(self.where)
        return [step.name for step in pending]

    def create(self) -> None:
        """Make the ledger without Django."""
        if self.on_postgres:
            postgres.create(self.where)
        else:
            sqlite.create(self.where)

    def complete_one(self) -> None:
        """Take and complete a run of the ledger."""
        ledger = duly.postgres(self.where) if self.on_postgres else duly.sqlite(self.where)
        claim = ledger.take("export:2026-10-05[UTC]")
        assert claim
        claim.complete()


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "sqlite":
        return Project(tmp_path / "project", str(tmp_path / "shop.db"))
    server: Server = request.getfixturevalue("server")
    return Project(tmp_path / "project", server.new_database())


def test_every_step_of_the_ledger_has_its_migration() -> None:
    folder = Path(duly.__file__).parent / "store" / "migrations" / "django" / "migrations"

    found = sorted(path.stem for path in folder.glob("0*.py"))

    assert found == [f"{step.number:04}_{step.name}" for step in steps("sqlite")]


def test_migrate_makes_the_ledger_once_and_duly_finds_nothing_to_do(project: Project) -> None:
    first, second = project.manage("migrate"), project.manage("migrate")

    assert first.returncode == 0, first.stderr
    assert "Applying duly.0001_ledger... OK" in first.stdout
    assert "No migrations to apply" in second.stdout, second.stderr
    assert project.lacking() == []
    project.complete_one()


def test_a_ledger_that_is_there_already_is_adopted(project: Project) -> None:
    project.create()
    project.complete_one()

    said = project.manage("migrate")

    assert "Applying duly.0001_ledger... OK" in said.stdout, said.stderr
    assert project.lacking() == []


def test_there_are_no_models_to_make_migrations_for(project: Project) -> None:
    project.manage("migrate")

    said = project.manage("makemigrations", "--check", "--dry-run")

    assert (said.returncode, said.stdout) == (0, "No changes detected\n"), said.stderr


def test_a_ledger_is_not_migrated_backwards_and_the_reason_is_told(project: Project) -> None:
    project.manage("migrate")

    said = project.manage("migrate", "duly", "zero")

    assert said.returncode == 1
    assert "a ledger only grows" in said.stderr
    project.complete_one()


def test_the_sql_can_be_read_before_it_is_run(project: Project) -> None:
    said = project.manage("sqlmigrate", "duly", "0001")

    assert said.returncode == 0, said.stderr
    assert "create table duly" in said.stdout
    assert "migration (number, name, sha256, applied_at, by)" in said.stdout
