"""A stage for daemons: a ledger with a clock set by hand, a module of jobs, and daemons as real processes.

The jobs write what they did into the ledger's own database, so that it can be told how often each took effect.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.books import Book, PostgresBook
from tests.exec.stage import PATIENCE, environment, until

BEGINNING = """
import os, sqlite3
import duly
from tests.daemon.effects import {done}

ledger = duly.{kind}(os.environ["STAGE_LEDGER"])
"""


class Stage:
    """One ledger, its clock, and the daemons that work it."""

    def __init__(self, book: Book, folder: Path) -> None:
        self.book = book
        self.clock = book.clock
        self.folder = folder
        self._daemons: list[Daemon] = []
        book.amend("create table duly_done (run text, by text)")  # duly_: as the books spell a table on both databases

    @property
    def is_postgres(self) -> bool:
        return isinstance(self.book, PostgresBook)

    def module(self, text: str, name: str = "jobs") -> None:
        """Write the module of the jobs; `ledger` and `done(run)` are there."""
        kind = "postgres" if self.is_postgres else "sqlite"
        (self.folder / f"{name}.py").write_text(BEGINNING.format(kind=kind, done="done") + text)

    def aio_module(self, text: str, name: str = "tasks") -> None:
        """Write a module of async jobs."""
        kind = "aio.postgres" if self.is_postgres else "aio.sqlite"
        beginning = BEGINNING.format(kind=kind, done="done_async as done").replace(
            "import duly\n", "import duly, duly.aio\n"
        )
        (self.folder / f"{name}.py").write_text(beginning + text)

    def configuration(self, text: str) -> None:
        """Write the `duly.toml` of the daemons."""
        (self.folder / "duly.toml").write_text(text)

    def daemon(
        self,
        *words: str,
        modules: tuple[str, ...] = ("jobs:ledger",),
        environ: Mapping[str, str] | None = None,
        unset: tuple[str, ...] = (),
        python: tuple[str, ...] = (),
    ) -> Daemon:
        """Start a daemon."""
        folder = self.folder
        path = f"{environment()['PYTHONPATH']}:{Path(__file__).parent.parent.parent}"
        log = folder / f"daemon-{len(self._daemons)}.log"
        known = {"PYTHONPATH": path, "STAGE_LEDGER": self.book.path, "DULY_LEDGER": self.book.path, **(environ or {})}
        with log.open("w") as file:
            began = subprocess.Popen(
                [sys.executable, *python, "-m", "duly", "daemon", *modules, *words],
                cwd=folder,
                env={name: value for name, value in environment(**known).items() if name not in unset},
                stdout=subprocess.DEVNULL,
                stderr=file,
            )
        daemon = Daemon(began, log)
        self._daemons.append(daemon)
        return daemon

    def effects(self, job: str = "") -> list[str]:
        """The keys of the runs that took effect, as often as they did."""
        return [key for (key,) in self.book.rows("select run from duly_done order by run") if key.startswith(job)]

    def until_done(self, *keys: str) -> None:
        """Wait until these runs, and no others, have taken effect, each once."""
        try:
            until(lambda: set(keys) <= set(self.effects()), f"{keys} are done", seconds=PATIENCE)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.effects()}\n" + "\n".join(d.log for d in self._daemons)) from e
        assert self.effects() == sorted(keys)

    def close(self) -> None:
        for daemon in self._daemons:
            daemon.kill()


class Daemon:
    """A daemon's process."""

    def __init__(self, process: subprocess.Popen[Any], log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def until_said(self, text: str) -> None:
        until(lambda: text in self.log or self._process.poll() is not None, f"it says {text!r}")
        assert text in self.log, self.log

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self) -> int:
        """Its exit code, when it has ended."""
        return self._process.wait(timeout=PATIENCE)

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> int:
        """Tell it to stop, and wait."""
        self.send(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        if not self.is_over:
            self._process.kill()
        self._process.wait()


@contextmanager
def no_effect(stage: Stage) -> Iterator[None]:
    """Nothing takes effect in here."""
    before = stage.effects()
    yield
    assert stage.effects() == before
