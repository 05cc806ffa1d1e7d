"""APScheduler 3: a job for each run, at a date that has come, in its SQLAlchemy job store; two threads work them.

The job's id is the key. It is refused while the job waits, and free again when the scheduler has taken it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import ConflictingIdError
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from bench.contestant import EFFECT, Contestant, Given, Window, compete

LONGEST_SECONDS = 300.0
done: SimpleQueue[None] = SimpleQueue()
connections: list[Any] = []  # a job is found by its name, and given nothing that could not be stored


def credit(key: str) -> None:
    connections[0].execute(EFFECT)
    done.put(None)


class Scheduled:
    """A scheduler that is paused while jobs are added."""

    def __init__(self, scheduler: BackgroundScheduler) -> None:
        self._scheduler = scheduler

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        self._scheduler.pause()
        taken = sum(self._offer(window.key) for window in windows)
        self._scheduler.resume()
        for _ in range(taken):
            done.get(timeout=LONGEST_SECONDS)
        return len(windows) - taken

    def _offer(self, key: str) -> bool:
        try:
            self._scheduler.add_job(
                credit, "date", run_date=datetime.now(UTC), args=[key], id=key, misfire_grace_time=None
            )
        except ConflictingIdError:
            return False
        return True


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    logging.disable(logging.CRITICAL)
    url = given.database.replace("postgresql://", "postgresql+psycopg://")
    store = SQLAlchemyJobStore(url=url if given.on_postgres else f"sqlite:///{given.beside('apscheduler.db')}")
    scheduler = BackgroundScheduler(
        jobstores={"default": store}, executors={"default": ThreadPoolExecutor(2)}, timezone=UTC
    )
    with closing(given.connect()) as connection:
        connections.append(connection)
        scheduler.start(paused=True)
        yield Scheduled(scheduler)
        scheduler.shutdown()


if __name__ == "__main__":
    compete(
        enter,
        of="apscheduler",
        atomic=False,
        guarantees="at most once: a job leaves the store before it runs; no record of a run, and an id is free again once taken",
    )
