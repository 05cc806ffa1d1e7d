"""The floor on SQLite: the least that keeps a run's claim, effect and completion, by hand, without a lease or a guard.

Three ways: `one` transaction for all of it; `two`, the claim and then effect and completion, so that an attempt which died
can be seen; or `group`, one transaction for a hundred runs.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from bench.contestant import EFFECT, Contestant, Given, Window, compete

GROUP = 100
TABLES = (
    "create table run (job integer, nominal integer, state integer, ended integer, primary key (job, nominal)) without rowid",
    """
create table attempt (job integer, nominal integer, number integer, started integer, ended integer,
    primary key (job, nominal, number)) without rowid
""",
)


class Floor:
    """Runs on one connection, claimed and completed by hand."""

    def __init__(self, connection: sqlite3.Connection, way: str) -> None:
        self._execute = connection.execute
        self._way = way

    def work(self, windows: Sequence[Window]) -> None:
        done = self.in_groups(windows) if self._way == "group" else sum(self.run(each.nominal) for each in windows)
        assert done == len(windows)

    def again(self, windows: Sequence[Window]) -> int:
        return sum(not self.run(each.nominal) for each in windows)

    def run(self, nominal: int) -> bool:
        """Whether it was not done before."""
        self._execute("begin immediate")
        if not self._claimed(nominal):
            self._execute("rollback")
            return False
        if self._way == "two":
            self._execute("commit")
            self._execute("begin immediate")
        self._complete(nominal)
        self._execute("commit")
        return True

    def in_groups(self, windows: Sequence[Window]) -> int:
        """How many were not done before."""
        done = 0
        for first in range(0, len(windows), GROUP):
            self._execute("begin immediate")
            for each in windows[first : first + GROUP]:
                if self._claimed(each.nominal):
                    self._complete(each.nominal)
                    done += 1
            self._execute("commit")
        return done

    def _claimed(self, nominal: int) -> bool:
        added = self._execute("insert into run values (1, ?, 1, null) on conflict do nothing", (nominal,)).rowcount
        if added:
            self._execute("insert into attempt values (1, ?, 1, ?, null)", (nominal, time.time_ns()))
        return added == 1

    def _complete(self, nominal: int) -> None:
        now = time.time_ns()
        self._execute(EFFECT)
        self._execute("update attempt set ended = ? where job = 1 and nominal = ? and number = 1", (now, nominal))
        self._execute("update run set state = 2, ended = ? where job = 1 and nominal = ? and state = 1", (now, nominal))


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    with closing(given.connect()) as connection:
        for statement in TABLES:
            connection.execute(statement)
        yield Floor(connection, given.way)


if __name__ == "__main__":
    compete(
        enter,
        of="",
        atomic=True,
        guarantees="effect and completion commit together; nothing tells a dead attempt from a slow one, or stops a stale one",
    )
