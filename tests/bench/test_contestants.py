"""Contestants that need no environment but ours do their work: each effect once, also when every key was offered again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import side_by_side
from bench.entries import ENTRIES, PEER, SQLITE, Entry
from bench.environments import HERE, NotMade, new_enough
from bench.side_by_side import Failed

ROOT = Path(__file__).parents[2]
OURS = [entry for entry in ENTRIES if SQLITE in entry.on and not entry.environment]


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: entry.name)
def test_a_contestant_has_twenty_effects_of_twenty_runs_and_refuses_each_key_again(
    entry: Entry, tmp_path: Path
) -> None:
    if entry.module.endswith("aio"):
        pytest.importorskip("aiosqlite", reason="aiosqlite is not installed: no ledger of SQLite in an event loop")

    told = side_by_side.once(entry, f"sqlite:///{tmp_path}/user.db", runs=20, redis="")

    assert (told["effects"], told["refused"], told["effects_after_offers"]) == (20, 20, 20)
    assert told["runs_per_second"] > 0
    assert told["atomic"] is True


def test_one_that_cannot_work_is_told_by_the_last_thing_that_it_said(tmp_path: Path) -> None:
    (nowhere,) = {entry for entry in OURS if entry.name == "duly, inline"}

    with pytest.raises(Failed, match="unable to open database file"):
        side_by_side.once(nowhere, f"sqlite:///{tmp_path}/nowhere/user.db", runs=20, redis="")


def test_the_script_alone_says_who_was_not_measured_and_writes_figures(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "bench.side_by_side", "--runs", "20", "--rounds", "1", "--places", "sqlite-memory"]
    line += ["--only", "floor,inline", "--json", str(tmp_path / "figures.json")]

    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "1.00 of floor, two transactions" in done.stdout or "was not measured: there is no" in done.stdout
    assert (tmp_path / "figures.json").read_text().startswith("[")


def test_an_environment_that_cannot_be_made_here_says_why() -> None:
    assert new_enough("# python 3.11\n") == sys.executable

    with pytest.raises(NotMade, match=r"needs Python 99\.0, and none is on the path"):
        new_enough("# python 99.0\nsomething==1.0\n")


def test_each_peer_has_an_environment_whose_versions_are_pinned() -> None:
    wanted = {entry.environment for entry in ENTRIES if entry.kind == PEER}
    files = {path.stem: path.read_text().splitlines() for path in HERE.glob("*.txt")}

    assert wanted <= set(files)
    assert all("==" in line for lines in files.values() for line in lines if not line.startswith("#"))
