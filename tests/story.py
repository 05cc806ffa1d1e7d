"""A ledger with a clock set by hand, pokes that end as a story needs them, and the command line as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from duly import errors
from duly.ledger.complete import complete_or_raise, doubt_or_raise, fail_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.open import Taken, claim_next
from duly.ledger.records import Claim, Claimer
from duly.ledger.register import Declaration
from duly.schedule.spec import Schedule
from duly.store.sqlite import SqliteStore
from duly.testing.clock import HandClock

SOURCE = str(Path(errors.__file__).parents[1])  # that which is tested: a mutant, where one was planted


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

    def begin(self, name: str, *, scope: str = "", at: str | None = None) -> Claim:
        """A poke whose run goes on."""
        return self._claimed(name, scope, at)

    def _claimed(self, name: str, scope: str, at: str | None) -> Claim:
        claim = self.poke(name, scope=scope, at=at)
        assert claim is not None, f"nothing of {name} is owed at {at}"
        return claim

    def duly(self, *words: str, prefix: tuple[str, ...] = (), bug: bool = False, **environ: str) -> Said:
        """Run a command line on this ledger, as a process."""
        return duly(*words, prefix=prefix, bug=bug, DULY_LEDGER=self.path, **environ)


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
    return Said(ended.returncode, ended.stdout, ended.stderr)
