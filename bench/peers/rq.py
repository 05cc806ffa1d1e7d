"""rq: a job for each run in Redis, its id the key, worked in this process by its `SimpleWorker` until the queue is empty.

An id is refused while Redis has its job: `result_ttl` says how long that is kept, a day here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from rq import Queue, SimpleWorker
from rq.exceptions import DuplicateJobError

from bench.contestant import EFFECT, Contestant, Given, Window, compete, connect
from bench.peers.broker import redis_of

A_DAY = 86_400
connected = cache(connect)


def credit(database: str, key: str) -> None:
    """The effect. A worker finds it by its name."""
    connected(database).execute(EFFECT)


class Queued:
    """A queue that is filled, and then worked."""

    def __init__(self, redis: Any, database: str) -> None:
        self._redis, self._database = redis, database
        self._queue = Queue(connection=redis)

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        refused = sum(not self._offer(window) for window in windows)
        SimpleWorker([self._queue], connection=self._redis).work(burst=True)
        return refused

    def _offer(self, window: Window) -> bool:
        job_id = f"credit-{window.nominal}"  # letters, digits and dashes
        args = (self._database, window.key)
        try:
            self._queue.enqueue("bench.peers.rq.credit", args=args, job_id=job_id, unique=True, result_ttl=A_DAY)
        except DuplicateJobError:
            return False
        return True


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    logging.disable(logging.CRITICAL)
    with redis_of(given) as redis:
        yield Queued(redis, given.database)


if __name__ == "__main__":
    compete(
        enter,
        of="rq",
        atomic=False,
        guarantees="a job whose worker died is marked failed; an id is refused while Redis keeps its job (result_ttl, a day here)",
    )
