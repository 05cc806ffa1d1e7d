"""What a person says of a run: retry, skip, unskip, reopen, resolve. (`duly cancel` has a file of its own.)"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.schedule.spec import daily
from duly.store.lock import HAS_PULSE, begin_pulse, lock_path
from duly.times import HOUR
from tests.story import Story


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("Europe/Paris"))
    yield story
    story.store.close()


def test_a_failed_run_is_retried_at_the_next_poke(story: Story) -> None:
    story.fail("close-day")
    assert story.poke("close-day") is None

    said = story.duly("retry", "close-day", "2026-11-19", "--reason", "the disk is bigger now")

    assert said.code == 0
    assert said.out == "close-day   2026-11-19   ✗ failed   → ↻ retrying   exit 2\n"
    assert said.talk.splitlines() == [
        "duly: close-day:2026-11-19[Europe/Paris]",
        "duly: the next poke of the job takes it again",
    ]
    assert story.poke("close-day") is not None


def test_a_dry_run_says_the_same_and_changes_nothing(story: Story) -> None:
    story.fail("close-day")

    said = story.duly("retry", "close-day", "2026-11-19", "--reason", "only to see", "--dry-run")

    assert said.out == "close-day   2026-11-19   ✗ failed   → ↻ retrying   exit 2\n"
    assert "nothing was changed" in said.talk
    assert story.poke("close-day") is None
    assert story.duly("runs", "show", "close-day", "2026-11-19", "--json").document["events"] == []


def test_who_and_why_is_kept(story: Story) -> None:
    story.fail("close-day")

    story.duly(
        "retry", "close-day", "2026-11-19", "--reason", "the disk is bigger now", SUDO_USER="ana", LOGNAME="root"
    )

    (event,) = story.duly("runs", "show", "close-day", "2026-11-19", "--json").document["events"]
    assert (event["kind"], event["reason"]) == ("retried", "the disk is bigger now")
    assert event["by"] == f"ana@{os.uname().nodename}"


@pytest.mark.parametrize("verb", ["retry", "skip", "unskip", "reopen", "cancel"])
def test_without_a_reason_the_line_to_type_is_shown(story: Story, verb: str) -> None:
    story.fail("close-day")

    said = story.duly(verb, "close-day", "2026-11-19")

    assert said.code == 64
    assert f"try: duly {verb} close-day 2026-11-19 --reason " in said.talk


def test_a_state_that_does_not_allow_it_is_named_with_what_to_look_at(story: Story) -> None:
    story.complete("close-day")

    said = story.duly("retry", "close-day", "2026-11-19", "--reason", "why")

    assert said.code == 64
    assert "it is completed; `duly reopen` it" in said.talk
    assert said.talk.endswith("try: duly explain close-day 2026-11-19\n")


def test_a_window_that_nobody_opened_can_be_skipped_and_unskipped(story: Story) -> None:
    story.complete("close-day")
    story.clock.set("2026-11-21T08:00:00Z")

    skipped = story.duly("skip", "close-day", "2026-11-20", "--reason", "a holiday")
    assert (skipped.code, skipped.out) == (0, "close-day   2026-11-20   – missing   → » skipped   a holiday\n")
    assert story.poke("close-day") is None

    unskipped = story.duly("unskip", "close-day", "2026-11-20", "--reason", "no holiday after all")
    assert unskipped.out.startswith("close-day   2026-11-20   » skipped   → – late")
    assert story.poke("close-day") is not None


def test_a_window_is_cut_out_of_a_skipped_range(story: Story) -> None:
    story.complete("close-day")
    story.complete("close-day", at="2026-11-24T08:00:00Z")

    said = story.duly("unskip", "close-day", "2026-11-21", "--reason", "this one is wanted")

    assert said.code == 0
    words = [story.duly("check", "close-day", f"2026-11-{day}").out.split()[1] for day in (20, 21, 22)]
    assert words == ["skipped", "late", "skipped"]


def test_a_completed_run_is_done_again_as_a_new_revision(story: Story) -> None:
    story.complete("close-day")

    said = story.duly("reopen", "close-day", "2026-11-19", "--reason", "the VAT rate was wrong", "--json")

    assert said.document["after"]["key"] == "close-day:2026-11-19[Europe/Paris]#2"
    story.complete("close-day")
    listed = story.duly("runs", "close-day", "--format", "keys").out.split()
    assert listed == ["close-day:2026-11-19[Europe/Paris]#2", "close-day:2026-11-19[Europe/Paris]"]


def test_today_and_yesterday_are_days_of_the_schedule_by_the_ledgers_clock(story: Story) -> None:
    story.complete("close-day")
    story.clock.set("2026-11-20T23:30:00Z")  # the 21st in Paris

    assert "duly: close-day:2026-11-20[Europe/Paris]\n" in story.duly("explain", "close-day", "yesterday").talk
    assert "duly: close-day:2026-11-21[Europe/Paris]\n" in story.duly("explain", "close-day", "today").talk


def test_a_job_with_one_scope_needs_none_named_and_one_with_several_does(story: Story) -> None:
    story.fail("close-day", scope="acme")
    assert story.duly("retry", "close-day", "2026-11-19", "--reason", "why", "--dry-run").code == 0

    story.fail("close-day", scope="globex")
    said = story.duly("retry", "close-day", "2026-11-19", "--reason", "why")

    assert said.code == 78
    assert "2 scopes; say which with --scope" in said.talk
    assert story.duly("retry", "globex/close-day:2026-11-19[Europe/Paris]", "--reason", "why").code == 0


# -- resolve ------------------------------------------------------------------------------------------------------------


def test_an_unknown_run_is_resolved_as_done(story: Story) -> None:
    story.doubt("close-day")

    said = story.duly(
        "resolve", "close-day", "2026-11-19", "--as", "done", "--evidence", "their log: received at 02:31"
    )

    assert (said.code, said.out) == (0, "close-day   2026-11-19   ? unknown   → ✓ complete\n")
    shown = story.duly("runs", "show", "close-day", "2026-11-19")
    assert "evidence of attempt 1\ntheir log: received at 02:31" in shown.out


def test_an_unknown_run_is_resolved_as_not_done_and_worked_again(story: Story) -> None:
    story.doubt("close-day")

    assert story.duly("resolve", "close-day", "2026-11-19", "--as", "not-done", "--evidence", "no log line").code == 0
    assert story.poke("close-day") is not None


def test_a_vanished_attempt_is_resolved_though_no_poke_has_judged_it(story: Story) -> None:
    story.begin("close-day")
    story.clock.advance("2m")

    said = story.duly("resolve", "close-day", "2026-11-19", "--as", "done", "--evidence", "their log")

    assert (said.code, said.out) == (0, "close-day   2026-11-19   ? unknown   → ✓ complete\n")


def test_a_run_that_goes_on_is_not_resolved(story: Story) -> None:
    story.job("long", daily("UTC"), lease=HOUR)
    story.begin("long")

    said = story.duly("resolve", "long", "2026-11-19", "--as", "done", "--evidence", "impatience")

    assert said.code == 64
    assert "it is running; wait for its attempt" in said.talk


@pytest.mark.parametrize("words", [[], ["--as", "done"], ["--evidence", "their log"]])
def test_resolving_needs_what_happened_and_how_it_is_known(story: Story, words: list[str]) -> None:
    story.doubt("close-day")

    said = story.duly("resolve", "close-day", "2026-11-19", *words)

    assert said.code == 64
    assert "try: duly resolve close-day 2026-11-19 " in said.talk
    assert "--evidence " in said.talk.partition("try: ")[2]


@pytest.mark.skipif(not HAS_PULSE, reason="locks of open file descriptions are Linux's")
@pytest.mark.parametrize("judged", [True, False])
def test_a_lock_kept_by_a_grandchild_is_named_and_can_be_overridden(story: Story, judged: bool) -> None:
    claim = story.begin("close-day")
    pulse = begin_pulse(lock_path(story.path), claim.attempt_id)
    grandchild = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[pulse])
    os.close(pulse)
    if judged:
        from duly.ledger.complete import doubt_or_raise

        story.store.write(doubt_or_raise(claim, "its wrapper was killed"))
    story.clock.advance("2m")
    words = ["resolve", "close-day", "2026-11-19", "--as", "done", "--evidence", "their log"]

    refused = story.duly(*words)
    overridden = story.duly(*words, "--attempt-is-dead")
    grandchild.communicate(b"\n")

    assert refused.code == 64
    assert f"held by pid {grandchild.pid}" in refused.talk
    assert refused.talk.endswith("--as done --evidence 'their log' --attempt-is-dead\n")
    assert overridden.code == 0
    events = story.duly("runs", "show", "close-day", "2026-11-19", "--json").document["events"]
    assert events[-1]["detail"] == "done, attempt said to be dead"
