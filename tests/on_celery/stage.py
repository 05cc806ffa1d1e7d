"""A stage for Celery: a ledger, a broker, workers and dispatchers as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.daemon.stage import BEGINNING, Daemon, Stage
from tests.exec.stage import PATIENCE, environment, until
from tests.on_celery.brokers import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.books import Book
    from tests.on_celery.brokers import Broker

CARRY = "\nfrom duly.celery import carry\ncarry(app, ledger{options})\n"
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
ROOT = Path(__file__).parents[2]


class CeleryStage(Stage):
    """As a stage for daemons, and the workers of an app."""

    def __init__(self, book: Book, folder: Path, broker: Broker) -> None:
        super().__init__(book, folder)
        self.broker = broker
        self._workers: list[Worker] = []

    def app_module(self, text: str, *, options: str = "", carry: str | None = None, name: str = "jobs") -> None:
        """Write the module of jobs and app: `ledger`, `app` and `done(run)` are there, and the app carries the ledger."""
        kind = "postgres" if self.is_postgres else "sqlite"
        beginning = BEGINNING.format(kind=kind, done="done") + "from celery import Celery\n" + SETTINGS
        ending = CARRY.format(options=options) if carry is None else carry
        (self.folder / f"{name}.py").write_text(beginning + text + ending)

    def dispatcher(self, *words: str, app: str = "jobs:app", **options: Any) -> Daemon:
        """Start a daemon whose hands are the workers."""
        options["environ"] = {**self.broker.environ, **(options.get("environ") or {})}
        return self.daemon("--celery", app, *(() if "--poll" in words else ("--poll", "100ms")), *words, **options)

    def worker(self, *words: str, module: str = "jobs", environ: Mapping[str, str] | None = None) -> Worker:
        """Start a worker; it is not waited for."""
        name = f"w{len(self._workers)}-{os.getpid()}@stage"
        return self._celery("worker", *QUIET, "-n", name, *words, module=module, environ=environ)

    def beat(self, *words: str, module: str = "jobs") -> Worker:
        """Start a beat."""
        return self._celery("beat", "--pidfile=", *words, module=module)

    def _celery(self, *words: str, module: str, environ: Mapping[str, str] | None = None) -> Worker:
        path = f"{environment()['PYTHONPATH']}:{ROOT}"
        known = {"PYTHONPATH": path, "STAGE_LEDGER": self.book.path, "C_FORCE_ROOT": "1", **self.broker.environ}
        log = self.folder / f"celery-{len(self._workers)}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", module, words[0], "-l", "INFO", *words[1:]],
                cwd=self.folder,
                env=environment(**known, **(environ or {})),
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        worker = Worker(process, log)
        self._workers.append(worker)
        return worker

    @property
    def logs(self) -> str:
        """All that was said by whoever was started."""
        return "\n".join(log.read_text() for log in sorted(self.folder.glob("*.log")))

    def until(self, holds: Any, what: str) -> None:
        """Wait for what must come true; where it does not, the logs say why."""
        try:
            until(holds, what, seconds=PATIENCE)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.effects()}\n{self.logs}") from e

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        super().close()


class Worker(Daemon):
    """A worker's processes."""

    def __init__(self, process: subprocess.Popen[Any], log: Path) -> None:
        super().__init__(process, log)

    def until_ready(self) -> Worker:
        self.until_said(" ready.")
        return self

    def kill(self) -> None:
        """End it with all of its children, as a power cut would."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(timeout=PATIENCE)
