"""The examples run, and what they assert holds. Each prints what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import duly

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_shows_what_it_says(example: Path, tmp_path: Path) -> None:
    source = str(Path(duly.__file__).parents[1])

    shown = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source},
        check=False,
    )

    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert shown.stdout.count("\n") >= 3
    assert list(tmp_path.iterdir()) == []


def test_there_are_examples() -> None:
    assert [path.name for path in EXAMPLES][:3] == ["01_once.py", "02_job.py", "03_history.py"]
