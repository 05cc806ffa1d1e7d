"""What was typed wrong is said, with the flag's name and one line to type next; nothing is run, no ledger is made."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.exec.stage import DAILY, Running, environment
from tests.story import Said

USAGE, CONFIGURATION = 64, 78


def typed(folder: Path, *words: str) -> Said:
    """A whole command line of exec, typed where there is no ledger yet."""
    running = Running(["exec", *words], environment(DULY_LEDGER=str(folder / "ledger.db")), cwd=folder)
    return running.ended()


def effect(folder: Path) -> list[str]:
    return ["--", "sh", "-c", f"echo run >> {folder / 'effects'}"]


def is_refused(folder: Path, said: Said, code: int, *names: str) -> None:
    """It was refused with this code and these words, one runnable step, and without a trace."""
    assert said.code == code, said
    lines = said.talk.splitlines()
    assert lines[0].startswith("duly: "), said
    assert lines[-1].startswith("  try: "), said
    step = lines[-1].removeprefix("  try: ")
    assert shlex.split(step)[0] in ("duly", "export", "mkdir", "ls"), said
    for name in names:
        assert name in lines[0], said
    assert said.out == ""
    assert sorted(path.name for path in folder.iterdir()) == []


BAD_FLAGS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "unknown": (("--widow", "2026-11-28"), USAGE, ("'--widow'", "did you mean --window?")),
    "unknown and like nothing": (("--qqqqqq",), USAGE, ("'--qqqqqq'",)),
    "unknown with a value": (("--zome=UTC",), USAGE, ("did you mean --zone?",)),
    "unknown short": (("-x",), USAGE, ("'-x'",)),
    "twice": (("--zone", "UTC"), USAGE, ("--zone", "twice")),
    "a switch with a value": (("--one=yes",), USAGE, ("--one",)),
    "no value at the end": (("--retries",), USAGE, ("--retries", "nothing follows")),
    "no value but a flag": (("--timeout", "--one"), USAGE, ("--timeout", "nothing follows")),
    "blank value": (("--owner", " "), USAGE, ("--owner", "blank")),
    "blank value with =": (("--timeout=",), USAGE, ("--timeout", "blank")),
    "blank window": (("--window", ""), USAGE, ("--window", "blank")),
    "bad duration": (("--timeout", "5 parsecs"), USAGE, ("--timeout", "5 parsecs")),
    "no duration": (("--grace", "soon"), USAGE, ("--grace", "soon")),
    "no retention": (("--retain", "soon"), USAGE, ("--retain", "soon")),
    "negative duration": (("--timeout", "-5m"), USAGE, ("--timeout",)),
    "zero duration": (("--timeout", "0s"), USAGE, ("--timeout",)),
    "bad settle": (("--settle", "x"), USAGE, ("--settle",)),
    "bad busy time-out": (("--busy-timeout", "x"), USAGE, ("--busy-timeout",)),
    "a duration beyond all time": (("--timeout", f"{'9' * 30}d"), USAGE, ("--timeout",)),
    "a lease too short": (("--lease", "PT0S"), USAGE, ("lease",)),
    "a lease too long": (("--lease", "60d"), USAGE, ("lease",)),
    "bad number": (("--retries", "many"), USAGE, ("--retries", "many")),
    "negative number": (("--retries", "-1"), USAGE, ("--retries",)),
    "a number with a fraction": (("--retries", "1.5"), USAGE, ("--retries",)),
    "a number in other digits": (("--retries", "\u0663"), USAGE, ("--retries",)),
    "a number too large for the ledger": (("--retries", "9" * 25), USAGE, ("--retries",)),
    "bad duplicate code": (("--exit-duplicate", "x"), USAGE, ("--exit-duplicate",)),
    "a duplicate code that no process has": (("--exit-duplicate", "256"), USAGE, ("--exit-duplicate",)),
    "bad clean exits": (("--clean-exits", "1,x"), USAGE, ("--clean-exits", "'x'")),
    "clean exit 0": (("--clean-exits", "0"), USAGE, ("--clean-exits",)),
    "clean exit 80": (("--clean-exits", "80"), USAGE, ("--clean-exits", "80")),
    "clean exit 193": (("--clean-exits", "193"), USAGE, ("--clean-exits",)),
    "bad effect": (("--effect", "magic"), USAGE, ("--effect", "magic")),
    "idempotent without remembers": (("--effect", "idempotent"), USAGE, ("--remembers",)),
    "remembers without idempotent": (("--effect", "external", "--remembers", "1d"), USAGE, ("--remembers",)),
    "bad remembers": (("--effect", "idempotent", "--remembers", "long"), USAGE, ("--remembers",)),
    "bad catch-up": (("--catch-up", "some"), USAGE, ("--catch-up",)),
    "bad overlap": (("--overlap", "maybe"), USAGE, ("--overlap", "maybe")),
    "bad ordered": (("--ordered", "maybe"), USAGE, ("--ordered",)),
    "replace without output": (("--replace",), USAGE, ("--replace", "--output")),
    "window and adhoc": (("--window", "2026-11-28", "--adhoc", "x"), USAGE, ("--window", "--adhoc")),
    "adhoc id": (("--adhoc", "a b"), USAGE, ("adhoc",)),
    "two names": (("again",), USAGE, ("'again'",)),
    "blank scope": (("--scope", ""), USAGE, ("--scope",)),
    "scope with a blank at its end": (("--scope", "acme "), USAGE, ("scope",)),
    "scope over-long": (("--scope", "x" * 201), USAGE, ("scope", "200")),
    "scope with a control character": (("--scope", "a\tb"), USAGE, ("scope",)),
    "scope that is no text": (("--scope", "\udcff"), USAGE, ("scope",)),
    "scope not NFC": (("--scope", "u\u0308"), USAGE, ("scope", "NFC")),
    "owner that is no text": (("--owner", "\udcff"), USAGE, ("--owner",)),
    "window that is no text": (("--window", "\udcff"), USAGE, ("--window",)),
    "a ledger that is no file": (("--ledger", "mysql://h/db"), USAGE, ("mysql",)),
}


@pytest.mark.parametrize("name", list(BAD_FLAGS))
def test_a_bad_flag_is_refused(tmp_path: Path, name: str) -> None:
    flags, code, names = BAD_FLAGS[name]

    said = typed(tmp_path, "close", *DAILY, *flags, *effect(tmp_path))

    is_refused(tmp_path, said, code, *names)


BAD_SCHEDULES: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "cron: a month that is none": (
        ("--cron", "0 2 * foo *", "--zone", "UTC"),
        CONFIGURATION,
        ("--cron", "month", "foo"),
    ),
    "cron: a minute beyond": (("--cron", "61 2 * * *", "--zone", "UTC"), CONFIGURATION, ("--cron", "minute", "61")),
    "cron: an hour beyond": (("--cron", "0 25 * * *", "--zone", "UTC"), CONFIGURATION, ("--cron", "hour", "25")),
    "cron: a day that never comes": (("--cron", "0 0 31 2 *", "--zone", "UTC"), CONFIGURATION, ("--cron",)),
    "cron: four fields": (("--cron", "0 2 * *", "--zone", "UTC"), CONFIGURATION, ("--cron",)),
    "cron: nothing": (("--cron", "nonsense", "--zone", "UTC"), CONFIGURATION, ("--cron", "nonsense")),
    "cron: a step of nothing": (("--cron", "*/0 * * * *", "--zone", "UTC"), CONFIGURATION, ("--cron", "*/0")),
    "cron: the second line": (
        ("--cron", "0 2 * * *", "--cron", "0 2 * * 9", "--zone", "UTC"),
        CONFIGURATION,
        ("cron", "9"),
    ),
    "zone: unknown": (("--period", "daily", "--zone", "Mars/Olympus"), CONFIGURATION, ("--zone", "Mars/Olympus")),
    "zone: misspelt": (("--period", "daily", "--zone", "europe/berlin"), CONFIGURATION, ("--zone", "europe/berlin")),
    "zone: an offset": (("--period", "daily", "--zone", "+02:00"), CONFIGURATION, ("--zone", "+02:00")),
    "zone: a path": (("--period", "daily", "--zone", "../../etc/passwd"), CONFIGURATION, ("--zone",)),
    "zone: missing": (("--period", "daily"), USAGE, ("--period", "--zone")),
    "zone: missing for cron": (("--cron", "0 2 * * *"), USAGE, ("--cron", "--zone")),
    "period: unknown": (("--period", "fortnightly", "--zone", "UTC"), USAGE, ("--period", "fortnightly")),
    "at: no time": (("--period", "daily", "--zone", "UTC", "--at", "25:00"), CONFIGURATION, ("--at", "25:00")),
    "at: without a period": (("--at", "02:00"), USAGE, ("--at",)),
    "offset: no start": (("--period", "weekly", "--zone", "UTC", "--offset", "noon"), CONFIGURATION, ("--offset",)),
    "every: no duration": (("--every", "often"), CONFIGURATION, ("--every", "often")),
    "every: too short": (("--every", "0s"), CONFIGURATION, ("--every",)),
    "every: with a zone": (("--every", "1h", "--zone", "UTC"), USAGE, ("--zone", "--every")),
    "anchor: no instant": (("--every", "1h", "--anchor", "dawn"), USAGE, ("--anchor", "dawn")),
    "gap: no policy": (("--period", "daily", "--zone", "UTC", "--gap", "jump"), CONFIGURATION, ("--gap", "jump")),
    "fold: no policy": (("--period", "daily", "--zone", "UTC", "--fold", "x"), CONFIGURATION, ("--fold", "x")),
    "two schedules": (("--every", "1h", "--cron", "0 2 * * *"), USAGE, ("--every", "--cron")),
    "every: beyond all time": (("--every", f"{'9' * 30}d"), CONFIGURATION, ("--every",)),
}


@pytest.mark.parametrize("name", list(BAD_SCHEDULES))
def test_a_bad_schedule_is_refused(tmp_path: Path, name: str) -> None:
    flags, code, names = BAD_SCHEDULES[name]

    said = typed(tmp_path, "close", *flags, *effect(tmp_path))

    is_refused(tmp_path, said, code, *names)


@pytest.mark.parametrize("job", ["", " ", "a b", "-", "_x", "a/b", "a:b", "ä", "x" * 101, "\udcff"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, job: str) -> None:
    said = typed(tmp_path, job, *DAILY, *effect(tmp_path))

    is_refused(tmp_path, said, USAGE)


def test_exec_without_a_job_shows_an_example(tmp_path: Path) -> None:
    said = typed(tmp_path, *DAILY, *effect(tmp_path))

    is_refused(tmp_path, said, USAGE, "job")


@pytest.mark.parametrize("words", [("close", *DAILY), ("close", *DAILY, "--")])
def test_exec_without_a_command_says_where_it_goes(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = typed(tmp_path, *words)

    is_refused(tmp_path, said, USAGE, "--")
    assert said.talk.endswith("try: duly exec close --period daily --zone UTC --at 06:00 -- ./command\n")


def test_a_command_without_the_two_dashes_is_told_so(tmp_path: Path) -> None:
    said = typed(tmp_path, "close", *DAILY, "./close.sh")

    is_refused(tmp_path, said, USAGE, "'./close.sh'", "--")


def test_the_missing_zone_is_named_in_a_line_that_can_be_typed(tmp_path: Path) -> None:
    said = typed(tmp_path, "close", "--period", "daily", *effect(tmp_path))
    step = said.talk.splitlines()[-1].removeprefix("  try: ")

    assert re.match(r"duly exec close --period daily --zone \S+ -- sh -c ", step)
    again = typed(tmp_path, *shlex.split(step)[2:])

    assert again.code == 0
    assert (tmp_path / "effects").exists()


def test_the_line_for_an_unknown_job_can_be_typed(tmp_path: Path) -> None:
    said = typed(tmp_path, "close", *effect(tmp_path))
    assert said.code == USAGE
    step = said.talk.splitlines()[-1].removeprefix("  try: ")

    assert typed(tmp_path, *shlex.split(step)[2:]).code == 0


@pytest.mark.parametrize(
    "words", [("--help",), ("-h",), ("close", "--help"), ("close", "--every", "1h", "-h", "--", "x")]
)
def test_help_is_shown_wherever_it_is_asked_for(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = typed(tmp_path, *words)

    assert said.code == 0
    assert said.out.startswith("usage: duly exec JOB")
    assert "example: duly exec " in said.out
    assert list(tmp_path.iterdir()) == []


def test_a_help_that_is_the_commands_own_is_left_to_it(tmp_path: Path) -> None:
    said = typed(tmp_path, "close", *DAILY, "--", "echo", "--help", "-v")

    assert said.out == "--help -v\n"


def test_every_flag_is_in_the_help(tmp_path: Path) -> None:
    from duly.cli.exec_flags import OPTIONS
    from duly.schedule.written import FLAGS

    out = typed(tmp_path, "--help").out

    assert all(f"--{name}" in out for name in (*FLAGS, *OPTIONS))


def test_flags_may_stand_before_the_job_and_be_written_with_an_equals_sign(tmp_path: Path) -> None:
    said = typed(tmp_path, "--period=daily", "--zone=UTC", "--one", "close", "--at=06:00", *effect(tmp_path))

    assert said.code == 0, said
