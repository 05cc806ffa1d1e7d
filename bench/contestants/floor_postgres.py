"""The floor on PostgreSQL: the least that keeps a run's claim, effect and completion, by hand, without a lease or a guard.

Three ways: `one` transaction for all of it; `two`, the claim and then effect and completion, so that an attempt which died
can be seen; or `group`, one transaction for a hundred runs. Whatever nothing is read back of is sent in one go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from bench.contestant import EFFECT, Contestant, Given, Window, compete

GROUP = 100
TABLES = (
    "create table run (job integer, nominal bigint, state integer, ended bigint, primary key (job, nominal))",
    """
create table attempt (job integer, nominal bigint, number integer, started bigint, ended bigint,
    primary key (job, nominal, number))
""",
)
CLAIM = """
with claimed as (insert into run values (1, %s, 1, null) on conflict do nothing returning nominal)
insert into attempt select 1, nominal, 1, %s, null from claimed
"""


class Floor:
    """Runs on one connection, claimed and completed by hand."""

    def __init__(self, connection: Any, way: str) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._way = way

    def work(self, windows: Sequence[Window]) -> None:
        done = self.in_groups(windows) if self._way == "group" else sum(self.run(each.nominal) for each in windows)
        assert done == len(windows)

    def again(self, windows: Sequence[Window]) -> int:
        return sum(not self.run(each.nominal) for each in windows)

    def run(self, nominal: int) -> bool:
        """Whether it was not done before."""
        if self._way == "one":
            self._execute("begin")
        if not self._claimed(nominal):
            if self._way == "one":
                self._execute("rollback")
            return False
        with self._connection.pipeline():
            if self._way != "one":
                self._execute("begin")
            self._complete(nominal)
            self._execute("commit")
        return True

    def in_groups(self, windows: Sequence[Window]) -> int:
        """How many were not done before."""
        done = 0
        for first in range(0, len(windows), GROUP):
            group = windows[first : first + GROUP]
            with self._connection.pipeline():
                self._execute("begin")
                claims = [self._execute(CLAIM, (each.nominal, time.time_ns())) for each in group]
            won = [each for each, claim in zip(group, claims, strict=True) if claim.rowcount == 1]
            with self._connection.pipeline():
                for each in won:
                    self._complete(each.nominal)
                self._execute("commit")
            done += len(won)
        return done

    def _claimed(self, nominal: int) -> bool:
        return bool(self._execute(CLAIM, (nominal, time.time_ns())).rowcount == 1)

    def _complete(self, nominal: int) -> None:
        now = time.time_ns()
        self._execute(EFFECT)
        self._execute("update attempt set ended = %s where job = 1 and nominal = %s and number = 1", (now, nominal))
        self._execute(
            "update run set state = 2, ended = %s where job = 1 and nominal = %s and state = 1", (now, nominal)
        )


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
