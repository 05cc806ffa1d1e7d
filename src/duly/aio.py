"""duly in an event loop: the same names, awaited.

    ledger = duly.aio.postgres("postgresql://…/shop")      or duly.aio.sqlite("jobs.db"), duly.aio.sqlalchemy(async_engine)

    @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
    async def credit(run):
        tx = await run.tx                                  a real AsyncConnection; commits with the run's completion
        await tx.execute(…)

    await credit.run("2026-09-13")                         await credit.catch_up() works what is owed
    await duly.aio.once(connection, "credit:2026-09-13[UTC]")
    await duly.aio.receive(connection, key, body, source="orders")
    claim = await ledger.take("credit", "2026-09-13")

Nothing is done before it is awaited, and an answer that was not awaited raises when it is asked for its truth.
"""

from __future__ import annotations

from duly.outbox.receiver.receipt import AsyncReceived as Received
from duly.work.aio.awaited import Awaited
from duly.work.aio.claim import Claim
from duly.work.aio.job import Job
from duly.work.aio.ledger import Ledger, once, postgres, sqlite
from duly.work.aio.receive import receive
from duly.work.aio.run import Run
from duly.work.aio.typed import django, sqlalchemy

__all__ = [
    "Awaited",
    "Claim",
    "Job",
    "Ledger",
    "Received",
    "Run",
    "django",
    "once",
    "postgres",
    "receive",
    "sqlalchemy",
    "sqlite",
]
