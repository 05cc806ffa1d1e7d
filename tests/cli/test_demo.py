"""The demo is believed because it fails when what it shows is not so."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from duly.web import dashboard
from tests.exec.stage import until
from tests.story import SOURCE, Said, duly
from tests.web.conftest import Browser, served


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
    assert (units, runs) == (40, 11)


def test_what_a_dashboard_is_for_stands_in_the_ledger(demo: tuple[Path, Said]) -> None:
    path, _ = demo

    with served(dashboard(str(path))) as browser:
        now, grid = browser.get("/"), browser.get("/grid")
        archive = browser.get("/job/archive")

    assert re.search(r"1 unknown.*1 failed", " ".join(re.sub(r"<[^>]+>", " ", now).split()))
    assert "never started" in now, "what nobody did"
    assert "backfill active" in now
    for state in ("failed", "unknown", "missing", "late", "complete"):
        assert f's-{state}"' in grid, state
    assert "clocks go" in archive, "the night that was done again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_goes_on_until_it_is_ended_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    demo = subprocess.Popen(
        [sys.executable, "-m", "duly", "demo", "--serve"],
        env={**kept, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stdout is not None
        said = next(line for line in demo.stdout if "in a browser: http://" in line)
        browser = Browser(int(said.rstrip("/\n").rpartition(":")[2]))

        until(lambda: browser.ask("/job/heartbeat").status == 200, "a job of each few seconds is worked")
        until(lambda: "s-complete" in browser.get("/job/heartbeat"), "and completes")
        until(lambda: len(browser.ask("/job/archive/runs.json").document["runs"]) > 5, "the backfill moves")
        assert "refund" in browser.get("/"), "what was left for a person is left"

        demo.send_signal(number)
        said, _ = demo.communicate(timeout=30)
    finally:
        if demo.poll() is None:
            demo.kill()
        demo.communicate()

    assert demo.returncode == 0
    assert "have ended; the ledger is kept" in said
    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", browser.port)) != 0


def test_the_demo_shows_commands_that_can_be_typed(demo: tuple[Path, Said]) -> None:
    _, said = demo

    lines = [line.partition(" -m duly ")[2] for line in said.out.splitlines() if " -m duly " in line]

    assert lines.pop().startswith("web --ledger "), "which serves until it is ended"
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


def test_without_the_libraries_of_the_dashboard_it_says_how_to_get_them(tmp_path: Path) -> None:
    """Python without its site-packages (-S) has the base install alone, and before half a minute is spent it is said."""
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "duly", "demo", "--serve"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 64
    assert "--serve needs the libraries of the dashboard" in ended.stderr
    assert "  try: pip install 'duly[web]'" in ended.stderr
    assert list(tmp_path.iterdir()) == [], "nothing was begun"
