"""The page of unknown outcomes: its program runs, and its probe is asked by the commands that it names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from duly.testing.clock import HandClock
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks

PAGE = (ROOT / "docs" / "unknown.md").read_text(encoding="utf-8")

PROVIDER = """
class provider:
    charges = {}
    def get(key): return provider.charges.get(key)
    def charge(key): provider.charges[key] = 4711
"""


def test_the_program_charges_once(tmp_path: Path) -> None:
    (program,) = blocks(PAGE, "python")
    proof = (
        "assert len(provider.charges) == 1\nassert isinstance(was_charged, object) and ledger.jobs['charge'].has_probe"
    )

    ended = subprocess.run(
        [sys.executable, "-c", f"{PROVIDER}\n{program}\n{proof}"],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr


def test_the_short_form_of_the_table_is_what_the_long_one_says(tmp_path: Path) -> None:
    job, probe = (tomllib.loads(block) for block in blocks(PAGE, "toml"))
    from duly.work.configuration.fields import PROBE
    from duly.work.probe import AFTER, TIMEOUT

    short = PROBE.read("probe", job["jobs"]["close-day"]["probe"])
    long = PROBE.read("probe", probe["probe"])

    assert {"after": AFTER, "timeout": TIMEOUT, "reads_own_writes": False, **short} == long


def test_the_command_is_asked_as_the_page_says(tmp_path: Path) -> None:
    clock = HandClock(str(tmp_path / "ledger.db"), at="2026-11-29T12:00:00Z")
    for name, does in (
        ("close.sh", "echo closed $2 >> closed; exit 80"),
        ("did-it-close.sh", "grep -q $1 closed && echo happened"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "duly.toml").write_text(blocks(PAGE, "toml")[0])

    def duly(*words: str) -> int:
        return subprocess.run(
            ["duly", *words], cwd=tmp_path, env=here(tmp_path), capture_output=True, check=False
        ).returncode

    assert duly("exec", "close-day") == 80
    clock.advance("1m")
    assert duly("resolve", "close-day", "2026-11-28", "--probe") == 0
    assert (tmp_path / "closed").read_text() == "closed 2026-11-28\n"
