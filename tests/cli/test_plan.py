"""duly jobs plan: what another schedule would change, said before anything does (scenarios 47 and 48)."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duly.schedule.spec import cron, daily
from tests.story import Said, Story

NEW_YORK = ("--period", "daily", "--zone", "America/New_York")
WEEKLY = ("--period", "weekly", "--zone", "UTC")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Days of Berlin: the 20th is complete, the 21st has failed, the 22nd waits."""
    story = Story(tmp_path, at="2026-10-21T12:00:00Z")
    story.job("report", daily("Europe/Berlin"), catch_up="each")
    story.complete("report")
    story.fail("report", at="2026-10-22T12:00:00Z")
    story.clock.set("2026-10-23T12:00:00Z")
    return story


def plan(story: Story, *words: str, job: str = "report") -> Said:
    said = story.duly("jobs", "plan", job, *words)
    assert said.code == 0, said
    return said


def dumped(story: Story) -> list[str]:
    with closing(sqlite3.connect(story.path)) as connection:
        return list(connection.iterdump())


def test_another_zone_is_said_to_be_one(story: Story) -> None:
    """Scenario 48: what was done stays done, what is owed stays owed, and the first new window is six hours long."""
    said = plan(story, *NEW_YORK)

    told = [" ".join(line.partition(";")[0].split()) for line in said.out.splitlines()[:10]]
    assert [line.removesuffix(", due Sat 24 Oct 00:00-04:00") for line in told] == [
        "report: version 2: daily in America/New_York",
        "in place of version 1: daily in Europe/Berlin",
        "what changes: another zone, Europe/Berlin → America/New_York",
        "the seam: Fri 23 Oct 18:00-04:00",
        "first window: 2026-10-23[America/New_York], Fri 23 Oct 18:00-04:00 to Sat 24 Oct 00:00-04:00",
        "keys: a new series by day in America/New_York begins with 2026-10-23[America/New_York]",
        "2026-10-21[Europe/Berlin] 24 h due Thu 22 Oct 00:00+02:00 ✗ failed stays owed by its key",
        "2026-10-22[Europe/Berlin] 24 h due Fri 23 Oct 00:00+02:00 – missing stays owed by its key",
        "2026-10-23[Europe/Berlin] 24 h due Sat 24 Oct 00:00+02:00 · coming has begun",
        "2026-10-23[America/New_York] 6 h due Sat 24 Oct 00:00-04:00 appears, from the seam on",
    ]
    assert "is split: its time goes to 2026-10-23[America/New_York], 2026-10-24[America/New_York]" in said.out
    assert (
        "earlier keys of it are refused; those by day in Europe/Berlin name what they did, up to the seam" in said.out
    )
    assert "2026-11-01[America/New_York]   25 h" in said.out, "the night when New York's clocks go back"


def test_a_plan_changes_nothing_and_ends_with_the_command_that_does(story: Story) -> None:
    before = dumped(story)

    said = plan(story, *NEW_YORK)

    assert dumped(story) == before
    assert said.talk == (
        "duly: nothing was changed; next: duly jobs apply report --period daily --zone America/New_York --reason '…'\n"
    )


def test_a_dry_run_of_apply_says_the_same(story: Story) -> None:
    said = story.duly("jobs", "apply", "report", *NEW_YORK, "--reason", "they moved", "--dry-run")

    assert said.out == plan(story, *NEW_YORK).out
    told = story.duly("jobs", "apply", "report", *NEW_YORK, "--reason", "they moved", "--dry-run", "--json").document
    assert told["plan"]["windows"] == plan(story, *NEW_YORK, "--json").document["windows"]
    assert story.duly("jobs", "show", "report", "--json").document["version"] == 1


def test_what_apply_does_is_what_was_planned(story: Story) -> None:
    planned = plan(story, *NEW_YORK, "--json").document

    applied = story.duly("jobs", "apply", "report", *NEW_YORK, "--reason", "they moved", "--json").document

    assert applied["effective_from"] == planned["seam"]
    assert applied["first"]["window_start"] == planned["first"]["window_start"]
    coming = [w for w in planned["windows"] if w["what"] == "appears"]
    listed = story.duly("next", "report", "2026-10-23..2026-10-26", "--json").document["occurrences"]
    new = [(w["window"], w["window_start"], w["window_end"]) for w in listed if w["zone"] == "America/New_York"]
    assert new == [(w["window"], w["window_start"], w["window_end"]) for w in coming][: len(new)]


def test_another_grain_and_zone_are_both_named(story: Story) -> None:
    said = plan(story, *WEEKLY)

    assert "what changes: another zone, Europe/Berlin → UTC, another grain, day → week\n" in said.out
    assert "2026-10-24[Europe/Berlin]   24 h    due Sun 25 Oct 00:00+02:00   · coming    vanishes\n" in said.out


def test_a_zone_that_returns_is_told_that_it_goes_on(story: Story) -> None:
    assert story.duly("jobs", "apply", "report", *WEEKLY, "--reason", "why").code == 0
    story.clock.set("2026-11-04T12:00:00Z")

    said = plan(story, "--period", "daily", "--zone", "Europe/Berlin")

    assert (
        "keys: by day in Europe/Berlin again, in the series of before; what it would have named meanwhile" in said.out
    )


