"""Histories: a race told in every order of its steps, with crashes, on a real database.

    async def export(hand, given):                          # what one worker does; each await is a point of the history
        claim = await hand.take("export", "2026-10-05")
        if isinstance(claim, Claim):
            async with hand.transaction():
                await hand.execute("insert into exported (day) values ('2026-10-05')")
                await hand.complete(claim)

    race = Race("export", given=lambda stage: register(stage, "export", daily("UTC")), actors=(export, export))
    stage = SqliteStage(folder, tables="create table exported (day text not null)")     # or PostgresStage(url, …)
    for history in every_history(race, stage):
        check(history)
        assert stage.rows("select count(*) from exported") == [(1,)], history.story()

A *race* is what is given and what two or three *actors* do. A *history* is one order of their steps: a transaction begins, one
statement runs, it is committed. On PostgreSQL each actor has a connection of its own, and one that has to wait for another's
lock waits in the history too; on SQLite, where a writer excludes every other, whole transactions interleave.

`every_history` tells all orders that can be told from each other; `some_histories` a seeded sample with faults at any await:
an actor crashes before or after its statement or commit, loses the reply of its commit, is cancelled, meets a serialization
failure or a deadlock; the clock jumps past every lease. `check` holds what happened against `INVARIANTS`, and yours beside
them; a history that breaks one is told in numbered lines, with the choices that `replay` tells it again by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.testing.histories.explore import HistoryFailed as HistoryFailed
from duly.testing.histories.explore import check as check
from duly.testing.histories.explore import every_history as every_history
from duly.testing.histories.explore import replay as replay
from duly.testing.histories.explore import some_histories as some_histories
from duly.testing.histories.hand import Hand as Hand
from duly.testing.histories.hand import Script as Script
from duly.testing.histories.invariants import INVARIANTS as INVARIANTS
from duly.testing.histories.invariants import Invariant as Invariant
from duly.testing.histories.play import History as History
from duly.testing.histories.play import Race as Race
from duly.testing.histories.points import READ_COMMITTED as READ_COMMITTED
from duly.testing.histories.points import REPEATABLE_READ as REPEATABLE_READ
from duly.testing.histories.points import SERIALIZABLE as SERIALIZABLE
from duly.testing.histories.sqlite import SqliteStage as SqliteStage
from duly.testing.histories.stage import Stage as Stage
from duly.testing.histories.stage import register as register

if TYPE_CHECKING:
    from duly.testing.histories.postgres import PostgresStage as PostgresStage


def __getattr__(name: str) -> Any:
    """PostgreSQL's stage wants psycopg, which is optional."""
    if name != "PostgresStage":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from duly.testing.histories.postgres import PostgresStage

    return PostgresStage
