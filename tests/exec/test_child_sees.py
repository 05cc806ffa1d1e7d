"""What a command is told of its run: its environment, and placeholders in its arguments."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid

import pytest

from tests.exec.stage import DAILY, SOURCE, Stage

TELLS = ["sh", "-c", "env | grep -E '^(DULY_|TRACEPARENT)' | sort"]


def told(stage: Stage, *words: str, **environ: str) -> dict[str, str]:
    said = stage.exec(*words, command=TELLS, environ=environ)
    assert said.code == 0, said
    return dict(line.split("=", 1) for line in said.out.splitlines())


def test_everything_that_a_command_is_told_on_the_longest_night_of_berlin(stage: Stage) -> None:
    # 25 October 2026: at 03:00 CEST clocks go back to 02:00 CET. The second pass of the hour is 01:00-02:00 UTC.
    stage.clock.set("2026-10-25T02:10:00Z")

    seen = told(
        stage, "rates", "--period", "hourly", "--zone", "Europe/Berlin", "--scope", "acme/eu", "--timeout", "30m"
    )

    attempt = seen.pop("DULY_ATTEMPT_ID")
    assert uuid.UUID(attempt).version == 7
    assert uuid.UUID(seen.pop("DULY_IDEMPOTENCY_KEY")).version == 5
    assert seen.pop("DULY_OUTBOX").startswith("/proc/")
    assert re.fullmatch(rf"00-[0-9a-f]{{32}}-{attempt.replace('-', '')[16:]}-01", seen.pop("TRACEPARENT"))
    assert seen == {
        "DULY_JOB": "rates",
        "DULY_SCOPE": "acme/eu",
        "DULY_RUN_KEY": "acme%2Feu/rates:2026-10-25T02~2[Europe/Berlin]",
        "DULY_LABEL": "2026-10-25T02~2",
        "DULY_DATE": "2026-10-25",
        "DULY_WINDOW_START": "2026-10-25T02:00:00+01:00",
        "DULY_WINDOW_END": "2026-10-25T03:00:00+01:00",
        "DULY_WINDOW_ZONE": "Europe/Berlin",
        "DULY_TRIGGER": "exec",
        "DULY_ATTEMPT": "1",
        "DULY_DEADLINE": "2026-10-25T03:40:00+01:00",
    }


def test_the_first_pass_of_that_hour_is_another_run(stage: Stage) -> None:
    stage.clock.set("2026-10-25T01:10:00Z")

    seen = told(stage, "rates", "--period", "hourly", "--zone", "Europe/Berlin")

    assert seen["DULY_RUN_KEY"] == "rates:2026-10-25T02[Europe/Berlin]"
    assert (seen["DULY_WINDOW_START"], seen["DULY_WINDOW_END"]) == (
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
    )


def test_the_day_of_that_night_has_25_hours(stage: Stage) -> None:
    stage.clock.set("2026-10-26T12:00:00Z")

    seen = told(stage, "close", "--period", "daily", "--zone", "Europe/Berlin")

    assert (seen["DULY_WINDOW_START"], seen["DULY_WINDOW_END"]) == (
        "2026-10-25T00:00:00+02:00",
        "2026-10-26T00:00:00+01:00",
    )
    assert seen["DULY_DATE"] == "2026-10-25"


def test_without_a_time_out_the_deadline_is_the_next_due_time(stage: Stage) -> None:
    assert told(stage, "close", *DAILY)["DULY_DEADLINE"] == "2026-11-30T06:00:00+00:00"


def test_an_adhoc_run_has_no_window_and_no_date(stage: Stage) -> None:
    seen = told(stage, "load", "--adhoc", "a1")

    assert seen["DULY_RUN_KEY"] == "load:adhoc-a1"
    assert seen["DULY_LABEL"] == "adhoc-a1"
    assert [seen[f"DULY_{name}"] for name in ("DATE", "WINDOW_START", "WINDOW_END", "WINDOW_ZONE", "DEADLINE")] == [
        ""
    ] * 5


def test_the_ledgers_url_is_none_of_the_commands_business(stage: Stage) -> None:
    assert "DULY_LEDGER" not in told(stage, "close", *DAILY)


def test_a_trace_that_called_us_is_carried_on(stage: Stage) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"

    seen = told(stage, "close", *DAILY, TRACEPARENT=f"00-{trace}-b7ad6b7169203331-00")

    assert re.fullmatch(rf"00-{trace}-[0-9a-f]{{16}}-00", seen["TRACEPARENT"])


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nonsense",
        "00-xyz-b7ad6b7169203331-01",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{'z' * 32}-b7ad6b7169203331-01",
    ],
)
def test_a_trace_that_is_none_is_replaced(stage: Stage, bad: str) -> None:
    seen = told(stage, "close", *DAILY, TRACEPARENT=bad)

    found = re.fullmatch(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", seen["TRACEPARENT"])
    assert found is not None, seen["TRACEPARENT"]
    assert found[1] != "0" * 32


def test_the_rest_of_the_environment_is_passed_on(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["sh", "-c", "echo $MINE"], environ={"MINE": "a b  c"})

    assert said.out == "a b c\n"


# -- placeholders -------------------------------------------------------------------------------------------------------

ECHO = [sys.executable, "-c", "import sys; print(*sys.argv[1:], sep='\\n')"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{label}", "2026-11-28"),
        ("{date}", "2026-11-28"),
        ("{run.key}", "acme/close:2026-11-28[UTC]"),
        ("{scope}", "acme"),
        ("{window.start}", "2026-11-28T00:00:00+00:00"),
        ("{window.end}", "2026-11-29T00:00:00+00:00"),
        ("{window.start:%d.%m.%Y}", "28.11.2026"),
        ("{window.end:%Y/%j %H:%M}", "2026/333 00:00"),
        ("{window.start:}", "2026-11-28T00:00:00+00:00"),
        ("a{date}b{date}c", "a2026-11-28b2026-11-28c"),
        ("{{label}", "{label}"),
        ("{{window.start:%Y}", "{window.start:%Y}"),
        ("{{{label}", "{{label}"),
        ("{}", "{}"),
        ("{other}", "{other}"),
        ("{label:x}", "{label:x}"),
        ("{ label }", "{ label }"),
        ("{label", "{label"),
        ("label}", "label}"),
        ("{{}}", "{{}}"),
        ('{"date": "{date}"}', '{"date": "2026-11-28"}'),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("${HOME}", "${HOME}"),
        ("$1 'quoted' \\n *", "$1 'quoted' \\n *"),
        ("", ""),
        ("{Date}", "{Date}"),
        ("{date}}", "2026-11-28}"),
        ("{x{date}", "{x2026-11-28"),
    ],
)
def test_placeholders_are_filled_in_and_all_other_braces_pass(stage: Stage, written: str, meant: str) -> None:
    said = stage.exec("close", *DAILY, "--scope", "acme", command=[*ECHO, written])

    assert said.code == 0, said
    assert said.out == f"{meant}\n"


def test_a_placeholder_may_be_in_the_commands_name(stage: Stage) -> None:
    script = stage.file("on-2026-11-28.sh")
    script.write_text("#!/bin/sh\necho yes\n")
    script.chmod(0o755)

    assert stage.exec("close", *DAILY, command=[str(stage.file("on-{date}.sh"))]).out == "yes\n"


@pytest.mark.parametrize("placeholder", ["{date}", "{window.start}", "{window.end:%d}"])
def test_a_placeholder_that_a_run_has_nothing_for_is_64_and_gives_the_claim_back(
    stage: Stage, placeholder: str
) -> None:
    said = stage.exec("load", "--adhoc", "a1", command=stage.effect(f": {placeholder}"))

    assert said.code == 64
    assert placeholder in said.talk
    assert stage.effects() == []
    assert stage.state() == "open"


def test_no_shell_is_involved(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["echo", "$HOME", "*", ";", "a  b", "`x`"])

    assert said.out == "$HOME * ; a  b `x`\n"


def test_arguments_that_are_no_text_pass_through(stage: Stage) -> None:
    command = [sys.executable, "-c", "import os, sys; print(os.fsencode(sys.argv[1]).hex())", "\udcff\udcfe"]

    assert stage.exec("close", *DAILY, command=command).out == "fffe\n"


def test_the_locale_that_python_gives_itself_is_not_the_commands(stage: Stage) -> None:
    command = ["sh", "-c", f"env > '{stage.file('seen')}'"]

    for given, seen in (({}, False), ({"LC_CTYPE": "C.UTF-8"}, True)):
        bare = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "DULY_LEDGER": stage.path, **given}
        words = [sys.executable, "-m", "duly", "exec", "close", "--adhoc", "-q", "--", *command]
        assert subprocess.run(words, env=bare, capture_output=True, check=False).returncode == 0

        assert ("LC_CTYPE=C.UTF-8" in stage.file("seen").read_text().splitlines()) is seen


@pytest.mark.parametrize("word", ["./plain", "plain"])
def test_a_script_without_a_first_line_for_the_kernel_is_a_shells(stage: Stage, word: str) -> None:
    script = stage.file("plain")
    script.write_text(f"echo \"$1 $DULY_DATE\" > '{stage.file('seen')}'\n")
    script.chmod(0o755)
    running = stage.start(
        "close",
        *DAILY,
        command=[word, "{date}"],
        environ={"PATH": f"{stage.folder}:{os.environ['PATH']}"},
        cwd=stage.folder,
    )

    assert running.ended().code == 0
    assert stage.file("seen").read_text() == "2026-11-28 2026-11-28\n"
