"""What the page about testing shows of the conformance suite is a test file that passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Store conformance")[2].partition("\n## ")[0]
(EXAMPLE,) = blocks(SECTION, "python")

A_FEW = "snapshot or turn or lost_claim or caller or clock"


def test_the_conformance_suite_is_collected_from_a_users_file(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(EXAMPLE, encoding="utf-8")

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-k", A_FEW, "--basetemp", "folders", "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout
    assert "TestMyStore" not in ended.stdout  # no story failed, none was skipped
    assert " passed" in ended.stdout
