"""The command line as a whole: its help, its errors, and what it may load before it knows what is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from duly.cli.dispatch import COMMANDS
from duly.schedule.spec import daily
from tests.story import Story, duly

COMMANDS_OF_PEOPLE = [name for names in COMMANDS.values() for name in names if name not in ("exec", "demo")]

BAD_INPUT = {
    "due": ["nobody-knows-it"],
    "daemon": ["nothing"],
    "status": ["--nonsense"],
    "check": [],
    "completion": ["powershell"],
    "explain": ["close-day"],
    "next": ["close-day", "yesterday-ish"],
    "runs": ["close-day", "2026-11-21", "2026-11-22"],
    "metrics": ["--listen", "somewhere"],
    "web": ["--host", "0.0.0.0"],
    "retry": ["close-day", "2026-11-21"],
    "skip": ["close-day", "2026-02-30", "--reason", "there is no such day"],
    "unskip": ["close-day:2026-11-21", "--reason", "a key has its zone"],
    "reopen": ["close-day", "2026-11-21", "--reason", "it never ran"],
    "cancel": ["close-day", "2026-11-21"],
    "resolve": ["close-day", "2026-11-21", "--as", "perhaps"],
    "db": ["crate"],
    "doctor": ["close-day"],
    "jobs": ["shoe", "close-day"],
    "import": ["crontab", "nowhere.crontab"],
    "backfill": ["start", "close-day", "2026-11-01..2026-11-10"],
    "alerts": ["silence", "close-day", "--reason", "why"],
    "outbox": ["retry", "close-day", "2026-11-21", "--reason", "why"],
}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, at="2026-11-22T03:00:00Z")
    story.job("close-day", daily("Europe/Paris"))
    story.fail("close-day")
    return story


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_command(words: list[str]) -> None:
    said = duly(*words)

    assert said.code == 0
    for name in COMMANDS_OF_PEOPLE:
        assert f"\n  {name} " in said.out


@pytest.mark.parametrize("name", COMMANDS_OF_PEOPLE)
def test_every_command_has_help_with_an_example(name: str) -> None:
    said = duly(name, "--help")

    assert said.code == 0
    assert f"usage: duly {name}" in said.out
    assert f"duly {name}" in said.out.partition("example:")[2]
    assert said.out == duly("help", name).out


def test_every_command_has_a_bad_input_here() -> None:
    assert sorted(BAD_INPUT) == sorted(COMMANDS_OF_PEOPLE)


@pytest.mark.parametrize("name", COMMANDS_OF_PEOPLE)
def test_a_bad_input_is_an_error_of_usage_with_one_step_to_take(story: Story, name: str) -> None:
    said = story.duly(name, *BAD_INPUT[name])

    assert said.code == (255 if name == "due" else 64)
    assert said.out == ""
    assert said.talk.startswith("duly: ")
    assert said.talk.count("\n  try: duly ") == 1


@pytest.mark.parametrize(("typed", "meant"), [("statsu", "status"), ("expalin", "explain"), ("retyr", "retry")])
def test_a_slip_of_the_pen_is_answered_with_what_was_meant(typed: str, meant: str) -> None:
    said = duly(typed)

    assert said.code == 64
    assert f"did you mean {meant}?" in said.talk


def test_the_version_is_said() -> None:
    said = duly("--version")

    assert (said.code, said.talk) == (0, "")
    assert said.out.startswith("duly 0.")


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--grid"],
        ["explain", "close-day", "2026-11-21"],
        ["next", "close-day"],
        ["runs"],
        ["metrics"],
        ["runs", "show", "close-day", "2026-11-21"],
        ["retry", "close-day", "2026-11-21", "--reason", "why"],
        ["skip", "close-day", "2026-11-21", "--reason", "why"],
        ["unskip", "close-day", "2026-11-21", "--reason", "why"],
        ["reopen", "close-day", "2026-11-21", "--reason", "why"],
        ["cancel", "close-day", "2026-11-21", "--reason", "why"],
        ["resolve", "close-day", "2026-11-21", "--as", "done", "--evidence", "why"],
        ["jobs", "list"],
        ["jobs", "show", "close-day"],
        ["jobs", "apply", "close-day", "--every", "1h", "--reason", "why"],
    ],
    ids=" ".join,
)
def test_without_a_ledger_a_command_says_so_and_makes_none(tmp_path: Path, words: list[str]) -> None:
    said = duly(*words, DULY_LEDGER=str(tmp_path / "none.db"))

    assert said.code == 69
    assert "there is no ledger" in said.talk
    assert list(tmp_path.iterdir()) == []


def test_a_monitor_is_told_that_it_cannot_tell_without_a_ledger(tmp_path: Path) -> None:
    assert duly("check", "close-day", DULY_LEDGER=str(tmp_path / "none.db")).code == 2
    assert duly("due", "close-day", DULY_LEDGER=str(tmp_path / "none.db")).code == 255


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.db"
    path.write_text("Dear Ana, this is no database, though it is long enough to be mistaken for one." * 20)

    said = duly("status", "--ledger", str(path))

    assert said.code == 73
    assert "not an SQLite database" in said.talk


def test_a_bug_is_never_mistaken_for_an_answer(story: Story) -> None:
    story.store.session.connection.execute("update duly_job set grace = 'long', lease = 'short', ordered = 'perhaps'")
    story.store.session.connection.execute("update duly_run set retry_at = 'soon', due = 0")

    codes = {name: story.duly(name, "close-day", bug=True).code for name in ("status", "check", "due")}

    assert codes == {"status": 70, "check": 2, "due": 255}


def test_a_ledger_url_of_another_kind_is_an_error_of_usage() -> None:
    said = duly("status", "--ledger", "mysql://host/db")

    assert said.code == 64
    assert "sqlite:////" in said.talk


def test_whoever_has_read_enough_ends_the_output_quietly(story: Story) -> None:
    source = Path(__file__).parent.parent.parent / "src"
    command = f"{sys.executable} -m duly status --json --ledger {story.path} | true"

    ended = subprocess.run(
        ["bash", "-c", command],
        env={"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert ended.stderr == ""


def test_exec_is_called_before_anything_heavy_is_loaded() -> None:
    source = Path(__file__).parent.parent.parent / "src"
    heavy = "argparse, json, re, enum, typing, dataclasses, logging, subprocess, threading, pathlib"
    code = (
        "import sys; from duly.cli import main; main(['exec', '--help']); "
        f"print(sorted(set('{heavy}'.split(', ')) & set(sys.modules)))"
    )

    ended = subprocess.run(
        # -S: site itself may load some of these
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(source)!r}); {code}"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )

    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words", [("runs", "show", "close-day", "yesterday-ish"), ("backfill", "plan", "close-day", "2026-01-01")]
)
def test_a_next_step_names_the_job_and_not_the_verb_before_it(story: Story, words: tuple[str, ...]) -> None:
    said = story.duly(*words)

    assert said.code == 64
    assert said.talk.splitlines()[-1] == "  try: duly next close-day"
