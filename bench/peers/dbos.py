"""DBOS: a workflow for each run, its id the key, with one transaction of a data source, whose record commits with the effect."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy
from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

from bench.contestant import EFFECT, JOB, Contestant, Given, Window, compete


class Recorded:
    """Workflows, started one after the other."""

    def __init__(self, start: Callable[[str, str], int], called: list[None]) -> None:
        self._start = start
        self._called = called

    def work(self, windows: Sequence[Window]) -> None:
        refused = self.again(windows)
        assert not refused

    def again(self, windows: Sequence[Window]) -> int:
        before = len(self._called)
        for window in windows:
            with SetWorkflowID(window.key):
                self._start(JOB, window.name)
        return len(windows) - (len(self._called) - before)


@contextmanager
def enter(given: Given) -> Iterator[Contestant]:
    url = given.database.replace("postgresql://", "postgresql+psycopg://")
    records = url if given.on_postgres else f"sqlite:///{given.beside('dbos.db')}"
    DBOS(config={"name": "bench", "system_database_url": records, "log_level": "ERROR"})
    source = SQLAlchemyDatasource.create(url)
    effect, called = sqlalchemy.text(EFFECT), list[None]()

    @source.transaction(isolation_level="READ COMMITTED" if given.on_postgres else "SERIALIZABLE")
    def credit() -> int:
        called.append(None)
        source.sql_session().execute(effect)
        return 1

    @DBOS.workflow()
    def run(job: str, window: str) -> int:
        return int(credit())

    DBOS.launch()
    yield Recorded(run, called)
    DBOS.destroy()


if __name__ == "__main__":
    compete(
        enter,
        of="dbos",
        atomic=True,
        guarantees="the step's record commits with the effect, the workflow's status after it; one that died is replayed, not redone",
    )
    sys.stdout.flush()
    os._exit(0)  # its threads wait for work
