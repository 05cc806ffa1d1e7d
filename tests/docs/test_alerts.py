"""The page of alerts: what it declares is told as it says, by the commands and the program that it has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from duly.ledger.alerts import DIGEST_ABOVE, KINDS
from duly.testing.clock import HandClock
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks
from tests.outbox.receivers import receiver

PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")


def script(folder: Path, name: str, does: str = "true") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)


def test_the_example_is_told_as_the_page_shows_it_and_its_commands_run(tmp_path: Path) -> None:
    (document,) = map(json.loads, blocks(PAGE, "json"))
    clock = HandClock(str(tmp_path / "ledger.db"), at="2026-11-29T09:00:00Z")
    for name, does in (("close.sh", "true"), ("rates.sh", "true"), ("page-somebody.sh", "cat > page")):
        script(tmp_path, name, does)

    def duly(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["duly", *words], cwd=tmp_path, env=here(tmp_path), capture_output=True, text=True, check=False
        )

    with receiver(remembers=True) as to:
        text = blocks(PAGE, "toml")[0]
        (tmp_path / "duly.toml").write_text(text.replace("https://hooks.example/duly", to.url))
        assert duly("exec", "close-day").returncode == 0
        assert not to.requests

        clock.set("2026-11-30T09:00:00Z")
        assert duly("exec", "rates").returncode == 0

        assert list(to.effects.values()) == [1]
    assert json.loads((tmp_path / "page").read_text()) == document
    codes = {}
    for line in "".join(blocks(PAGE, "sh")).splitlines():
        ended = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=here(tmp_path), capture_output=True, text=True, check=False
        )
        codes[line.split()[2]] = ended.returncode
        assert "close-day" in ended.stdout
    assert codes == {"list": 0, "look": 1, "silence": 0, "unsilence": 0}


def test_the_program_looks(tmp_path: Path) -> None:
    (program,) = blocks(PAGE, "python")
    proof = "assert ledger.destinations.alerting().kinds == ('late', 'failed', 'unknown') and ledger.look() == []"

    ended = subprocess.run(
        [sys.executable, "-c", f"{program}\n{proof}"],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


def test_the_page_has_every_kind_and_the_size_of_a_storm() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| `")]

    assert rows == [f"`{kind}`" for kind in KINDS]
    assert DIGEST_ABOVE == 20
