"""`duly db`, and the whole command line on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.servers import Server


def duly(*words: str, ledger: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DULY_LEDGER": ledger}
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


def test_a_ledger_on_sqlite_can_be_made_beforehand(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/l.db"

    assert duly("db", "create", ledger=url).returncode == 0

    assert duly("status", ledger=url).stdout.startswith("✓ nothing needs you")
