"""Celery: a task for each run through Redis, to one worker of its own, which acknowledges late; results are kept.

A task id is no key: the same one is worked as often as it is sent. A key is kept by hand, as one of Redis that expires in a day.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from celery import Celery

from bench.contestant import EFFECT, Contestant, Given, Window, compete, connect
from bench.peers.broker import redis_of

A_DAY, LONGEST_SECONDS = 86_400, 300
BROKER = "BENCH_REDIS"  # where the worker, a process of its own, reads of it
WORKER = ("-m", "celery", "-A", "bench.peers.celery", "worker", "-P", "solo", "-l", "ERROR")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")

app = Celery("bench", broker=os.environ.get(BROKER), backend=os.environ.get(BROKER))
app.conf.update(task_acks_late=True, broker_connection_retry_on_startup=True)
connected = cache(connect)


@app.task(name="credit")  # type: ignore[untyped-decorator]
def credit(database: str, key: str) -> None:
    connected(database).execute(EFFECT)


class Sent:
    """Tasks that are sent, and waited for."""

    def __init__(self, redis: Any, database: str) -> None:
        self._redis, self._database = redis, database

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        sent = [self._send(window.key) for window in windows if self._redis.set(window.key, "sent", nx=True, ex=A_DAY)]
        for result in sent:
            result.get(timeout=LONGEST_SECONDS)
        return len(windows) - len(sent)

    def _send(self, key: str) -> Any:
        return credit.apply_async((self._database, key), task_id=key)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    app.conf.update(broker_url=given.redis, result_backend=given.redis)
    with redis_of(given) as redis:
        worker = subprocess.Popen(
            [sys.executable, *WORKER, *QUIET],
            env={**os.environ, BROKER: given.redis},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield Sent(redis, given.database)
        finally:
            worker.terminate()
            worker.wait()


if __name__ == "__main__":
    compete(
        enter,
        of="celery",
        atomic=False,
        guarantees="at least once (acks_late): what a dead worker held is sent again; no record of a run beyond its result, and "
        "its key is kept by hand",
    )
