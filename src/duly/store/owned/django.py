"""A run's transaction through Django: an `atomic` block of one database alias, which duly enters and leaves.

`run.tx` is the thread's own connection of that alias, so that the ORM works in the block without being told. Inside it
Django itself refuses commit, rollback and another mode of autocommit; statements are refused by an execute wrapper, by
their first word. A connection that is closed inside takes the block along.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from django.db import Error, connections, transaction

from duly.errors import Misuse, TransactionOwned
from duly.store.owned.library import ENDED, Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.store.borrowed import DjangoConnection
    from duly.store.owned.turns import Turn


class ThroughDjango:
    """Transactions of one thread's connection of an alias."""

    def __init__(self, alias: str, guard: Guard, turn: Turn) -> None:
        self._alias = alias
        self._guard = guard
        self._turn = turn
        self._block: Any = None
        self._wrapper = ExitStack()

    @property
    def lent(self) -> DjangoConnection:
        connection: DjangoConnection = connections[self._alias]
        return connection

    @property
    def _connection(self) -> Any:  # with all that Django has, and does not type
        return connections[self._alias]

    @property
    def driver(self) -> Any:
        return self._connection.connection

    def begin(self) -> None:
        connection = self._connection
        connection.ensure_connection()
        if connection.in_atomic_block or not connection.get_autocommit():
            raise Misuse(
                f"run.tx: the connection {self._alias!r} is in a transaction already, which would commit what the run does, "
                "or not; leave the atomic block first (in tests: TransactionTestCase)"
            )
        block = transaction.atomic(using=self._alias)
        block.__enter__()
        self._block = block
        self._wrapper.enter_context(connection.execute_wrapper(self._check))
        # The first hook of all: those of the run's own come when its transaction is over for duly too, and may begin another.
        transaction.on_commit(self._over, using=self._alias)

    def _check(self, execute: Callable[..., Any], sql: Any, parameters: Any, many: bool, context: Any) -> Any:
        if isinstance(sql, bytes):
            text = sql.decode(errors="replace")
        else:
            text = sql if isinstance(sql, str) else sql.as_string(self.driver)  # a Composable of psycopg
        self._guard.check(self.driver, text)
        return execute(sql, parameters, many, context)

    def _over(self) -> None:
        self._wrapper.close()
        self._guard.end()
        self._turn.give_up()

    def fetch(self, sql: str) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()

    def refuse_ended(self) -> None:
        connection = self._connection
        if not connection.in_atomic_block or connection.closed_in_transaction:
            raise TransactionOwned(ENDED)

    def leave_savepoints(self) -> None:
        if self._connection.savepoint_ids:
            raise TransactionOwned("an atomic block inside the run was entered and not left; nothing of it is kept")

    def commit(self) -> None:
        block, self._block = self._block, None
        block.__exit__(None, None, None)

    def drop(self) -> None:
        self._wrapper.close()
        block, self._block = self._block, None
        connection = self._connection
        with suppress(Error):  # a connection that cannot be had again
            while block is not None and connection.in_atomic_block:  # blocks inside that were not left, too
                block.__exit__(Dropped, Dropped(), None)

    def cause_of(self, error: Exception) -> BaseException | None:
        return error.__cause__ if isinstance(error, Error) else None


class Dropped(Exception):
    """What Django is told when nothing of a block is to be kept."""
