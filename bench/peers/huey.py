"""huey: tasks in an SQLite file of its own, worked in this process by what its consumer calls. It is measured without results.

A task has no key. One is kept by hand, with `put_if_empty`, before the task is put into the queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import huey

from bench.contestant import EFFECT, Contestant, Given, Window, compete


class Consumed:
    """A queue, and its consumer."""

    def __init__(self, queue: huey.SqliteHuey, effect: Callable[[], object]) -> None:
        self._queue = queue
        self._credit = queue.task()(lambda key: effect())

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        refused = sum(not self._offer(window.key) for window in windows)
        while (task := self._queue.dequeue()) is not None:
            self._queue.execute(task)
        return refused

    def _offer(self, key: str) -> bool:
        is_new = bool(self._queue.put_if_empty(key, "offered"))
        if is_new:
            self._credit(key)
        return is_new


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    logging.disable(logging.INFO)
    queue = huey.SqliteHuey(filename=given.beside("huey.db"), fsync=True, results=False)
    with closing(given.connect()) as connection:
        yield Consumed(queue, lambda: connection.execute(EFFECT))


if __name__ == "__main__":
    compete(
        enter,
        of="huey",
        atomic=False,
        guarantees="at most once: a task leaves the queue before it runs; no record of a run, and its key is kept by hand",
    )
