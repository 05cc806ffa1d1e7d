"""The demo is believed because it fails when what it shows is not so."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.story import Said, duly


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """A demo that was told, and the ledger that it left."""
    folder = tmp_path_factory.mktemp("demo")
    said = duly("demo", TMPDIR=str(folder))
    (path,) = folder.glob("duly-demo-*/demo.db")
    return path, said


def test_the_demo_ends_well_and_keeps_its_ledger(demo: tuple[Path, Said]) -> None:
    path, said = demo

    connection = sqlite3.connect(path)
    units, runs = connection.execute(
        "select units, (select count(*) from duly_run where state = 'completed') from account"
    ).fetchone()
    connection.close()

    assert said.code == 0, said
    assert said.talk == ""
    assert str(path) in said.out
    assert (units, runs) == (40, 5)


def test_the_demo_shows_commands_that_can_be_typed(demo: tuple[Path, Said]) -> None:
    _, said = demo

    lines = [line.partition(" -m duly ")[2] for line in said.out.splitlines() if " -m duly " in line]

    assert len(lines) == 6
    for line in lines:
        answer = duly(*line.split())
        assert answer.code == 0, (line, answer)


def test_a_demo_that_goes_wrong_names_the_step(tmp_path: Path) -> None:
    """Where there is no sh, the command of step 5 cannot be run: nothing dies, and nothing becomes unknown."""
    said = duly("demo", TMPDIR=str(tmp_path), PATH=str(tmp_path))

    assert said.code == 1, said
    assert "step 5 (outcome unknown)" in said.talk
    assert "ended with 127, not 80" in said.talk
