"""A ledger with a clock set by hand, pokes that end as a story needs them, and the command line as a real process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from duly import errors
from duly.cli import main
from duly.ledger.complete import complete_or_raise, doubt_or_raise, fail_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.open import Taken, claim_next
from duly.ledger.records import Claim, Claimer
from duly.ledger.register import Declaration
from duly.schedule.spec import Schedule
from duly.store.sqlite import SqliteStore
from duly.testing.clock import HandClock
from tests.next_steps import assert_runnable

SOURCE = str(Path(errors.__file__).parents[1])  # that which is tested: a mutant, where one was planted


ALWAYS_PROCESSES = (("exec",), ("daemon",), ("demo",), ("completion",))


class Story:
    """One ledger, one clock, and what happens to its jobs."""

    def __init__(self, folder: Path, *, at: str) -> None:
        self.path = str(folder / "ledger.db")
        self.clock = HandClock(self.path, at=at)
        self.store = SqliteStore(self.path, create=False)
        self._schedules: dict[str, Schedule] = {}
        self._policies: dict[str, dict[str, Any]] = {}

    def job(self, name: str, schedule: Schedule, **policies: Any) -> None:
        """Say what a job is; it is registered by its first poke."""
        self._schedules[name] = schedule
        self._policies[name] = policies

    def poke(self, name: str, *, scope: str = "", at: str | None = None) -> Claim | None:
        """Claim what is owed next, if anything is."""
        if at is not None:
            self.clock.set(at)
        declared = Declaration(name, scope, self._schedules[name], self._policies[name], by="cron@host")
        claimer = Claimer(os.urandom(16), "host:4711", "cron")
        answer = self.store.write(claim_next(declared, claimer, as_of=None, tried=frozenset()))
        return answer.claim if isinstance(answer, Taken) else None

    def complete(self, name: str, *, scope: str = "", at: str | None = None) -> None:
        """A poke whose run completes."""
        self.store.write(complete_or_raise(self._claimed(name, scope, at)))

    def fail(self, name: str, *, scope: str = "", at: str | None = None, retry_in: int | None = None) -> None:
        """A poke whose run fails with exit 2; without `retry_in` it waits for a person."""
        claim = self._claimed(name, scope, at)
        ending = Ending("failed", "exit 2", retry=retry_in is not None)
        self.store.write(fail_or_raise(claim, ending, retry_in=retry_in, error="exit 2"))

    def doubt(self, name: str, *, scope: str = "", at: str | None = None) -> None:
        """A poke whose run does not know what it did."""
        self.store.write(doubt_or_raise(self._claimed(name, scope, at), "signal 9"))

    def end(self, claim: Claim) -> None:
        """An attempt completes."""
        self.store.write(complete_or_raise(claim))

    def begin(self, name: str, *, scope: str = "", at: str | None = None) -> Claim:
        """A poke whose run goes on."""
        return self._claimed(name, scope, at)

    def _claimed(self, name: str, scope: str, at: str | None) -> Claim:
        claim = self.poke(name, scope=scope, at=at)
        assert claim is not None, f"nothing of {name} is owed at {at}"
        return claim

    def duly(self, *words: str, prefix: tuple[str, ...] = (), bug: bool = False, **environ: str) -> Said:
        """Run a command line on this ledger: in this process, as a start costs more than what most commands do; those that
        run commands themselves, and what is to be run in another way, as a process.
        """
        if prefix or bug or words[:1] in ALWAYS_PROCESSES:
            return duly(*words, prefix=prefix, bug=bug, DULY_LEDGER=self.path, **environ)
        return here(self.path, *words, **environ)


def here(path: str, *words: str, **environ: str) -> Said:
    """Run a command line on a ledger in this process, with nothing else of this user's environment that could name one."""
    before = dict(os.environ)
    out, talk = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    try:
        for name in before:
            if name.startswith(("DULY_", "NO_COLOR", "FORCE_")):
                del os.environ[name]
        os.environ.update({"DULY_LEDGER": path, **environ})
        with redirect_stdout(out), redirect_stderr(talk), warnings.catch_warnings():
            warnings.simplefilter("error")
            code = main(words)
    finally:
        os.environ.clear()
        os.environ.update(before)
    said = Said(code, *(_written(stream) for stream in (out, talk)))
    assert "Traceback" not in said.talk, said
    assert_runnable(said.out, said.talk)
    return said


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


class Said:
    """What a command line answered."""

    def __init__(self, code: int, out: str, talk: str) -> None:
        self.code = code
        self.out = out
        self.talk = talk

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- out\n{self.out}--- talk\n{self.talk}"


def duly(*words: str, prefix: tuple[str, ...] = (), bug: bool = False, **environ: str) -> Said:
    """Run `duly` as a process, with no terminal and nothing of this user's environment that could name a ledger.

    `prefix` is a command that runs it, as setpriv. A traceback is looked for, and allowed only where there is a `bug`.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "NO_COLOR", "FORCE_"))}
    ended = subprocess.run(
        [*prefix, sys.executable, "-W", "error", "-m", "duly", *words],
        env={**kept, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert ("Traceback" in ended.stderr) == bug, ended.stderr
    assert_runnable(ended.stdout, ended.stderr)
    return Said(ended.returncode, ended.stdout, ended.stderr)
