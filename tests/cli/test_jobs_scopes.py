"""duly jobs scopes: a tenant on the roster that never ran is missing; one that left keeps its record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from duly.ledger.address import key_of
from duly.ledger.complete import complete_or_raise
from duly.schedule.spec import cron, daily
from tests.story import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A job of one tenant, whose newest day is complete."""
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("bill", daily("UTC", at="06:00"), catch_up="each")
    story.complete("bill", scope="acme")
    return story


def add(story: Story, *words: str) -> None:
    said = story.duly("jobs", "scopes", "add", "bill", *words, "--reason", "a new contract")
    assert said.code == 0, said


def retire(story: Story, *words: str) -> list[str]:
    said = story.duly("jobs", "scopes", "retire", "bill", *words, "--reason", "they left")
    assert said.code == 0, said
    return said.out.splitlines()


def works(story: Story, scope: str, at: str | None = None) -> str:
    """A poke whose run completes; its key."""
    claim = story.begin("bill", scope=scope, at=at)
    story.store.write(complete_or_raise(claim))
    return str(story.store.read(key_of(claim.run)))


def codes(story: Story, *scopes: str) -> list[int]:
    return [story.duly("check", "bill", "--scope", scope).code for scope in scopes]


# -- a tenant that never ran --------------------------------------------------------------------------------------------


def test_a_scope_that_was_added_and_never_ran_is_missing(story: Story) -> None:
    add(story, "globex")

    assert codes(story, "acme", "globex") == [0, 1]
    assert story.duly("check", "bill").code == 1
    assert "globex/bill   2026-11-19   never started, due 2h ago" in story.duly("status").out
    assert "globex/bill   –" in story.duly("status", "--grid").out
    said = story.duly("explain", "bill", "2026-11-19", "--scope", "globex").out
    assert "Nothing has asked for the work of bill since it came due" in said
    assert said.endswith("So it is owed: the next poke works it.\n")


def test_the_day_of_a_new_tenant_is_found_missing_although_nobody_pokes(story: Story) -> None:
    add(story, "globex", "--from", "2026-11-20")
    assert codes(story, "globex") == [3]
    assert story.duly("check", "bill").code == 0  # of it nothing has come due yet

    story.clock.set("2026-11-21T08:00:00Z")

    assert codes(story, "globex") == [1]
    assert story.duly("check", "bill", "2026-11-20", "--scope", "globex").code == 1


def test_a_beginning_in_the_past_owes_every_window_since(story: Story) -> None:
    add(story, "globex", "--from", "2026-11-17")

    for day in ("2026-11-17", "2026-11-18", "2026-11-19"):
        assert works(story, "globex") == f"globex/bill:{day}[UTC]"
    assert story.poke("bill", scope="globex") is None
    assert story.duly("check", "bill", "2026-11-16", "--scope", "globex").code == 2


def test_an_instant_is_compared_with_due_times(story: Story) -> None:
    add(story, "globex", "--from", "2026-11-18T06:00:00Z")

    assert works(story, "globex") == "globex/bill:2026-11-17[UTC]"


def test_an_end_that_is_known_from_the_beginning(story: Story) -> None:
    add(story, "globex", "--from", "2026-11-18", "--until", "2026-11-19")

    assert works(story, "globex") == "globex/bill:2026-11-18[UTC]"
    assert story.poke("bill", scope="globex", at="2026-11-25T08:00:00Z") is None
    assert codes(story, "globex") == [0]


def test_adding_again_changes_nothing(story: Story) -> None:
    said = story.duly("jobs", "scopes", "add", "bill", "acme", "--reason", "why")

    assert (said.code, said.talk) == (0, "")
    assert said.out.startswith("acme   on the roster already")


# -- a tenant that left -------------------------------------------------------------------------------------------------


def test_of_a_retired_scope_nothing_more_comes_due_and_its_record_stays(story: Story) -> None:
    retire(story, "acme")
    story.clock.set("2026-11-25T08:00:00Z")

    assert story.poke("bill", scope="acme") is None
    assert story.duly("status").out.startswith("✓ nothing needs you")
    assert codes(story, "acme") == [0]
    assert story.duly("check", "bill", "2026-11-19", "--scope", "acme").code == 0
    said = story.duly("explain", "bill", "2026-11-22", "--scope", "acme").out
    assert "It is not owed: after this line ended at Fri 20 Nov 08:00Z, by " in said
    assert said.endswith(": they left.\nSo nothing runs it.\n")


