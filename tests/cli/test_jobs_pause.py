"""`duly jobs pause` and `resume` as an operator has them, and what the views say meanwhile."""

from __future__ import annotations

import json
import shlex

import pytest

from duly.schedule.spec import daily
from tests.story import Story

WHY = ("--reason", "the bank is closed")


@pytest.fixture
def story(tmp_path: object) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")  # type: ignore[arg-type]  # a path
    story.job("close-day", daily("Europe/Paris"))
    story.complete("close-day")
    return story


def test_a_paused_job_is_told_by_every_view(story: Story) -> None:
    paused = story.duly("jobs", "pause", "close-day", "--until", "2026-11-24T12:00", *WHY)
    assert paused.code == 0
    assert "paused until 2026-11-24T11:00:00Z" in paused.out
    story.clock.set("2026-11-22T08:00:00Z")

    status = story.duly("status")
    assert status.out.startswith("✓ nothing needs you")
    assert "the bank is closed; 2 windows wait" in status.out
    assert "duly jobs resume close-day" in status.out
    assert "paused" in story.duly("jobs", "show", "close-day").out
    assert "So nothing starts it: close-day is paused" in story.duly("explain", "close-day", "2026-11-21").out
    check = story.duly("check", "close-day")
    assert check.code == 1  # it is late, whoever wanted that
    assert "the bank is closed" in check.out + check.talk


def test_exec_starts_nothing_of_it_and_that_is_no_error(story: Story) -> None:
    story.duly("jobs", "pause", "close-day", *WHY)
    story.clock.set("2026-11-21T08:00:00Z")

    poke = story.duly("exec", "-v", "close-day", "--", "false")
    assert (poke.code, "the bank is closed" in poke.talk) == (0, True)
    named = story.duly("exec", "close-day", "--window", "2026-11-20", "--", "false")
    assert named.code == 75


def test_resuming_says_what_is_owed_and_what_was_skipped_first_without_doing_it(story: Story) -> None:
    story.duly("jobs", "pause", "close-day", *WHY)
    story.clock.set("2026-11-24T08:00:00Z")

    tried = story.duly("jobs", "resume", "close-day", *WHY, "--dry-run")
    assert "1 owed; 3 skipped (paused by" in tried.out
    assert "dry run" in tried.talk
    done = story.duly("jobs", "resume", "close-day", *WHY, "--catch-up", "each", "--json")

    (line,) = json.loads(done.out)["lines"]
    assert (line["owed"], line["skipped"]) == (4, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pause", "close-day"), "say why with --reason"),
        (("pause", "close-day", *WHY, "--until", "soon"), "'soon' is no instant"),
        (("pause", "close-day", *WHY, "--until", "2026-10-25T02:30"), "comes twice in Europe/Paris"),
        (("pause", "close-day", *WHY, "--until", "2027-03-28T02:30"), "does not exist in Europe/Paris"),
        (("pause", "close-day", *WHY, "--until", "2026-11-01"), "has passed"),
        (("pause", "nothing", *WHY), "knows no job 'nothing'"),
        (("resume", "close-day", *WHY), "is not paused"),
        (("resume", "close-day", *WHY, "--catch-up", "some"), "catch_up.policy"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(story: Story, words: tuple[str, ...], said: str) -> None:
    refused = story.duly("jobs", *words)

    assert refused.code != 0
    assert said in refused.talk
    assert "paused" not in story.duly("jobs", "show", "close-day").out


# -- a job of several scopes --------------------------------------------------------------------------------------------


@pytest.fixture
def tenants(story: Story) -> Story:
    story.job("bill", daily("UTC"))
    for scope in ("acme", "globex"):
        story.complete("bill", scope=scope)
    return story


def resumes(story: Story) -> list[list[str]]:
    """The steps that `status` names, as they are typed."""
    lines = [line.partition("duly jobs resume ")[2] for line in story.duly("status").out.splitlines()]
    return [shlex.split(line) for line in lines if line]


def paused_of(story: Story, job: str) -> list[str]:
    return [line for line in story.duly("jobs", "show", job).out.splitlines() if " paused " in line]


def test_a_job_that_is_paused_as_a_whole_is_resumed_as_a_whole(tenants: Story) -> None:
    assert tenants.duly("jobs", "pause", "bill", *WHY).code == 0

    steps = resumes(tenants)

    assert ["bill", "--scope", "acme"] not in steps
    assert steps[0] == ["bill", "--reason", "…"]
    assert len(paused_of(tenants, "bill")) == 1
    assert tenants.duly("jobs", "resume", *steps[0], *WHY).code == 0
    assert resumes(tenants) == []


def test_a_scope_that_is_paused_by_itself_is_named(tenants: Story) -> None:
    assert tenants.duly("jobs", "pause", "bill", "--scope", "globex", *WHY).code == 0

    (step,) = resumes(tenants)
    (shown,) = paused_of(tenants, "bill")

    assert step == ["bill", "--scope", "globex", "--reason", "…"]
    assert "globex: paused by" in shown
    assert tenants.duly("jobs", "resume", *step, *WHY).code == 0
    assert paused_of(tenants, "bill") == []
