"""duly exec --log-format: a line for each attempt that a machine can read, on stderr, and its imports only then."""

from __future__ import annotations

import json
from typing import Any

from tests.exec.stage import DAILY, Stage
from tests.exec.test_start import imported


def lines(talk: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in talk.splitlines()]


def test_an_attempt_has_one_line_also_when_all_is_well(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--log-format", "json", "--effect", "external", command=["true"])

    (told,) = lines(said.talk)
    assert said.out == ""
    assert told.pop("time").endswith("Z")
    ((attempt_id,),) = stage.rows("select lower(hex(attempt_id)) from duly_attempt")
    assert told.pop("attempt_id").replace("-", "") == attempt_id
    assert told == {
        "level": "info",
        "event": "attempt",
        "run": "close:2026-11-28[UTC]",
        "job": "close",
        "scope": "",
        "window": "2026-11-28",
        "attempt": 1,
        "trigger": "exec",
        "outcome": "completed",
        "state": "completed",
        "cause": "",
        "duration_seconds": 0.0,  # by the clock of the ledger, which is set by hand
        "exit_code": 0,
        "messages": 0,
    }


def test_a_failure_is_a_line_and_so_is_what_is_said_beside_it(stage: Stage) -> None:
    first = stage.exec("close", *DAILY, "--log-format=json", command=["sh", "-c", "echo hunter2 >&2; exit 3"])
    again = stage.exec("close", "--log-format=json", command=["true"])

    words, failed = first.talk.splitlines()
    assert words == "hunter2"  # the command's own, which goes past
    told = json.loads(failed)
    assert (told["level"], told["outcome"], told["cause"], told["exit_code"]) == ("warning", "failed", "exit 3", 3)
    (note,) = lines(again.talk)
    assert (note["event"], note["run"]) == ("note", "close:2026-11-28[UTC]")
    assert "nothing was run" in note["message"]


def test_an_error_is_a_line_with_the_next_thing_to_type(stage: Stage) -> None:
    said = stage.exec("close", "--log-format", "json")

    (told,) = lines(said.talk)
    assert said.code == 64
    assert (told["level"], told["event"]) == ("error", "note")
    assert told["next_step"].startswith("duly exec close --log-format json --period daily --zone ")


def test_logfmt_says_the_same(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--log-format", "logfmt", command=["sh", "-c", "exit 80"])

    fields = dict(word.split("=", 1) for word in said.talk.split(" ") if "=" in word)
    assert (fields["run"], fields["outcome"], fields["exit_code"]) == ("close:2026-11-28[UTC]", "unknown", "80")


def test_a_form_that_there_is_not_is_a_usage_error(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, "--log-format", "xml")

    assert said.code == 64
    assert "--log-format: 'xml' is none of text, json, logfmt" in said.talk


def test_nobody_pays_for_a_form_who_does_not_ask_for_it(stage: Stage) -> None:
    plain = imported(stage, "exec", "close", *DAILY, "-v", "--", "true")
    stage.clock.advance("1d")
    asked = imported(stage, "exec", "close", *DAILY, "--log-format", "json", "--", "true")

    assert not plain & {"logging", "json", "duly.work.told", "duly.work.log", "duly.work.tracing", "opentelemetry"}
    assert {"json", "duly.work.told"} <= asked
    assert not asked & {"logging", "duly.work.tracing", "opentelemetry"}
