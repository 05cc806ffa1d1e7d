"""The page about checking: its gates open where what they ask for is complete, and stay shut where it is not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from duly.evidence import check
from duly.schedule.spec import daily
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks
from tests.story import Story

PAGE = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
DAY, MONTH, CODES, NAGIOS = blocks(PAGE, "sh")

Shell = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """November up to the 29th is complete, and nobody has worked its last day."""
    story = Story(tmp_path, at="2026-11-02T03:00:00Z")
    story.job("orders", daily("UTC"), catch_up="each")
    for day in range(2, 31):
        story.complete("orders", at=f"2026-11-{day:02}T03:00:00Z")
    story.clock.set("2026-12-01T03:00:00Z")
    return story


@pytest.fixture
def shell(story: Story, tmp_path: Path) -> Shell:
    for name in ("report.sh", "month-end.sh"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$0 $1" >> made\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    def call(commands: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", commands], cwd=tmp_path, env=here(tmp_path), capture_output=True, text=True, check=False
        )

    return call


def test_the_gates_open_when_what_they_ask_for_is_complete_and_then_work_once(
    story: Story, shell: Shell, tmp_path: Path
) -> None:
    story.complete("orders")

    ended = [shell(f"{DAY}{MONTH}") for _ in range(2)]

    assert [each.returncode for each in ended] == [0, 0], ended
    assert (tmp_path / "made").read_text() == "./report.sh 2026-11-30\n./month-end.sh 2026-11\n"
    assert "go on\n" in shell(CODES).stdout
    said = shell(NAGIOS)
    assert said.returncode == 0
    assert said.stdout in PAGE.replace("\n    ", "\n")


def test_the_gates_stay_shut_where_a_day_has_failed(story: Story, shell: Shell, tmp_path: Path) -> None:
    story.fail("orders")

    assert shell(DAY).returncode == 1
    assert shell(MONTH).returncode == 1
    assert not (tmp_path / "made").exists()
    assert "somebody is needed" in shell(CODES).stdout
    assert shell(NAGIOS).returncode == 2


def test_the_page_has_the_bound_and_the_codes() -> None:
    assert f"At most {check.LOOK_AT_MOST:,} windows" in PAGE
    for code, word in check.IN_WORDS.items():
        assert re.search(rf"^\| {code} \| {word} \|", PAGE, re.MULTILINE)
