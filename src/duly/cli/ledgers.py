"""Which ledger a command means: `--ledger`, else `$DULY_LEDGER`, else the one place that every call of this user shares."""

from __future__ import annotations

import os

from duly.errors import LedgerUnwritable, Misuse
from duly.store.sqlite import SqliteStore, ledger_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from duly.store.protocol import Store
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


def url_of_ledger(flag: str | None) -> str:
    """The URL, or the bare path, of the ledger that `--ledger`, or the environment, names."""
    return flag or default_ledger_url(os.environ, os.geteuid())


def is_postgres(url: str) -> bool:
    """Whether a ledger's URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def shown(url: str) -> str:
    """A ledger's URL as it may be printed: without its password."""
    scheme, slashes, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    return f"{scheme}://{name}@{place}" if slashes and at and colon else url


def path_of_ledger(flag: str | None) -> str:
    """The file of the SQLite ledger that `--ledger`, or the environment, names. Raises `Misuse` for another kind."""
    return ledger_path(url_of_ledger(flag))


def open_ledger(flag: str | None) -> Store:
    """Open a ledger that is there. Creates nothing: raises `NoLedger`."""
    url = url_of_ledger(flag)
    return _postgres(url, None) if is_postgres(url) else SqliteStore(ledger_path(url), create=False)


def open_to_look(flag: str | None) -> Store | RestingLedger:
    """Open a ledger that is there for a view, which may be all that this user is allowed to. Raises `NoLedger`."""
    url = url_of_ledger(flag)
    if is_postgres(url):
        return _postgres(url, None)
    from duly.store.reader import open_to_read

    return open_to_read(ledger_path(url))


def open_or_make_ledger(flag: str | None, busy_seconds: float | None = None) -> Store:
    """Open the ledger, making it where there is none. `busy_seconds`: how long to wait for a busy one.

    The folder of the ledger that nobody named is made too; that of a named one is not: a typo must not make a second one.
    The tables of a PostgreSQL ledger are never made by the way.
    """
    url = url_of_ledger(flag)
    if is_postgres(url):
        return _postgres(url, busy_seconds)
    path = ledger_path(url)
    if not flag and not os.environ.get("DULY_LEDGER"):
        _make_folder(os.path.dirname(path))
    return SqliteStore(path) if busy_seconds is None else SqliteStore(path, busy_seconds=busy_seconds)


def _postgres(url: str, busy_seconds: float | None) -> Store:
    try:
        from duly.store.postgres import PostgresStore
    except ImportError as e:
        raise Misuse(
            "ledger: a PostgreSQL ledger needs psycopg, which is not installed",
            next_step="pip install 'duly[postgres]'",
        ) from e
    return PostgresStore(url) if busy_seconds is None else PostgresStore(url, busy_seconds=busy_seconds)


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as e:
        raise LedgerUnwritable(
            f"cannot make {folder} for the ledger: {e.strerror}",
            next_step="export DULY_LEDGER=sqlite:////var/lib/duly/ledger.db",
        ) from e
