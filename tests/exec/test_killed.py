"""SIGKILL: of the wrapper while its command goes on, and of both. No second effect while the first may yet happen."""

from __future__ import annotations

import os
import re
import signal

import pytest

from duly.ledger.records import Claimer, RunId
from duly.ledger.register import find
from duly.ledger.take import _claim, look
from duly.store.sqlite import SqliteStore
from tests.exec.stage import DAILY, Gate, Running, Stage, is_alive, until
from tests.exec.test_endings import CONTRACTS


def orphan(stage: Stage, *flags: str) -> tuple[Gate, int]:
    """A wrapper that was killed while its command goes on; the command's gate and pid."""
    gate = stage.gate("orphan")
    running = stage.start("close", *DAILY, *flags, command=stage.effect(f"{gate.shell}; exit 0"))
    pid = gate.arrived()
    running.kill()
    assert is_alive(pid)
    return gate, pid


def ends(gate: Gate, pid: int) -> None:
    gate.open()
    until(lambda: not is_alive(pid), "the orphan has ended")


@pytest.mark.parametrize("contract", ["transactional", "idempotent", "external"])
def test_while_the_orphan_lives_nothing_else_works_its_run_though_the_lease_lapsed(stage: Stage, contract: str) -> None:
    orphan(stage, *CONTRACTS[contract])
    stage.clock.advance("10m")

    said = stage.exec("close", command=stage.effect())
    named = stage.exec("close", "--window", "2026-11-28", command=stage.effect())

    assert (said.code, named.code) == (75, 75)
    assert len(stage.effects()) == 1
    assert stage.state() == "running"


@pytest.mark.parametrize("contract", ["transactional", "idempotent"])
def test_once_the_orphan_is_gone_its_run_is_taken_again_by_contract(stage: Stage, contract: str) -> None:
    gate, pid = orphan(stage, *CONTRACTS[contract])
    ends(gate, pid)

    before_the_lease = stage.exec("close", command=stage.effect())
    stage.clock.advance("10m")
    after_it = stage.exec("close", command=stage.effect("exit 3"))

    assert (before_the_lease.code, after_it.code) == (75, 3)
    assert len(stage.effects()) == 2
    assert stage.outcomes() == ["lost", "failed"]


def test_an_external_run_whose_orphan_is_gone_is_unknown_until_a_person_says_what_happened(stage: Stage) -> None:
    gate, pid = orphan(stage)
    ends(gate, pid)
    stage.clock.advance("10m")

    codes = [stage.exec("close", command=stage.effect()).code for _ in range(2)]
    resolved = stage.duly("resolve", "close", "2026-11-28", "--as", "not-done", "--evidence", "their log is empty")
    again = stage.exec("close", command=stage.effect())

    assert codes == [80, 80]
    assert resolved.code == 0, resolved
    assert again.code == 0
    assert len(stage.effects()) == 2


def test_an_unknown_run_resolved_as_done_is_not_run_again(stage: Stage) -> None:
    gate, pid = orphan(stage)
    ends(gate, pid)
    stage.clock.advance("10m")
    assert stage.exec("close").code == 80

    stage.duly("resolve", "close", "2026-11-28", "--as", "done", "--evidence", "their log has it")

    assert stage.exec("close", command=stage.effect()).code == 0
    assert len(stage.effects()) == 1


def test_a_person_cannot_resolve_a_run_whose_orphan_lives_and_is_told_its_pid(stage: Stage) -> None:
    _, pid = orphan(stage)
    stage.clock.advance("10m")

    said = stage.duly("resolve", "close", "2026-11-28", "--as", "done", "--evidence", "I think so")

    assert said.code != 0
    assert re.search(rf"\b{pid}\b", said.talk), said


@pytest.mark.parametrize("contract", ["transactional", "external"])
def test_a_power_cut_that_kills_both_is_judged_by_contract(stage: Stage, contract: str) -> None:
    gate = stage.gate("child")
    flags = (*DAILY, *CONTRACTS[contract])
    running = stage.start("close", *flags, command=stage.effect(gate.shell))
    pid = gate.arrived()
    os.kill(running.pid, signal.SIGSTOP)  # or it would see its child's end and judge it
    os.killpg(pid, signal.SIGKILL)
    running.kill()

    assert stage.exec("close").code == 75, "its lease has not lapsed yet"
    stage.clock.advance("2m")
    said = stage.exec("close", command=["sh", "-c", "exit 0"])

    assert said.code == (78 if contract == "transactional" else 80)
    assert stage.outcomes()[0] == ("lost" if contract == "transactional" else "unknown")


def test_a_dead_external_run_does_not_close_its_line(stage: Stage) -> None:
    gate, pid = orphan(stage)
    ends(gate, pid)
    stage.clock.set("2026-11-30T12:00:00Z")

    said = stage.exec("close", command=stage.effect())

    assert said.code == 0
    assert stage.effects()[1:] == ["close:2026-11-29[UTC]"]
    assert stage.states() == {"2026-11-28": "unknown", "2026-11-29": "completed"}


def test_an_orphan_closes_its_line_for_the_next_day_too(stage: Stage) -> None:
    orphan(stage)
    stage.clock.set("2026-11-30T12:00:00Z")

    said = stage.exec("close", command=stage.effect())

    assert said.code == 75
    assert len(stage.effects()) == 1