def test_what_was_owed_before_stays_owed(story: Story) -> None:
    story.clock.set("2026-11-22T08:00:00Z")

    assert retire(story, "acme") == [
        "acme   retired   from Fri 20 Nov 06:00Z   retired Sun 22 Nov 08:00Z   still owed: 2026-11-20, 2026-11-21"
    ]

    assert codes(story, "acme") == [1]
    assert works(story, "acme", at="2026-11-24T08:00:00Z") == "acme/bill:2026-11-20[UTC]"
    assert works(story, "acme") == "acme/bill:2026-11-21[UTC]"
    assert story.poke("bill", scope="acme") is None
    assert codes(story, "acme") == [0]


def test_under_latest_the_last_day_of_a_retired_scope_is_not_dropped_for_one_that_is_not_owed(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("bill", daily("UTC", at="06:00"), catch_up="latest")
    story.complete("bill", scope="acme")
    story.clock.set("2026-11-21T08:00:00Z")
    retire(story, "acme")

    assert works(story, "acme", at="2026-11-25T08:00:00Z") == "acme/bill:2026-11-20[UTC]"


def test_what_was_owed_can_be_skipped_with_it(story: Story) -> None:
    story.fail("bill", scope="acme", at="2026-11-21T08:00:00Z")
    story.clock.set("2026-11-22T08:00:00Z")

    (said,) = retire(story, "acme", "--skip-owed")

    assert said.endswith("skipped: 2026-11-20, 2026-11-21")
    assert story.poke("bill", scope="acme") is None
    assert "retired: they left" in story.duly("explain", "bill", "2026-11-20", "--scope", "acme").out


def test_an_end_in_the_past_skips_what_was_opened_after_it(story: Story) -> None:
    story.clock.set("2026-11-23T08:00:00Z")
    story.complete("bill", scope="acme")  # the 20th; the 21st and 22nd are open beside it

    (said,) = retire(story, "acme", "--at", "2026-11-22")

    assert said.endswith("still owed: 2026-11-21; skipped: 2026-11-22")


def test_an_end_to_come_is_one_when_it_has_come(story: Story) -> None:
    retire(story, "acme", "--at", "2026-11-21")

    assert works(story, "acme", at="2026-11-21T08:00:00Z") == "acme/bill:2026-11-20[UTC]"
    assert story.poke("bill", scope="acme", at="2026-11-23T08:00:00Z") is None


def test_a_retired_scope_can_be_resumed_and_owes_nothing_for_the_time_between(story: Story) -> None:
    retire(story, "acme")
    story.clock.set("2026-11-25T08:00:00Z")

    add(story, "acme")

    assert works(story, "acme") == "acme/bill:2026-11-24[UTC]"
    assert story.poke("bill", scope="acme") is None
    assert works(story, "acme", at="2026-11-26T08:00:00Z") == "acme/bill:2026-11-25[UTC]"
    said = story.duly("explain", "bill", "2026-11-22", "--scope", "acme").out
    assert "not on the roster then; resumed: a new contract" in said
    assert story.duly("status", "--grid").out.startswith("acme/bill   ✓»»»»✓✓   2026-11-19 to 2026-11-25")


def test_a_scope_is_resumed_from_where_it_is_said(story: Story) -> None:
    retire(story, "acme")
    story.clock.set("2026-11-25T08:00:00Z")

    add(story, "acme", "--from", "2026-11-22")

    assert works(story, "acme") == "acme/bill:2026-11-22[UTC]"


def test_a_scope_is_resumed_in_the_night_when_clocks_go_back(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-10-24T08:00:00Z")
    story.job("bill", cron("30 * * * *", zone="Europe/Berlin"), catch_up="each")
    story.complete("bill", scope="acme")
    retire(story, "acme")
    story.clock.set("2026-10-25T01:00:00Z")  # 02:00, the second time

    add(story, "acme")

    assert works(story, "acme") == "acme/bill:2026-10-25T02:30:00[Europe/Berlin]"
    at = "2026-10-25T01:30:00Z"
    assert works(story, "acme", at=at) == "acme/bill:2026-10-25T02:30:00~2[Europe/Berlin]"
    assert story.poke("bill", scope="acme") is None


def test_a_schedule_that_changes_opens_nothing_of_a_retired_scope(story: Story) -> None:
    add(story, "globex")
    story.complete("bill", scope="globex")
    retire(story, "acme")
    story.clock.set("2026-11-22T08:00:00Z")
    later = ("--period", "daily", "--zone", "UTC", "--at", "07:00")
    assert story.duly("jobs", "apply", "bill", *later, "--reason", "later").code == 0

    story.job("bill", daily("UTC", at="07:00"), catch_up="each")
    assert story.poke("bill", scope="acme", at="2026-11-24T08:00:00Z") is None

    add(story, "acme")
    assert works(story, "acme") == "acme/bill:2026-11-23[UTC]"
    assert story.poke("bill", scope="acme") is None
    assert story.duly("check", "bill", "2026-11-21", "--scope", "acme").code == 0


# -- many at once -------------------------------------------------------------------------------------------------------


def test_scopes_come_from_a_file_or_from_standard_input(story: Story, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("globex\n\nÜnï/Cödé  \n")
    add(story, "--file", str(names))

    listed = story.duly("jobs", "scopes", "list", "bill", "--format", "keys").out.split("\n")

    assert listed == ["acme", "globex", "Ünï/Cödé", ""]
    ended = subprocess.run(
        [sys.executable, "-m", "duly", "jobs", "scopes", "retire", "bill", "--file", "-", "--reason", "left", "--json"],
        env={"DULY_LEDGER": story.path, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PYTHONUTF8": "1"},
        input="globex\nacme\n",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert '"changed": 2' in ended.stdout


def test_nothing_changes_unless_as_many_change_as_expected(story: Story) -> None:
    said = story.duly("jobs", "scopes", "add", "bill", "acme", "globex", "--expect", "2", "--reason", "why")

    assert said.code == 64
    assert "1 scopes would change, not 2; nothing was changed" in said.talk
    assert story.duly("jobs", "scopes", "list", "bill", "--format", "keys").out == "acme\n"
    add(story, "acme", "globex", "--expect", "1")


def test_a_dry_run_changes_nothing(story: Story) -> None:
    for words in (("add", "bill", "globex"), ("retire", "bill", "acme")):
        said = story.duly("jobs", "scopes", *words, "--reason", "why", "--dry-run", "--json")
        assert (said.document["schema"], said.document["changed"]) == ("duly.scopes.v1", 1)

    document = story.duly("jobs", "scopes", "list", "bill", "--json").document
    assert [(scope["scope"], scope["until"]) for scope in document["scopes"]] == [("acme", None)]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("add", "bill", "globex"), 64, "say why with --reason"),
        (("add", "bill", "--reason", "why"), 64, "which scopes?"),
        (("add", "bill", " globex", "--reason", "why"), 64, "scope"),
        (("add", "nothing", "globex", "--reason", "why"), 64, "the ledger knows no job 'nothing'"),
        (("add", "bill", "globex", "--from", "2026-13", "--reason", "why"), 64, "from:"),
        (("add", "bill", "globex", "--from", "2026-11-20", "--until", "2026-11-20", "--reason", "why"), 64, "until:"),
        (("retire", "bill", "globex", "--reason", "why"), 78, "bill has no scope 'globex'; nothing was changed"),
        (("retire", "bill", "--file", "/nowhere", "--reason", "why"), 64, "--file: /nowhere cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_next_step(
    story: Story, words: tuple[str, ...], code: int, told: str
) -> None:
    said = story.duly("jobs", "scopes", *words)

    assert said.code == code
    assert told in said.talk
    assert "\n  try: duly " in said.talk


@pytest.mark.parametrize("verb", ["skip", "cancel"])
def test_what_comes_due_after_the_end_is_not_skipped_and_that_is_an_error(story: Story, verb: str) -> None:
    retire(story, "acme")

    said = story.duly(verb, "bill", "2026-11-25", "--scope", "acme", "--reason", "it is a holiday")

    assert said.code != 0
    assert f"cannot {verb} this run: the scope was retired at" in said.talk
    assert "duly explain" in said.talk


def test_a_window_of_the_schedule_of_before_is_explained_by_who_was_not_on_the_roster(story: Story) -> None:
    retire(story, "acme")
    story.clock.advance("4d")
    zone = ("--period", "daily", "--zone", "Europe/Berlin", "--reason", "they bill there")
    assert story.duly("jobs", "apply", "bill", *zone).code == 0
    story.clock.advance("3d")
    add(story, "acme")

    said = story.duly("explain", "bill", "2026-11-22", "--scope", "acme").out

    assert "not on the roster then; resumed: a new contract" in said
    assert "2026-11-22[UTC]" in said
