"""duly next: occurrences, what the clocks do to them, and what the ledger says of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.schedule.facts import release_in_use
from duly.schedule.spec import daily, every, hourly
from tests.story import Said, Story, duly


def rows(said: Said) -> list[list[str]]:
    """The table's rows below the head, as cells."""
    assert said.code == 0, said
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in said.out.splitlines()[1:]]


def test_the_days_of_a_job_with_their_hours_and_states(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-25T06:00:00Z")
    story.job("close-day", daily("Europe/Paris", at="02:30"))
    story.complete("close-day")
    story.clock.set("2026-10-27T06:00:00Z")

    said = story.duly("next", "close-day", "2026-10-24..2026-10-28")

    assert said.out.splitlines()[0].endswith(f"; tzdata {release_in_use('Europe/Paris').version}")
    assert rows(said) == [
        [
            "2026-10-24",
            "24 h",
            "due Sun 25 Oct 02:30+02:00",
            "✓ complete",
            "02:30 happens twice that night; this period is due at the first",
        ],
        ["2026-10-25", "25 h", "due Mon 26 Oct 02:30+01:00", "– missing", "clocks go back by 1h"],
        ["2026-10-26", "24 h", "due Tue 27 Oct 02:30+01:00", "– missing"],
        ["2026-10-27", "24 h", "due Wed 28 Oct 02:30+01:00", "· coming"],
    ]


def test_without_a_range_a_few_past_and_coming_ones_are_shown(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:30:00Z")
    story.job("fx-rates", hourly("UTC"))
    story.complete("fx-rates")

    said = story.duly("next", "fx-rates")

    assert [row[0] for row in rows(said)] == [f"2026-11-20T{hour:02d}" for hour in range(5, 13)]
    assert [row[0] for row in rows(story.duly("next", "fx-rates", "-n", "2"))] == ["2026-11-20T08", "2026-11-20T09"]


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("-3h..", "06", "13"),
        ("2026-11-20T05..2026-11-20T08", "05", "07"),
        ("..2026-11-20T10", "08", "09"),
        ("2026-11-20T06:00:00Z..+1h", "06", "09"),
    ],
)
def test_ranges_are_half_open(tmp_path: Path, wanted: str, first: str, last: str) -> None:
    story = Story(tmp_path, at="2026-11-20T08:30:00Z")
    story.job("fx-rates", hourly("UTC"))
    story.complete("fx-rates")

    found = [row[0] for row in rows(story.duly("next", "fx-rates", wanted, "-n", "8"))]

    assert (found[0], found[-1]) == (f"2026-11-20T{first}", f"2026-11-20T{last}")


@pytest.mark.parametrize(
    "wanted",
    ["2026-11-20", "2026-12-01..2026-11-01", "soon..", "2026-11-20..2026-13-01", "+9999999d..", "..-9999999d"],
)
def test_a_range_that_is_none_is_refused(wanted: str) -> None:
    said = duly("next", "--every", "1h", wanted)

    assert said.code == 64
    assert "\n  try: duly " in said.talk


def test_a_schedule_that_is_only_thought_of(tmp_path: Path) -> None:
    # 2027-03-28: at 02:00 the clocks of Berlin go to 03:00
    said = duly(
        "next", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "2027-03-27..2027-03-30", DULY_LEDGER="/nowhere"
    )

    assert rows(said)[:3] == [
        ["2027-03-27T02:30:00", "24 h", "due Sat 27 Mar 02:30+01:00"],
        [
            "2027-03-28T02:30:00",
            "23h30m",
            "due Sun 28 Mar 03:00+02:00",
            "02:30 does not exist that day; it counts at 03:00",
        ],
        ["2027-03-29T02:30:00", "23h30m", "due Mon 29 Mar 02:30+02:00"],
    ]


def test_both_passes_of_a_repeated_hour() -> None:
    said = duly("next", "--period", "hourly", "--zone", "Europe/Berlin", "2026-10-25T02..2026-10-25T03")

    assert [(row[0], row[-1]) for row in rows(said)] == [
        ("2026-10-25T02", "02:00 happens twice that day and is counted each time; this is the first"),
        ("2026-10-25T02~2", "02:00 happens twice that day; this is the second"),
    ]


def test_work_at_a_wall_clock_that_the_clocks_skip() -> None:
    said = duly("next", "--period", "daily", "--at", "02:30", "--zone", "Europe/Berlin", "2027-03-27..2027-03-28")

    assert rows(said)[0][-1] == "02:30 does not exist that night; this period is due at 03:00"


