"""duly cancel: who was asked to stop, by whom, and what became of it, in every view."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.ledger.complete import complete_or_raise, release_or_raise
from duly.ledger.records import Claim
from duly.ledger.take import renew
from duly.schedule.spec import daily
from tests.story import Said, Story

DAY = "2026-11-19"
WHY = ("--reason", "it reads the wrong year")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("UTC"))
    return story


def cancel(story: Story, *more: str) -> Said:
    said = story.duly("cancel", "close-day", DAY, *WHY, *more, SUDO_USER="ana")
    assert said.code == 0, said
    return said


def asked(story: Story) -> Claim:
    """An attempt that was asked to stop five minutes ago, and lives."""
    claim = story.begin("close-day")
    cancel(story)
    for _ in range(5):
        story.clock.advance("50s")
        story.store.write(renew(claim))
    story.clock.advance("50s")
    return claim


def test_it_says_who_is_asked_and_when_it_hears_of_that(story: Story) -> None:
    story.begin("close-day")

    said = cancel(story)

    assert said.out.startswith(
        f"close-day   {DAY}   ▶ running   → ▶ running   attempt 1 by host:4711, asked to stop 0s ago by ana@"
    )
    assert "attempt 1 by host:4711 is asked to stop: it hears of that within 20s, with its next heartbeat" in said.talk


def test_a_dry_run_asks_nobody(story: Story) -> None:
    story.begin("close-day")

    said = cancel(story, "--dry-run")

    assert "asked to stop" in said.out
    assert "nothing was changed" in said.talk
    assert story.duly("runs", "show", "close-day", DAY, "--json").document["events"] == []


def test_asking_again_says_that_it_was_asked_before(story: Story) -> None:
    story.begin("close-day")
    cancel(story)

    said = cancel(story)

    assert "was asked to stop before" in said.talk
    assert len(story.duly("runs", "show", "close-day", DAY, "--json").document["events"]) == 1


def test_a_run_that_nobody_works_is_skipped_and_that_is_said(story: Story) -> None:
    story.fail("close-day")

    said = cancel(story)

    assert said.out == f"close-day   {DAY}   ✗ failed   → » skipped   it reads the wrong year\n"
    assert "nobody was working it, so it is skipped; `duly unskip` takes that back" in said.talk
    assert (
        "skipped it: it reads the wrong year; cancelled while no attempt was working it."
        in story.duly("explain", "close-day", DAY).out
    )


def test_an_attempt_that_had_vanished_is_named_as_that(story: Story) -> None:
    story.begin("close-day")
    story.clock.advance("1h")

    said = cancel(story)

    assert "? unknown   → ? unknown" in said.out
    assert "its attempt has vanished, and nobody knows what it did: `duly resolve` it" in said.talk


def test_a_completed_run_is_not_cancelled(story: Story) -> None:
    story.complete("close-day")

    said = story.duly("cancel", "close-day", DAY, *WHY)

    assert said.code == 64
    assert "it is completed, so it is too late" in said.talk
    assert said.talk.endswith(f"try: duly explain close-day {DAY}\n")


def test_for_programs_it_is_a_change_like_any_other(story: Story) -> None:
    story.begin("close-day")

    document = cancel(story, "--json").document

    assert (document["schema"], document["verb"], document["dry_run"]) == ("duly.change.v1", "cancel", False)
    assert [document[when]["state"] for when in ("before", "after")] == ["running", "running"]


# -- what became of it ---------------------------------------------------------------------------------------------------


def test_status_says_who_asked_it_and_that_it_may_be_alive(story: Story) -> None:
    asked(story)

    out = story.duly("status").out

    assert f"close-day   {DAY}   running for 5m, attempt 1 by host:4711, asked to stop 5m ago by ana@" in out
    assert "maybe alive" in out


def test_explain_says_it_in_the_order_in_which_it_happened(story: Story) -> None:
    claim = story.begin("close-day")
    cancel(story)

    (*_, at_once) = story.duly("explain", "close-day", DAY).out.splitlines()
    story.clock.advance("50s")
    story.store.write(renew(claim))
    told = story.duly("explain", "close-day", DAY).out.splitlines()

    assert told[-3].startswith("Attempt 1 began at ")
    assert told[-3].endswith(" asked it to stop: has not ended yet.")
    assert told[-2].endswith(" asked its attempt to stop: it reads the wrong year.")
    still = "So it is running still, and may be alive; asked to stop, it "
    assert at_once.startswith(still + "hears of that with a heartbeat, within 20s.")
    assert told[-1].startswith(still + "has had time to hear of that, and has not ended.")


def test_of_one_that_stopped_every_view_says_by_whom(story: Story) -> None:
    story.store.write(release_or_raise(asked(story), "nothing was done yet"))

    assert "failed, cancelled by ana@" in story.duly("status").out
    assert "asked it to stop: stopped." in story.duly("explain", "close-day", DAY).out
    document = story.duly("runs", "show", "close-day", DAY, "--json").document
    (attempt,) = document["attempts"]
    assert (attempt["outcome"], attempt["cancel_became"]) == ("cancelled", "stopped")
    assert attempt["cancel_asked_by"].startswith("ana@")
    assert attempt["cancel_asked_at"] == "2026-11-20T08:00:00Z"
    assert story.duly("check", "close-day", DAY).code == 1


def test_of_one_that_completed_every_view_says_that_it_was_too_late(story: Story) -> None:
    story.store.write(complete_or_raise(asked(story)))

    assert "asked it to stop, too late" in story.duly("runs", "close-day").out
    shown = story.duly("runs", "show", "close-day", DAY).out
    assert ": too late: it completed" in shown
    assert story.duly("check", "close-day", DAY).code == 0


def test_of_one_that_vanished_then_the_next_step_is_a_persons(story: Story) -> None:
    story.job("mend", daily("UTC"), contract="transactional", catch_up="each")
    story.begin("mend")
    story.duly("cancel", "mend", DAY, *WHY)
    story.clock.advance("1h")

    out = story.duly("status").out

    assert f"✗ mend   {DAY}   failed, attempt 1 was asked to stop and vanished   duly retry mend {DAY}" in out
