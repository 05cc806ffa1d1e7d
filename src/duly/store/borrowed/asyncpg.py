"""A borrowed transaction of asyncpg: as `postgres`, awaited. asyncpg numbers its parameters and returns records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from duly.errors import ClaimLost, DulyError, NoTransaction
from duly.ledger.ask import Ask, Statement, drive_async
from duly.store.borrowed.facts import FACTS, clock_by_hand
from duly.store.postgres_sql import PARAMETER, clock_sql, spell
from duly.store.sqlstate import INTEGRITY, meaning_of

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin

T = TypeVar("T")


async def in_borrowed(connection: asyncpg.Connection[Any], operation: Operation[T], origin: Origin | None) -> T:
    """Run an operation in the connection's transaction. Raises as `run_in_async`."""
    if not connection.is_in_transaction():
        raise NoTransaction
    try:
        answers = Answers(connection)
        answers.clock_by_hand = clock_by_hand(await answers(FACTS), origin)
        return await drive_async(operation, answers)
    except ClaimLost:
        connection.terminate()  # a savepoint would survive the error; nothing that this connection wrote may (I2)
        raise
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as e:
        raise _translated(e) from e


def is_open(connection: asyncpg.Connection[Any]) -> bool:
    """Whether a transaction is under way."""
    return not connection.is_closed() and bool(connection.is_in_transaction())


def _translated(error: Exception) -> DulyError:
    return meaning_of(getattr(error, "sqlstate", None) or "", name="of this connection", kind=type(error).__name__)


class Answers:
    """Answers what an operation asks on one connection of asyncpg, inside whatever transaction that is in."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection
        self.clock_by_hand = False

    async def __call__(self, ask: Ask) -> object:
        if ask.statement is None:
            if ask.want == "now":
                return await self._connection.fetchval(f"select {clock_sql(self.clock_by_hand)}")
            return None  # no pulse is to be seen from here: the lease alone decides
        sql, names = _numbered(ask.statement, clock_sql(self.clock_by_hand))
        values = [ask.parameters[name] for name in names]
        try:
            return await self._ask(ask.want, sql, values)
        except asyncpg.PostgresError as e:
            if ask.statement.refuses is None or not (e.sqlstate or "").startswith(INTEGRITY):
                raise
            raise ask.statement.refuses from None

    async def _ask(self, want: str, sql: str, values: list[Any]) -> object:
        if want in ("count", "do"):
            status: str = await self._connection.execute(sql, *values)
            return int(status.rpartition(" ")[2])  # as 'INSERT 0 1' or 'UPDATE 1'
        if want == "one":
            row = await self._connection.fetchrow(sql, *values)
            return None if row is None else tuple(row)
        return [tuple(row) for row in await self._connection.fetch(sql, *values)]


_made: dict[tuple[Statement, str], tuple[str, list[str]]] = {}


def _numbered(statement: Statement, clock: str) -> tuple[str, list[str]]:
    """A statement's text with `$1`, `$2`, … and the names of its parameters in that order."""
    ready = _made.get((statement, clock))
    if ready is None:
        text = spell(statement, clock)
        names = list(dict.fromkeys(PARAMETER.findall(text)))
        sql = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text)
        ready = _made[statement, clock] = (sql, names)
    return ready
