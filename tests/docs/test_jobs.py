"""The page about tenants, names and the end of a job: its commands run, in their order, and so does its program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duly

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return [part.partition("```")[0] for part in PAGE.split(f"```{kind}\n")[1:]]


def test_the_commands_run_as_the_page_has_them(tmp_path: Path) -> None:
    command = tmp_path / "duly"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    here = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(duly.__file__).parents[1]),
        "PYTHONUTF8": "1",
        "DULY_LEDGER": f"sqlite:///{tmp_path}/ledger.db",
    }

    said = subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks("sh"))], env=here, capture_output=True, text=True, check=False
    )

    assert said.returncode == 0, said.stderr
    assert re.search(r"^not complete: [13]$", said.stdout, re.MULTILINE)  # 3, as long as its grace is not over
    assert "refused: 78\n" in said.stdout
    assert "invoice   daily in UTC   retired " in said.stdout
    assert "Declare it as invoice" in said.stderr


def test_the_program_runs(tmp_path: Path) -> None:
    (program,) = blocks("python")

    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(duly.__file__).parents[1])},
        check=True,
    )
