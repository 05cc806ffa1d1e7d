"""Somebody who looks and delivers, as a process that dies by SIGKILL: `python -m tests.alerts.mortal LEDGER URL POINT`.

- `begun`: the look has its number, and has seen nothing yet;
- `before-commit`: flips and messages are written, and not committed;
- `after-commit`: they are, and nobody has delivered them;
- `none`: it lives.

Where a message is on its way, `tests.outbox.mortal` dies.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from duly.evidence.conditions import conditions
from duly.ledger.alerts import begin_look, record_look
from duly.outbox.routes import route_of
from duly.store.postgres import PostgresStore
from duly.store.protocol import Store
from duly.store.sqlite import SqliteStore
from duly.work.alerts import Alerting, audience_of
from duly.work.relay import relay_of
from tests.outbox.mortal import die

ROOT = Path(__file__).parents[2]
POINTS = ("begun", "before-commit", "after-commit")
TO = "billing"


def main(ledger: str, url: str, point: str) -> None:
    """Look as any poke does, and deliver, as far as it comes."""
    store: Store = PostgresStore(ledger) if ledger.startswith("postgresql") else SqliteStore(ledger, create=False)

    def reach(here: str) -> None:
        if point == here:
            die()

    begun = store.write(begin_look(0), durable=False)
    assert begun is not None
    reach("begun")
    found = store.read(conditions(begun.since))

    async def recorded() -> None:
        await record_look(begun, found, audience_of(Alerting(to=(TO,))))
        reach("before-commit")

    store.write(recorded())
    reach("after-commit")
    settings = {"kind": "http", "url": url, "remembers": "forever", "retry_delay": "1ms"}
    relay_of(store, {TO: route_of(TO, settings)}).deliver()


def looker(ledger: str, url: str, point: str = "none") -> int:
    """Start one, and wait until it is done or has died; how it ended."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.alerts.mortal", ledger, url, point],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
