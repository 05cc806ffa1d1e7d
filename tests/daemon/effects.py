"""What the jobs of a stage do: one row for each effect, through the run's own transaction."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from psycopg import Connection


def done(run: Any, by: object = None) -> None:
    """Say that a run took effect, by this process unless something else is to be said of it."""
    values = (run.key, str(os.getpid() if by is None else by))
    if isinstance(run.tx, Connection):
        run.tx.execute("insert into duly.done (run, by) values (%s, %s)", values)
    else:
        run.tx.execute("insert into duly_done (run, by) values (?, ?)", values)


def at_once(run: Any, before: str) -> int:
    """How many runs of the job, of days before one, are in hands while this one is."""
    job, nominal = run.key.partition(":")[0], 2 * int(datetime.fromisoformat(f"{before}T00:00:00Z").timestamp())
    asked = "select count(*) from {} where job = {} and state = 'running' and stored_nominal < {}"
    if isinstance(run.tx, Connection):
        asked = asked.format("duly.run_readable", "%s", "%s")
    else:
        asked = asked.format("duly_run_readable", "?", "?")
    (count,) = run.tx.execute(asked, (job, nominal)).fetchone()
    return int(count)


async def done_async(run: Any) -> None:
    """Say that a run took effect."""
    tx = await run.tx
    if type(tx).__module__.startswith(("psycopg", "duly")) and "postgres" in os.environ["STAGE_LEDGER"]:
        await tx.execute("insert into duly.done (run, by) values (%s, %s)", (run.key, str(os.getpid())))
    else:
        await tx.execute("insert into duly_done (run, by) values (?, ?)", (run.key, str(os.getpid())))
