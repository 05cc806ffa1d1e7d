"""duly jobs rename: a job keeps its runs under another name, and who still declares the old one runs nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exec.stage import DAILY, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def rename(stage: Stage, before: str, after: str) -> None:
    said = stage.duly("jobs", "rename", before, after, "--reason", "it has grown")
    assert (said.code, said.out) == (0, f"{before} → {after}\n")


@pytest.fixture
def renamed(stage: Stage) -> Stage:
    """A job that completed a day as bill, and is named invoice now. The next day is due."""
    stage.exec("bill", *DAILY, command=stage.effect())
    rename(stage, "bill", "invoice")
    stage.clock.advance("1d")
    return stage


def test_an_old_host_that_declares_the_old_name_runs_nothing_and_is_told_the_new_one(renamed: Stage) -> None:
    for words in (DAILY, ("--window", "2026-11-28"), ("--adhoc", "a1"), (*DAILY, "--scope", "acme"), ()):
        said = renamed.exec("bill", *words, command=renamed.effect())

        assert said.code == 78, words
        assert said.talk == (
            "duly: bill was renamed, and its runs with it; nothing was run. Declare it as invoice\n"
            "  try: duly jobs show invoice\n"
        )

    assert renamed.effects() == ["bill:2026-11-28[UTC]"]
    assert renamed.rows("select name from duly_job") == [("invoice",)]
    assert renamed.duly("due", "bill").code == 255


def test_the_runs_move_with_the_name(renamed: Stage) -> None:
    assert renamed.exec("invoice", *DAILY, "--window", "2026-11-28", command=renamed.effect()).code == 0
    assert renamed.exec("invoice", *DAILY, command=renamed.effect()).code == 0

    assert renamed.effects() == ["bill:2026-11-28[UTC]", "invoice:2026-11-29[UTC]"]
    listed = renamed.duly("runs", "invoice", "--format", "keys").out
    assert listed == "invoice:2026-11-29[UTC]\ninvoice:2026-11-28[UTC]\n"


def test_old_keys_are_answered_under_the_new_name_with_a_note(renamed: Stage) -> None:
    looks = (
        ("explain", "bill", "2026-11-28"),
        ("explain", "bill:2026-11-28[UTC]"),
        ("runs", "show", "bill:2026-11-28[UTC]"),
        ("runs", "bill"),
        ("check", "bill", "2026-11-28"),
        ("status", "bill"),
        ("next", "bill"),
        ("jobs", "show", "bill"),
        ("jobs", "scopes", "list", "bill"),
    )
    for words in looks:
        said = renamed.duly(*words)

        assert said.code == 0, words
        assert said.talk.startswith("duly: bill is named invoice now\n"), words

    assert renamed.duly("check", "bill").code == renamed.duly("check", "invoice").code == 1
    assert "formerly   bill\n" in renamed.duly("jobs", "show", "invoice").out
    assert renamed.duly("jobs", "show", "invoice", "--json").out.count('"bill"') == 1


def test_what_is_said_of_an_old_key_is_said_of_the_run(renamed: Stage) -> None:
    assert renamed.duly("skip", "bill", "2026-11-29", "--reason", "why").code == 0

    assert renamed.duly("check", "invoice", "2026-11-29").code == 0


def test_the_key_of_an_effect_does_not_change_with_the_name(stage: Stage) -> None:
    """A retry after the renaming is the same effect to whoever has seen the first attempt, and a later run another one."""
    keys = stage.file("keys")
    command = ["sh", "-c", f'echo "$DULY_JOB $DULY_IDEMPOTENCY_KEY" >> {keys}; exit 1']
    stage.exec("bill", *DAILY, command=command)
    rename(stage, "bill", "draft")
    rename(stage, "draft", "invoice")
    stage.duly("retry", "invoice", "2026-11-28", "--reason", "again")

    stage.exec("invoice", command=command)

    (name, before), (name_now, after) = (line.split() for line in keys.read_text().splitlines())
    assert (name, name_now) == ("bill", "invoice")
    assert before == after


def test_a_name_is_given_to_no_other_job(renamed: Stage) -> None:
    renamed.exec("other", *DAILY)

    for taken in ("bill", "invoice"):
        said = renamed.duly("jobs", "rename", "other", taken, "--reason", "why")
        assert said.code == 64
        assert f"{taken} is the name of another job, or was" in said.talk


def test_a_job_goes_back_to_its_own_name(renamed: Stage) -> None:
    rename(renamed, "invoice", "bill")

    assert renamed.exec("bill", *DAILY, command=renamed.effect()).code == 0
    assert renamed.effects()[-1] == "bill:2026-11-29[UTC]"
    assert renamed.exec("invoice", *DAILY).code == 78


def test_other_changes_by_the_old_name_are_refused(renamed: Stage) -> None:
    for words in (
        ("retire", "bill"),
        ("rename", "bill", "x"),
        ("scopes", "add", "bill", "acme"),
        ("scopes", "retire", "bill", "acme"),
        ("apply", "bill", *DAILY),
    ):
        said = renamed.duly("jobs", *words, "--reason", "why")
        assert said.code == 78, words
        assert "Declare it as invoice" in said.talk


def test_a_run_that_is_under_way_is_completed_under_the_new_name(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("bill", *DAILY, command=stage.effect(gate.shell))
    gate.arrived()
    rename(stage, "bill", "invoice")
    gate.open()

    assert running.ended().code == 0
    assert stage.duly("check", "invoice", "2026-11-28").code == 0


def test_a_dry_run_renames_nothing(stage: Stage) -> None:
    stage.exec("bill", *DAILY)

    said = stage.duly("jobs", "rename", "bill", "invoice", "--reason", "why", "--dry-run", "--json")

    assert (said.document["schema"], said.document["jobs"][0]["after"]) == ("duly.rename.v1", "invoice")
    assert stage.rows("select name from duly_job") == [("bill",)]
    assert stage.rows("select count(*) from duly_former_name") == [(0,)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("bill", "invoice"), "say why with --reason"),
        (("nothing", "invoice", "--reason", "why"), "the ledger knows no job 'nothing'"),
        (("bill", "two words", "--reason", "why"), "is not a job name"),
        (("bill", "bill", "--reason", "why"), "the job is named bill already"),
    ],
)
def test_what_cannot_be_done_is_said(stage: Stage, words: tuple[str, ...], told: str) -> None:
    stage.exec("bill", *DAILY)

    said = stage.duly("jobs", "rename", *words)

    assert said.code == 64
    assert told in said.talk
    assert "\n  try: duly " in said.talk
