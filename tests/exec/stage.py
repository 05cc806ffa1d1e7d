"""A stage for `duly exec`: a ledger with a clock set by hand, commands that stop where a test wants them, real processes.

Nothing here sleeps for a hoped-for time. A command tells that it has started through a FIFO and goes on when a FIFO lets
it; where exec itself waits for the clock, the clock is moved step by step until the process has ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duly
from duly.testing.clock import HandClock
from tests.next_steps import assert_runnable
from tests.story import Said

SOURCE = str(Path(duly.__file__).parent.parent)  # that which is tested: a mutant, where one was planted
PATIENCE = 30.0  # real seconds until a condition that must come true is given up
DAILY = ("--period", "daily", "--zone", "UTC", "--at", "06:00")
AT = "2026-11-29T12:00:00Z"  # the newest due window of DAILY is 2026-11-28, since 06:00


def environment(**more: str) -> dict[str, str]:
    """This process's environment without anything that duly would read, or say in colours."""
    unwanted = ("DULY_", "NO_COLOR", "FORCE_", "TRACEPARENT", "PYTEST_", "COVERAGE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **more}


def until(holds: Callable[[], object], what: str, *, seconds: float = PATIENCE) -> None:
    """Look again and again until something is true. Only for what cannot tell us itself."""
    deadline = time.monotonic() + seconds
    pause = (
        0.002  # between two looks, not a wait for something to happen; who looks all the time takes it the processor
    )
    while not holds():
        assert time.monotonic() < deadline, f"it never came true: {what}"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.025)


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended (a zombie has)."""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """A process's state letter, as R, S, T or Z (proc(5)); empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Gate:
    """A place where a command stops: it says that it came, and goes on when it is let through."""

    def __init__(self, folder: Path, name: str) -> None:
        self._came, self._go = folder / f"{name}.came", folder / f"{name}.go"
        os.mkfifo(self._came)
        os.mkfifo(self._go)
        # Held open for both, so that neither side's open blocks for ever, and a killed command leaves no broken pipe.
        self._came_end = os.open(self._came, os.O_RDWR | os.O_CLOEXEC)
        self._go_end = os.open(self._go, os.O_RDWR | os.O_CLOEXEC)

    @property
    def shell(self) -> str:
        """The shell's words: say who came ($$), wait for the word to go on."""
        return f"echo $$ > '{self._came}'; read go < '{self._go}'"

    @property
    def arrive(self) -> str:
        """The shell's words: only say who came."""
        return f"echo $$ > '{self._came}'"

    @property
    def hold(self) -> str:
        """The shell's words: only wait for the word to go on."""
        return f"read go < '{self._go}'"

    def heeding(self, name: str, then: str) -> str:
        """The shell's words: say who came and wait, and on a signal do `then` at once, which ends with an exit.

        A shell that reads may hear a signal just before it blocks, and heeds it only afterwards; one that waits for a
        child cannot miss it. The child tells that it came: one that was only just forked has its parent's traps still.
        """
        return f"trap 'kill $! 2> /dev/null; {then}' {name}; {{ {self.shell}; }} & wait"

    def arrived(self) -> int:
        """Wait until a command has come here; its pid."""
        ready, _, _ = select.select([self._came_end], [], [], PATIENCE)
        assert ready, "the command never came to its gate"
        word = b""
        while not word.endswith(b"\n"):
            word += os.read(self._came_end, 1)
        return int(word)

    def has_come(self) -> bool:
        """Whether a command is at the gate now."""
        return bool(select.select([self._came_end], [], [], 0)[0])

    def open(self, times: int = 1) -> None:
        """Let commands through."""
        os.write(self._go_end, b"go\n" * times)

    def close(self) -> None:
        os.close(self._came_end)
        os.close(self._go_end)


class Running:
    """A `duly exec` that goes on."""

    def __init__(
        self, words: Sequence[str], environ: dict[str, str], prefix: Sequence[str] = (), **options: Any
    ) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-W", "error", "-m", "duly", *words],
            env=environ,
            encoding="utf-8",
            errors="replace",
            **{**pipes, **options},
        )
        self._said: Said | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def ended(self) -> Said:
        """Wait for its end."""
        if self._said is None:
            out, talk = self.process.communicate(timeout=60)
            self._said = Said(self.process.returncode, out or "", talk or "")
            assert "Traceback" not in self._said.talk, self._said.talk
            assert_runnable(self._said.out, self._said.talk)
        return self._said

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would, and see it gone."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.process.wait(timeout=PATIENCE)


