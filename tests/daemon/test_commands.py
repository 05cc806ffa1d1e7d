"""The daemon and commands: children of a configuration, each watched by a thread, judged as `duly exec` judges its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.stage import Stage
from tests.exec.stage import Gate, environment, is_alive, until
from tests.ledger.test_owed import days


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path, "gate")
    yield gate
    gate.close()


def job(command: str, *more: str, name: str = "export") -> str:
    """A job of days whose work is a shell's."""
    lines = [
        f"[jobs.{name}]",
        f'command = ["sh", "-c", {command!r}]',
        'period = "daily"',
        'zone = "UTC"',
        'catch_up = "each"',
        *more,
        "",
    ]
    return "\n".join(lines)


def told(stage: Stage) -> list[str]:
    """What the commands wrote, a line each."""
    path = stage.folder / "told"
    return path.read_text().splitlines() if path.exists() else []


def outcomes(stage: Stage) -> list[tuple[int, str]]:
    return stage.book.rows("select number, outcome from duly_attempt order by nominal, number")


def test_its_log_has_a_line_that_a_machine_can_read_for_each_attempt_and_for_all_else(stage: Stage) -> None:
    stage.configuration(job("test {date} = 2026-10-05"))
    stage.module("""
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=0)
def credit(run):
    raise KeyError("hunter2")
""")
    daemon = stage.daemon("--log-format", "json")
    until(lambda: daemon.log.count('"event": "attempt"') == 2, "the first attempts are told of")
    stage.clock.set("2026-10-07T00:00:00Z")
    until(lambda: daemon.log.count('"event": "attempt"') == 4, "all attempts are told of")
    assert daemon.stop() == 0

    lines = [json.loads(line) for line in daemon.log.splitlines()]
    attempts = [line for line in lines if line["event"] == "attempt" and line["job"] == "export"]
    assert [(line["run"], line["outcome"], line["exit_code"], line["level"]) for line in attempts] == [
        ("export:2026-10-05[UTC]", "completed", 0, "info"),
        ("export:2026-10-06[UTC]", "failed", 1, "warning"),
    ]
    assert {line["trigger"] for line in attempts} == {"daemon"}
    functions = [line for line in lines if line["event"] == "attempt" and line["job"] == "credit"]
    assert [(line["outcome"], line["cause"]) for line in functions] == [("failed", "KeyError")] * 2
    assert "hunter2" not in daemon.log
    notes = [line["message"] for line in lines if line["event"] == "note"]
    assert any("jobs on" in note for note in notes)


def test_a_command_is_told_of_its_run_and_completes_it_by_ending_well(stage: Stage) -> None:
    stage.configuration(job("echo $DULY_RUN_KEY $DULY_TRIGGER {date} >> told"))
    daemon = stage.daemon(modules=())
    until(lambda: told(stage), "it is worked")

    stage.clock.set("2026-10-08T00:00:00Z")
    until(lambda: len(told(stage)) == 3, "what comes due is worked")

    assert told(stage) == [f"export:2026-10-0{day}[UTC] daemon 2026-10-0{day}" for day in (5, 6, 7)]
    until(lambda: [state for _, state in stage.book.runs()] == ["completed"] * 3, "all are complete")
    assert daemon.stop() == 0


def test_commands_and_functions_are_worked_side_by_side(stage: Stage) -> None:
    stage.configuration(job("echo done >> told", name="close"))
    stage.module("""
@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)
def export(run):
    done(run)
""")
    stage.daemon()

    stage.until_done(*days(5))
    until(lambda: told(stage) == ["done"], "the command is done as well")


def test_an_external_command_that_fails_waits_for_a_person_and_one_with_retries_is_retried(stage: Stage) -> None:
    stage.configuration(
        job("echo external >> told; exit 3", name="external")
        + job(
            "echo retried >> told; exit 3", "retries = 1", 'retry_delay = "5m"', 'retry_ceiling = "5m"', name="retried"
        )
    )
    daemon = stage.daemon(modules=())
    daemon.until_said("external:2026-10-05[UTC] attempt 1 failed")
    daemon.until_said("retried:2026-10-05[UTC] attempt 1 failed")

    stage.clock.advance("20m")
    daemon.until_said("retried:2026-10-05[UTC] attempt 2 failed")

    assert sorted(told(stage)) == ["external", "retried", "retried"]