def test_an_hour_of_work_that_moves_shifts_windows_and_keeps_keys(story: Story) -> None:
    said = plan(story, "--period", "daily", "--zone", "Europe/Berlin", "--at", "04:00")

    assert "what changes: worked at another hour, the end → 04:00\n" in said.out
    assert "keys: as before, by day in Europe/Berlin\n" in said.out
    assert "shifts: due Sun 25 Oct 04:00+01:00\n" in said.out


def test_a_range_is_looked_at_as_next_does(story: Story) -> None:
    keys = plan(story, "2026-10-30..2026-11-01", *NEW_YORK, "--format", "keys").out.split()

    assert keys[3:] == [
        *("2026-10-29[America/New_York]", "2026-10-30[Europe/Berlin]", "2026-10-30[America/New_York]"),
        *("2026-10-31[Europe/Berlin]", "2026-10-31[America/New_York]"),
    ]
    assert story.duly("jobs", "plan", "report", "2026-11-01", *NEW_YORK).code == 64


def test_many_changes_are_cut_with_a_word(story: Story) -> None:
    said = plan(story, "--every", "1m")

    assert "and 1437 more" in said.out
    assert said.out.splitlines()[-1] == "and more; `duly jobs plan report RANGE` shows them"


def test_the_states_of_several_lines_are_counted(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-21T12:00:00Z")
    story.job("report", daily("UTC"), catch_up="each")
    story.complete("report", scope="acme")
    story.fail("report", scope="globex")

    said = plan(story, *NEW_YORK)

    (line,) = [line for line in said.out.splitlines() if line.startswith("2026-10-20[UTC]")]
    assert "1 complete, 1 failed" in line


def test_what_is_in_force_already_and_a_first_schedule_are_told(story: Story) -> None:
    assert plan(story, "--period", "daily", "--zone", "Europe/Berlin").out.startswith("report: in force already: daily")
    taken = story.duly("exec", "loose", "--adhoc", "a", "--effect", "external", "--", "true")
    assert taken.code == 0, taken

    said = plan(story, *WEEKLY, job="loose")

    assert said.out.splitlines()[1] == "its first schedule: nothing changes by it"


def test_errors_name_the_next_step(story: Story) -> None:
    unknown = story.duly("jobs", "plan", "nightly", *WEEKLY)
    assert (unknown.code, "knows no job 'nightly'" in unknown.talk) == (64, True)
    bare = story.duly("jobs", "plan", "report")
    assert (bare.code, "which schedule?" in bare.talk) == (64, True)


def test_exec_names_the_plan_where_the_schedule_differs(story: Story) -> None:
    said = story.duly("exec", "report", *WEEKLY, "--", "true")

    assert said.code == 78
    assert said.talk.splitlines()[-1] == "  try: duly jobs plan report --period weekly --zone UTC"


def test_a_fire_is_split_by_an_hour_between(tmp_path: Path) -> None:
    """Scenario 47: the preview says where each window goes, and nothing before the seam is among them."""
    story = Story(tmp_path, at="2026-10-20T08:00:00Z")
    story.job("report", cron("0 6 * * *", zone="UTC"))
    story.complete("report")

    document = plan(story, "--cron", "0 12 * * *", "--zone", "UTC", "--json").document

    changes = [(w["what"], w["key"]) for w in document["windows"] if w["what"] != "stays"]
    assert changes[:3] == [
        ("appears", "2026-10-21T12:00:00Z"),
        ("split", "2026-10-22T06:00:00Z"),
        ("appears", "2026-10-22T12:00:00Z"),
    ]
    assert document["seam"] == "2026-10-21T06:00:00Z"
    assert all(w["window_start"] >= document["seam"] for w in document["windows"] if w["what"] != "stays")


def test_a_next_step_on_the_day_of_the_change_names_one_of_its_two_windows(story: Story) -> None:
    assert story.duly("jobs", "apply", "report", *NEW_YORK, "--reason", "they moved").code == 0
    story.job("report", daily("America/New_York"), catch_up="each")
    story.complete("report", at="2026-10-24T12:00:00Z")  # the 22nd
    story.fail("report")  # the 23rd of Berlin
    story.fail("report")  # the 23rd of New York

    lines = [line.split("   ")[-1].strip() for line in story.duly("status").out.splitlines()]

    steps = [line for line in lines if line.startswith("duly retry")]
    assert steps == [
        "duly retry 'report:2026-10-21[Europe/Berlin]' --reason '…'",
        "duly retry 'report:2026-10-23[Europe/Berlin]' --reason '…'",
        "duly retry report '2026-10-23[America/New_York]' --reason '…'",
    ]
    for step in steps:
        assert story.duly(*shlex.split(step)[1:], "--reason", "the disk was full").code == 0


def test_a_job_is_planned_by_the_name_that_it_gave_up(story: Story) -> None:
    assert story.duly("jobs", "rename", "report", "daily-report", "--reason", "a clearer name").code == 0

    said = plan(story, *NEW_YORK)

    assert "report is named daily-report now" in said.talk
    assert said.out.startswith("daily-report: version 2:")
    assert "duly jobs apply daily-report" in said.talk
