"""duly jobs retire: nothing more comes due of a job, what was owed is not lost, and there is a way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.ledger.address import key_of
from duly.ledger.complete import complete_or_raise
from duly.schedule.spec import daily
from tests.story import Said, Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A job whose newest day, the 19th, is complete."""
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("report", daily("UTC", at="06:00"), catch_up="each")
    story.complete("report")
    return story


def retire(story: Story, *words: str) -> Said:
    said = story.duly("jobs", "retire", "report", *words, "--reason", "the new system does it")
    assert said.code == 0, said
    return said


def works(story: Story, scope: str = "", at: str | None = None) -> str:
    """A poke whose run completes; its key."""
    claim = story.begin("report", scope=scope, at=at)
    story.store.write(complete_or_raise(claim))
    return str(story.store.read(key_of(claim.run)))


def test_nothing_more_comes_due_of_a_retired_job(story: Story) -> None:
    said = retire(story)
    assert (said.out, said.talk) == (
        "report: retired\n",
        "duly: nothing more comes due of it; `duly jobs retire report --undo` takes it back\n",
    )

    story.clock.set("2026-11-25T08:00:00Z")

    assert story.poke("report") is None
    assert story.duly("status").out.startswith("✓ nothing needs you")
    assert story.duly("check", "report").code == 0
    assert story.duly("due", "report").code == 1


def test_a_retired_job_is_listed_only_where_all_are_asked_for(story: Story) -> None:
    retire(story)

    assert story.duly("jobs", "list").out == "every job was retired; --all shows 1\n"
    assert "retired Fri 20 Nov 08:00Z" in story.duly("jobs", "list", "--all").out
    assert "retired    Fri 20 Nov 08:00Z\n" in story.duly("jobs", "show", "report").out
    (listed,) = story.duly("jobs", "list", "--all", "--json").document["jobs"]
    assert (listed["retired"], listed["next_due"]) == ("2026-11-20T08:00:00Z", None)


def test_a_poke_of_a_retired_job_is_silent_and_answers_0(story: Story) -> None:
    retire(story)
    story.clock.set("2026-11-25T08:00:00Z")
    daily_at_6 = ("--period", "daily", "--zone", "UTC", "--at", "06:00")

    silent = story.duly("exec", "report", *daily_at_6, "--", "false")
    window = story.duly("exec", "report", "--window", "2026-11-22", "--", "false")
    loud = story.duly("exec", "report", "-v", "--exit-duplicate", "99", "--", "false")

    assert [(said.code, said.talk) for said in (silent, window)] == [(0, ""), (0, "")]
    assert (loud.code, loud.talk) == (99, "duly: report: nothing owed; it was retired at 2026-11-20T08:00:00Z\n")


def test_a_retired_job_takes_no_new_scope(story: Story) -> None:
    retire(story)

    said = story.duly("exec", "report", "--scope", "acme", "--", "false")

    assert said.code == 0
    assert "its roster takes no new scope" in said.talk
    assert story.duly("jobs", "scopes", "add", "report", "acme", "--reason", "why").code == 64
    assert len(story.duly("jobs", "scopes", "list", "report", "--json").document["scopes"]) == 1


def test_what_was_owed_is_listed_and_stays_owed(story: Story) -> None:
    story.clock.set("2026-11-22T08:00:00Z")

    said = retire(story)

    assert said.out.splitlines() == [
        "report: retired",
        "– late   report   2026-11-20   never started   duly explain report 2026-11-20",
        "– late   report   2026-11-21   never started   duly explain report 2026-11-21",
    ]
    assert "what was owed before stays owed" in said.talk
    assert works(story, at="2026-11-25T08:00:00Z") == "report:2026-11-20[UTC]"
    assert works(story) == "report:2026-11-21[UTC]"
    assert story.poke("report") is None


def test_what_was_owed_is_skipped_where_that_is_asked_for_but_not_what_is_under_way(story: Story) -> None:
    claim = story.begin("report", at="2026-11-22T08:00:00Z")  # the 20th; the 21st is open

    said = retire(story, "--skip-owed", "--json")

    assert [(run["window"], run["state"]) for run in said.document["runs"]] == [
        ("2026-11-20", "running"),
        ("2026-11-21", "skipped"),
    ]
    story.store.write(complete_or_raise(claim))
    assert story.poke("report") is None


def test_a_retirement_is_taken_back_and_nothing_is_owed_for_the_time_between(story: Story) -> None:
    retire(story)
    story.clock.set("2026-11-25T08:00:00Z")

    said = retire(story, "--undo")

    assert said.out == "report   resumed   next due Wed 25 Nov 06:00Z\n"
    assert works(story) == "report:2026-11-24[UTC]"
    assert story.poke("report") is None
    assert works(story, at="2026-11-26T08:00:00Z") == "report:2026-11-25[UTC]"
    assert story.duly("jobs", "list", "--format", "keys").out == "report\n"


def test_a_retirement_by_mistake_is_taken_back_with_all_that_it_kept_from_being_owed(story: Story) -> None:
    retire(story)
    story.clock.set("2026-11-22T08:00:00Z")

    retire(story, "--undo", "--from", "2026-11-20")

    assert [works(story), works(story)] == ["report:2026-11-20[UTC]", "report:2026-11-21[UTC]"]


def test_scopes_that_had_left_before_stay_away_when_the_job_comes_back(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("report", daily("UTC", at="06:00"), catch_up="each")
    for scope in ("acme", "beta", "gamma"):
        story.complete("report", scope=scope)
    leave = ("jobs", "scopes", "retire", "report")
    # The same instant as the job's, by the hand that holds the clock.
    assert story.duly(*leave, "acme", "--reason", "left").code == 0
    assert story.duly(*leave, "beta", "--at", "2026-11-26", "--reason", "will leave").code == 0
    retire(story)
    story.clock.set("2026-11-25T08:00:00Z")

    retire(story, "--undo")

    lines = {s["scope"]: s for s in story.duly("jobs", "scopes", "list", "report", "--json").document["scopes"]}
    assert {name: line["until"] for name, line in lines.items()} == {
        "acme": "2026-11-20T08:00:00Z",
        "beta": "2026-11-27T06:00:00Z",
        "gamma": None,
    }
    assert story.poke("report", scope="acme") is None
    assert works(story, "beta", at="2026-11-28T08:00:00Z") == "beta/report:2026-11-24[UTC]"
    assert works(story, "beta") == "beta/report:2026-11-25[UTC]"
    assert story.poke("report", scope="beta") is None


def test_a_dry_run_retires_nothing(story: Story) -> None:
    assert retire(story, "--dry-run").talk == "duly: nothing was changed: this was a dry run\n"

    assert works(story, at="2026-11-21T08:00:00Z") == "report:2026-11-20[UTC]"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("report",), "say why with --reason"),
        (("nothing", "--reason", "why"), "the ledger knows no job 'nothing'"),
        (("report", "--undo", "--reason", "why"), "report is not retired"),
        (("report", "--from", "2026-11-20", "--reason", "why"), "--from goes with --undo"),
        (("report", "--undo", "--skip-owed", "--reason", "why"), "--skip-owed goes with a retirement"),
    ],
)
def test_what_cannot_be_done_is_said(story: Story, words: tuple[str, ...], told: str) -> None:
    said = story.duly("jobs", "retire", *words)

    assert said.code == 64
    assert told in said.talk
    assert "\n  try: duly " in said.talk


def test_a_job_is_retired_once(story: Story) -> None:
    retire(story)

    assert "was retired at 2026-11-20T08:00:00Z already" in story.duly("jobs", "retire", "report", "--reason", "w").talk
