"""Signals: whoever ends exec ends its command; nothing that comes at the wrong moment leaves a run half told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.exec.stage import DAILY, Gate, Stage, environment, until

FORWARDED = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2")


def hears(stage: Stage, gate: Gate, name: str) -> list[str]:
    """A command that writes down that it heard a signal, and ends."""
    return stage.effect(gate.heeding(name, f"echo {name} >> {stage.file('heard')}; exit 0"))


@pytest.mark.parametrize("name", FORWARDED)
def test_a_signal_reaches_the_command(stage: Stage, name: str) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=hears(stage, gate, name))
    gate.arrived()

    running.signal(getattr(signal, f"SIG{name}"))

    assert running.ended().code == 0
    assert stage.effects("heard") == [name]
    assert stage.state() == "completed"


def test_cont_reaches_a_command_that_has_stopped(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=["sh", "-c", f"{gate.arrive}; kill -STOP $$"])
    pid = gate.arrived()
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "it has stopped")

    running.signal(signal.SIGCONT)

    assert running.ended().code == 0


def test_a_signal_reaches_the_whole_group(stage: Stage) -> None:
    gate = stage.gate("grandchild")
    inner = gate.heeding("TERM", f"echo INNER >> {stage.file('heard')}; exit 0")
    outer = 'trap : TERM; sh -c "$1" & wait; wait'
    running = stage.start("close", *DAILY, command=["sh", "-c", outer, "outer", inner])
    gate.arrived()

    running.signal(signal.SIGTERM)

    assert running.ended().code == 0
    assert stage.effects("heard") == ["INNER"]


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT"])
def test_after_a_signal_to_end_no_further_owed_run_is_started(stage: Stage, name: str) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each")
    stage.clock.set("2026-12-02T12:00:00Z")
    gate = stage.gate("child")
    running = stage.start("close", command=hears(stage, gate, name))
    gate.arrived()

    running.signal(getattr(signal, f"SIG{name}"))

    assert running.ended().code == 0
    assert len(stage.effects()) == 1


def test_usr1_does_not_stop_further_runs(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each")
    stage.clock.set("2026-12-01T12:00:00Z")
    gate = stage.gate("child")
    running = stage.start("close", command=hears(stage, gate, "USR1"))
    gate.arrived()
    running.signal(signal.SIGUSR1)
    gate.arrived()
    running.signal(signal.SIGUSR1)

    assert running.ended().code == 0
    assert len(stage.effects()) == 2


def test_a_child_killed_by_the_term_that_was_sent_is_judged_by_contract(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, "--effect", "transactional", command=["sh", "-c", gate.shell])
    gate.arrived()

    running.signal(signal.SIGTERM)

    assert running.ended().code == 143
    assert stage.state() == "failed"


def test_a_signal_to_end_while_a_retry_is_waited_for_ends_the_waiting(stage: Stage) -> None:
    running = stage.start("close", *DAILY, "--retries", "3", command=stage.effect("exit 7"))
    until(lambda: stage.rows("select 1 from duly_run where state = 'failed'"), "the first attempt has failed")

    running.signal(signal.SIGTERM)

    assert running.ended().code == 7
    assert len(stage.effects()) == 1


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("INT", 130), ("HUP", 129)])
def test_a_signal_to_end_while_the_due_time_is_waited_for_ends_exec_without_a_claim(
    stage: Stage, name: str, code: int
) -> None:
    stage.exec("close", *DAILY)
    stage.clock.set("2026-11-30T05:59:30Z")
    running = stage.start("close", command=stage.effect())
    until(lambda: waits_for_signals(running.pid), "exec waits, with its signals held")

    running.signal(getattr(signal, f"SIG{name}"))
    said = running.ended()

    assert (said.code, said.talk) == (code, "")
    assert stage.effects() == []
    assert stage.states() == {"2026-11-28": "completed"}


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("INT", 130)])
def test_a_signal_to_end_that_comes_before_the_command_was_started_gives_the_claim_back(
    stage: Stage, name: str, code: int
) -> None:
    with stage.foreign_writer():
        running = stage.start("close", *DAILY, command=stage.effect())
        until(lambda: waits_for_signals(running.pid), "it holds its signals, and waits to claim")
        running.signal(getattr(signal, f"SIG{name}"))
        assert not running.is_over()

    assert running.ended().code == code
    assert stage.effects() == []
    assert stage.state() == "open"
    assert stage.outcomes() == ["released"]


def waits_for_signals(pid: int) -> bool:
    """Whether a process is asleep with TERM held: blocked, or waited for, when the kernel shows it unblocked (proc(5))."""
    if "sigtimedwait" in Path(f"/proc/{pid}/wchan").read_text():
        return True
    return signal.SIGTERM in masked(pid, "SigBlk") and "S (sleeping)" in Path(f"/proc/{pid}/status").read_text()


def masked(pid: int | str, kind: str) -> set[int]:
    """The signals in a mask of a process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return signals_in(status, kind)


def signals_in(status: str, kind: str) -> set[int]:
    found = re.search(rf"^{kind}:\s*([0-9a-f]+)$", status, re.MULTILINE)
    assert found is not None
    bits = int(found[1], 16)
    return {number for number in range(1, 65) if bits >> (number - 1) & 1}


