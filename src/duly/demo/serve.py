"""The demo that goes on: a small daemon with a dashboard on the ledger that the story left, until somebody ends it.

It is `duly daemon --web`, as anybody would start it, in the demo's folder with a `duly.toml`: a job each few seconds, one that
fails now and then and is retried, and a backfill that moves. What the story left for a person is left alone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.demo.stage import Stage

PORT = 8327
DASHBOARD = "duly: dashboard on "

JOBS = """\
[jobs.heartbeat]
every = "5s"
catch_up = "latest"
effect = "idempotent"
remembers = "forever"
command = ["true"]

[jobs.prices]
every = "10s"
catch_up = "latest"
effect = "idempotent"
remembers = "forever"
retries = 5
retry_delay = "5s"
command = ["sh", "-c", "test $(($(date +%s) / 7 % 3)) -ne 0"]  # as a feed that is down now and then

[jobs.archive]
period = "daily"
zone = "Europe/Berlin"
catch_up = "latest"
effect = "idempotent"
remembers = "forever"
command = ["sleep", "2"]

[daemon]
poll = "1s"
"""
BACKFILL = ("backfill", "start", "archive", "-120d..-60d", "--reason", "the tapes were found")


def serve(stage: Stage, said: Callable[[str], None]) -> int:
    """Serve until SIGINT or SIGTERM, which end the daemon too, in order; its exit code. `said` is told where it serves."""
    with open(os.path.join(stage.folder, "duly.toml"), "w", encoding="utf-8") as file:
        file.write(JOBS)
    with open(os.path.join(stage.folder, "daemon.log"), "a", encoding="utf-8") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-P", "-m", "duly", "daemon", "--web", str(_port()), "--ledger", stage.url],
            cwd=stage.folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("DULY_")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for this process, which then ends that one, once
        )
        before = {number: signal.signal(number, lambda *_: daemon.terminate()) for number in _ENDS}
        try:
            assert daemon.stderr is not None
            for line in daemon.stderr:
                log.write(line)
                log.flush()
                if line.startswith(DASHBOARD):
                    stage.duly(*BACKFILL)
                    said(line.removeprefix(DASHBOARD).strip())
            return daemon.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if daemon.poll() is None:
                daemon.terminate()
                daemon.wait()


_ENDS = (signal.SIGINT, signal.SIGTERM)


def _port() -> int:
    """The dashboard's own port, where nobody has it; else any that is free."""
    try:
        with closing(socket.create_server(("127.0.0.1", PORT))):
            return PORT
    except OSError:
        return 0


def is_installed() -> bool:
    """Whether there is what a dashboard needs."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("jinja2", "starlette", "uvicorn"))
