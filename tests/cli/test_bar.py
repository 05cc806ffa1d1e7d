"""How far long work is: said to whoever sits before a terminal, gone when it is over, and to nobody else."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from duly.cli.bar import bar_wanted, drawn
from duly.schedule.spec import hourly
from tests.exec.test_terminal import Terminal
from tests.story import Story

LONG_WORK = {
    "backfill plan hours 2026-11-01..2026-11-15": "hours: {} windows looked at",
    "backfill start hours 2026-11-01..2026-11-15 --reason why": "hours: {} windows looked at",
    "runs export 2026-11-01..2026-11-15 -o export.jsonl": "2026-11-01..2026-11-15: {} windows written",
    "db backup copy.db": "copy.db: {} pages copied",
}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-01T01:10:00Z")
    story.job("hours", hourly("UTC"))
    story.complete("hours")
    story.clock.set("2026-11-20T08:00:00Z")
    return story


@pytest.mark.parametrize("line", LONG_WORK)
def test_on_a_terminal_long_work_says_how_far_it_is_and_clears_it_away(line: str, story: Story, tmp_path: Path) -> None:
    words = [str(tmp_path / word) if word in ("export.jsonl", "copy.db") else word for word in line.split()]
    terminal = Terminal(sys.executable, "-m", "duly", *words, DULY_LEDGER=story.path, TERM="xterm", NO_COLOR="")
    try:
        assert terminal.ended() == 0
    finally:
        terminal.close()

    named = re.escape(LONG_WORK[line]).replace(r"\{\}", r"(\[[#.]{20}\] )?\d+(/\d+)?")
    assert re.search(rf"\r{named}\x1b\[K", terminal.shown), terminal.shown
    assert "\r\x1b[K" in terminal.shown


@pytest.mark.parametrize("line", LONG_WORK)
def test_where_there_is_no_terminal_nothing_is_drawn(line: str, story: Story, tmp_path: Path) -> None:
    words = [str(tmp_path / word) if word in ("export.jsonl", "copy.db") else word for word in line.split()]

    said = story.duly(*words)

    assert said.code == 0
    assert "\r" not in said.talk
    assert "\r" not in said.out


@pytest.mark.parametrize(
    ("environ", "terminal", "quiet", "wanted"),
    [
        ({"TERM": "xterm"}, True, False, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False, True),
        ({"TERM": "xterm"}, False, False, False),
        ({"TERM": "xterm"}, True, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False, False),
        ({"TERM": "dumb"}, True, False, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, False, False, False),
    ],
)
def test_who_is_told(environ: dict[str, str], terminal: bool, quiet: bool, wanted: bool) -> None:
    assert bar_wanted(environ, terminal=terminal, quiet=quiet) is wanted


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (0, 5, "[....................] 0/5"),
        (1, 5, "[####................] 1/5"),
        (7, 5, "[####################] 7/5"),
        (0, 0, "[####################] 0/0"),
        (12, None, "12"),
    ],
)
def test_what_is_drawn(done: int, total: int | None, text: str) -> None:
    assert drawn(done, total) == text
