"""duly jobs: what the ledger knows of each job, and how a schedule changes without losing or doubling a window."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.schedule.spec import Schedule, cron, daily, every, weekly
from duly.times import instant_text
from tests.story import Story

MORNING = cron("0 6 * * *", zone="UTC")
NOON = ("--cron", "0 12 * * *", "--zone", "UTC")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("report", MORNING)
    story.complete("report")
    return story


def applied(story: Story, *words: str) -> None:
    said = story.duly("jobs", "apply", "report", *words, "--reason", "the feed comes later")
    assert said.code == 0, said


def tiled(story: Story) -> list[tuple[str, str, str]]:
    """The report's windows that have a row: window, start, end."""
    runs = story.duly("runs", "report", "--json").document["runs"]
    return [(run["window"], run["window_start"], run["window_end"]) for run in reversed(runs)]


def test_jobs_are_listed_with_their_schedules(story: Story) -> None:
    story.job("export", daily("Europe/Paris", at="02:30"))
    story.complete("export", scope="acme")
    story.complete("export", scope="globex")

    assert story.duly("jobs", "list").out.splitlines() == [
        "export   daily in Europe/Paris, worked at 02:30 the next morning   next due Sat 21 Nov 02:30+01:00   2 scopes",
        "report   cron 0 6 * * * in UTC                                     next due Sat 21 Nov 06:00Z",
    ]
    assert story.duly("jobs", "list", "--format", "keys").out == "export\nreport\n"