def test_a_term_that_comes_while_the_end_is_written_down_does_not_lose_it(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=stage.effect(gate.shell))
    pid = gate.arrived()
    with stage.foreign_writer():
        gate.open()
        until(lambda: not Path(f"/proc/{pid}").exists(), "the child has ended and was seen to")
        running.signal(signal.SIGTERM)

    said = running.ended()

    assert said.code == 0, said
    assert stage.state() == "completed"


# -- what the child is started with -------------------------------------------------------------------------------------


def child_status(stage: Stage, **options: Any) -> str:
    """/proc/self/status as a command of exec sees its own."""
    said = stage.start("close", *DAILY, command=["cat", "/proc/self/status"], **options).ended()
    assert said.code == 0, said
    return said.out


def test_the_child_has_no_signal_blocked_or_ignored_that_exec_was_not_started_with(stage: Stage) -> None:
    plain = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout

    status = child_status(stage)

    assert signals_in(status, "SigBlk") == signals_in(plain, "SigBlk")
    own = {32, 33}  # of the C library, which ignores them in what posix_spawn(3) starts, until that sets them up itself
    assert signals_in(status, "SigIgn") - own == signals_in(plain, "SigIgn") - own
    assert signal.SIGPIPE not in signals_in(status, "SigIgn")


def test_a_signal_that_was_blocked_or_ignored_for_exec_is_for_its_child(stage: Stage) -> None:
    def before() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGALRM})
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    status = child_status(stage, preexec_fn=before)

    assert {signal.SIGUSR2, signal.SIGALRM} <= signals_in(status, "SigBlk")
    assert {signal.SIGHUP, signal.SIGINT} <= signals_in(status, "SigIgn")


def test_a_hangup_that_exec_was_told_to_ignore_does_not_stop_further_runs(stage: Stage) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each")
    stage.clock.set("2026-12-01T12:00:00Z")
    gate = stage.gate("child")
    running = stage.start(
        "close",
        command=stage.effect(gate.shell),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None,
    )
    gate.arrived()

    running.signal(signal.SIGHUP)
    gate.open(2)

    assert running.ended().code == 0
    assert len(stage.effects()) == 2


def test_exec_started_with_sigchld_ignored_still_learns_how_its_child_ended(stage: Stage) -> None:
    said = stage.start(
        "close",
        *DAILY,
        command=["sh", "-c", "exit 3"],
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN) and None,
    ).ended()

    assert said.code == 3, said
    assert stage.state() == "failed"


def test_the_child_leads_a_group_of_its_own(stage: Stage) -> None:
    gate = stage.gate("child")
    running = stage.start("close", *DAILY, command=["sh", "-c", gate.shell])
    pid = gate.arrived()

    assert os.getpgid(pid) == pid != os.getpgid(running.pid)
    gate.open()


def test_standard_input_output_and_error_are_the_childs(stage: Stage) -> None:
    running = stage.start(
        "close", *DAILY, command=["sh", "-c", "read line; echo out $line; echo err $line >&2"], stdin=subprocess.PIPE
    )
    out, err = running.process.communicate("hello\n", timeout=30)

    assert running.process.returncode == 0
    assert (out, err) == ("out hello\n", "err hello\n")


def test_of_duly_the_child_inherits_nothing_but_the_pulse(stage: Stage) -> None:
    said = stage.exec("close", *DAILY, command=["sh", "-c", "for f in /proc/$$/fd/*; do readlink $f; done"])

    held = [name for name in said.out.splitlines() if str(stage.folder) in name]
    assert held == [f"{stage.path}-lock"]


def test_a_descriptor_that_was_meant_for_the_child_reaches_it(stage: Stage) -> None:
    read, write = os.pipe()
    try:
        running = stage.start("close", *DAILY, command=["sh", "-c", f"echo here > /dev/fd/{write}"], pass_fds=[write])
        assert running.ended().code == 0
        assert os.read(read, 100) == b"here\n"
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
@pytest.mark.parametrize("flags", [(), ("-v",)], ids=["", "verbose"])
def test_closed_standard_descriptors_never_become_the_ledgers_files(
    stage: Stage, closed: str, flags: tuple[str, ...]
) -> None:
    closing = " ".join(f"{n}<&-" if n == "0" else f"{n}>&-" for n in closed.split())
    inner = f"readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 > {stage.file('seen')}; echo out; echo err >&2; exit 3"
    words = [sys.executable, "-W", "error", "-m", "duly", "exec", "close", *DAILY, *flags, "--", "sh", "-c", inner]

    ended = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *words],
        env=environment(DULY_LEDGER=stage.path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 3, ended
    assert not [name for name in stage.effects("seen") if "ledger" in name]
    assert stage.state() == "failed"


def test_a_reader_of_our_talk_that_has_gone_does_not_end_exec(stage: Stage) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        said = stage.start("close", *DAILY, "-v", command=stage.effect("exit 3"), stderr=write).ended()
    finally:
        os.close(write)

    assert said.code == 3
    assert stage.state() == "failed"
