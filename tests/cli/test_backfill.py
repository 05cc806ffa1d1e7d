"""`duly backfill` as an operator has it, from the plan to the last window, and what the views say meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.cli.bar import drawn
from duly.evidence.backfill import progress
from duly.evidence.backfill_words import others
from duly.schedule.spec import daily
from tests.story import Story

WHY = ("--reason", "the feed was wrong")
RANGE = "2026-11-01..2026-11-06"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("Europe/Paris"), overlap=1, contract="idempotent")
    story.complete("close-day")
    story.clock.advance("1m")
    return story


def test_a_plan_tells_the_windows_by_what_they_are_with_their_bounds_and_the_line_that_starts_it(story: Story) -> None:
    said = story.duly("backfill", "plan", "close-day", "2026-11-17..2026-11-25", "--concurrency", "4")

    assert said.code == 0
    assert said.out.splitlines()[0].startswith(
        "close-day [Europe/Paris]  2026-11-17 to 2026-11-19  (Tue 17 Nov 00:00+01:00 to"
    )
    assert "2   missing     to do" in said.out
    assert "1   completed" in said.out
    assert (
        "2 to be worked, the oldest first, 4 at a time; it stops when 3 of them need a person; "
        "5 are not due yet and are left out" in said.out
    )
    assert "`duly backfill start close-day 2026-11-17..2026-11-25 --concurrency 4 --expect 2 --reason '…'`" in said.talk
    assert story.duly("backfill", "list").out == ""


def test_where_runs_may_not_overlap_the_plan_says_so(story: Story) -> None:
    story.job("fx", daily("UTC"))
    story.complete("fx")

    said = story.duly("backfill", "plan", "fx", RANGE, "--concurrency", "4")

    assert "one at a time" in said.out
    assert "runs of this job may not overlap" in said.out


def test_a_dry_run_says_what_a_start_would_do_and_starts_nothing(story: Story) -> None:
    said = story.duly("backfill", "start", "close-day", RANGE, *WHY, "--dry-run")

    assert said.code == 0
    assert "5 to be worked" in said.out
    assert "this was a dry run" in said.talk
    assert story.duly("backfill", "list").out == ""


def test_from_the_start_to_the_last_window(story: Story) -> None:
    started = story.duly("backfill", "start", "close-day", RANGE, *WHY, "--json")
    assert started.document["schema"] == "duly.backfill_started.v1"
    assert (started.document["id"], started.document["to_do"]) == (1, 5)
    assert story.duly("backfill", "show", "1").out.splitlines()[-1] == "0/5"

    one = story.duly("exec", "close-day", "--backfill", "1", "--one", "-v", "--", "sh", "-c", "echo $DULY_DATE")
    assert (one.code, one.out) == (0, "2026-11-01\n")
    shown = story.duly("backfill", "show", "1", "--json").document
    assert (shown["done"], shown["left"], shown["windows"], shown["state"]) == (1, 4, 5, "active")

    assert story.duly("exec", "close-day", "--backfill", "--", "true").code == 0
    assert story.duly("backfill", "list").out.startswith(
        "1 ✓ done   close-day   2026-11-01..2026-11-06   missing   5/5"
    )
    done = story.duly("exec", "close-day", "--backfill", "-v", "--", "true")
    assert (done.code, "no window of a backfill is left" in done.talk) == (0, True)


def test_an_attempt_says_that_a_backfill_started_it(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY)
    story.duly("exec", "close-day", "--backfill", "--one", "--", "true")

    assert "started by backfill" in story.duly("explain", "close-day", "2026-11-01").out
    assert "So backfill 1 owes it" in story.duly("explain", "close-day", "2026-11-02").out
    assert "backfill 1 owes it" in story.duly("next", "close-day", "2026-11-02..2026-11-03", "--json").out


def test_after_so_many_failures_it_stops_and_a_worker_says_where_to_look(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY, "--stop-after", "2")

    failing = story.duly("exec", "close-day", "--backfill", "--", "false")
    assert failing.code == 1
    assert "backfill 1 has stopped: 2 of its windows need a person" in failing.talk
    assert "try: duly backfill show 1" in failing.talk
    assert story.duly("exec", "close-day", "--backfill", "--", "true").code == 79

    assert (
        "backfill 1 is stopped by duly: 2 of its windows need a person   duly backfill show 1"
        in story.duly("status").out
    )
    assert story.duly("status", "--json").document["backfills"][0]["state"] == "stopped"

    story.clock.advance("1m")
    resumed = story.duly("backfill", "resume", "1", "--reason", "the disk has room again")
    assert resumed.code == 0
    assert "▶ active" in resumed.out
    assert story.duly("exec", "close-day", "--backfill", "--", "true").code == 0
    assert story.duly("backfill", "show", "1").out.splitlines()[-1] == "3/5  2 failed"


def test_a_command_that_cannot_be_executed_is_tried_on_one_window(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY)

    said = story.duly("exec", "close-day", "--backfill", "--", "./there-is-no-such-command")

    assert said.code == 127
    shown = story.duly("backfill", "show", "1", "--json").document
    assert (shown["waiting"], shown["left"]) == (1, 4)
    assert story.duly("exec", "close-day", "--backfill", "--", "true").code == 0


def test_paused_and_cancelled_it_is_told_by_its_word(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY)

    paused = story.duly("backfill", "pause", "1", "--reason", "too slow")
    worker = story.duly("exec", "close-day", "--backfill", "-v", "--", "true")
    tried = story.duly("backfill", "cancel", "1", "--reason", "not needed", "--dry-run")
    cancelled = story.duly("backfill", "cancel", "1", "--reason", "not needed")
    again = story.duly("backfill", "resume", "1", "--reason", "after all")

    assert "○ paused" in paused.out
    assert worker.code == 0
    assert "backfill 1 is paused by" in worker.talk
    assert "dry run" in tried.talk
    assert "» cancelled" in cancelled.out
    assert again.code == 64
    assert "cannot resume backfill 1: it is cancelled" in again.talk


def test_with_nothing_left_it_is_active_until_somebody_comes_and_says_so(story: Story) -> None:
    story.duly("backfill", "start", "close-day", "2026-11-01..2026-11-02", *WHY)
    story.duly("exec", "close-day", "--window", "2026-11-01", "--", "true")

    before = story.duly("backfill", "show", "1").out
    story.duly("exec", "close-day", "--backfill", "--", "false")
    after = story.duly("backfill", "show", "1").out

    assert "active" in before
    assert "nothing left" in before
    assert "`duly exec close-day --backfill -- COMMAND` finds that and ends it" in before
    assert "done" in after
    assert "nothing left" not in after


def test_resumed_it_says_the_command_that_works_it(story: Story) -> None:
    story.complete("close-day", scope="acme")
    story.duly("backfill", "start", "close-day", RANGE, "--scope", "acme", *WHY)
    story.duly("backfill", "pause", "1", "--reason", "too slow")

    resumed = story.duly("backfill", "resume", "1", "--reason", "quiet now")

    assert "`duly exec close-day --scope acme --backfill -- COMMAND` works it" in resumed.talk


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["start", "close-day", RANGE], "say why with --reason"),
        (["plan", "close-day", "..2026-11-06"], "range: "),
        (["plan", "close-day", RANGE, "--what", "lost"], "what: 'lost'"),
        (["plan", "close-day", RANGE, "--concurrency", "0"], "concurrency"),
        (["start", "close-day", RANGE, "--expect", "4", *WHY], "expect: 5 windows would be done, not 4"),
        (
            ["start", "close-day", "2026-11-19..2026-11-20", *WHY],
            "nothing of 2026-11-19..2026-11-20 is missing: 1 completed",
        ),
        (["show", "7"], "the ledger knows no backfill 7"),
        (["pause", "7", *WHY], "the ledger knows no backfill 7"),
    ],
)
def test_what_cannot_be_is_refused_by_name_with_a_step_to_take(story: Story, words: list[str], said: str) -> None:
    refused = story.duly("backfill", *words)

    assert refused.code == 64, refused
    assert said in refused.talk
    assert "\n  try: duly " in refused.talk


def test_exec_refuses_a_backfill_of_another_job_and_one_beside_a_window(story: Story) -> None:
    story.job("fx", daily("UTC"))
    story.complete("fx")
    story.duly("backfill", "start", "fx", RANGE, *WHY)

    other = story.duly("exec", "close-day", "--backfill", "1", "--", "true")
    both = story.duly("exec", "fx", "--backfill", "--window", "2026-11-01", "--", "true")

    assert (other.code, "1 is one of fx" in other.talk) == (64, True)
    assert (both.code, "--backfill works the windows" in both.talk) == (64, True)


def moved_to_tokyo(story: Story) -> None:
    moving = story.duly(
        "jobs", "apply", "close-day", "--period", "daily", "--zone", "Asia/Tokyo", "--reason", "they moved"
    )
    assert moving.code == 0, moving
    story.clock.advance("3d")


def test_windows_of_another_zone_are_no_backfills_and_the_plan_says_what_to_do(story: Story) -> None:
    moved_to_tokyo(story)

    before = story.duly("backfill", "plan", "close-day", RANGE)
    astride = story.duly("backfill", "plan", "close-day", "2026-11-18..2026-11-23")
    started = story.duly("backfill", "start", "close-day", RANGE, *WHY)
    named = story.duly("exec", "close-day", "--window", "2026-11-05[Europe/Paris]", "--", "true")

    said = "5 belong to the schedule of before, which counted by another zone or grain, and no backfill comes to them; "
    do = "name them singly, as `duly exec close-day --window '2026-11-05[Europe/Paris]' -- COMMAND`"
    assert f"no window of {RANGE} has come due under the schedule in force; {said}{do}" in before.out
    assert "; 3 belong to the schedule of before" in astride.out
    assert "2 to be worked" in astride.out
    assert (started.code, f"is missing: no window, {said}{do}" in started.talk) == (64, True)
    assert named.code == 0


def test_a_backfill_of_another_zone_is_not_resumed(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY)
    moved_to_tokyo(story)
    story.duly("exec", "close-day", "--", "true")
    story.duly("exec", "close-day", "--backfill", "--", "true")
    assert "stopped" in story.duly("backfill", "show", "1").out

    resumed = story.duly("backfill", "resume", "1", "--reason", "again")

    assert resumed.code == 64
    assert "cannot resume backfill 1: its windows belong to the schedule of before" in resumed.talk
    assert "try: duly backfill cancel 1 --reason" in resumed.talk
    assert "stopped" in story.duly("backfill", "show", "1").out


def test_of_a_retired_job_its_backfill_is_worked_to_the_end(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY)
    assert story.duly("jobs", "retire", "close-day", "--skip-owed", "--reason", "closed").code == 0

    planned = story.duly("backfill", "plan", "close-day", "2026-11-19..2026-11-23")
    worked = story.duly("exec", "close-day", "--backfill", "--", "sh", "-c", "echo $DULY_SCOPE.")

    assert "; 3 come due after the line ended, and are not owed" in planned.out
    assert "not due yet" not in planned.out
    assert worked.code == 0
    assert len(worked.out.split()) == 5
    assert "done" in story.duly("backfill", "show", "1").out


def test_a_former_name_of_the_job_is_understood(story: Story) -> None:
    assert story.duly("jobs", "rename", "close-day", "end-of-day", "--reason", "as the bank calls it").code == 0

    said = story.duly("backfill", "start", "close-day", RANGE, *WHY)

    assert said.code == 0
    assert "close-day is named end-of-day now" in said.talk
    assert "`duly exec end-of-day --backfill" in said.talk


def test_each_scope_has_backfills_of_its_own(story: Story) -> None:
    for scope in ("acme", "globex"):
        story.complete("close-day", scope=scope)
    story.duly("backfill", "start", "close-day", RANGE, "--scope", "acme", *WHY)

    worked = story.duly("exec", "close-day", "--backfill", "--", "sh", "-c", "echo $DULY_SCOPE")

    assert worked.code == 0
    assert worked.out.split() == ["acme"] * 5
    assert story.duly("backfill", "list", "close-day", "--scope", "globex").out == ""


def test_how_far_it_is_is_drawn_as_a_bar(story: Story) -> None:
    story.duly("backfill", "start", "close-day", RANGE, *WHY)
    story.duly("exec", "close-day", "--backfill", "--one", "--", "true")

    found = story.store.read(progress(1))
    assert f"{drawn(found.done, found.total)}{others(found)}" == "[####................] 1/5"
