"""What the jobs of a stage do: one row for each effect, through the run's own transaction."""

from __future__ import annotations

import os
from typing import Any

from psycopg import Connection


def done(run: Any) -> None:
    """Say that a run took effect."""
    if isinstance(run.tx, Connection):
        run.tx.execute("insert into duly.done (run, by) values (%s, %s)", (run.key, str(os.getpid())))
    else:
        run.tx.execute("insert into duly_done (run, by) values (?, ?)", (run.key, str(os.getpid())))


async def done_async(run: Any) -> None:
    """Say that a run took effect."""
    tx = await run.tx
    if type(tx).__module__.startswith(("psycopg", "duly")) and "postgres" in os.environ["STAGE_LEDGER"]:
        await tx.execute("insert into duly.done (run, by) values (%s, %s)", (run.key, str(os.getpid())))
    else:
        await tx.execute("insert into duly_done (run, by) values (?, ?)", (run.key, str(os.getpid())))
