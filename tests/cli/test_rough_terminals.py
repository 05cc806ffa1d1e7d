"""The command line where it is not at home: no UTF-8, no standard output, a full one, a name that is a trap."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


def duly(*words: str, ledger: Path, **more: object) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "DULY_LEDGER": f"sqlite:///{ledger}", **(more.pop("environment", None) or {})}  # type: ignore[dict-item]
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "duly", *words],
        env=environment,
        capture_output="stdout" not in more,
        check=False,
        **more,
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    assert duly("exec", "close", "--period", "daily", "--zone", "UTC", "--", "true", ledger=path).returncode == 0
    return path


@pytest.mark.parametrize("words", [["status"], ["runs"], ["exec", "--help"]])
def test_a_terminal_without_the_signs_is_told_all_the_same(ledger: Path, words: list[str]) -> None:
    said = duly(*words, ledger=ledger, environment={"PYTHONIOENCODING": "ascii"})

    assert (said.returncode, said.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["status"], ["exec", "--help"]])
def test_a_full_standard_output_is_told_in_a_line(ledger: Path, words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        said = duly(*words, ledger=ledger, stdout=full, stderr=subprocess.PIPE)

    assert said.returncode == 73
    assert said.stderr == b"duly: what was found cannot be written: No space left on device\n"


def test_the_view_goes_on_without_a_standard_output(ledger: Path) -> None:
    line = f"{shlex.quote(sys.executable)} -m duly status >&-"

    said = subprocess.run(["sh", "-c", line], env={**os.environ, "DULY_LEDGER": f"sqlite:///{ledger}"}, check=False)

    assert said.returncode == 0


def test_a_next_step_can_be_pasted_whatever_the_tenant_is_called(tmp_path: Path) -> None:
    trap = "a;touch pwned #"
    flags = ("--period", "daily", "--zone", "UTC", "--scope", trap, "--ledger", f"sqlite:///{tmp_path}/other.db")

    said = duly("exec", "close", *flags, "--", "false", ledger=tmp_path / "l.db")

    (step,) = [line.removeprefix("  try: ") for line in said.stderr.decode().splitlines() if "try:" in line]
    words = shlex.split(step)
    assert words[:3] == ["duly", "retry", "close"]
    assert words[words.index("--scope") + 1] == trap
    assert words[words.index("--ledger") + 1] == f"sqlite:///{tmp_path}/other.db"


def test_a_folder_and_a_damaged_ledger_are_no_reason_to_come_back(ledger: Path, tmp_path: Path) -> None:
    import sqlite3

    (tmp_path / "folder").mkdir()
    with sqlite3.connect(ledger) as connection:
        connection.execute("delete from duly_meta where name = 'min_writer'")
    connection.close()

    for path in (tmp_path / "folder", ledger):
        said = duly("exec", "close", "--", "true", ledger=path)
        assert said.returncode == 73, said
        assert b"Traceback" not in said.stderr
