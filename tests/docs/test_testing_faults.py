"""What the page about testing shows of a job that is killed is what happens."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from duly.testing.faults import POINTS
from tests.docs.test_readme import ROOT, blocks
from tests.exec.stage import environment

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def test_a_job_that_is_killed_at_each_point_is_done_once(tmp_path: Path) -> None:
    (job,) = (block for block in blocks(PAGE, "python") if block.startswith("# export.py"))
    (loop,) = blocks(PAGE, "sh")
    (tmp_path / "export.py").write_text(job, encoding="utf-8")

    told = subprocess.run(
        ["sh", "-c", f'python() {{ "{sys.executable}" "$@"; }}\n{loop}'],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.startswith("AlreadyCompleted("), told
    assert "Traceback" not in told.stderr
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("select day from exported").fetchall() == [("2026-10-05",)]
        attempts = connection.execute("select outcome from duly_attempt order by number").fetchall()
    assert attempts == [("lost",)] * 3 + [("completed",)]


def test_the_page_names_every_point() -> None:
    (loop,) = blocks(PAGE, "sh")

    assert loop.splitlines()[0] == f"for point in {' '.join(POINTS)}; do"
