"""duly explain: every window has a reason, whether it has a row or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.schedule.spec import cron, daily, every, hourly
from duly.times import HOUR, MINUTE
from tests.story import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("Europe/Paris", at="02:30"))
    return story


def explained(story: Story, *words: str) -> list[str]:
    said = story.duly("explain", *words)
    assert said.code == 0, said
    return said.out.splitlines()


def test_the_whole_story_of_a_run_is_told_in_order(story: Story) -> None:
    story.fail("close-day")
    story.clock.advance("30m")
    story.duly("retry", "close-day", "2026-11-19", "--reason", "the disk is bigger now", LOGNAME="ana")
    story.clock.advance("5m")
    story.complete("close-day")

    head, *told = explained(story, "close-day", "2026-11-19", "--time", "utc")

    assert head == "close-day:2026-11-19[Europe/Paris]   ✓ complete"
    assert told[0].startswith("close-day is daily in Europe/Paris, worked at 02:30 the next morning; ")
    assert told[1:3] == [
        "2026-11-19 answers for Wed 18 Nov 23:00Z to Thu 19 Nov 23:00Z, 24 h.",
        "It came due at Fri 20 Nov 01:30Z, 7h5m ago.",
    ]
    began = "Attempt 1 began at Fri 20 Nov 08:00Z (by host:4711, started by cron, contract external)"
    assert told[3] == f"{began} and failed after 0s: exit 2."
    assert told[4].startswith("At Fri 20 Nov 08:30Z ana@")
    assert told[4].endswith(" retried it: the disk is bigger now.")
    assert told[5].startswith("Attempt 2 began at Fri 20 Nov 08:35Z")
    assert told[6:] == ["So it is complete since Fri 20 Nov 08:35Z, and nothing will run it again."]


def test_what_waits_for_a_person_says_so_and_what_to_type(story: Story) -> None:
    story.fail("close-day")

    said = story.duly("explain", "close-day", "2026-11-19")

    assert said.out.splitlines()[-1] == "So it waits for a person: retry it, or skip it."
    assert said.talk.endswith("next: duly retry close-day 2026-11-19 --reason '…'\n")


def test_an_unknown_outcome_is_never_tried_again_and_says_why(story: Story) -> None:
    story.doubt("close-day")

    told = explained(story, "close-day", "2026-11-19")

    assert any("nobody knows how it ended: signal 9" in sentence for sentence in told)
    assert told[-1].startswith("So nothing runs it again until somebody says what happened")


def test_a_window_that_nobody_opened_is_owed_at_the_next_poke(story: Story) -> None:
    story.complete("close-day")
    story.clock.set("2026-11-21T08:00:00Z")

    told = explained(story, "close-day", "2026-11-20")

    assert told[0] == "close-day:2026-11-20[Europe/Paris]   – missing"
    assert told[-4:] == [
        "It is late: it has been due for longer than its grace, 1h.",
        (
            "Nothing has asked for the work of close-day since it came due: its windows are open up to "
            "Fri 20 Nov 00:00+01:00. Look at what calls duly for it."
        ),
        "close-day is complete through Fri 20 Nov 00:00+01:00, where this window holds it.",
        "So it is owed: the next poke works it.",
    ]


def test_a_window_that_the_next_poke_will_drop_says_so(story: Story) -> None:
    story.complete("close-day")
    story.clock.set("2026-11-23T08:00:00Z")

    told = explained(story, "close-day", "2026-11-20")

    assert told[-1] == (
        "So the next poke skips it: catch-up latest: a newer window was due, close-day:2026-11-22[Europe/Paris]."
    )


def test_a_window_in_a_skipped_range_is_explained_by_its_reason(story: Story) -> None:
    story.complete("close-day")
    story.complete("close-day", at="2026-11-24T08:00:00Z")

    told = explained(story, "close-day", "2026-11-21")

    range_skipped = "It never had a row: it lies in a range that was skipped by cron@host at Tue 24 Nov 09:00+01:00"
    assert told[-2] == f"{range_skipped} (catch-up latest: a newer window was due)."


def test_a_window_before_the_line_began_was_never_owed(story: Story) -> None:
    story.complete("close-day")

    told = explained(story, "close-day", "2026-11-01")

    assert told[-2] == "It is not owed: before this line began at Fri 20 Nov 02:30+01:00."


def test_a_window_to_come_says_when(story: Story) -> None:
    story.complete("close-day")

    told = explained(story, "close-day", "today")

    assert told[-2:] == [
        "It comes due at Sat 21 Nov 02:30+01:00, in 17h.",
        "So nothing is owed yet: a poke works it from its due time on.",
    ]


def test_a_window_below_the_horizon_is_never_executed_again(story: Story) -> None:
    story.complete("close-day")
    connection = story.store.session.connection
    connection.execute("update duly_series set horizon = 2 * unixepoch('2026-11-10')")

    told = explained(story, "close-day", "2026-11-09")

    assert told[0].endswith("✓ pruned")
    assert told[-1].startswith("It lies below the horizon")
    assert story.duly("check", "close-day", "2026-11-09").code == 2


def test_a_running_run_names_its_lease(story: Story) -> None:
    story.job("long", daily("UTC"), lease=HOUR)
    story.begin("long")

    told = explained(story, "long", "2026-11-19", "--time", "utc")

    assert told[-1].startswith("So it is running; its lease lasts until Fri 20 Nov 09:00Z")


def test_a_retry_time_that_has_not_come_is_named(story: Story) -> None:
    story.job("sync", every("1h"))
    story.fail("sync", retry_in=5 * MINUTE)

    assert explained(story, "sync", "2026-11-20T08:00")[-1] == (
        "So a poke takes it again from Fri 20 Nov 08:05Z on, in 5m."
    )


def test_a_run_that_waits_for_another_names_it(story: Story) -> None:
    story.job("import", every("1h"), catch_up="each", lease=2 * HOUR)
    story.begin("import")
    story.clock.set("2026-11-20T09:00:00Z")

    assert (
        explained(story, "import", "2026-11-20T09:00")[-1]
        == "So it is owed, and waits for import:2026-11-20T08:00:00Z."
    )


def test_a_time_that_the_clocks_repeat_is_told(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-25T12:00:00Z")
    story.job("backup", cron("30 2 * * *", zone="Europe/Berlin"))
    story.job("hours", hourly("Europe/Berlin"), catch_up="each")
    story.complete("backup")
    story.complete("hours")

    assert "Its wall-clock time exists twice that day; this is the first." in explained(story, "backup", "2026-10-25")
    second = explained(story, "hours", "2026-10-25T02~2")
    assert "Its wall-clock time exists twice that day; this is the second." in second


def test_a_document_carries_the_sentences(story: Story) -> None:
    story.complete("close-day")

    document = story.duly("explain", "close-day", "2026-11-19", "--json").document

    assert document["schema"] == "duly.explain.v1"
    assert document["run"]["state"] == "complete"
    assert document["sentences"][-1].startswith("So it is complete since")


def test_a_key_names_a_run_too_and_its_revisions_are_told_apart(story: Story) -> None:
    story.complete("close-day")
    story.duly("reopen", "close-day", "2026-11-19", "--reason", "the VAT rate was wrong")

    told = explained(story, "close-day:2026-11-19[Europe/Paris]")

    assert told[0].startswith("close-day:2026-11-19[Europe/Paris]#2")
    assert any(sentence.startswith("Attempt 1 of revision 1 began") for sentence in told)
    assert any("reopened it: the VAT rate was wrong" in sentence for sentence in told)
