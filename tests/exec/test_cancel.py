"""Cancel: a person asks, from anywhere, that a command stop. The wrapper hears of it with its next heartbeat."""

from __future__ import annotations

import os
import signal

import pytest

from tests.exec.stage import DAILY, Gate, Running, Stage, is_alive, until
from tests.exec.test_endings import CONTRACTS

WHY = ("--reason", "it reads the wrong year")
HEARTBEAT = "21s"


def begun(stage: Stage, *flags: str, command: str = "", gate: Gate | None = None) -> tuple[Running, int]:
    """A command that has begun and goes on until it is told to stop."""
    gate = gate or stage.gate("child")
    running = stage.start("close", *DAILY, *flags, command=stage.effect(command or gate.shell))
    return running, gate.arrived()


def cancel(stage: Stage) -> None:
    said = stage.duly("cancel", "close", "2026-11-28", *WHY, LOGNAME="ana")
    assert said.code == 0, said


ENDS = {
    "transactional": (143, "failed", "cancelled", 79),
    "transactional with retries": (143, "failed", "cancelled", 79),
    "idempotent": (143, "failed", "cancelled", 79),
    "idempotent too late": (80, "unknown", "unknown", 80),
    "external": (80, "unknown", "unknown", 80),
    "external with retries": (80, "unknown", "unknown", 80),
}


@pytest.mark.parametrize("contract", ENDS)
def test_a_command_is_stopped_and_its_contract_says_what_that_means(stage: Stage, contract: str) -> None:
    code, state, outcome, next_code = ENDS[contract]
    running, pid = begun(stage, *CONTRACTS[contract])
    if contract == "idempotent too late":
        stage.clock.advance("15s")

    cancel(stage)
    duplicate = stage.exec("close", command=stage.effect())
    stage.clock.advance(HEARTBEAT)
    said = running.ended()

    assert (said.code, duplicate.code) == (code, 75), said
    assert not is_alive(pid)
    assert stage.rows("select state, cause, retry_at from duly_run") == [(state, "cancelled", None)]
    assert stage.outcomes() == [outcome]
    stage.clock.advance("2h")
    assert stage.exec("close", command=stage.effect()).code == next_code
    assert len(stage.effects()) == 1, "nothing tries again by itself"


def test_it_is_told_by_sigterm_and_how_it_ended_is_on_record(stage: Stage) -> None:
    gate = stage.gate("child")
    heeds = gate.heeding("TERM", f"echo told >> {stage.file('told')}; exit 4")
    running, _ = begun(stage, *CONTRACTS["transactional"], command=heeds, gate=gate)

    cancel(stage)
    stage.clock.advance(HEARTBEAT)

    assert running.ended().code == 4
    assert stage.effects("told") == ["told"]
    assert stage.rows("select outcome, error from duly_attempt") == [("cancelled", "exit 4")]


def test_one_that_does_not_heed_it_is_killed_after_the_grace(stage: Stage) -> None:
    gate = stage.gate("child")
    running, pid = begun(stage, *CONTRACTS["transactional"], command=f"trap '' TERM; {gate.shell}", gate=gate)

    cancel(stage)
    said = stage.step_until_over(running)

    assert said.code == 137
    assert not is_alive(pid)


def test_one_that_ends_well_when_it_is_told_to_stop_has_not_said_that_it_is_done(stage: Stage) -> None:
    gate = stage.gate("child")
    running, _ = begun(stage, *CONTRACTS["idempotent"], command=gate.heeding("TERM", "exit 0"), gate=gate)

    cancel(stage)
    stage.clock.advance(HEARTBEAT)

    assert running.ended().code == 143
    assert stage.rows("select state, cause from duly_run") == [("failed", "cancelled")]


def test_an_exit_that_is_declared_clean_proves_that_nothing_happened(stage: Stage) -> None:
    gate = stage.gate("child")
    running, _ = begun(stage, "--clean-exits", "3", command=gate.heeding("TERM", "exit 3"), gate=gate)

    cancel(stage)
    stage.clock.advance(HEARTBEAT)

    assert running.ended().code == 3
    assert stage.rows("select state, retry_at from duly_run") == [("failed", None)]


def test_one_that_ends_before_the_heartbeat_is_complete_and_the_request_came_too_late(stage: Stage) -> None:
    gate = stage.gate("child")
    running, _ = begun(stage, gate=gate)

    cancel(stage)
    gate.open()

    assert running.ended().code == 0
    assert stage.state() == "completed"
    told = stage.duly("explain", "close", "2026-11-28").out
    assert "asked it to stop: too late: it completed." in told


def test_one_that_fails_before_the_heartbeat_is_not_retried_in_place(stage: Stage) -> None:
    gate = stage.gate("child")
    flags = CONTRACTS["transactional with retries"]
    running, _ = begun(stage, *flags, command=f"{gate.shell}; exit 3", gate=gate)

    cancel(stage)
    gate.open()
    said = running.ended()

    assert said.code == 3
    assert "may be retried" not in said.talk
    assert stage.rows("select state, cause, retry_at from duly_run") == [("failed", "exit 3", None)]


def test_a_wrapper_that_dies_before_it_hears_leaves_its_run_to_a_person(stage: Stage) -> None:
    running, pid = begun(stage, *CONTRACTS["transactional"])
    cancel(stage)
    running.signal(signal.SIGSTOP)
    running.kill()
    os.killpg(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid), "the command is dead")
    stage.clock.advance("10m")

    assert stage.exec("close", command=stage.effect()).code == 79
    assert stage.outcomes() == ["lost"]


def test_the_runs_after_it_are_worked_as_ever(stage: Stage) -> None:
    gate = stage.gate("child")
    stage.exec("close", *DAILY, "--catch-up", "each", *CONTRACTS["idempotent"])
    stage.clock.advance("2d")
    running = stage.start("close", command=stage.effect(f'[ "$DULY_DATE" != 2026-11-29 ] || {{ {gate.shell}; }}'))
    gate.arrived()

    said = stage.duly("cancel", "close", "2026-11-29", *WHY)
    assert said.code == 0, said
    stage.clock.advance(HEARTBEAT)

    assert running.ended().code == 143
    assert stage.states() == {"2026-11-28": "completed", "2026-11-29": "failed", "2026-11-30": "completed"}


def test_one_that_waits_for_its_retry_in_place_is_skipped(stage: Stage) -> None:
    flags = CONTRACTS["transactional with retries"]
    running = stage.start("close", *DAILY, *flags, command=stage.effect("exit 3"))
    until(lambda: stage.rows("select 1 from duly_run where state = 'failed'"), "it failed")

    cancel(stage)
    said = stage.step_until_over(running, by="30s")

    assert said.code == 3
    assert stage.state() == "skipped"
    assert len(stage.effects()) == 1
