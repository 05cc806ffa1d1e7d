"""The store: all database I/O. It drives the ledger's operations in transactions, its own or a caller's."""

from __future__ import annotations

from duly.errors import LedgerTooNew, LedgerTooOld, Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = 1  # the newest schema that this release knows; it writes a ledger whose min_writer is at most this
OLDEST_SCHEMA = 1  # and the oldest that has all that it needs
# On PostgreSQL: an advisory lock that whoever writes shares and a migration holds alone, so that nobody who has looked whether
# he may write is still writing when a migration has decided otherwise.
VERSION_LOCK = 0x64756C79
BUSY_SECONDS = 10.0  # how long a write waits for its turn


def refuse_other_versions(facts: Mapping[str, str], *, name: str) -> None:
    """Raise `LedgerTooNew` or `LedgerTooOld` for a ledger that this release can do nothing with, by its facts."""
    if int(facts["min_writer"]) > SCHEMA:
        raise LedgerTooNew(
            f"{name} was written by a newer release (schema {facts['schema']}) and does not let this one write; "
            "upgrade duly"
        )
    if int(facts["schema"]) < OLDEST_SCHEMA:
        raise LedgerTooOld(
            f"{name} was made by an older release (schema {facts['schema']}), and this one needs what it lacks; "
            "run `duly db migrate`",
            next_step="duly db migrate",
        )


def without_psycopg() -> Misuse:
    """The error where the ledger is in PostgreSQL, and its driver, which is an extra, is not installed."""
    return Misuse(
        "ledger: a PostgreSQL ledger needs psycopg, which is not installed", next_step="pip install 'duly[postgres]'"
    )