def test_a_document_for_programs(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("sync", every("15m"))
    story.complete("sync")

    document = story.duly("next", "sync", "-n", "1", "--json").document

    assert document["schema"] == "duly.next.v1"
    assert document["schedule"] == "every 15m, counted from 1970-01-01T00:00:00Z"
    (coming,) = document["occurrences"]
    assert (coming["key"], coming["state"], coming["clocks"]) == ("sync:2026-11-20T08:15:00Z", "coming", "")


def test_a_zone_is_needed_and_the_line_to_type_is_shown() -> None:
    said = duly("next", "--cron", "30 2 * * *", TZ="Asia/Tokyo")

    assert said.code == 64
    assert said.talk.endswith("try: duly next --cron '30 2 * * *' --zone Asia/Tokyo\n")


def test_a_cron_line_that_never_fires_is_refused() -> None:
    said = duly("next", "--cron", "0 0 31 2 *", "--zone", "UTC")

    assert said.code == 78
    assert "comes in no year" in said.talk


def test_a_job_and_a_schedule_together_are_refused(tmp_path: Path) -> None:
    assert duly("next", "close-day", "--every", "1h", DULY_LEDGER=str(tmp_path / "none.db")).code == 64


# -- the inspector -------------------------------------------------------------------------------------------------------


def test_a_bare_expression_with_past_and_coming_fires() -> None:
    said = duly("next", "30 2 * * *", "--zone", "UTC")

    assert said.code == 0
    fires = [line for line in said.out.splitlines() if "T02:30:00Z" in line]
    assert len(fires) == 3 + 5
    assert (
        len([line for line in duly("next", "@daily", "--zone", "UTC", "-n", "2").out.splitlines() if "T00" in line])
        == 2
    )


def test_a_bare_expression_takes_a_range() -> None:
    said = duly("next", "0 9 * * MON-FRI", "2026-10-30..2026-11-03", "--zone", "Europe/Berlin")

    assert [row[0] for row in rows(said)] == ["2026-10-30T09:00:00", "2026-11-02T09:00:00"]


def test_the_night_of_the_next_and_the_previous_change() -> None:
    story = duly("next", "0 * * * *", "--zone", "Europe/Berlin", "--around-dst", "--json")
    hour = story.document

    assert hour["change"]["says"] in ("clocks go forward by 1h", "clocks go back by 1h")
    marked = [found for found in hour["occurrences"] if found["clocks"]]
    assert marked or hour["change"]["says"] == "clocks go forward by 1h"
    before = duly("next", "0 * * * *", "--zone", "Europe/Berlin", "--around-dst", "previous", "--json").document
    assert before["change"]["at"] < before["as_of"] < hour["change"]["at"]
    assert before["change"]["says"] != hour["change"]["says"]


def test_the_night_of_a_job(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-20T06:00:00Z")
    story.job("close-day", daily("Europe/Berlin"))
    story.complete("close-day")

    said = story.duly("next", "close-day", "--around-dst")

    assert said.out.splitlines()[1].startswith("clocks go back by 1h: Sun 25 Oct 02:00+01:00")
    assert [line.split()[:2] for line in said.out.splitlines()[2:]] == [
        ["2026-10-22", "24"],
        ["2026-10-23", "24"],
        ["2026-10-24", "24"],  # it ends two hours before the clocks are moved
        ["2026-10-25", "25"],
        ["2026-10-26", "24"],
        ["2026-10-27", "24"],
    ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_zone_whose_clocks_are_not_moved(zone: str) -> None:
    said = duly("next", "0 * * * *", "--zone", zone, "--around-dst")

    assert said.code == 64
    assert f"the clocks of {zone} are not moved" in said.talk


def test_lints_are_said_below_and_are_in_the_document() -> None:
    said = duly("next", "*/7 * 13 * FRI", "--zone", "UTC", "-n", "1")
    document = duly("next", "*/7 * 13 * FRI", "--zone", "UTC", "-n", "1", "--json").document

    assert "both_day_fields: */7 * 13 * FRI: both day fields are set, and a day that fits either fires" in said.out
    assert "  instead: --every 7m, which counts on, or */6" in said.out
    assert [lint["code"] for lint in document["lints"]] == ["both_day_fields", "uneven_steps"]


DECLARED = (
    '[jobs.close-day]\nperiod = "daily"\nzone = "Europe/Paris"\nat = "02:30"\ncatch_up = "latest"\ncommand = ["true"]\n'
)


def test_a_job_that_only_a_configuration_declares(tmp_path: Path) -> None:
    """Whoever writes the file wants to see what it means before anything is worked."""
    story = Story(tmp_path, at="2026-10-25T06:00:00Z")
    story.job("other", daily("UTC"))
    story.complete("other")
    (tmp_path / "duly.toml").write_text(DECLARED)

    said = story.duly("next", "close-day", "2026-10-24..2026-10-26", DULY_CONFIG=str(tmp_path / "duly.toml"))

    assert [row[:2] for row in rows(said)[:2]] == [["2026-10-24", "24 h"], ["2026-10-25", "25 h"]]
    assert "close-day is shown as " in said.talk
    assert "duly.toml declares it; the ledger does not know it yet" in said.talk
    assert "no job 'close-dya'" in story.duly("next", "close-dya", DULY_CONFIG=str(tmp_path / "duly.toml")).talk


def test_a_declared_job_needs_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "duly.toml").write_text(DECLARED)

    said = duly(
        *("next", "close-day", "-n", "2"),
        DULY_CONFIG=str(tmp_path / "duly.toml"),
        DULY_LEDGER=str(tmp_path / "none.db"),
    )

    assert said.out.count("  due ") == 2
    assert "there is no ledger yet" in said.talk
    assert not (tmp_path / "none.db").exists()


def test_what_the_ledger_knows_goes_before_what_is_declared(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-25T06:00:00Z")
    story.job("close-day", daily("UTC"))
    story.complete("close-day")
    (tmp_path / "duly.toml").write_text(DECLARED)

    said = story.duly("next", "close-day", "-n", "1", DULY_CONFIG=str(tmp_path / "duly.toml"))

    assert "in UTC" in said.out.splitlines()[0]
    assert "is shown as" not in said.talk
