"""The page of files: its program and its commands run, in their order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    (program,) = blocks(PAGE, "python")
    (tmp_path / "exports").mkdir()
    # One ledger for the whole page, as its reader has.
    environ = {**here(tmp_path), "DULY_LEDGER": f"sqlite:///{tmp_path}/shop.db"}

    first = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    said = subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks(PAGE, "sh"))],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("export:")
    assert said.returncode == 0, said.stderr
    assert "✓ export" in said.stdout
    assert "is not there" in said.stdout
    assert "verify: 1" in said.stdout
    assert json.loads((tmp_path / "verified.json").read_text())["schema"] == "duly.verify.v1"


def test_the_page_has_every_finding() -> None:
    source = (ROOT / "src" / "duly" / "cli" / "runs_verify.py").read_text(encoding="utf-8")
    kinds = {part.split('"')[1] for part in source.split("Finding(")[1:] if part.startswith('"')}

    assert kinds == {"state", "attempt", "messages", "output"}
    assert [kind for kind in kinds if f"| `{kind}` |" not in PAGE] == []