def test_an_empty_ledger_has_no_jobs_to_list(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")

    assert story.duly("jobs", "list").out == "the ledger knows no job yet\n"


def test_one_job_is_shown_with_its_policies(story: Story) -> None:
    said = story.duly("jobs", "show", "report")

    assert "grace      a tenth of the period, at most 1h\n" in said.out
    document = story.duly("jobs", "show", "report", "--json").document
    assert (document["schema"], document["contract"], document["catch_up"]) == ("duly.job.v1", "external", "latest")
    assert [version["number"] for version in document["versions"]] == [1]


def test_a_changed_schedule_begins_where_the_last_old_window_ends(story: Story) -> None:
    said = story.duly("jobs", "apply", "report", *NOON, "--reason", "the feed comes later")

    assert said.code == 0
    assert said.out.splitlines() == [
        "report: version 2: cron 0 12 * * * in UTC",
        "in place of version 1: cron 0 6 * * * in UTC",
        "2026-11-21T06:00:00Z has begun; it keeps its bounds, and comes due Sat 21 Nov 06:00Z",
        "first window: 2026-11-21T12:00:00Z, Sat 21 Nov 06:00Z to Sat 21 Nov 12:00Z, due Sat 21 Nov 12:00Z",
    ]


def test_windows_tile_time_across_the_change(story: Story) -> None:
    applied(story, *NOON)
    story.job("report", cron("0 12 * * *", zone="UTC"))

    story.complete("report", at="2026-11-21T07:00:00Z")
    story.complete("report", at="2026-11-21T13:00:00Z")
    story.complete("report", at="2026-11-22T13:00:00Z")

    assert tiled(story) == [
        ("2026-11-20T06:00:00Z", "2026-11-19T06:00:00Z", "2026-11-20T06:00:00Z"),
        ("2026-11-21T06:00:00Z", "2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z"),
        ("2026-11-21T12:00:00Z", "2026-11-21T06:00:00Z", "2026-11-21T12:00:00Z"),
        ("2026-11-22T12:00:00Z", "2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z"),
    ]


def test_the_last_old_window_is_neither_lost_nor_dropped_by_catch_up(story: Story) -> None:
    applied(story, *NOON)
    story.job("report", cron("0 12 * * *", zone="UTC"))

    assert story.poke("report", at="2026-11-20T13:00:00Z") is None  # noon is the new schedule's, and not yet in force
    story.complete("report", at="2026-11-21T06:00:00Z")

    assert story.duly("check", "report", "2026-11-21T06:00").code == 0


def test_the_views_follow_the_version_that_was_in_force(story: Story) -> None:
    applied(story, *NOON)

    found = [line.split()[0] for line in story.duly("next", "report", "2026-11-19..2026-11-23").out.splitlines()[1:]]

    assert found == [
        *("2026-11-19T06:00:00Z", "2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z"),
        *("2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z"),
    ]
    assert story.duly("explain", "report", "2026-11-20T12:00").code == 64
    assert "This window belongs to version 1" in story.duly("explain", "report", "2026-11-20T06:00").out
    ambiguous = story.duly("explain", "report", "2026-11-21")
    assert ambiguous.code == 64
    assert "names a window before and one after the schedule changed" in ambiguous.talk


def test_what_came_due_before_the_change_is_opened_first(story: Story) -> None:
    story.job("each", MORNING, catch_up="each")
    story.complete("each")
    story.clock.set("2026-11-23T08:00:00Z")

    assert story.duly("jobs", "apply", "each", *NOON, "--reason", "the feed comes later").code == 0

    listed = story.duly("runs", "each", "--format", "keys").out.split()
    assert listed == [f"each:2026-11-{day}T06:00:00Z" for day in (24, 23, 22, 21, 20)]


def test_a_window_that_awaits_its_hour_of_work_is_opened_too(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T01:00:00Z")  # the 19th has ended, and is worked at 02:30
    story.job("report", daily("UTC", at="02:30"))
    story.complete("report")

    said = story.duly(
        "jobs", "apply", "report", "--period", "daily", "--zone", "UTC", "--at", "04:00", "--reason", "later"
    )

    assert [line.split()[0] for line in said.out.splitlines()[2:]] == ["2026-11-19", "2026-11-20", "first"]
    story.job("report", daily("UTC", at="04:00"))
    story.complete("report", at="2026-11-20T02:30:00Z")
    assert story.duly("check", "report", "2026-11-19").code == 0
    assert story.duly("next", "report", "2026-11-20..2026-11-22", "--time", "utc").out.splitlines()[1:] == [
        "2026-11-20   24 h   due Sat 21 Nov 02:30Z   · coming",
        "2026-11-21   24 h   due Sun 22 Nov 04:00Z   · coming   seam",
    ]


def test_applying_twice_before_the_change_leaves_one_seam(story: Story) -> None:
    applied(story, *NOON)
    applied(story, "--cron", "0 18 * * *", "--zone", "UTC")
    story.job("report", cron("0 18 * * *", zone="UTC"))

    story.complete("report", at="2026-11-21T07:00:00Z")
    story.complete("report", at="2026-11-21T19:00:00Z")

    assert tiled(story)[1:] == [
        ("2026-11-21T06:00:00Z", "2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z"),
        ("2026-11-21T18:00:00Z", "2026-11-21T06:00:00Z", "2026-11-21T18:00:00Z"),
    ]


def test_going_back_is_a_version_of_its_own(story: Story) -> None:
    applied(story, *NOON)
    story.clock.set("2026-11-23T08:00:00Z")
    applied(story, "--cron", "0 6 * * *", "--zone", "UTC")
    story.job("report", MORNING)

    story.complete("report", at="2026-11-24T07:00:00Z")

    assert [row[0] for row in tiled(story)][-2:] == ["2026-11-23T12:00:00Z", "2026-11-24T06:00:00Z"]
    assert tiled(story)[-1][1:] == ("2026-11-23T12:00:00Z", "2026-11-24T06:00:00Z")


def test_another_zone_keeps_what_was_done_and_is_named_as_that(story: Story) -> None:
    """Scenario 48."""
    said = story.duly(
        "jobs", "apply", "report", "--cron", "0 6 * * *", "--zone", "Europe/Paris", "--reason", "they moved"
    )

    assert said.code == 0
    assert "2026-11-21T06:00:00Z has begun; it keeps its bounds" in said.out
    assert "first window: 2026-11-22T06:00:00, Sat 21 Nov 07:00+01:00 to Sun 22 Nov 06:00+01:00" in said.out
    assert story.duly("check", "report", "2026-11-20T06:00:00Z").code == 0
    refused = story.duly("explain", "report:2026-11-20T06:00:00[Europe/Paris]")
    assert "is a window of version 2 of the schedule, which did not answer for that time" in refused.talk
    listed = story.duly("next", "report", "2026-11-20..2026-11-23").out.splitlines()[1:]
    assert [line.split()[0] for line in listed] == [
        *("2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z", "2026-11-22T06:00:00[Europe/Paris]")
    ]
    assert [line.endswith("seam") for line in listed] == [False, False, True]


def test_another_grain_is_another_series(story: Story) -> None:
    applied(story, "--period", "weekly", "--zone", "UTC")
    story.job("report", weekly("UTC"))

    story.complete("report", at="2026-11-21T06:00:00Z")
    story.complete("report", at="2026-11-23T06:00:00Z")

    assert tiled(story)[1:] == [
        ("2026-11-21T06:00:00Z", "2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z"),
        ("2026-W47", "2026-11-21T06:00:00Z", "2026-11-23T00:00:00Z"),
    ]


def test_what_is_in_force_already_changes_nothing(story: Story) -> None:
    said = story.duly("jobs", "apply", "report", "--cron", "0 6 * * *", "--zone", "UTC", "--reason", "why")

    assert (said.code, said.out) == (0, "report: in force already: cron 0 6 * * * in UTC\n")


def test_a_dry_run_shows_the_seam_and_leaves_the_old_schedule_in_force(story: Story) -> None:
    said = story.duly("jobs", "apply", "report", *NOON, "--reason", "why", "--dry-run", "--json")

    assert said.document["schema"] == "duly.apply.v1"
    assert said.document["effective_from"] == "2026-11-21T06:00:00Z"
    assert said.document["first"]["window_start"] == "2026-11-21T06:00:00Z"
    assert story.duly("jobs", "show", "report", "--json").document["version"] == 1
    assert tiled(story)[-1][0] == "2026-11-20T06:00:00Z"


def test_all_scopes_of_a_job_change_together(story: Story) -> None:
    story.job("export", MORNING)
    story.complete("export", scope="acme")
    story.complete("export", scope="globex")

    assert story.duly("jobs", "apply", "export", *NOON, "--reason", "why").code == 0

    listed = sorted(story.duly("runs", "export", "--format", "keys", "--state", "open").out.split())
    assert listed == ["acme/export:2026-11-21T06:00:00Z", "globex/export:2026-11-21T06:00:00Z"]


@pytest.mark.parametrize("schedule", [every("6h"), every("4h", anchor=3_600_000_000)])
def test_intervals_change_with_a_seam_as_well(tmp_path: Path, schedule: Schedule) -> None:
    story = Story(tmp_path, at="2026-11-20T08:30:00Z")
    story.job("report", every("1h"))
    story.complete("report")
    flags = ["--every", "6h"] if schedule.anchor == 0 else ["--every", "4h", "--anchor", instant_text(schedule.anchor)]
    applied(story, *flags)
    story.job("report", schedule)

    story.complete("report", at="2026-11-20T09:00:00Z")
    story.complete("report", at="2026-11-20T18:00:00Z")

    windows = tiled(story)
    assert [window[0] for window in windows][:2] == ["2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z"]
    assert windows[1][2] == "2026-11-20T09:00:00Z"
