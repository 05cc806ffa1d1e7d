"""The ledger of a contestant of duly's: made in the user's database, beside its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duly
from bench.contestant import EFFECT, JOB, Given, Window
from duly.store.migrations import postgres

EVERY_FIVE_MINUTES = duly.every("5m")
GROUP = 100  # runs that share a commit, where they are worked in groups
ATOMIC = "effect and completion commit together, once for each key; a stale attempt is refused by the database"


@contextmanager
def ledger_of(given: Given) -> Iterator[duly.Ledger[Any]]:
    """A new ledger in the user's database."""
    if given.on_postgres:
        postgres.create(given.database, by="bench")
    ledger: duly.Ledger[Any] = duly.postgres(given.database) if given.on_postgres else duly.sqlite(given.path)
    yield ledger
    ledger.close()


def credit(run: duly.Run[Any]) -> None:
    """The effect of a job, in the transaction that completes its run."""
    run.tx.execute(EFFECT)


def job_that_owes(ledger: duly.Ledger[Any], windows: Sequence[Window]) -> duly.work.job.Job[Any]:
    """A job of which these windows are owed, and no others; its runs share commits."""
    scope = duly.Scope("shop", since=windows[0].name, until=windows[-1].next().name)
    name = f"{JOB}-{windows[0].nominal}"
    return ledger.job(name, EVERY_FIVE_MINUTES, catch_up=duly.EACH, inline=True, group=GROUP, scopes=[scope])(credit)


def is_known(answer: object) -> bool:
    """Whether a run that was offered again is complete already."""
    return isinstance(answer, duly.AlreadyCompleted)