def test_a_command_that_is_not_there_gives_its_run_back_and_is_not_tried_without_end(stage: Stage) -> None:
    stage.configuration(job("x").replace('"sh"', '"no-such-command"'))
    daemon = stage.daemon("--poll", "50ms", modules=())
    until(lambda: daemon.log.count("no-such-command") >= 3, "it is tried again")

    assert len(outcomes(stage)) < 8  # each rest is twice as long as the one before
    assert {outcome for _, outcome in outcomes(stage)} == {"released"}


def test_told_twice_it_ends_its_commands(stage: Stage, gate: Gate) -> None:
    stage.configuration(job(f"trap 'echo told to end >> told; exit 1' TERM; {gate.shell}"))
    daemon = stage.daemon(modules=())
    gate.arrived()

    daemon.send(signal.SIGTERM)
    daemon.send(signal.SIGINT)

    assert daemon.ended() == 0
    assert told(stage) == ["told to end"]


def test_a_command_that_takes_too_long_is_ended(stage: Stage, gate: Gate) -> None:
    stage.configuration(job(f"{gate.shell}", 'timeout = "10m"'))
    daemon = stage.daemon(modules=())
    child = gate.arrived()

    stage.clock.advance("11m")

    daemon.until_said("attempt 1 unknown: timed out")
    assert not is_alive(child)
    until(lambda: [state for _, state in stage.book.runs()] == ["unknown"], "what it did is not known")


@pytest.mark.parametrize("book", ["sqlite"], indirect=True)  # on PostgreSQL the lease alone decides
def test_a_command_outlives_a_daemon_that_was_killed_and_nobody_takes_its_run(stage: Stage, gate: Gate) -> None:
    again = 'effect = "idempotent"', 'remembers = "forever"'
    stage.configuration(job(f"echo begun >> told; {gate.shell}; echo done >> told", *again))
    first = stage.daemon(modules=())
    gate.arrived()
    first.kill()

    stage.clock.advance("5m")
    second = stage.daemon("--poll", "20ms", modules=())
    second.until_said("1 jobs")
    stage.clock.advance("5m")
    gate.open()
    until(lambda: told(stage)[:2] == ["begun", "done"], "it ended by itself")
    gate.open()
    stage.clock.advance("1m")

    until(lambda: [state for _, state in stage.book.runs()] == ["completed"], "it is taken again, and complete")
    assert told(stage) == ["begun", "done", "begun", "done"]


def test_exec_beside_the_daemon_does_what_it_does_not(stage: Stage) -> None:
    """Each period of both is done once, whoever came first."""
    stage.configuration(job("echo {date} >> told"))
    daemon = stage.daemon("--poll", "20ms", modules=())
    until(lambda: told(stage) == ["2026-10-05"], "the first is done")
    for day in range(7, 12):
        stage.clock.set(f"2026-10-{day:02d}T00:00:00Z")
        ended = subprocess.run(
            [sys.executable, "-m", "duly", "exec", "export"],
            cwd=stage.folder,
            env=environment(DULY_LEDGER=stage.book.path),
            check=False,
        )
        assert ended.returncode in (0, 75)
    until(lambda: len(told(stage)) == 6, "all are done")

    assert daemon.stop() == 0
    assert sorted(told(stage)) == [f"2026-10-{day:02d}" for day in range(5, 11)]
    assert [state for _, state in stage.book.runs()] == ["completed"] * 6


def test_a_mistake_in_the_configuration_is_told_before_anything_runs(stage: Stage) -> None:
    stage.configuration(job("echo x >> told").replace("period", "perriod"))

    daemon = stage.daemon(modules=())

    assert daemon.ended() == 78
    assert "period" in daemon.log
    assert told(stage) == []


def test_a_command_sees_neither_the_ledgers_address_nor_what_systemd_told_the_daemon(stage: Stage) -> None:
    stage.configuration('[ledger]\nurl_env = "SHOP_LEDGER"\n' + job("env >> told"))
    secrets = {
        "SHOP_LEDGER": stage.book.path,
        "NOTIFY_SOCKET": str(stage.folder / "nobody"),
        "DULY_OUTPUT": "/elsewhere",
    }
    stage.daemon(modules=(), environ=secrets, unset=("DULY_LEDGER", "STAGE_LEDGER"))
    until(lambda: [state for _, state in stage.book.runs()] == ["completed"], "it is done")

    seen = dict(line.partition("=")[::2] for line in told(stage))
    assert seen["DULY_JOB"] == "export"
    assert {"SHOP_LEDGER", "DULY_LEDGER", "NOTIFY_SOCKET", "DULY_OUTPUT"} & seen.keys() == set()
    assert stage.book.path not in seen.values()


