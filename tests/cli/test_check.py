"""duly check and duly due: answers as exit codes, for monitors and for systemd."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from duly.schedule.spec import daily, every, hourly
from duly.times import HOUR, MINUTE
from tests.story import Story, here


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, at="2026-11-20T08:00:00Z")


def test_a_complete_period_is_0(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"))
    story.complete("close-day")

    said = story.duly("check", "close-day")

    assert said.code == 0
    assert said.out == "✓ complete   close-day   2026-11-19   due 9h ago\n"


def test_a_failed_period_is_1_with_what_to_type(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"))
    story.fail("close-day")

    said = story.duly("check", "close-day")

    assert said.code == 1
    assert said.out.endswith("duly retry close-day 2026-11-19 --reason '…'\n")


def test_an_unknown_outcome_is_1(story: Story) -> None:
    story.job("push", daily("UTC"))
    story.doubt("push")

    assert story.duly("check", "push").code == 1


def test_a_period_that_nobody_opened_is_not_yet_and_then_missing(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"), grace=15 * MINUTE)
    story.complete("fx-rates")

    story.clock.set("2026-11-20T09:15:00Z")
    assert story.duly("check", "fx-rates").code == 3
    story.clock.set("2026-11-20T09:15:01Z")
    said = story.duly("check", "fx-rates")

    assert said.code == 1
    assert said.out.startswith("– missing   fx-rates   2026-11-20T08   due 15m ago, late (grace 15m)")


def test_a_running_period_is_not_yet_until_it_is_late(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"), grace=15 * MINUTE, lease=HOUR)
    story.begin("fx-rates")

    story.clock.set("2026-11-20T08:10:00Z")
    assert story.duly("check", "fx-rates").code == 3
    story.clock.set("2026-11-20T08:20:00Z")
    assert story.duly("check", "fx-rates").code == 1


def test_a_retry_to_come_is_not_yet_until_it_is_late(story: Story) -> None:
    story.job("fx-rates", hourly("UTC"), grace=15 * MINUTE)
    story.fail("fx-rates", retry_in=30 * MINUTE)

    assert story.duly("check", "fx-rates").code == 3
    story.clock.set("2026-11-20T08:20:00Z")
    assert story.duly("check", "fx-rates").code == 1


def test_a_skipped_period_counts_as_complete_unless_strict(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")
    story.duly("skip", "close-day", "2026-11-18", "--reason", "a holiday")

    said = story.duly("check", "close-day", "2026-11-18")

    assert (said.code, "a holiday" in said.out) == (0, True)
    assert story.duly("check", "close-day", "2026-11-18", "--strict").code == 1


def test_a_period_to_come_is_not_yet(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")

    assert story.duly("check", "close-day", "today").code == 3


def test_a_period_that_was_never_owed_cannot_be_told(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")

    assert story.duly("check", "close-day", "2026-11-01").code == 2


def test_the_newest_due_period_is_meant_where_none_is_named(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.fail("close-day")
    story.complete("close-day", at="2026-11-21T00:30:00Z")

    assert story.duly("check", "close-day").code == 0
    assert story.duly("check", "close-day", "2026-11-19").code == 1


def test_of_several_scopes_the_worst_answers(story: Story) -> None:
    story.job("export", daily("UTC"))
    story.complete("export", scope="acme")
    story.fail("export", scope="globex")

    assert story.duly("check", "export").code == 1
    assert story.duly("check", "export", "--scope", "acme").code == 0


def test_a_key_can_be_checked_too(story: Story) -> None:
    story.job("close-day", daily("Europe/Paris"))
    story.complete("close-day")

    assert story.duly("check", "close-day:2026-11-19[Europe/Paris]").code == 0


def test_the_document_names_the_answer(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.fail("close-day")

    document = story.duly("check", "close-day", "--json").document

    assert (document["schema"], document["answer"], document["code"]) == ("duly.check.v1", "not complete", 1)
    assert document["periods"][0]["key"] == "close-day:2026-11-19[UTC]"


def test_a_window_off_the_grid_is_an_error_of_usage_that_points_to_those_there_are(story: Story) -> None:
    story.job("sync", every("15m"))
    story.complete("sync")

    said = story.duly("check", "sync", "2026-11-20T08:05")

    assert said.code == 64
    assert "the nearest are 2026-11-20T08:00:00Z and 2026-11-20T08:15:00Z" in said.talk
    assert said.talk.endswith("try: duly next sync\n")


# -- due ----------------------------------------------------------------------------------------------------------------


def test_due_is_0_where_a_poke_would_work_something(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")

    story.clock.set("2026-11-21T00:00:00Z")

    assert story.duly("due", "close-day").code == 0


def test_due_is_1_where_nothing_is_owed(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")

    said = story.duly("due", "close-day")

    assert (said.code, said.out) == (1, "close-day: nothing is owed; next due in 16h\n")
    assert story.duly("due", "close-day", "-q").out == ""


def test_due_is_1_where_a_person_or_a_holder_is_waited_for(story: Story) -> None:
    story.job("close-day", daily("UTC"))
    story.job("long", daily("UTC"), lease=HOUR)
    story.fail("close-day")
    story.begin("long")

    assert story.duly("due", "close-day").code == 1
    assert story.duly("due", "long").out == "long: nothing to work: long:2026-11-19[UTC] is running\n"


def test_due_of_several_scopes_is_0_where_one_is_owed(story: Story) -> None:
    story.job("export", daily("UTC"))
    story.complete("export", scope="acme")
    story.fail("export", scope="globex")

    assert story.duly("due", "export").code == 1
    story.clock.set("2026-11-21T00:00:00Z")
    story.complete("export", scope="globex")
    assert story.duly("due", "export").code == 0
    assert story.duly("due", "export", "--scope", "globex").code == 1


@pytest.mark.parametrize("words", [[], ["nobody-knows-it"], ["close-day", "--nonsense"]])
def test_due_is_255_for_anything_else(story: Story, words: list[str]) -> None:
    story.job("close-day", daily("UTC"))
    story.complete("close-day")

    assert story.duly("due", *words).code == 255


CONFIGURED = """
[jobs.close-day]
command = ["true"]
period = "daily"
zone = "UTC"
catch_up = "latest"
"""


def configured_in(folder: Path, text: str = CONFIGURED) -> str:
    (folder / "duly.toml").write_text(text, encoding="utf-8")
    return str(folder / "duly.toml")


def test_due_is_0_for_a_job_that_its_first_poke_would_register(story: Story, tmp_path: Path) -> None:
    file = configured_in(tmp_path)

    said = story.duly("due", "close-day", DULY_CONFIG=file)

    assert said.code == 0
    assert said.out.startswith("close-day: the ledger does not know it yet; its first poke registers it")
    assert story.store.session.connection.execute("select count(*) from duly_job").fetchone() == (0,)


def test_due_is_0_where_the_first_poke_would_make_the_ledger_and_makes_none(tmp_path: Path) -> None:
    file = configured_in(tmp_path)

    assert here(str(tmp_path / "none.db"), "due", "close-day", DULY_CONFIG=file).code == 0
    assert here(str(tmp_path / "nowhere" / "none.db"), "due", "close-day", DULY_CONFIG=file).code == 255
    assert here(str(tmp_path / "none.db"), "due", "another", DULY_CONFIG=file).code == 255
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("create table balance (units integer)")
    connection.close()
    assert here(str(tmp_path / "shop.db"), "due", "close-day", DULY_CONFIG=file).code == 255
    assert not (tmp_path / "none.db").exists()


def test_due_asks_as_the_configuration_has_it(story: Story, tmp_path: Path) -> None:
    """A schedule that was not applied, and a file that cannot be read, are for exec to fail on: 255 fails the unit too."""
    story.job("close-day", daily("UTC"))
    story.complete("close-day")

    same = story.duly("due", "close-day", DULY_CONFIG=configured_in(tmp_path))
    other = story.duly("due", "close-day", DULY_CONFIG=configured_in(tmp_path, CONFIGURED.replace("UTC", "Asia/Tokyo")))
    broken = story.duly("due", "close-day", DULY_CONFIG=configured_in(tmp_path, CONFIGURED + "zne = 1"))

    assert (same.code, other.code, broken.code) == (1, 255, 255)
