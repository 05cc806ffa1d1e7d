"""The page about copies, restoring and forgetting: its commands run in their order, and nothing is done twice by them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duly
from duly.ledger.truths import TRUTHS
from duly.testing.clock import HandClock
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SECTIONS = {section.partition("\n")[0]: section for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}


class Host:
    """A shell in a folder with a ledger, whose clock is set by hand, and a job that tells a bank of each day."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = HandClock(str(folder / "ledger.db"), at="2026-11-20T08:00:00Z")
        (folder / "copies").mkdir()
        (folder / "bin").mkdir()
        command = folder / "bin" / "duly"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duly "$@"\n', encoding="utf-8")
        command.chmod(0o755)

    def sh(self, script: str) -> str:
        here = {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(duly.__file__).parents[1]),
            "PYTHONUTF8": "1",
            "DULY_LEDGER": "sqlite:///ledger.db",
        }
        said = subprocess.run(
            ["sh", "-e", "-c", script], cwd=self.folder, env=here, capture_output=True, text=True, check=False
        )
        assert said.returncode == 0, said.stderr
        return said.stdout + said.stderr

    def poke(self) -> None:
        self.sh("duly exec close-day --period daily --zone UTC --effect external -- sh -c 'echo $DULY_DATE >> bank'")

    @property
    def bank(self) -> list[str]:
        return (self.folder / "bank").read_text().split()


def test_a_ledger_is_restored_as_the_page_has_it(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.poke()
    (copying,) = blocks(SECTIONS["A copy, every night"], "sh")
    verifying, replacing, saying, resolving = blocks(SECTIONS["Restoring"], "sh")

    assert "whole up to 2026-11-20T08:00:00Z" in host.sh(copying)
    host.clock.set("2026-11-21T08:00:00Z")
    host.poke()  # of which the copy knows nothing
    host.sh(verifying + replacing)
    host.clock.set("2026-11-21T09:00:00Z")
    said = host.sh(saying)
    assert "1 runs are in doubt; nothing was changed" in said
    assert said.count("close-day:2026-11-20[UTC]") == 2
    assert "1 outcome unknown" in host.sh(resolving)

    host.poke()
    assert host.bank == ["2026-11-19", "2026-11-20"]
    assert "nothing needs you" in host.sh("duly status; duly db verify")


def test_what_it_says_of_forgetting_is_done(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.poke()
    host.sh("duly exec rates --period daily --zone UTC --retain 90d -- true")
    host.clock.set("2028-01-20T08:00:00Z")
    host.poke()
    host.sh("duly exec rates -- true")

    (pruning,) = blocks(SECTIONS["Forgetting"], "sh")
    said = host.sh(pruning)

    assert "close-day   by day in UTC   1 windows, 1 runs, 1 attempts, 0 messages" in said
    assert host.sh("duly runs").count("2028-01-19") == 2
    assert "2026" not in host.sh("duly runs --format keys")
    assert host.sh("duly db verify").endswith(f"{len(TRUTHS) + 2} things looked at, and all of them hold\n")
