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
_NO_DATABASE = "3D000"
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
    if state == _NO_DATABASE or kind == ABSENT:
        return LedgerUnavailable(f"the ledger {name} cannot be reached ({ABSENT})", next_step=_made(name))
    return LedgerUnavailable(f"the ledger {name} cannot be reached ({state or kind})")


def _made(url: str) -> str | None:
    """The command that makes the database of a URL."""
    from shlex import join
    from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

    parts = urlsplit(url)
    asked = dict(parse_qsl(parts.query))
    name = unquote(parts.path[1:]) or asked.pop("dbname", "")
    if parts.scheme not in ("postgresql", "postgres") or not name:
        return None
    asked.pop("dbname", None)
    beside = parts._replace(path="/postgres", query=urlencode(asked)).geturl()
    return join(["createdb", f"--maintenance-db={beside}", name])


def leaves_open(state: str) -> bool:
    """Whether an error at a COMMIT leaves open what became of it: no code, a lost connection (08), a server that stops."""
    return not state or state.startswith("08") or state in ("57P01", "57P02", "57P03")


ABSENT = "there is no such database"

# Where no connection came about there is no code, and the message is all that tells. Its words are not repeated.
_WHY = (
    (("database ", "does not exist"), ABSENT),
    (("role ", "does not exist"), "there is no such role"),
    (("authentication failed",), "the password is not the right one, or the user may not come in"),
    (("no password supplied",), "it wants a password"),
    (("no pg_hba.conf entry",), "the server lets nobody in from here"),
    (("could not translate host name",), "there is no such host"),
    (("failed to resolve host",), "there is no such host"),
    (("connection refused",), "nobody listens there"),
    (("timeout expired",), "nobody answered in time"),
    (("too many clients",), "the server has too many connections already"),
    (("starting up",), "the server is starting"),
    (("shutting down",), "the server is stopping"),
)


def why_unreachable(message: str) -> str:
    """Why no connection came about, in words of our own; empty where the message is none of those that are known. Pure."""
    lower = message.lower()
    return next((why for words, why in _WHY if all(word in lower for word in words)), "")
