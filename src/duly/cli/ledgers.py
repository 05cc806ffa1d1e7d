"""Which ledger a command means: `--ledger`, else `$DULY_LEDGER`, else what `[ledger]` of the configuration says, else the one
place that every call of this user shares.
"""

from __future__ import annotations

import os

from duly.errors import LedgerUnwritable, Misuse
from duly.records import record, replace
from duly.store import BUSY_SECONDS, without_psycopg
from duly.store.sqlite import SqliteStore, ledger_path
from duly.times import SECOND
from duly.work.whereabouts import files_of, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger
    from duly.work.configuration import Layers


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


@record
class NamedLedger:
    """A ledger by its URL or bare path, and who named it, where that was not the command line; empty, if nobody did."""

    url: str
    source: str = ""
    busy_seconds: float = BUSY_SECONDS
    unnamed: bool = False

    def __repr__(self) -> str:
        from duly.redaction import shown_url

        return f"<NamedLedger {shown_url(self.url)}>"

    @property
    def path(self) -> str:
        """The file of a SQLite ledger. Raises `Misuse` for another kind, and says who named it."""
        try:
            return ledger_path(self.url)
        except Misuse as e:
            e.args = (self.said_of(str(e)),)
            raise

    def said_of(self, text: str) -> str:
        """What is said of the ledger, with who named it."""
        return f"{text} (named by {self.source})" if self.source else text


def configured() -> Layers | None:
    """The files that configure duly here; None where there is none, and then nothing is imported to read them."""
    files = files_of(working_directory(), os.environ)
    if not files:
        return None
    from duly.work.configuration import Layers

    return Layers(files)


_meant: list[NamedLedger] = []  # by whoever called this command line from a program of its own


class Meaning:
    """Within it a command line that names no ledger means this one (`contextlib` would cost every start its import).

    The environment of the process is as before, within it and after it: others read that, and their children inherit it, and a
    URL may have a password. So a `--config` that the command line has is not left there either.
    """

    def __init__(self, url: str, source: str) -> None:
        self._named = NamedLedger(url, source)

    def __enter__(self) -> None:
        self._config = os.environ.get("DULY_CONFIG")
        _meant.append(self._named)

    def __exit__(self, *_: object) -> None:
        _meant.remove(self._named)
        if self._config is None:
            os.environ.pop("DULY_CONFIG", None)
        else:
            os.environ["DULY_CONFIG"] = self._config


def url_of_caller() -> str:
    """The ledger that a program means which called this command line; empty where it was typed."""
    return _meant[-1].url if _meant else ""


def named_ledger(flag: str | None, layers: Layers | None = None) -> NamedLedger:
    """The ledger that is meant. `layers` are the files that configure duly, where they are known already.

    `--ledger` and `$DULY_LEDGER` stand for the whole table `[ledger]`, which is not read then.
    """
    if flag:
        return NamedLedger(flag)
    if _meant:
        return _meant[-1]
    if named := os.environ.get("DULY_LEDGER"):
        return NamedLedger(named, "$DULY_LEDGER")
    layers = layers or configured()
    entry = None if layers is None else layers.ledger()
    busy = BUSY_SECONDS if entry is None or entry.busy_micros is None else entry.busy_micros / SECOND
    if entry is not None and entry.names_one:
        return NamedLedger(entry.url(os.environ), entry.source, busy)
    return NamedLedger(default_ledger_url(os.environ, os.geteuid()), "", busy, unnamed=True)


def url_of_ledger(flag: str | None) -> str:
    """The URL, or the bare path, of the ledger that is meant."""
    return named_ledger(flag).url


def is_postgres(url: str) -> bool:
    """Whether a ledger's URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def path_of_ledger(flag: str | None) -> str:
    """The file of the SQLite ledger that is meant. Raises `Misuse` for another kind."""
    return named_ledger(flag).path


def open_ledger(flag: str | None) -> Store:
    """Open a ledger that is there. Creates nothing: raises `NoLedger`."""
    named = named_ledger(flag)
    if is_postgres(named.url):
        return _postgres(named)
    return SqliteStore(named.path, create=False, busy_seconds=named.busy_seconds)


def open_to_look(flag: str | None) -> Store | RestingLedger:
    """Open a ledger that is there for a view, which may be all that this user is allowed to. Raises `NoLedger`."""
    named = named_ledger(flag)
    if is_postgres(named.url):
        return _postgres(named)
    from duly.store.reader import open_to_read

    return open_to_read(named.path)


def open_or_make_ledger(flag: str | None, busy_seconds: float | None = None, layers: Layers | None = None) -> Store:
    """Open the ledger, making it where there is none. `busy_seconds`: how long to wait for a busy one.

    The folder of the ledger that nobody named is made too; that of a named one is not: a typo must not make a second one.
    The tables of a PostgreSQL ledger are never made by the way.
    """
    named = named_ledger(flag, layers)
    if busy_seconds is not None:
        named = replace(named, busy_seconds=busy_seconds)
    if is_postgres(named.url):
        return _postgres(named)
    path = named.path
    if named.unnamed:
        _make_folder(os.path.dirname(path))
    return SqliteStore(path, busy_seconds=named.busy_seconds)


def _postgres(named: NamedLedger) -> Store:
    try:
        from duly.store.postgres import PostgresStore
    except ImportError as e:
        raise without_psycopg() from e
    return PostgresStore(named.url, busy_seconds=named.busy_seconds)


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as e:
        raise LedgerUnwritable(
            f"cannot make {folder} for the ledger: {e.strerror}",
            next_step="export DULY_LEDGER=sqlite:////var/lib/duly/ledger.db",
        ) from e
