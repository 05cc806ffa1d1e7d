"""Durable commits are what a run costs on a disk: at most two for a run, none for a duplicate, one more with --output."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from duly.store.sqlite import SqliteStore
from tests.exec.stage import DAILY, Stage, environment

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None
    or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode != 0,
    reason="NOT COUNTED: strace is not there or may not trace; durable commits of exec are unproven here",
)


def flushes(stage: Stage, *words: str, argv: tuple[str, ...] = ("-m", "duly"), code: int = 0) -> list[str]:
    """The files that a command line flushed (fsync, fdatasync), in order."""
    trace = stage.file("trace")
    ended = subprocess.run(
        ["strace", "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o", str(trace), sys.executable, *argv, *words],
        env=environment(DULY_LEDGER=stage.path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == code, ended
    files = re.findall(r"(?:fsync|fdatasync)\(\d+<([^>]*)>", trace.read_text())
    return [file.removeprefix(str(stage.folder) + "/") for file in files]


def of_ledger(files: list[str]) -> list[str]:
    return [file for file in files if file.startswith("ledger.db")]


@pytest.fixture
def kept_open(stage: Stage) -> Iterator[None]:
    """Somebody has the ledger open, as a daemon does: so no command folds the WAL at its end, or has to begin a new one,
    which SQLite flushes too, with its folder."""
    store = SqliteStore(stage.path, create=False)
    store.now()
    stage.clock.advance("1s")
    yield
    store.close()


@pytest.mark.usefixtures("kept_open")
class TestDurableCommits:
    def test_a_duplicate_flushes_nothing(self, stage: Stage) -> None:
        stage.exec("close", *DAILY)

        assert flushes(stage, "exec", "close", *DAILY, "--", "true") == []

    def test_a_duplicate_of_a_named_window_flushes_nothing(self, stage: Stage) -> None:
        stage.exec("close", *DAILY)

        assert flushes(stage, "exec", "close", "--window", "2026-11-28", "--", "true") == []

    def test_a_run_flushes_twice(self, stage: Stage) -> None:
        stage.exec("close", *DAILY)
        stage.clock.advance("1d")

        assert len(of_ledger(flushes(stage, "exec", "close", *DAILY, "--", "true"))) == 2

    def test_the_first_run_of_a_job_flushes_twice(self, stage: Stage) -> None:
        assert len(of_ledger(flushes(stage, "exec", "close", *DAILY, "--", "true"))) == 2

    def test_a_named_window_flushes_twice(self, stage: Stage) -> None:
        stage.exec("close", *DAILY)

        assert len(of_ledger(flushes(stage, "exec", "close", "--window", "2026-11-20", "--", "true"))) == 2

    def test_an_adhoc_run_flushes_twice(self, stage: Stage) -> None:
        assert len(of_ledger(flushes(stage, "exec", "load", "--adhoc", "a1", "--", "true"))) == 2

    def test_an_output_costs_one_more_commit_and_the_files_own_flushes(self, stage: Stage) -> None:
        final = stage.file("report.csv")
        stage.exec("close", *DAILY)
        stage.clock.advance("1d")

        files = flushes(stage, "exec", "close", "--output", str(final), "--", "sh", "-c", "echo x > $DULY_OUTPUT")

        assert len(of_ledger(files)) == 3
        # The claim (with the folder, for SQLite's own sake, as of each connection's first commit); the file, what it will be,
        # its place; and the completion.
        claim, sqlites, temporary, intent, folder, completion, again = files
        assert temporary.startswith(".report.csv.")
        assert (claim, intent, completion) == ("ledger.db-wal",) * 3
        assert folder == sqlites == again == str(stage.folder)

    def test_each_of_many_owed_runs_flushes_twice(self, stage: Stage) -> None:
        stage.exec("close", *DAILY, "--catch-up", "each")
        stage.clock.advance("5d")

        assert len(of_ledger(flushes(stage, "exec", "close", "--", "true"))) == 10

    def test_once_flushes_once(self, stage: Stage) -> None:
        script = (
            "import sqlite3, sys, duly\n"
            "connection = sqlite3.connect(sys.argv[1])\n"
            "assert duly.once(connection, 'export:2026-11-28[UTC]')\n"
            "connection.commit()\n"
        )

        assert len(of_ledger(flushes(stage, stage.path, argv=("-c", script)))) == 1

    def test_a_transactional_claim_is_flushed_with_its_end(self, stage: Stage) -> None:
        """Losing that claim loses nothing, so it need not reach the disk before its command runs."""
        flags = ("--effect", "transactional")
        stage.exec("close", *DAILY, *flags, command=["false"])
        stage.clock.advance("1d")

        assert len(of_ledger(flushes(stage, "exec", "close", *flags, "--", "false", code=1))) == 1
