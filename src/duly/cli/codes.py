"""Exit codes: what the end of a command tells whoever called it. The numbers are sysexits(3) where it has one.

Only `exec` maps an answer to another code where its caller should simply come back (docs/cli: an unreachable ledger is 75
there, 69 elsewhere).
"""

from __future__ import annotations

from duly.codes import (
    CONFIGURATION,
    DONE,
    INTERRUPTED,
    NO_PERMISSION,
    OUR_BUG,
    TAKEN_OVER,
    TRY_AGAIN,
    UNAVAILABLE,
    UNKNOWN,
    UNWRITABLE,
    USAGE,
    WAITS_FOR_A_PERSON,
)
from duly.errors import (
    ClaimLost,
    ConfigurationInvalid,
    Conflict,
    DulyError,
    JobRenamed,
    LedgerCorrupt,
    LedgerForbidden,
    LedgerUnavailable,
    LedgerUnwritable,
    NoTransaction,
    OutcomeUnknown,
    PayloadConflict,
    Retired,
    RunBusy,
    RunFailed,
    RunPaused,
    RunSkipped,
    ScheduleChanged,
    ScheduleError,
    TransactionOwned,
    UnknownScope,
    WrongLedger,
)

__all__ = [
    "CONFIGURATION",
    "DONE",
    "INTERRUPTED",
    "NO_PERMISSION",
    "OUR_BUG",
    "TAKEN_OVER",
    "TRY_AGAIN",
    "UNAVAILABLE",
    "UNKNOWN",
    "UNWRITABLE",
    "USAGE",
    "WAITS_FOR_A_PERSON",
    "code_of",
]

# The first that fits, so a special case stands before its family.
_BY_TYPE: tuple[tuple[type[BaseException], int], ...] = (
    (ClaimLost, TAKEN_OVER),
    (OutcomeUnknown, UNKNOWN),
    (RunFailed, WAITS_FOR_A_PERSON),
    (RunBusy, TRY_AGAIN),
    (Conflict, TRY_AGAIN),
    (RunSkipped, DONE),
    (RunPaused, TRY_AGAIN),
    (Retired, DONE),
    (JobRenamed, CONFIGURATION),
    (PayloadConflict, CONFIGURATION),
    (ScheduleChanged, CONFIGURATION),
    (ScheduleError, CONFIGURATION),
    (ConfigurationInvalid, CONFIGURATION),
    (UnknownScope, CONFIGURATION),
    (WrongLedger, CONFIGURATION),
    (LedgerForbidden, NO_PERMISSION),
    (LedgerUnwritable, UNWRITABLE),
    (LedgerCorrupt, UNWRITABLE),
    (LedgerUnavailable, UNAVAILABLE),
    (NoTransaction, OUR_BUG),  # a command line has no transaction of the user's
    (TransactionOwned, OUR_BUG),
    (DulyError, USAGE),
    (PermissionError, NO_PERMISSION),
    (KeyboardInterrupt, INTERRUPTED),
)


def code_of(error: BaseException) -> int:
    """The exit code that an error means; 70 for one that duly did not foresee."""
    if isinstance(error.__cause__, PermissionError):
        return NO_PERMISSION
    return next((code for kind, code in _BY_TYPE if isinstance(error, kind)), OUR_BUG)
