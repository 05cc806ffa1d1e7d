"""What PostgreSQL's SQLSTATE codes mean for whoever works with the ledger, by whichever driver they come.

A busy ledger, a lost connection and a refused claim are three things (I12). Of an error its code is told, never its message
or detail, which may hold data. Codes: the manual's appendix "PostgreSQL Error Codes".
"""

from __future__ import annotations

from duly.errors import (
    Conflict,
    DulyError,
    LedgerBusy,
    LedgerCorrupt,
    LedgerUnavailable,
    LedgerUnwritable,
    NoLedger,
)

_AGAIN = ("40001", "40P01")  # serialization failure, deadlock
_FAILED = ("25P02",)  # an earlier statement of the transaction failed
_BUSY = ("55P03", "57014")  # lock not available, query cancelled
_NO_TABLES = ("42P01", "3F000", "42883")  # no such table, schema, function
_UNWRITABLE = ("25006", "42501", "53100")  # read-only transaction, not allowed, disk full
_DAMAGED = ("XX001", "XX002")  # data or index corrupted

INTEGRITY = "23"  # the class of violated constraints: what a guard's refusal is
NOT_NULL, UNIQUE = "23502", "23505"


def meaning_of(state: str, *, name: str, kind: str = "") -> DulyError:
    """The error that a SQLSTATE means for the ledger of this name. `kind` is said where the driver gives no code."""
    if state in _AGAIN:
        return Conflict(f"the transaction met another one ({state}); roll back and try the whole transaction again")
    if state in _FAILED:
        return Conflict("this transaction has failed already; roll back, and try the whole of it again")
    if state in _BUSY:
        return LedgerBusy(f"the ledger {name} stayed busy; nothing was decided. Try again")
    if state in _NO_TABLES:
        return NoLedger(f"{name} holds no ledger; make one with `duly db create`", next_step="duly db create")
    if state in _UNWRITABLE:
        return LedgerUnwritable(f"the ledger {name} cannot be written ({state})")
    if state in _DAMAGED:
        return LedgerCorrupt(f"the ledger {name} is damaged ({state})")
    return LedgerUnavailable(f"the ledger {name} cannot be reached ({state or kind})")


def leaves_open(state: str) -> bool:
    """Whether an error at a COMMIT leaves open what became of it: no code, a lost connection (08), a server that stops."""
    return not state or state.startswith("08") or state in ("57P01", "57P02", "57P03")
