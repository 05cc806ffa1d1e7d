"""Talk: a transaction of the ledger's own on PostgreSQL, in as few waits as its questions allow.

What nothing is read back of is sent with what follows it: BEGIN with the first question, COMMIT with the last statements. An
error ends the transaction at the server, and whatever was sent behind it is skipped (I2). But nothing is committed before it
is known that this release may write here: who begins to write hears of that with the first answer, or before the COMMIT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import psycopg

from duly.store.postgres_sql import as_pyformat, clock_sql, spell

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import LiteralString, NoReturn

    from duly.ledger.ask import Ask, Statement


class Sent(NamedTuple):
    """A statement to be sent, and the question that it answers; None: it begins or ends the transaction."""

    text: LiteralString
    parameters: Any = None
    ask: Ask | None = None


COMMIT = Sent("commit")


class Talk:
    """What is held back until something is to be read. It knows of no connection: a store sends what it is handed."""

    def __init__(self, beginning: Sequence[Sent], *, clock_by_hand: bool) -> None:
        self._held = list(beginning)
        self._clock = clock_sql(clock_by_hand)
        self.has_begun = False

    def hold(self, ask: Ask) -> None:
        """Keep a statement of which nothing is read back."""
        self._held.append(sent_of(ask, self._clock))

    def take(self, *last: Ask | Sent) -> list[Sent]:
        """All that is to be sent now, in one wait."""
        held, self._held, self.has_begun = self._held, [], True
        return [*held, *(each if isinstance(each, Sent) else sent_of(each, self._clock) for each in last)]


def sent_of(ask: Ask, clock: str) -> Sent:
    """The statement that answers a question; `clock` is the instant as an expression."""
    if ask.statement is None:  # it wants the time
        return Sent(trusted(f"select {clock}"), None, ask)
    return Sent(render(ask.statement, clock), ask.parameters, ask)


_rendered: dict[tuple[Statement, str], LiteralString] = {}


def render(statement: Statement, clock: str) -> LiteralString:
    """A statement's text for psycopg."""
    ready = _rendered.get((statement, clock))
    if ready is None:
        ready = _rendered[statement, clock] = trusted(as_pyformat(spell(statement, clock)))
    return ready


def trusted(sql: str) -> LiteralString:
    """SQL that is put together from constants of ours; every value is bound."""
    return cast("LiteralString", sql)  # type: ignore[redundant-cast]  # to mypy LiteralString is str; to others it is not


def raise_refusal(
    sent: Sequence[Sent], cursors: Sequence[psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]], error: psycopg.Error
) -> NoReturn:
    """Raise what an error means of the statement that it came from, the first without a result: a refusal, or the error."""
    failed = next((each.ask for each, cursor in zip(sent, cursors, strict=False) if cursor.pgresult is None), None)
    refuses = None if failed is None or failed.statement is None else failed.statement.refuses
    if refuses is None or not isinstance(error, psycopg.IntegrityError):
        raise error
    raise refuses from None
