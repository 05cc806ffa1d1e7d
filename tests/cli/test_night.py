"""The command line from end to end, each step a process: exec works, the views tell, a person says, exec works again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.next_steps import filled
from tests.story import Said, Story

CLOSE = ("exec", "close-day", "--period", "daily", "--zone", "Europe/Paris", "--at", "02:30")
OK, FAIL, DOUBT = ([sys.executable, "-c", f"raise SystemExit({code})"] for code in (0, 2, 80))


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, at="2026-10-25T06:00:00Z")


def close(story: Story, command: list[str]) -> Said:
    return story.duly(*CLOSE, "--", *command)


def test_a_day_that_failed_is_seen_retried_and_complete(story: Story) -> None:
    assert close(story, FAIL).code == 2
    assert close(story, OK).code == 79
    assert story.duly("check", "close-day").code == 1
    step = story.duly("status").out.splitlines()[1].rpartition("   ")[2]
    assert step == "duly retry close-day 2026-10-24 --reason '…'"

    story.clock.advance("10m")
    assert story.duly(*filled(step, "the disk is bigger now")).code == 0
    assert story.duly("due", "close-day").code == 0
    story.clock.advance("5m")
    assert close(story, OK).code == 0

    assert story.duly("check", "close-day").code == 0
    assert story.duly("due", "close-day").code == 1
    assert story.duly("status").out.startswith("✓ nothing needs you")
    told = story.duly("explain", "close-day", "2026-10-24").out
    places = [told.index(word) for word in ("failed after", "retried it", "completed after", "So it is complete")]
    assert places == sorted(places)


def test_an_unknown_night_is_resolved_and_never_run_twice(story: Story) -> None:
    assert close(story, DOUBT).code == 80
    assert close(story, OK).code == 80
    step = story.duly("status").out.splitlines()[1].rpartition("   ")[2]
    assert step == "duly resolve close-day 2026-10-24 --as 'done|not-done' --evidence '…'"

    assert story.duly(*filled(step, "their log: batch 4711")).code == 0

    assert close(story, OK).code == 0
    attempts = story.duly("runs", "show", "close-day", "2026-10-24", "--json").document["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["completed"]


def test_a_schedule_that_differs_is_applied_and_then_works(story: Story) -> None:
    assert close(story, OK).code == 0
    changed = [*CLOSE[:-1], "04:00"]

    refused = story.duly(*changed, "--", *OK)
    assert refused.code == 78
    assert story.duly("jobs", "apply", *changed[1:], "--reason", "the feed comes later").code == 0

    assert story.duly(*changed, "--", *OK).code == 0
    assert close(story, OK).code == 78
    story.clock.set("2026-10-27T06:00:00Z")
    assert story.duly(*changed, "--", *OK).code == 0
    assert story.duly("status", "--grid").out.splitlines()[0].startswith("close-day   ✓»✓")


def test_a_run_outside_the_schedule_is_seen_and_explained(story: Story) -> None:
    assert story.duly("exec", "repair", "--adhoc", "ticket-17", "--", *FAIL).code == 2

    assert story.duly("status").out.splitlines()[1].endswith("duly retry repair:adhoc-ticket-17 --reason '…'")
    assert story.duly("runs", "--format", "keys").out == "repair:adhoc-ticket-17\n"
    told = story.duly("explain", "repair:adhoc-ticket-17").out
    assert "repair has no schedule" in told
    assert told.endswith("So it waits for a person: retry it, or skip it.\n")
    assert story.duly("jobs", "list").out == "repair   no schedule\n"
    assert story.duly("check", "repair").code == 2
    assert story.duly("next", "repair").code == 64
    assert story.duly("retry", "repair:adhoc-ticket-17", "--reason", "the ticket is open again").code == 0


def test_a_skipped_day_is_not_worked_and_reopening_does_it_again(story: Story) -> None:
    assert close(story, OK).code == 0
    story.clock.set("2026-10-26T06:00:00Z")
    assert story.duly("skip", "close-day", "2026-10-25", "--reason", "a holiday").code == 0

    assert close(story, FAIL).code == 0
    assert story.duly("reopen", "close-day", "2026-10-24", "--reason", "the VAT rate was wrong").code == 0
    assert close(story, OK).code == 0

    assert story.duly("runs", "close-day", "--format", "keys").out.split() == [
        "close-day:2026-10-25[Europe/Paris]",
        "close-day:2026-10-24[Europe/Paris]#2",
        "close-day:2026-10-24[Europe/Paris]",
    ]
