"""duly runs: the ledger, and one run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.schedule.spec import daily, hourly
from tests.story import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("Europe/Paris"))
    story.job("fx-rates", hourly("UTC"))
    story.fail("close-day")
    story.complete("fx-rates")
    story.complete("close-day", at="2026-11-21T08:00:00Z")
    return story


def test_runs_are_listed_newest_first(story: Story) -> None:
    assert story.duly("runs").out.splitlines() == [
        "✓ complete   close-day   2026-11-20      due Sat 21 Nov 00:00+01:00   attempt 1",
        "✓ complete   fx-rates    2026-11-20T07   due Fri 20 Nov 08:00Z        attempt 1",
        "✗ failed     close-day   2026-11-19      due Fri 20 Nov 00:00+01:00   attempt 1   exit 2",
    ]


def test_runs_can_be_narrowed_down(story: Story) -> None:
    assert story.duly("runs", "fx-rates", "--format", "keys").out == "fx-rates:2026-11-20T07[UTC]\n"
    assert story.duly("runs", "--state", "failed", "--format", "keys").out == "close-day:2026-11-19[Europe/Paris]\n"
    assert story.duly("runs", "-n", "1", "--format", "keys").out == "close-day:2026-11-20[Europe/Paris]\n"


def test_runs_for_programs(story: Story) -> None:
    document = story.duly("runs", "--json").document

    assert document["schema"] == "duly.runs.v1"
    assert [one["state"] for one in document["runs"]] == ["complete", "complete", "failed"]
    lines = story.duly("runs", "--format", "csv").out.splitlines()
    assert lines[3].startswith(
        "close-day:2026-11-19[Europe/Paris],close-day,,2026-11-19,1,failed,true,exit 2,1,2026-11-19T23:00:00Z"
    )


def test_one_run_is_shown_with_its_attempts_and_events(story: Story) -> None:
    story.duly("skip", "close-day", "2026-11-19", "--reason", "too late now", LOGNAME="ana")

    said = story.duly("runs", "show", "close-day", "2026-11-19", "--time", "utc")

    assert said.talk == "duly: close-day:2026-11-19[Europe/Paris]\n"
    told = said.out.splitlines()
    assert told[:4] == [
        "close-day:2026-11-19[Europe/Paris]",
        "state    » skipped: too late now",
        "window   Wed 18 Nov 23:00Z to Thu 19 Nov 23:00Z",
        "due      Thu 19 Nov 23:00Z, 1d9h ago",
    ]
    assert told[5:7] == ["attempts", "  1   failed: exit 2   Fri 20 Nov 08:00Z   for 0s   by host:4711   cron"]
    assert told[8] == "events"
    assert told[9].startswith("  Sat 21 Nov 08:00Z   skipped   by ana@")


def test_the_attempts_of_a_run_for_programs(story: Story) -> None:
    document = story.duly("runs", "show", "close-day", "2026-11-19", "--json").document

    assert document["schema"] == "duly.run.v1"
    (attempt,) = document["attempts"]
    assert (attempt["number"], attempt["outcome"], attempt["error"]) == (1, "failed", "exit 2")


def test_a_window_without_a_row_points_to_its_explanation(story: Story) -> None:
    said = story.duly("runs", "show", "close-day", "2026-11-25")

    assert said.code == 64
    assert "it was never opened" in said.talk
    assert said.talk.endswith("try: duly explain close-day 2026-11-25\n")


def test_a_job_nobody_knows_is_not_an_empty_list(story: Story) -> None:
    said = story.duly("runs", "close-dya")

    assert said.code == 64
    assert said.talk.endswith("try: duly jobs list\n")