def test_with_overlap_an_orphan_closes_only_its_own_run(stage: Stage) -> None:
    orphan(stage, "--overlap", "yes")
    stage.clock.set("2026-11-30T12:00:00Z")

    assert stage.exec("close", command=stage.effect()).code == 0
    assert len(stage.effects()) == 2


def closes_descriptors(stage: Stage, gate: Gate) -> list[str]:
    """A command that closes what it inherited, as daemons do, and goes on."""
    closing = 'for f in /proc/self/fd/*; do n=${f##*/}; [ $n -le 2 ] || eval "exec $n>&-"; done'
    return ["bash", "-c", f'echo "$DULY_ATTEMPT" >> {stage.file("effects")}; {closing}; {gate.shell}']


def test_a_command_that_closed_its_descriptors_is_protected_by_the_lease_alone(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, *CONTRACTS["transactional"], command=closes_descriptors(stage, gate))
    gate.arrived()
    running.kill()

    assert stage.exec("close", command=stage.effect()).code == 75
    stage.clock.advance("2m")
    assert stage.exec("close", command=stage.effect("exit 3")).code == 3


# -- the lease ----------------------------------------------------------------------------------------------------------


def through_leases(stage: Stage, running: Running, leases: int) -> None:
    """Let time pass, as slowly as heartbeats need: the next step comes when the last was answered by a renewal."""
    for _ in range(leases * 3):
        stage.clock.advance("20s")
        now = stage.clock.now()
        until(lambda: stage.rows("select 1 from duly_renewal where until > ?", now + 30_000_000), "a heartbeat")  # noqa: B023
        assert not running.is_over()


def test_the_lease_is_kept_for_as_long_as_the_command_runs(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=stage.effect(gate.shell))
    gate.arrived()

    through_leases(stage, running, 5)
    other = stage.exec("close", command=stage.effect())
    gate.open()

    assert other.code == 75
    assert "attempt 1" in other.talk
    assert running.ended().code == 0
    assert len(stage.effects()) == 1


def test_the_lease_of_a_stopped_wrapper_lapses_and_its_run_is_still_its_own(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, *CONTRACTS["idempotent"], command=stage.effect(gate.shell))
    gate.arrived()
    running.signal(signal.SIGSTOP)
    stage.clock.advance("1h")

    other = stage.exec("close", command=stage.effect())
    running.signal(signal.SIGCONT)
    gate.open()

    assert other.code == 75
    assert running.ended().code == 0
    assert stage.state() == "completed"


def take_over(stage: Stage) -> None:
    """Give the run to another attempt, as a ledger without pulses would once the lease has lapsed."""
    store = SqliteStore(stage.path, create=False)

    async def taken() -> object:
        known = await find("close", "")
        assert known is not None
        assert known.line is not None
        ((series, nominal),) = stage.rows("select series, nominal from duly_run")
        seen = await look(RunId(series, nominal))
        assert seen is not None
        claimer = Claimer(os.urandom(16), "another host", "exec")
        return await _claim(known, seen.id, seen, claimer, named=False)

    store.write(taken())
    store.close()


@pytest.mark.parametrize("then", ["exit 0", "exit 3", "exit 80", "kill -9 $$"])
def test_a_superseded_attempt_says_81_however_its_command_ended(stage: Stage, then: str) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, *CONTRACTS["transactional"], command=stage.effect(f"{gate.shell}; {then}"))
    gate.arrived()

    take_over(stage)
    gate.open()
    said = running.ended()

    assert said.code == 81
    assert "took the run over" in said.talk
    assert stage.rows("select state, owner from duly_run") == [("running", "another host")]


def test_a_superseded_command_is_told_to_end(stage: Stage) -> None:
    gate = stage.gate("child")
    command = stage.effect(gate.heeding("TERM", f"echo told >> {stage.file('told')}; exit 0"))
    running = stage.start("close", *DAILY, *CONTRACTS["idempotent"], command=command)
    gate.arrived()

    take_over(stage)
    stage.clock.advance("21s")  # a heartbeat finds out

    assert running.ended().code == 81
    assert stage.effects("told") == ["told"]


def test_a_superseded_command_that_does_not_end_is_killed(stage: Stage) -> None:
    gate = stage.gate("child")
    command = stage.effect(f"trap '' TERM; {gate.shell}")
    running = stage.start("close", *DAILY, *CONTRACTS["idempotent"], command=command)
    pid = gate.arrived()

    take_over(stage)
    said = stage.step_until_over(running)

    assert said.code == 81
    assert not is_alive(pid)


def test_a_person_who_says_done_of_a_run_that_goes_on_ends_its_attempt(stage: Stage) -> None:
    gate = stage.gate("child")
    command = stage.effect(gate.heeding("TERM", f"echo told >> {stage.file('told')}; exit 0"))
    running = stage.start("close", *DAILY, command=command)
    gate.arrived()
    running.signal(signal.SIGSTOP)
    stage.clock.advance("2m")

    words = ("--as", "done", "--evidence", "seen there", "--attempt-is-dead")
    said = stage.duly("resolve", "close", "2026-11-28", *words)
    running.signal(signal.SIGCONT)

    assert said.code == 0, said
    assert running.ended().code == 81
    assert stage.effects("told") == ["told"]
    assert stage.state() == "completed"
