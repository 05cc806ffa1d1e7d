"""duly check of a range, in the words of a plugin, and as a gate: the worst of all windows and lines answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.evidence import check
from duly.schedule.calendar import make_calendar
from duly.schedule.spec import daily, hourly
from tests.story import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-02T08:00:00Z")
    story.job("close-day", daily("UTC"), catch_up="each")
    return story


def days(story: Story, first: int, last: int, *, scope: str = "") -> None:
    """The days of November up to the last are completed, each on its morning."""
    for day in range(first, last + 1):
        story.complete("close-day", scope=scope, at=f"2026-11-{day + 1:02}T08:00:00Z")


def test_a_range_is_complete_when_each_of_its_periods_is(story: Story) -> None:
    days(story, 1, 6)

    said = story.duly("check", "close-day", "2026-11-01..2026-11-07")

    assert (said.code, said.out) == (0, "close-day: 6 of 6 complete   complete\n")


def test_the_end_of_a_range_is_not_in_it_and_an_open_one_is_now(story: Story) -> None:
    days(story, 1, 2)
    story.fail("close-day", at="2026-11-04T08:00:00Z")

    assert story.duly("check", "close-day", "2026-11-01..2026-11-03").code == 0
    assert story.duly("check", "close-day", "2026-11-01..2026-11-04").code == 1
    assert story.duly("check", "close-day", "2026-11-01..").code == 1
    assert story.duly("check", "close-day", "..2026-11-03").code == 0
    assert story.duly("check", "close-day", "-7d..").out.endswith(
        "close-day: 2 of 3 complete, 1 not complete   not complete\n"
    )


def test_the_worst_answer_wins(story: Story) -> None:
    days(story, 1, 2)
    story.clock.set("2026-11-04T00:10:00Z")

    assert story.duly("check", "close-day", "2026-11-01..2026-11-05").code == 3, "one is due, one is to come"
    assert story.duly("check", "close-day", "2026-10-30..2026-11-05").code == 2, "before the line began nobody can tell"
    story.clock.set("2026-11-04T08:00:00Z")
    assert story.duly("check", "close-day", "2026-10-30..2026-11-05").code == 1, "the third is late"


def test_only_what_is_not_complete_is_shown_and_many_of_a_kind_are_one_line(story: Story) -> None:
    days(story, 1, 2)
    story.fail("close-day", at="2026-11-04T08:00:00Z")
    story.clock.set("2026-11-20T08:00:00Z")

    failed, missing, summed = story.duly("check", "close-day", "2026-11-01..2026-11-20").out.splitlines()

    assert failed.startswith("✗ failed")
    assert failed.endswith("duly retry close-day 2026-11-03 --reason '…'")
    assert missing.split("   ")[:3] == ["– missing", "close-day", "2026-11-04 to 2026-11-19"]
    assert "16 of them: never started" in missing
    assert missing.endswith("duly check close-day 2026-11-01..2026-11-20 --all")
    assert summed.startswith("close-day: 2 of 19 complete, 17 not complete")
    assert len(story.duly("check", "close-day", "2026-11-01..2026-11-20", "--all").out.splitlines()) == 20


def test_each_scope_is_judged_and_one_that_came_later_says_nothing_of_the_days_before(story: Story) -> None:
    days(story, 1, 3, scope="acme")
    days(story, 3, 3, scope="globex")

    said = story.duly("check", "close-day", "2026-11-01..2026-11-04", "--json")

    assert said.code == 0
    assert [(line["scope"], line["answer"], line["counts"]["complete"]) for line in said.document["lines"]] == [
        ("acme", "complete", 3),
        ("globex", "complete", 1),
    ]
    assert story.duly("check", "close-day", "2026-11-01..2026-11-04", "--scope", "globex").code == 2
    story.fail("close-day", scope="globex", at="2026-11-05T08:00:00Z")
    said = story.duly("check", "close-day", "2026-11-03..2026-11-05", "--json")
    assert {line["scope"]: line["answer"] for line in said.document["lines"]} == {
        "acme": "not complete",
        "globex": "not complete",
    }


def test_a_range_without_a_period_is_no_period_that_is_complete(story: Story) -> None:
    days(story, 1, 1)

    said = story.duly("check", "close-day", "2026-11-01T01:00..2026-11-01T05:00")

    assert (said.code, said.out) == (2, "close-day: no period of it lies there\n")


def test_a_long_range_is_looked_at_up_to_a_bound_and_never_called_complete(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    days(story, 1, 6)
    monkeypatch.setattr(check, "LOOK_AT_MOST", 5)

    said = story.duly("check", "close-day", "2026-11-01..2026-11-07")

    assert (said.code, said.out) == (2, "close-day: 5 of 5+ complete   cannot tell\n")
    assert "only the first 5 periods of a line were looked at" in said.talk


def test_a_day_off_is_not_skipped_by_anybody(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-03T08:00:00Z")
    story.job("settle", daily("UTC").on(make_calendar("bank", "2026-11-04"), "skip"), catch_up="each")
    for day in (3, 4, 6):
        story.complete("settle", at=f"2026-11-{day:02}T08:00:00Z")

    assert story.duly("check", "settle", "2026-11-02..2026-11-06", "--strict").code == 0
    assert story.duly("check", "settle", "2026-11-04").out.startswith("» skipped")


def test_the_hours_of_the_longest_day_are_all_asked_for(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-25T00:00:00Z")
    story.job("hours", hourly("Europe/Berlin"), catch_up="each")
    story.complete("hours", at="2026-10-24T23:00:00Z")
    story.clock.set("2026-10-26T00:00:00Z")
    while (claim := story.poke("hours")) is not None:
        story.end(claim)

    said = story.duly("check", "hours", "2026-10-25..2026-10-26")

    assert (said.code, said.out) == (0, "hours: 25 of 25 complete   complete\n")


def test_a_range_that_ends_before_it_begins_is_an_error_of_usage(story: Story) -> None:
    days(story, 1, 1)

    said = story.duly("check", "close-day", "2026-11-07..2026-11-01")

    assert said.code == 64
    assert "ends before it begins" in said.talk


# -- a plugin of Nagios --------------------------------------------------------------------------------------------------


def test_a_plugin_says_ok_for_what_is_complete_and_for_what_is_not_late(story: Story) -> None:
    days(story, 1, 2)

    said = story.duly("check", "close-day", "--nagios")
    assert (said.code, said.talk) == (0, "")
    assert said.out == (
        "DULY OK - close-day 2026-11-02 complete, due 8h ago | "
        "complete=1;;;0;1 not_complete=0;;;0;1 cannot_tell=0;;;0;1 not_yet=0;;;0;1 lag=28800s;;;0\n"
    )
    story.clock.set("2026-11-04T00:10:00Z")
    assert story.duly("check", "close-day", "--nagios").out.startswith(
        "DULY OK - close-day 2026-11-03 due, due 10m ago"
    )


def test_a_plugin_says_critical_and_names_the_worst(story: Story) -> None:
    days(story, 1, 2)
    story.fail("close-day", at="2026-11-04T08:00:00Z")
    days(story, 4, 6)

    said = story.duly("check", "close-day", "2026-11-01..2026-11-07", "--nagios")

    assert said.code == 2
    assert said.out.startswith(
        "DULY CRITICAL - close-day 2026-11-01..2026-11-07: 5 complete, 1 failed: "
        "close-day 2026-11-03 failed, late, due 3d8h ago (exit 2) | complete=5;;;0;6 not_complete=1;;;0;6 "
    )
    assert len(said.out.splitlines()) == 1


def test_a_plugin_says_unknown_for_what_nobody_can_tell(story: Story, tmp_path: Path) -> None:
    days(story, 1, 1)

    before = story.duly("check", "close-day", "2026-10-01", "--nagios")
    nobody = story.duly("check", "nobody-knows-it", "--nagios")
    nowhere = story.duly("check", "close-day", "--nagios", "--ledger", str(tmp_path / "none.db"))

    assert (before.code, before.out[:15]) == (3, "DULY UNKNOWN - ")
    assert (nobody.code, nobody.out) == (
        3,
        "DULY UNKNOWN - the ledger knows no job 'nobody-knows-it'; `duly jobs list` shows those it knows\n",
    )
    assert (nowhere.code, nowhere.out[:15]) == (3, "DULY UNKNOWN - ")


def test_what_a_tenant_is_called_does_not_end_the_line_of_a_plugin(story: Story) -> None:
    days(story, 1, 1, scope="a|b")

    said = story.duly("check", "close-day", "--nagios")

    assert said.out.count("|") == 1
    assert said.out.startswith("DULY OK - a/b/close-day 2026-11-01 complete")


def test_a_plugin_has_no_other_form(story: Story) -> None:
    days(story, 1, 1)

    said = story.duly("check", "close-day", "--nagios", "--json")

    assert said.code == 64
    assert said.talk.endswith("try: duly check close-day --nagios\n")


def test_the_code_alone_can_be_asked_for(story: Story) -> None:
    days(story, 1, 1)

    said = story.duly("check", "close-day", "2026-11-01", "-q")

    assert (said.code, said.out, said.talk) == (0, "", "")
