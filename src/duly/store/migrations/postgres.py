"""A ledger made and migrated on PostgreSQL: only when a person says so, with a role that may create a schema.

One at a time: each step takes the lock that every writer of duly's shares (`store.postgres`), so that nobody who has looked
whether he may write is still writing when a step has decided otherwise.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from duly.errors import NoLedger
from duly.redaction import shown_url
from duly.store.migrations import ALONE, BY_DULY, POSTGRES, Step, failed, is_there, lacking, statements, steps
from duly.store.postgres import facts_of, translated
from duly.store.talk import trusted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Connection = psycopg.Connection[tuple[Any, ...]]


def create(
    url: str, *, clock: str = "system", by: str = BY_DULY, known: Sequence[Step] | None = None
) -> dict[str, str]:
    """Make the ledger's schema and tables in a database, where there are none. Answers the ledger's facts.

    `clock`: `system`, or `hand` for one that a test sets. Raises `LedgerUnwritable` or `LedgerUnavailable`.
    """
    with _connected(url) as connection, _alone(connection):
        if not is_there(connection.execute, POSTGRES):
            for step in known or steps(POSTGRES):
                _apply(connection, url, step, by)
            if clock == "hand":
                connection.execute("update duly.meta set value = 'hand' where name = 'clock'")
                connection.execute("insert into duly.clock (at) values (0)")
        return facts_of(connection)


def migrate(url: str, *, by: str = BY_DULY, known: Sequence[Step] | None = None) -> list[Step]:
    """Apply what a ledger lacks, each step in a transaction of its own, and answer what was applied.

    Two at once share the work. Raises `NoLedger`, `MigrationDiffers`, `LedgerTooNew`, `LedgerUnwritable`, or `LedgerBusy`
    when a step does not get its locks in time.
    """
    applied: list[Step] = []
    with _connected(url) as connection:
        while step := _apply_next(connection, url, by, known or steps(POSTGRES)):
            applied.append(step)
    return applied


def pending(url: str, *, known: Sequence[Step] | None = None) -> list[Step]:
    """What `migrate` would apply. Raises as it does."""
    with _connected(url) as connection:
        return _missing(connection, url, known or steps(POSTGRES))


def _apply_next(connection: Connection, url: str, by: str, known: Sequence[Step]) -> Step | None:
    with _alone(connection):
        lacking = _missing(connection, url, known)
        if not lacking:
            return None
        _apply(connection, url, lacking[0], by)
        return lacking[0]


def _missing(connection: Connection, url: str, known: Sequence[Step]) -> list[Step]:
    if not is_there(connection.execute, POSTGRES):
        raise NoLedger(f"{shown_url(url)} holds no ledger; make one with `duly db create`", next_step="duly db create")
    return lacking(connection.execute, known, ledger=shown_url(url))


def _apply(connection: Connection, url: str, step: Step, by: str) -> None:
    try:
        for statement in statements(step, by=by):
            connection.execute(trusted(statement))
    except psycopg.DatabaseError as e:
        if isinstance(e, (psycopg.errors.InsufficientPrivilege, psycopg.OperationalError)):  # not the step's fault
            raise
        raise failed(step, ledger=shown_url(url), why=f"{e.diag.message_primary} ({e.sqlstate})") from e


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    try:
        with psycopg.connect(url, autocommit=True, application_name="duly db") as connection:
            yield connection
    except psycopg.Error as e:
        raise translated(e, name=shown_url(url)) from e


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """A transaction that no other migration, and no writer of duly's, is in at the same time."""
    with connection.transaction():
        for statement in ALONE[POSTGRES]:
            connection.execute(trusted(statement))
        yield
