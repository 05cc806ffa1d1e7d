"""`duly db`, and the whole command line on PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import duly as library
from tests.servers import Server

SOURCE = Path(library.__file__).parent


def duly(*words: str, ledger: str, source: Path = SOURCE) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DULY_LEDGER": ledger, "PYTHONPATH": str(source.parent)}
    return subprocess.run(
        [sys.executable, "-m", "duly", *words], env=environment, capture_output=True, text=True, check=False
    )


DAILY = ("--period", "daily", "--zone", "UTC")


def test_the_tables_of_a_postgresql_ledger_are_made_by_a_person(server: Server) -> None:
    url = server.new_database()

    refused = duly("exec", "close", *DAILY, "--", "true", ledger=url)
    assert refused.returncode == 78
    assert refused.stderr.endswith("  try: duly db create\n")

    assert duly("db", "create", ledger=url).returncode == 0
    assert duly("db", "create", ledger=url).returncode == 0  # they are there
    assert duly("exec", "close", *DAILY, "--", "true", ledger=url).returncode == 0


def test_a_night_on_postgresql_is_the_night_of_any_ledger(server: Server, tmp_path: Path) -> None:
    url = server.new_database()
    duly("db", "create", ledger=url)
    effects = tmp_path / "effects"

    for _ in range(2):  # the second is a duplicate
        command = ["sh", "-c", f"echo $DULY_RUN_KEY >> {effects}"]
        assert duly("exec", "close", *DAILY, "--", *command, ledger=url).returncode == 0
    killed = duly("exec", "close", "--window", "2026-01-01", "--", "sh", "-c", "kill -9 $$", ledger=url)
    assert killed.returncode == 80
    assert duly("exec", "close", "--window", "2026-01-01", "--", "true", ledger=url).returncode == 80

    assert len(effects.read_text().splitlines()) == 1
    assert "1 outcome unknown" in duly("status", ledger=url).stdout
    assert "nobody knows how it ended" in duly("explain", "close", "2026-01-01", ledger=url).stdout
    said = duly("resolve", "close", "2026-01-01", "--as", "done", "--evidence", "one charge", ledger=url)
    assert said.returncode == 0, said
    assert duly("check", "close", "2026-01-01", ledger=url).returncode == 0
    assert "nothing needs you" in duly("status", ledger=url).stdout


def test_no_password_is_printed(server: Server) -> None:
    url = server.new_database().replace("://postgres@", "://postgres:hunter2@")
    assert "hunter2" in url
    duly("db", "create", ledger=url)

    said = duly("exec", "close", *DAILY, "--ledger", url, "--", "sh", "-c", "kill -9 $$", ledger=url)
    more = [
        duly(*words, ledger=url) for words in (["status", "--ledger", url], ["runs"], ["explain", "close", "yesterday"])
    ]
    lost = duly("status", ledger="postgresql://postgres:hunter2@127.0.0.1:1/none")

    assert said.returncode == 80
    assert lost.returncode == 69
    assert not any("hunter2" in each.stdout + each.stderr for each in (said, lost, *more))


def test_the_sql_that_makes_a_ledger_can_be_read() -> None:
    for url, word in (("sqlite:///x.db", "without rowid"), ("postgresql://db/shop", "create schema duly")):
        assert word in duly("db", "sql", ledger=url).stdout


def test_a_ledger_in_the_folder_where_one_is_can_be_made_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    made = duly("db", "create", ledger="sqlite:///jobs.db")

    assert (made.returncode, (tmp_path / "jobs.db").exists()) == (0, True)


def test_a_ledger_on_sqlite_can_be_made_beforehand(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/l.db"

    assert duly("db", "create", ledger=url).returncode == 0

    assert duly("status", ledger=url).stdout.startswith("✓ nothing needs you")


# -- migrations ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    server: Server = request.getfixturevalue("server")
    return server.new_database()


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The next release: this one, and a step that it brings."""
    source = tmp_path / "newer" / "duly"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    for engine, table in (("sqlite", "duly_run"), ("postgres", "duly.run")):
        step = f"-- min_writer: as before\nalter table {table} add column priority integer;\n"
        (source / "store" / "migrations" / f"0002_priority.{engine}.sql").write_text(step)
    facts = source / "store" / "__init__.py"
    facts.write_text(facts.read_text().replace("\nSCHEMA = 1 ", "\nSCHEMA = 2 "))
    return source


def test_a_newer_release_works_on_the_ledger_as_it_is_until_a_person_migrates_it(url: str, newer: Path) -> None:
    duly("db", "create", ledger=url)

    assert duly("exec", "close", *DAILY, "--", "true", ledger=url, source=newer).returncode == 0
    dry = duly("db", "migrate", "--dry-run", ledger=url, source=newer)
    assert (dry.stdout, dry.stderr) == ("0002   priority\n", "duly: nothing was applied\n")
    made = duly("db", "create", ledger=url, source=newer).stderr
    assert "schema 1" in made
    assert made.endswith("duly: it lacks 0002 priority; apply with: duly db migrate\n")

    assert duly("db", "migrate", ledger=url, source=newer).stdout == "0002   priority\n"
    again = duly("db", "migrate", ledger=url, source=newer)
    assert (again.stdout, again.stderr) == ("", "duly: the ledger has every migration of this release\n")
    assert "schema 2" in duly("db", "create", ledger=url, source=newer).stderr


def test_this_release_goes_on_working_after_a_newer_one_has_migrated(url: str, newer: Path) -> None:
    duly("db", "create", ledger=url, source=newer)

    assert duly("exec", "close", *DAILY, "--", "true", ledger=url).returncode == 0
    assert duly("status", ledger=url).stdout.startswith("✓ nothing needs you")
    assert duly("db", "migrate", ledger=url).returncode == 0


def test_the_sql_of_one_step_is_what_the_ledger_lacks(url: str, newer: Path) -> None:
    lacking = duly("db", "sql", "--from", "1", ledger=url, source=newer).stdout

    assert "create table" not in lacking
    assert "add column priority" in lacking
    assert lacking.startswith("begin;\n")
    assert lacking.endswith("commit;\n")
    assert duly("db", "sql", "--from", "2", ledger=url, source=newer).stdout == ""


def test_programs_are_told_which_steps(url: str, newer: Path) -> None:
    duly("db", "create", ledger=url)

    told = json.loads(duly("db", "migrate", "--dry-run", "--json", ledger=url, source=newer).stdout)

    assert told["schema"] == "duly.migrations.v1"
    (step,) = told["migrations"]
    assert (step["key"], step["name"], step["min_writer"]) == ("0002", "priority", None)


def test_a_ledger_migrated_by_another_file_is_refused_by_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    duly("db", "create", ledger=url)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("update duly_migration set sha256 = 'of another file'")

    said = duly("db", "migrate", ledger=url)

    assert said.returncode == 78
    assert "0001_ledger.sqlite.sql" in said.stderr


def test_a_ledger_that_is_not_there_is_not_migrated(url: str) -> None:
    said = duly("db", "migrate", ledger=url)

    assert said.returncode == 69
    assert said.stderr.endswith("  try: duly db create\n")


def test_the_help_has_an_example_for_each_verb() -> None:
    said = duly("db", "--help", ledger="sqlite:///x.db").stdout

    assert all(f"duly db {verb}" in said for verb in ("create", "migrate", "sql"))
