"""Which ledger a command means: `--ledger`, else `$DULY_LEDGER`, else the one place that every call of this user shares."""

from __future__ import annotations

import os

from duly.errors import LedgerUnwritable, Misuse
from duly.store.sqlite import SqliteStore, ledger_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from duly.store.reader import RestingLedger


def default_ledger_url(environ: Mapping[str, str], uid: int) -> str:
    """The ledger that is meant when no flag names one. Pure. Raises `Misuse` where there is no home to keep it in."""
    if named := environ.get("DULY_LEDGER"):
        return named
    if uid == 0:
        return "sqlite:////var/lib/duly/ledger.db"
    state = environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):  # the XDG specification: a relative path is to be ignored
        return f"sqlite:///{state}/duly/ledger.db"
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        raise Misuse(
            "ledger: there is no home directory to keep it in",
            next_step="export DULY_LEDGER=sqlite:////var/lib/duly/ledger.db",
        )
    return f"sqlite:///{home}/.local/state/duly/ledger.db"


def path_of_ledger(flag: str | None) -> str:
    """The file of the ledger that `--ledger`, or the environment, names."""
    return ledger_path(flag or default_ledger_url(os.environ, os.geteuid()))


def open_ledger(flag: str | None) -> SqliteStore:
    """Open a ledger that is there. Creates nothing: raises `NoLedger`."""
    return SqliteStore(path_of_ledger(flag), create=False)


def open_to_look(flag: str | None) -> SqliteStore | RestingLedger:
    """Open a ledger that is there for a view, which may be all that this user is allowed to. Raises `NoLedger`."""
    from duly.store.reader import open_to_read

    return open_to_read(path_of_ledger(flag))


def open_or_make_ledger(flag: str | None, busy_seconds: float | None = None) -> SqliteStore:
    """Open the ledger, making it where there is none. `busy_seconds`: how long to wait for a busy one.

    The folder of the ledger that nobody named is made too; that of a named one is not: a typo must not make a second one.
    """
    path = path_of_ledger(flag)
    if not flag and not os.environ.get("DULY_LEDGER"):
        _make_folder(os.path.dirname(path))
    return SqliteStore(path) if busy_seconds is None else SqliteStore(path, busy_seconds=busy_seconds)


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as e:
        raise LedgerUnwritable(
            f"cannot make {folder} for the ledger: {e.strerror}",
            next_step="export DULY_LEDGER=sqlite:////var/lib/duly/ledger.db",
        ) from e
