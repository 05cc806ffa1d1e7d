"""duly: a daemon that finds a job far behind, a hundred runs to a commit. Offered again, each window is named by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import duly
from bench.contestant import Contestant, Given, Window, compete
from bench.contestants.ledger import ATOMIC, credit, is_known, job_that_owes, ledger_of
from duly.work.daemon.crew import Threads
from duly.work.daemon.systemd import Notifier
from duly.work.daemon.watch import Daemon, Limits

PLACES = 8


class Watched:
    """A job that owes all windows at once, and a daemon that comes to see it."""

    def __init__(self, ledger: duly.Ledger[Any]) -> None:
        self._ledger = ledger

    def work(self, windows: Sequence[Window]) -> None:
        self._job = job_that_owes(self._ledger, windows)
        called = 0

        def counted(run: duly.Run[Any]) -> None:
            nonlocal called
            called += 1
            credit(run)

        def ended() -> None:  # an attempt, or a group of them: what it called for is committed
            if called >= len(windows):
                daemon.stop()

        self._job.function = counted
        with ThreadPoolExecutor(PLACES) as pool:
            crew = [Threads(self._job, pool)]
            daemon = Daemon(
                self._ledger.store, list(crew), Limits(PLACES, PLACES, 5.0), Notifier({}), lambda _: None, ended
            )
            daemon.work()

    def again(self, windows: Sequence[Window]) -> int:
        return sum(is_known(self._job.run(window.name, scope="shop")) for window in windows)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    with ledger_of(given) as ledger:
        yield Watched(ledger)


if __name__ == "__main__":
    compete(enter, of="duly", atomic=True, guarantees=f"{ATOMIC}; of a hundred runs all are kept, or none")