def test_what_lies_in_the_working_directory_is_not_imported_where_no_module_is_named(stage: Stage) -> None:
    stage.configuration(job("echo done >> told"))
    for name in ("tomllib", "psycopg", "secrets"):
        (stage.folder / f"{name}.py").write_text("raise SystemExit('a stranger')")

    stage.daemon(modules=(), python=("-P",))

    until(lambda: told(stage) == ["done"], "it is worked")


def test_a_command_that_does_not_heed_the_word_to_end_is_killed_after_ten_seconds(stage: Stage, gate: Gate) -> None:
    stage.configuration(job(f"trap '' TERM; {gate.shell}; {gate.shell}"))
    daemon = stage.daemon(modules=())
    child = gate.arrived()
    daemon.send(signal.SIGTERM)
    daemon.until_said("begins nothing more")
    daemon.send(signal.SIGTERM)
    daemon.until_said("ends the 1 attempts")
    assert is_alive(child)

    stage.clock.advance("11s")

    assert daemon.ended() == 0
    assert not is_alive(child)
    assert "unknown: signal 9" in daemon.log


# -- what became of it --------------------------------------------------------------------------------------------------


def test_a_daemon_asks_the_probe_what_became_of_a_command(stage: Stage) -> None:
    probe = "probe = ['sh', '-c', 'echo $0 >> asked; echo did not', '{date}']"
    stage.configuration(job("echo $DULY_ATTEMPT >> told; [ $DULY_ATTEMPT = 2 ] || exit 80", probe))
    daemon = stage.daemon("--poll", "200ms", modules=())
    until(lambda: [state for _, state in stage.book.runs()] == ["unknown"], "nobody knows what became of it")
    asked = stage.folder / "asked"

    stage.clock.advance("1m")
    until(lambda: stage.book.rows("select denials from duly_probe") == [(1,)], "it is denied once")
    assert told(stage) == ["1"]
    stage.clock.advance("1m")

    until(lambda: [state for _, state in stage.book.runs()] == ["completed"], "it is done the second time")
    assert (told(stage), asked.read_text()) == (["1", "2"], "2026-10-05\n2026-10-05\n")
    assert "its probe says that it did not happen" in daemon.log
    assert daemon.stop() == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_a_daemon_asks_functions_too(stage: Stage, is_async: bool) -> None:
    write, word = (stage.aio_module, "async ") if is_async else (stage.module, "")
    write(f"""
{word}def probe(doubt):
    if doubt.attempt == 1:
        return duly.Happened("charge 4711")

@ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, effect="external", probe=probe)
{word}def export(run):
    raise AssertionError("nobody works it")
""")
    stage.book.job(contract="external", retries=None)
    claim = stage.book.take()
    stage.book.doubt(claim)
    stage.clock.advance("1m")

    daemon = stage.daemon("--poll", "200ms", modules=("tasks:ledger" if is_async else "jobs:ledger",))

    until(lambda: stage.book.state(claim.run) == "completed", "its probe is believed")
    assert daemon.stop() == 0
    assert stage.effects() == []


def test_a_function_that_does_not_answer_holds_neither_the_others_nor_the_end_up(stage: Stage) -> None:
    stage.module("""
import threading

settings = {"catch_up": duly.EACH, "effect": "external"}

@ledger.job("hangs", duly.daily("UTC"), probe=lambda doubt: threading.Event().wait(), **settings)
def hangs(run): ...

@ledger.job("export", duly.daily("UTC"), probe=lambda doubt: duly.Happened("charge 4711"), **settings)
def export(run): ...
""")
    claims = []
    for name in ("hangs", "export"):
        stage.book.job(name, contract="external", retries=None)
        claims.append(stage.book.take(job=name))
        stage.book.doubt(claims[-1])
    stage.clock.advance("1m")
    daemon = stage.daemon("--poll", "200ms")

    until(lambda: stage.book.state(claims[1].run) == "completed", "the other one is asked")
    until(lambda: stage.book.rows("select 1 from duly_probe"), "the first one is being asked")

    assert daemon.stop() == 0