class Stage:
    """One folder with a ledger and its clock."""

    def __init__(self, folder: Path, *, ledger: str | None = None, at: str = AT) -> None:
        self.folder = folder
        self.path = ledger or str(folder / "ledger.db")
        self.clock = HandClock(self.path, at=at)
        self._running: list[Running] = []
        self._gates: list[Gate] = []

    # -- commands ------------------------------------------------------------------------------------------------------

    def gate(self, name: str) -> Gate:
        gate = Gate(self.folder, name)
        self._gates.append(gate)
        return gate

    def file(self, name: str) -> Path:
        return self.folder / name

    def effect(self, then: str = "", *, name: str = "effects") -> list[str]:
        """A command whose effect is a line, the run's key, in a file; then more shell."""
        return ["sh", "-c", f"echo \"$DULY_RUN_KEY\" >> '{self.file(name)}'; {then or ':'}"]

    def effects(self, name: str = "effects") -> list[str]:
        """What the commands did, in order."""
        path = self.file(name)
        return path.read_text().splitlines() if path.exists() else []

    # -- exec ----------------------------------------------------------------------------------------------------------

    def exec(self, *words: str, command: Sequence[str] = ("true",), environ: Mapping[str, str] = {}) -> Said:
        """Run `duly exec` to its end."""
        return self.start(*words, command=command, environ=environ).ended()

    def start(
        self,
        *words: str,
        command: Sequence[str] = ("true",),
        environ: Mapping[str, str] = {},
        **options: Any,
    ) -> Running:
        """Start `duly exec` and let it go on; `options` are those of a process."""
        full = {"DULY_LEDGER": self.path, **environ}
        running = Running(["exec", *words, "--", *command], environment(**full), **options)
        self._running.append(running)
        return running

    def duly(self, *words: str, **environ: str) -> Said:
        """Run another command of duly."""
        return self.call(*words, **environ).ended()

    def call(self, *words: str, **environ: str) -> Running:
        """Start another command of duly, and let it go on."""
        running = Running(words, environment(DULY_LEDGER=self.path, **environ))
        self._running.append(running)
        return running

    def step_until_over(self, running: Running, *, by: str | int = "1s") -> Said:
        """Move the clock on, step by step, until the process has ended."""
        deadline = time.monotonic() + PATIENCE
        while not running.is_over():
            assert time.monotonic() < deadline, f"it never ended: {running.process.args!r}"
            self.clock.advance(by)
            time.sleep(0.01)  # a step of the clock, so that exec sees every one
        return running.ended()

    def advance_until(self, holds: Callable[[], object], what: str, *, by: str | int = "1s") -> None:
        """Move the clock on, step by step, until something is true."""

        def stepped() -> bool:
            if holds():
                return True
            self.clock.advance(by)
            time.sleep(0.01)
            return False

        until(stepped, what)

    # -- what the ledger says ------------------------------------------------------------------------------------------

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def states(self, job: str | None = None) -> dict[str, str]:
        """Nominal (its date, or date and time where that is not midnight) → state, the oldest first."""
        found = self.rows(
            "select coalesce(nominal, adhoc), state from duly_run_readable where ? in (job, '') order by nominal",
            job or "",
        )
        return {str(nominal).removesuffix("T00:00:00"): state for nominal, state in found}

    def state(self) -> str:
        """The state of the one run there is."""
        ((state,),) = self.rows("select state from duly_run")
        return str(state)

    def outcomes(self) -> list[str]:
        """How the attempts ended, the oldest first; what a current one is now."""
        return [
            outcome for (outcome,) in self.rows("select outcome from duly_attempt_readable order by started_at, number")
        ]

    def events(self) -> list[tuple[str, str]]:
        return [(kind, detail) for kind, detail in self.rows("select kind, detail from duly_event order by id")]

    @contextmanager
    def foreign_writer(self) -> Iterator[None]:
        """Somebody who does not know duly's lock holds the database for writing."""
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=10)
        try:
            connection.execute("begin immediate")
            yield
            connection.execute("rollback")
        finally:
            connection.close()

    # -- end -----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        for running in self._running:
            running.close()
        for gate in self._gates:
            gate.close()
        for pid in self._left_behind():
            os.kill(pid, signal.SIGKILL)

    def _left_behind(self) -> Iterator[int]:
        """Processes of this test that outlived it: those that know the folder from their environment or command."""
        mark = os.fsencode(str(self.folder))
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    told = Path(f"/proc/{entry}/cmdline").read_bytes()
                except OSError:
                    continue
                if mark in told and is_alive(int(entry)):
                    yield int(entry)


def outcome_of(path: Path) -> dict[str, Any]:
    """The outcome file as it was written."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found
