"""What the page about transactions shows is what happens: each section is a program, and its effect is there once."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from duly.store.migrations import postgres
from tests.borrowed.callers import described_for_django
from tests.docs.test_readme import ROOT, blocks
from tests.servers import Server

PAGE = (ROOT / "docs" / "transactions.md").read_text(encoding="utf-8")
OPENING, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
PROGRAMS = {
    section.partition("\n")[0]: program for section in SECTIONS if (program := "\n".join(blocks(section, "python")))
}
ON_POSTGRES = {title: program for title, program in PROGRAMS.items() if "# on PostgreSQL" in program}
(BEFORE,) = blocks(OPENING, "python")
FACTS = "select (select count(*) from export), (select count(*) from {run} where state = 'completed')"


def run(program: str, folder: Path, **environment: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("title", sorted(PROGRAMS.keys() - ON_POSTGRES.keys()))
def test_a_program_commits_its_effect_and_its_completion(title: str, tmp_path: Path) -> None:
    run(f"{BEFORE}\n{PROGRAMS[title]}", tmp_path)

    connection = sqlite3.connect(tmp_path / "shop.db")
    assert connection.execute(FACTS.format(run="duly_run")).fetchone() == (1, 1)
    connection.close()


BY_LIBRARY = [
    "Jobs that write through SQLAlchemy",
    "Async jobs that write through SQLAlchemy",
    "Jobs that write through Django",
]


@pytest.mark.parametrize("title", ["psycopg", "asyncpg", "SQLAlchemy", "A Session", "Django", *BY_LIBRARY])
def test_on_postgres_it_is_the_same_program(title: str, tmp_path: Path, server: Server) -> None:
    url = server.new_database()
    postgres.create(url)
    with psycopg.connect(url) as connection:
        connection.execute("create table export (day text primary key)")

    run(f"{before(url)}\n{on_postgres(PROGRAMS[title], url)}", tmp_path, SHOP=url)

    with psycopg.connect(url) as connection:
        assert connection.execute(FACTS.format(run="duly.run")).fetchone() == (1, 1)


def test_every_program_that_needs_postgres_is_run_there() -> None:
    assert set(ON_POSTGRES) == {"asyncpg", "psycopg"}


def before(url: str) -> str:
    """The program that comes before each, but for the table."""
    opened = BEFORE.replace('duly.sqlite("shop.db")', f"duly.postgres({url!r})")
    return "\n".join(line for line in opened.splitlines() if "create table" not in line)


def on_postgres(program: str, url: str) -> str:
    """The program with its database in PostgreSQL."""
    by_psycopg = url.replace("postgresql://", "postgresql+psycopg://")
    return re.sub(r"sqlite(\+aiosqlite)?:///shop\.db", lambda _: by_psycopg, program).replace(
        '{"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}', repr(described_for_django(url))
    )
