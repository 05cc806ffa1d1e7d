"""The page of the outbox: its program and its commands run, in their order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from duly.ledger import message_states
from duly.ledger.send import LONGEST_BODY, MOST_MESSAGES
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "outbox.md").read_text(encoding="utf-8")


def here(folder: Path) -> dict[str, str]:
    command = folder / "duly"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUTF8": "1",
        "DULY_LEDGER": f"sqlite:///{folder}/ledger.db",
    }


def run_the_page(page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The commands of a page, in their order, on a ledger of their own: the first that fails ends them."""
    return subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks(page, "sh"))],
        cwd=folder,
        env={**here(folder), "DULY_LEDGER": f"sqlite:///{folder}/jobs.db"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program_delivers_what_it_sends(tmp_path: Path) -> None:
    (program,) = blocks(PAGE, "python")

    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=here(tmp_path), capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert '"units":10' in (tmp_path / "delivered").read_text()


def test_the_commands_run_as_the_page_has_them(tmp_path: Path) -> None:
    said = subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks(PAGE, "sh"))],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr
    assert '{"units":10}' in said.stdout
    assert "every message is delivered" in said.stdout
    assert "refused: 64" in said.stdout  # it was delivered, and nobody need say so


def test_the_page_has_every_state_and_the_bounds() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")]

    assert set(message_states.STATES) <= set(rows)
    assert (LONGEST_BODY, MOST_MESSAGES) == (1 << 20, 10_000)
