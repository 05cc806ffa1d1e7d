"""On a terminal the child stays in the foreground group: the keyboard reaches it by itself, once, and job control works."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.exec.stage import DAILY, PATIENCE, Stage, environment, is_alive, state_of, until


def lead_a_session() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A pseudo-terminal with a session of its own, led by a process that we start."""

    def __init__(self, *argv: str, **environ: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            argv,
            env=environment(**environ),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=lead_a_session,
        )
        os.close(slave)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def shows(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, f"the terminal never showed {text!r}, but {self.shown!r}"
            assert self._read(left) or text in self.shown, f"it ended without {text!r}: {self.shown!r}"

    def ended(self) -> int:
        while self._read(PATIENCE):
            pass
        return self.process.wait(timeout=PATIENCE)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 4096)
        except OSError:  # EIO: nobody has the other end any more
            return False
        self.shown += piece.decode(errors="replace")
        return bool(piece)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE)
        os.close(self.master)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def exec_on(terminals: list[Terminal], stage: Stage, *words: str, command: list[str]) -> Terminal:
    """exec as what leads the session of a terminal, like a window opened with it."""
    duly = (sys.executable, "-W", "error", "-m", "duly")
    terminal = Terminal(*duly, "exec", *words, "--", *command, DULY_LEDGER=stage.path)
    terminals.append(terminal)
    return terminal


def shell_on(terminals: list[Terminal], stage: Stage) -> Terminal:
    """A shell with job control."""
    terminal = Terminal("bash", "--norc", "--noprofile", "-i", DULY_LEDGER=stage.path, PS1="ready> ", TERM="dumb")
    terminals.append(terminal)
    terminal.shows("ready> ")
    return terminal


def test_on_a_terminal_exec_says_what_it_does(terminals: list[Terminal], stage: Stage) -> None:
    terminal = exec_on(terminals, stage, "close", *DAILY, command=["echo", "hello"])

    assert terminal.ended() == 0
    assert "duly: close 2026-11-28 [UTC]  attempt 1" in terminal.shown
    assert "hello" in terminal.shown
    assert "duly: completed in" in terminal.shown


def test_on_a_terminal_a_duplicate_says_that_nothing_is_owed(terminals: list[Terminal], stage: Stage) -> None:
    stage.exec("close", *DAILY)
    terminal = exec_on(terminals, stage, "close", command=["false"])

    assert terminal.ended() == 0
    assert "nothing owed" in terminal.shown


def test_the_child_stays_in_the_foreground_group_and_reads_the_terminal(
    terminals: list[Terminal], stage: Stage
) -> None:
    terminal = exec_on(terminals, stage, "close", *DAILY, command=["sh", "-c", "echo asks; read word; echo got $word"])
    terminal.shows("asks")

    terminal.type("answer\n")

    assert terminal.ended() == 0
    assert "got answer" in terminal.shown


def test_ctrl_c_reaches_the_child_once(terminals: list[Terminal], stage: Stage) -> None:
    counts = (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "print('up', flush=True)\n"
        "signal.sigwait({signal.SIGINT})\n"
        "again = signal.sigtimedwait({signal.SIGINT}, 0.5)\n"
        "print('heard it', 'once' if again is None else 'twice', flush=True)\n"
    )
    terminal = exec_on(terminals, stage, "close", *DAILY, command=[sys.executable, "-c", counts])
    terminal.shows("up")

    terminal.type("\x03")

    terminal.shows("heard it once")
    assert terminal.ended() == 0
    assert stage.state() == "completed"


def test_ctrl_c_ends_a_child_that_does_not_heed_it_specially_and_no_further_run_is_started(
    terminals: list[Terminal], stage: Stage
) -> None:
    stage.exec("close", *DAILY, "--catch-up", "each", "--effect", "transactional")
    stage.clock.set("2026-12-02T12:00:00Z")
    gate = stage.gate("child")
    terminal = exec_on(terminals, stage, "close", command=stage.effect(gate.shell))
    gate.arrived()

    terminal.type("\x03")

    assert terminal.ended() == 130
    assert len(stage.effects()) == 1


def test_a_term_sent_to_exec_on_a_terminal_is_passed_on(terminals: list[Terminal], stage: Stage) -> None:
    gate = stage.gate("child")
    terminal = exec_on(
        terminals,
        stage,
        "close",
        *DAILY,
        command=stage.effect(gate.heeding("TERM", "exit 5")),
    )
    gate.arrived()

    os.kill(terminal.process.pid, signal.SIGTERM)

    assert terminal.ended() == 5


def test_ctrl_z_stops_exec_and_child_and_fg_goes_on_with_both(terminals: list[Terminal], stage: Stage) -> None:
    gate = stage.gate("child")
    script = stage.file("child.sh")
    script.write_text(f"{gate.arrive}\nread word\necho got $word >> {stage.file('effects')}\n")
    terminal = shell_on(terminals, stage)
    terminal.type(f"{sys.executable} -m duly exec close {' '.join(DAILY)} -- sh {script}\n")
    child = gate.arrived()
    wrapper = int(stage.rows("select owner from duly_run")[0][0].split("/")[1].split("@")[0])

    terminal.type("\x1a")
    until(lambda: state_of(child) == state_of(wrapper) == "T", "both have stopped")
    terminal.shows("Stopped")
    terminal.type("fg\n")
    until(lambda: state_of(child) == state_of(wrapper) == "S", "both go on")
    terminal.type("answer\n")

    terminal.shows("duly: completed in")
    assert stage.effects() == ["got answer"]
    assert stage.state() == "completed"
    terminal.type("exit\n")


def test_a_stopped_attempt_is_not_taken_over(terminals: list[Terminal], stage: Stage) -> None:
    gate = stage.gate("child")
    terminal = shell_on(terminals, stage)
    terminal.type(
        f"{sys.executable} -m duly exec close {' '.join(DAILY)} -- sh -c '{gate.shell.replace(chr(39), '')}'\n"
    )
    child = gate.arrived()
    terminal.type("\x1a")
    until(lambda: state_of(child) == "T", "it has stopped")

    stage.clock.advance("1h")
    assert stage.exec("close", command=stage.effect()).code == 75

    terminal.type("fg\n")
    until(lambda: state_of(child) == "S", "it goes on")
    gate.open()
    terminal.shows("duly: completed in")
    assert stage.effects() == []
    terminal.type("exit\n")


def test_a_closed_terminal_ends_the_child_by_its_hangup(terminals: list[Terminal], stage: Stage) -> None:
    gate = stage.gate("child")
    terminal = exec_on(terminals, stage, "close", *DAILY, "--effect", "transactional", command=stage.effect(gate.shell))
    child = gate.arrived()

    os.close(terminal.master)
    terminal.master = os.open(os.devnull, os.O_RDONLY)

    assert terminal.process.wait(timeout=PATIENCE) == 129
    assert not is_alive(child)
    assert stage.state() == "failed"


def test_in_the_background_of_a_shell_the_child_has_its_own_group(terminals: list[Terminal], stage: Stage) -> None:
    gate = stage.gate("child")
    terminal = shell_on(terminals, stage)
    terminal.type(
        f"{sys.executable} -m duly exec close {' '.join(DAILY)} -- sh -c '{gate.shell.replace(chr(39), '')}' &\n"
    )
    child = gate.arrived()

    assert os.getpgid(child) == child
    gate.open()
    terminal.shows("duly: completed in")
    terminal.type("exit\n")
