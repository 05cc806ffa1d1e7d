"""duly status: what needs a person now, told from rows and from windows that nobody opened."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from duly.cli.output import colour_wanted, table
from duly.evidence.words import ago, span
from duly.schedule.spec import cron, daily, every, hourly
from duly.times import DAY, HOUR, MINUTE, SECOND
from tests.story import Story

# Root reads and writes whatever the modes say, unless it gives up the capabilities to (capabilities(7)).
_WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
AS_READER = () if os.geteuid() else _WITHOUT_OVERRIDE if shutil.which("setpriv") else None


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, at="2026-11-20T08:00:00Z")


def test_where_all_is_well_nothing_needs_anybody(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"))
    story.complete("close-day")

    said = story.duly("status")

    assert said.code == 0
    assert said.out == "✓ nothing needs you     ✓ 1 complete (24h)\n"


def test_each_trouble_has_its_line_with_the_next_thing_to_type(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris", at="02:30"))
    story.job("invoice-push", daily("Europe/Paris"))
    story.fail("close-day")
    story.doubt("invoice-push")

    said = story.duly("status")

    head, *lines = said.out.splitlines()
    assert head == "✗ 1 period needs you     ? 1 outcome unknown     ✓ 0 complete (24h)"
    assert lines[0].split("   ")[0] == "? invoice-push"
    assert lines[0].endswith("duly resolve invoice-push 2026-11-19 --as 'done|not-done' --evidence '…'")
    assert "failed, exit 2" in lines[1]
    assert lines[1].endswith("duly retry close-day 2026-11-19 --reason '…'")


def test_a_window_that_nobody_opened_is_missing_all_the_same(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"), grace=15 * MINUTE)
    story.complete("fx-rates")

    story.clock.set("2026-11-20T09:42:00Z")
    said = story.duly("status")

    assert said.out.splitlines()[0] == "✗ 1 period needs you     ✓ 1 complete (24h)"
    assert said.out.splitlines()[1] == (
        "– fx-rates   2026-11-20T08   never started, due 42m ago (grace 15m)   duly explain fx-rates 2026-11-20T08"
    )


def test_within_its_grace_a_window_needs_nobody(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"), grace=15 * MINUTE)
    story.complete("fx-rates")

    story.clock.set("2026-11-20T09:15:00Z")

    assert story.duly("status").out.startswith("✓ nothing needs you")
    assert "not yet started, due 15m ago" in story.duly("status", "fx-rates").out


def test_without_a_grace_a_tenth_of_the_period_is_granted_and_at_most_an_hour(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"))
    story.job("close-day", daily("UTC"))
    story.complete("fx-rates")
    story.complete("close-day")

    story.clock.set("2026-11-20T09:06:01Z")
    assert "(grace 6m)" in story.duly("status", "fx-rates").out
    story.clock.set("2026-11-21T00:59:59Z")
    assert "nothing needs you" in story.duly("status", "close-day").out
    story.clock.set("2026-11-21T01:00:01Z")
    assert "(grace 1h)" in story.duly("status", "close-day").out


def test_many_missing_windows_are_one_line_that_counts_them(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"))
    story.job("billing", hourly("UTC"), catch_up="each")
    story.complete("fx-rates")
    story.complete("billing")

    story.clock.set("2026-11-21T08:30:00Z")
    said = story.duly("status")

    assert said.out.splitlines()[0].startswith("✗ 48 periods need you")
    assert "and 23 before it that the next poke will skip" in said.out
    billing = next(line for line in said.out.splitlines() if "billing" in line)
    assert "and 23 before it   " in billing
    assert billing.endswith("duly explain billing 2026-11-21T07")


def test_a_vanished_attempt_is_told_before_any_poke_judges_it(story: Story) -> None:
    story.job("backup", cron("30 2 * * *", zone="UTC"))
    story.begin("backup")

    story.clock.advance("2m")
    said = story.duly("status")

    assert "? backup" in said.out
    assert "attempt 1 vanished" in said.out
    assert "duly resolve backup 2026-11-20T02:30:00Z" in said.out


def test_a_vanished_attempt_that_did_nothing_needs_nobody_yet(story: Story) -> None:
    story.job("import", every("1h"), contract="transactional")
    story.begin("import")

    story.clock.advance("2m")

    assert story.duly("status").out.startswith("✓ nothing needs you")
    assert "the next poke takes it again" in story.duly("status", "import").out


def test_a_run_asked_for_again_is_not_called_late_at_once(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.fail("close-day")

    story.clock.set("2026-11-20T20:00:00Z")
    story.duly("retry", "close-day", "2026-11-19", "--reason", "the disk is bigger now")

    assert story.duly("status").out.startswith("✓ nothing needs you")
    story.clock.set("2026-11-20T21:00:01Z")
    assert story.duly("status").out.startswith("✗ 1 period needs you")


def test_one_job_shows_what_runs_too(story: Story) -> None:
    story.job("close-day", daily("UTC"), lease=HOUR)
    story.begin("close-day")

    story.clock.advance("12m")

    assert story.duly("status").out == (
        "✓ nothing needs you     ▶ 1 running     ✓ 0 complete (24h)\n"
        "▶ close-day   2026-11-19   running for 12m, attempt 1 by host:4711, late (grace 1h)\n"
    )
    assert "running for 12m" in story.duly("status", "close-day").out


def test_scopes_are_lines_of_their_own(story: Story) -> None:
    story.job("export", daily("UTC"))
    story.complete("export", scope="acme")
    story.fail("export", scope="globex")

    assert (
        "✗ globex/export   2026-11-19   failed, exit 2   duly retry export 2026-11-19 --scope globex --reason '…'"
        in story.duly("status").out
    )
    assert "nothing needs you" in story.duly("status", "export", "--scope", "acme").out
    assert story.duly("status", "export", "--scope", "initech").code == 78


def test_the_document_says_what_the_table_says(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"))
    story.job("fx-rates", hourly("UTC"))
    story.fail("close-day")
    story.complete("fx-rates")
    story.clock.set("2026-11-20T12:00:00Z")

    document = story.duly("status", "--json").document

    assert document["schema"] == "duly.status.v1"
    assert document["as_of"] == "2026-11-20T12:00:00Z"
    assert document["counts"] == {"need_you": 4, "unknown": 0, "running": 0, "completed_24h": 1}
    failed, missing = document["needs"]
    assert failed["key"] == "close-day:2026-11-19[Europe/Paris]"
    assert (failed["state"], failed["note"], failed["due"]) == ("failed", "exit 2", "2026-11-19T23:00:00Z")
    assert (missing["state"], missing["windows"], missing["oldest"]) == ("missing", 3, "fx-rates:2026-11-20T08[UTC]")
    assert [one["key"] for one in document["waiting"]] == ["fx-rates:2026-11-20T11[UTC]"]


def test_how_far_lines_are_complete_is_said_wherever_a_program_asks(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"), catch_up="each")
    story.complete("close-day")
    story.fail("close-day", at="2026-11-20T23:30:00Z")
    story.complete("close-day", at="2026-11-21T23:30:00Z")
    line = {
        "job": "close-day",
        "scope": "",
        "complete_through": "2026-11-19T23:00:00Z",
        "last_completed": "2026-11-21T23:00:00Z",
    }

    assert story.duly("status", "--json").document["lines"] == [line]
    for words in (["close-day"], ["close-day", "2026-11-19"]):
        (checked,) = story.duly("check", *words, "--json").document["lines"]
        assert line.items() <= checked.items()
        assert (checked["answer"], checked["code"]) == ("complete", 0)
    assert story.duly("jobs", "show", "close-day", "--json").document["lines"] == [line]
    shown = story.duly("jobs", "show", "close-day").out
    assert re.search(
        r"^complete +through Fri 20 Nov 00:00\+01:00; completed up to Sun 22 Nov 00:00\+01:00$", shown, re.M
    )


def test_of_many_scopes_those_are_shown_that_are_furthest_behind(story: Story) -> None:
    story.job("export", daily("UTC"), catch_up="each")
    scopes = [f"tenant-{number}" for number in range(7)]
    for scope in scopes:
        story.complete("export", scope=scope)
    story.clock.advance("1d")
    for scope in scopes[:4]:
        story.complete("export", scope=scope)

    rows = [
        line.split("through ")[1] for line in story.duly("jobs", "show", "export").out.splitlines() if "through" in line
    ]

    assert rows[:3] == [f"Fri 20 Nov 00:00Z ({scope})" for scope in scopes[4:]]
    assert len(rows) == 5
    assert "2 more are no further behind\n" in story.duly("jobs", "show", "export").out


def test_other_formats_print_a_record_a_line(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"))
    story.fail("close-day")

    assert story.duly("status", "--format", "keys").out == "close-day:2026-11-19[Europe/Paris]\n"
    assert story.duly("status", "--format", "jsonl").document["schema"] == "duly.status.v1"
    assert story.duly("status", "--format", "csv").out.splitlines()[0].startswith("key,job,scope,window,revision,state")


def test_the_grid_has_a_glyph_for_each_period_missing_ones_too(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")
    story.fail("close-day", at="2026-11-21T01:00:00Z")
    story.complete("close-day", at="2026-11-22T01:00:00Z")

    story.clock.set("2026-11-24T00:30:00Z")
    said = story.duly("status", "--grid")

    assert said.out.splitlines() == [
        "close-day   ✓✗✓–○   2026-11-19 to 2026-11-23",
        "✓ complete   ✗ failed   ○ due   – missing",
    ]
    cells = story.duly("status", "--grid", "--json", "-n", "2").document["periods"]
    assert [(cell["window"], cell["state"]) for cell in cells] == [("2026-11-22", "missing"), ("2026-11-23", "due")]


def test_what_catch_up_dropped_is_skipped_in_the_grid(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")
    story.complete("close-day", at="2026-11-24T01:00:00Z")

    assert story.duly("status", "--grid").out.splitlines()[0] == "close-day   ✓»»»✓   2026-11-19 to 2026-11-23"


@pytest.mark.skipif(AS_READER is None, reason="root may write everything, and there is no setpriv to give that up")
def test_a_ledger_that_may_only_be_read_can_be_seen_and_not_changed(story: Story, tmp_path: Path) -> None:
    story.job("close-day", daily("UTC"), lease=HOUR)
    story.begin("close-day")
    story.store.close()
    for path in tmp_path.iterdir():
        path.chmod(0o400)
    tmp_path.chmod(0o500)

    seen = story.duly("status", "close-day", prefix=AS_READER or ())
    refused = story.duly("skip", "close-day", "2026-11-18", "--reason", "why", prefix=AS_READER or ())
    tmp_path.chmod(0o700)

    assert seen.code == 0
    assert "running for 0s" in seen.out
    assert refused.code == 77
    assert f"try: ls -ld {story.path}" in refused.talk


def test_a_hundred_failures_of_a_job_are_one_line_and_all_of_them_where_that_is_asked(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"), catch_up="each")
    for hour in range(6):
        story.fail("fx-rates", at=f"2026-11-20T{8 + hour:02}:00:00Z")
    story.job("close-day", daily("UTC"))
    story.fail("close-day")

    head, day, hours, *_ = story.duly("status").out.splitlines()

    assert head.startswith("✗ 7 periods need you")
    assert day.endswith("duly retry close-day 2026-11-19 --reason '…'")
    assert hours == ("✗ fx-rates    2026-11-20T07 to 2026-11-20T12   6 failed: exit 2   duly status fx-rates --all")
    every = story.duly("status", "fx-rates", "--all").out.splitlines()
    assert len([line for line in every if line.startswith("✗ fx-rates")]) == 6
    assert len(story.duly("status", "--json").document["needs"]) == 7


def test_what_holds_a_line_back_is_said_with_how_far_it_is_complete(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"), catch_up="each")
    story.job("well", daily("UTC"))
    story.complete("close-day")
    story.complete("well")
    story.fail("close-day", at="2026-11-20T23:30:00Z")
    story.complete("close-day", at="2026-11-21T23:30:00Z")
    story.complete("well")

    *_, last = story.duly("status", "--time", "utc").out.splitlines()

    assert last == "close-day   complete through Thu 19 Nov 23:00Z; completed up to Sat 21 Nov 23:00Z"
    assert (
        story.duly("status", "well", "--time", "utc").out.splitlines()[-1]
        == "well   complete through Sat 21 Nov 00:00Z"
    )


def test_nights_on_which_clocks_are_moved_are_marked_in_the_grid(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-24T03:00:00Z")
    story.job("backup", cron("30 2 * * *", zone="Europe/Berlin"), catch_up="each")
    story.job("export", daily("Europe/Berlin"), catch_up="each")
    for day in range(24, 28):
        for job in ("backup", "export"):
            story.complete(job, at=f"2026-10-{day}T03:00:00Z")

    said = story.duly("status", "--grid")

    assert said.out.splitlines() == [
        "backup   ✓✓✓✓   2026-10-24T02:30:00 to 2026-10-27T02:30:00",
        "          ^^",
        "export   ✓✓✓✓   2026-10-23 to 2026-10-26",
        "           ^",
        "✓ complete",
        "^ 2026-10-25T02:30:00: 02:30 happens twice that day; the first counts",
        "^ 2026-10-26T02:30:00: clocks go back by 1h",
        "^ 2026-10-25: clocks go back by 1h",
    ]
    document = story.duly("status", "export", "--grid", "--json").document
    assert [cell["clocks"] for cell in document["periods"]] == ["", "", "clocks go back by 1h", ""]
    assert document["lines"][0]["complete_through"] == "2026-10-26T23:00:00Z"


# -- how things are printed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_is_for_terminals_and_for_those_who_ask(environ: dict[str, str], terminal: bool, wanted: bool) -> None:
    assert colour_wanted(environ, terminal=terminal) is wanted


def test_colour_only_adds_to_what_is_said_without_it(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.fail("close-day")

    plain, coloured = story.duly("status").out, story.duly("status", FORCE_COLOR="1").out

    assert "\x1b[31m✗" in coloured
    assert plain == "".join(part.partition("m")[2] if i else part for i, part in enumerate(coloured.split("\x1b[")))


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"),
        (45 * SECOND, "45s"),
        (3 * MINUTE + 12 * SECOND, "3m12s"),
        (42 * MINUTE + 7 * SECOND, "42m"),
        (3 * HOUR + 12 * MINUTE, "3h12m"),
        (28 * HOUR, "1d4h"),
        (40 * DAY + HOUR, "40d"),
    ],
)
def test_a_span_is_told_in_at_most_two_units(micros: int, text: str) -> None:
    assert span(micros) == text
    assert ago(0, micros) == f"{text} ago"


def test_a_table_leaves_out_a_column_that_is_empty_everywhere() -> None:
    assert table([["a", "", "b"], ["long", "", "c"]]) == "a      b\nlong   c"
