"""The page on Alembic is a project that works: it makes the ledger, and autogenerate leaves it alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import duly
from duly.store.migrations import postgres, sqlite
from tests.docs.test_readme import ROOT, blocks
from tests.servers import Server

pytest.importorskip("alembic", reason="Alembic is not installed: autogenerate meets no ledger here")

PAGE = (ROOT / "docs" / "alembic.md").read_text(encoding="utf-8")
ENVIRONMENT, REVISION = blocks(PAGE, "python")
SHOP = """
from sqlalchemy import Column, MetaData, Table, Text
metadata = MetaData()
Table("export", metadata, Column("day", Text))
"""
TEMPLATE = '"""${message}"""\n' + "\n".join(
    [
        "from alembic import op",
        "import sqlalchemy as sa",
        "revision = ${repr(up_revision)}",
        "down_revision = ${repr(down_revision)}",
        "def upgrade():",
        "    ${upgrades}",
        "def downgrade():",
        "    pass",
    ]
)


class Project:
    """A project with the page's env.py and revision, on a database."""

    def __init__(self, folder: Path, where: str) -> None:
        self.folder, self.where = folder, where
        self.on_postgres = where.startswith("postgresql://")
        url = (
            urlsplit(where)._replace(scheme="postgresql+psycopg").geturl() if self.on_postgres else f"sqlite:///{where}"
        )
        (folder / "revisions" / "versions").mkdir(parents=True)
        self.write(
            "alembic.ini", f"[alembic]\nscript_location = revisions\npath_separator = os\nsqlalchemy.url = {url}\n"
        )
        self.write("shop.py", SHOP)
        self.write("revisions/env.py", ENVIRONMENT)
        self.write("revisions/script.py.mako", TEMPLATE)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def alembic(self, *words: str) -> subprocess.CompletedProcess[str]:
        source = str(ROOT / "src")
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "alembic", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": f"{self.folder}:{source}"},
            capture_output=True,
            text=True,
            check=False,
        )

    def generated(self) -> list[str]:
        """What autogenerate would do, and to which table."""
        said = self.alembic("revision", "--autogenerate", "--rev-id", "next")
        assert said.returncode == 0, said.stderr
        (made,) = self.folder.glob("revisions/versions/next_*.py")
        text = made.read_text(encoding="utf-8")
        made.unlink()
        return [f"{verb} {name}" for verb, name in re.findall(r"op\.(\w+)\(\s*(?:op\.f\()?['\"](\w+)['\"]", text)]

    def create(self) -> None:
        """Make the ledger without Alembic."""
        if self.on_postgres:
            postgres.create(self.where)
        else:
            sqlite.create(self.where)

    def complete_one(self) -> None:
        ledger = duly.postgres(self.where) if self.on_postgres else duly.sqlite(self.where)
        claim = ledger.take("export:2026-10-05[UTC]")
        assert claim
        claim.complete()

    def lacking(self) -> list[str]:
        pending = postgres.pending(self.where) if self.on_postgres else sqlite.pending(self.where)
        return [step.name for step in pending]


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "sqlite":
        return Project(tmp_path / "project", str(tmp_path / "shop.db"))
    server: Server = request.getfixturevalue("server")
    return Project(tmp_path / "project", server.new_database())


def test_autogenerate_sees_what_is_missing_and_nothing_of_the_ledger(project: Project) -> None:
    project.create()
    project.complete_one()

    assert project.generated() == ["create_table export"]


def test_autogenerate_would_drop_the_ledger_if_it_were_not_told_to_look_away(project: Project) -> None:
    project.create()
    without = ENVIRONMENT.replace("        include_name=is_not_dulys,\n", "")
    assert without != ENVIRONMENT
    project.write("revisions/env.py", without)

    assert {"drop_table run", "drop_table duly_run"} & set(project.generated())


def test_autogenerate_still_drops_what_is_no_longer_a_model(project: Project) -> None:
    project.create()
    project.write("revisions/versions/0_old.py", OLD)
    assert project.alembic("upgrade", "head").returncode == 0

    assert set(project.generated()) == {"create_table export", "drop_table old"}


OLD = """
from alembic import op
from sqlalchemy import Column, Text
revision, down_revision = "old", None
def upgrade():
    op.create_table("old", Column("day", Text))
"""


@pytest.mark.parametrize("ledger_is_there", [False, True])
def test_the_revision_makes_the_ledger_unless_it_is_there(project: Project, ledger_is_there: bool) -> None:
    if ledger_is_there:
        project.create()
        project.complete_one()
    project.write("revisions/versions/0_old.py", OLD)
    project.write("revisions/versions/1_duly.py", REVISION.replace("down_revision = None", 'down_revision = "old"'))

    said = project.alembic("upgrade", "head")

    assert said.returncode == 0, said.stderr
    assert project.lacking() == []
    assert set(project.generated()) == {"create_table export", "drop_table old"}
    assert project.alembic("downgrade", "-1").returncode == 1
    if not ledger_is_there:
        project.complete_one()
