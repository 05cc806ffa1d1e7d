"""The ledger on SQLite: connections, transactions, and the answers to what an operation asks.

A write is `BEGIN IMMEDIATE` behind the writer lock, so that it never has to be upgraded and never fails for having waited
in the wrong place; a read is one snapshot and takes no lock. Commits that must survive are FULL. The journal is WAL where
the file is ours; a database that was there before keeps the mode that its owner chose.
"""

from __future__ import annotations

import os
from _thread import _local
from time import monotonic, sleep, time_ns

from duly.errors import (
    Conflict,
    LedgerBusy,
    LedgerCorrupt,
    LedgerForbidden,
    LedgerTooNew,
    LedgerUnavailable,
    LedgerUnwritable,
    Misuse,
    NoLedger,
    TransactionOwned,
)
from duly.ledger.ask import Ask, Statement, drive
from duly.store import BUSY_SECONDS as BUSY_SECONDS
from duly.store import SCHEMA, refuse_other_versions
from duly.store.lock import WriterLock, begin_pulse, has_pulse, lock_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import TypeVar

    from duly.ledger.ask import Operation
    from duly.store.borrowed import Origin
    from duly.store.owned.sqlite import OwnedTransaction

    T = TypeVar("T")
else:
    # The module sqlite3 is this one and adapters for datetimes, which the ledger has no use for: they, and what they
    # import, would cost a wrapper a quarter of its start.
    import _sqlite3 as sqlite3

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.01

# File systems whose locks SQLite cannot trust ("How To Corrupt An SQLite Database File", section 2.1).
NETWORK_FILE_SYSTEMS = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "glusterfs", "beegfs", "ncpfs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.ceph", "fuse.rclone"),
)


def ledger_path(url: str) -> str:
    """The file that a ledger's URL names: `sqlite:///relative`, `sqlite:////absolute`, or a bare path. Raises `Misuse`."""
    if ":memory:" in url or not url:
        raise Misuse("ledger: one in memory would be forgotten with its process; name a file, as sqlite:///jobs.db")
    if "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite" or not rest.startswith("/") or len(rest) < 2:
        raise Misuse(
            f"ledger: cannot open {scheme}://…; write sqlite:////absolute/path.db or sqlite:///relative/path.db"
        )
    return rest[1:]


def network_file_system(mounts: str, path: str) -> str | None:
    """The type of the network file system that a path lies on, by the text of /proc/self/mountinfo (proc(5)); else None."""
    best, kind = "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        # Octal escapes stand for blanks in a mount point.
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split(" ")[0]
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def refuse_network_file_system(path: str) -> None:
    """Raise `LedgerUnavailable` for a ledger whose locks could not be trusted."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            kind = network_file_system(f.read(), os.path.realpath(path))
    except OSError:  # not Linux, or no /proc
        return
    if kind:
        raise LedgerUnavailable(
            f"{path} lies on {kind}, a network file system whose locks SQLite cannot trust; "
            "put the ledger on a local disk, or use PostgreSQL when there are many hosts"
        )


def translated(error: sqlite3.Error, *, path: str, in_transaction: bool = False) -> Exception:
    """What an error of SQLite means for whoever works with the ledger. A busy database is never anything else (I12).

    An error of ours (a constraint, a statement that is none) stays what it is: it must not look like a ledger in trouble.
    """
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY_SNAPSHOT:
            return Conflict(
                "this transaction has read and can no longer become a writer; "
                "roll back, and start it with BEGIN IMMEDIATE"
            )
        if in_transaction:  # without a WAL it cannot be told from a time-out
            return LedgerBusy(
                f"the ledger {path} stayed busy, or this transaction has read and waits for one that waits for it; "
                "roll back, start it with BEGIN IMMEDIATE, and try again"
            )
        return LedgerBusy(f"the ledger {path} stayed busy; nothing was decided. Try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LedgerCorrupt(f"{path} is damaged or not an SQLite database ({error})")
    if code == sqlite3.SQLITE_READONLY and not os.access(path, os.W_OK, effective_ids=True):
        return LedgerForbidden(f"the ledger {path} may not be written by this user")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return LedgerUnwritable(f"the ledger {path} cannot be written ({error})")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        if os.path.isdir(path):
            return LedgerCorrupt(f"{path} is a folder, not a ledger")
        if os.path.exists(path) and not os.access(path, os.R_OK, effective_ids=True):  # trying again would not help
            return LedgerForbidden(f"the ledger {path} may not be read by this user")
        return LedgerUnavailable(f"the ledger {path} cannot be opened ({error})")
    if "no such table: duly_" in str(error) and "duly_meta" not in str(error):
        return LedgerCorrupt(f"{path} is a ledger without some of its tables ({error})")
    if "no such table: duly_" in str(error):
        return NoLedger(f"{path} holds no ledger yet; open it with duly.sqlite({path!r}), which makes one")
    if code == sqlite3.SQLITE_ERROR:
        return error
    return LedgerUnavailable(f"the ledger {path}: {error}")


# -- answering ----------------------------------------------------------------------------------------------------------

SPANS = """(select json_extract(value, '$[0]') as series, json_extract(value, '$[1]') as first,
        json_extract(value, '$[2]') as last from json_each(:spans)) spans"""

_rendered: dict[Statement, tuple[str, bool]] = {}


def render(statement: Statement) -> tuple[str, bool]:
    """A statement's text for SQLite, and whether it needs the time."""
    ready = _rendered.get(statement)
    if ready is None:
        sql = statement.sql.replace("{or_rollback}", "or rollback")
        for token in ("{share}", "{lock}", "{still}", "{alone}", "{free}", "{absent}"):  # one writer at a time
            sql = sql.replace(token, "")
        sql = sql.replace("{in_spans}", "")  # tables are read in the order that is written
        sql = sql.replace("{lockable}", "1").replace("{spans}", SPANS).replace("{beside}", "+")
        ready = _rendered[statement] = (sql.replace("{now}", ":now"), "{now}" in sql)
    return ready


_positional: dict[Statement, tuple[str, list[str], bool]] = {}


def positional(statement: Statement) -> tuple[str, list[str], bool]:
    """A statement's text with its parameters by place, their names in that order, and whether it needs the time.

    By name the module sqlite3 asks SQLite for the name of each parameter, makes a text of it, and lets the interpreter's lock
    go meanwhile: a hundred times a run, for which other threads wait. Read by hand: a wrapper imports no `re`.
    """
    ready = _positional.get(statement)
    if ready is None:
        sql, needs_now = render(statement)
        text, *parts = sql.split(":")
        names = []
        for part in parts:
            length = next((at for at, sign in enumerate(part) if not (sign.isalnum() or sign == "_")), len(part))
            if length:
                names.append(part[:length])
            text += f"{'?' if length else ':'}{part[length:]}"
        ready = _positional[statement] = (text, names, needs_now)
    return ready


class Answers:
    """Answers what an operation asks on one connection, inside whatever transaction that is in."""

    __slots__ = ("_path", "clock_by_hand", "connection")

    def __init__(self, connection: sqlite3.Connection, path: str, *, clock_by_hand: bool = False) -> None:
        self.connection = connection
        self._path = path
        self.clock_by_hand = clock_by_hand

    def now(self) -> int:
        """The instant: of this host, where SQLite is, or of the clock that a test set by hand."""
        if not self.clock_by_hand:
            return time_ns() // 1000
        instant: int = cursor_of(self.connection).execute("select at from duly_clock").fetchone()[0]
        return instant

    def __call__(self, ask: Ask) -> object:
        if ask.statement is None:
            return self.now() if ask.want == "now" else self._alive(ask)
        if ask.statement.only_locks:
            return None
        sql, names, needs_now = positional(ask.statement)
        named = {**ask.parameters, "now": self.now()} if needs_now else ask.parameters
        try:
            cursor = cursor_of(self.connection).execute(sql, [named[name] for name in names])
        except sqlite3.IntegrityError:
            if ask.statement.refuses is None:
                raise
            raise ask.statement.refuses from None
        if ask.want == "one":
            row = cursor.fetchone()
            cursor.close()  # an unfinished cursor would keep its read, and with it the WAL, open
            return row
        if ask.want == "do":
            return None
        return cursor.rowcount if ask.want == "count" else cursor.fetchall()

    def _alive(self, ask: Ask) -> bool | None:
        attempt_id = ask.parameters["attempt_id"]
        assert isinstance(attempt_id, bytes)
        if not self._path:  # in memory: whoever could hold it is this connection
            return False
        return has_pulse(lock_path(self._path), attempt_id)


def cursor_of(connection: sqlite3.Connection) -> sqlite3.Cursor:
    """A new cursor: a caller's row factory, or cursor class, is none of our rows' business.

    Not made as `sqlite3.Cursor(connection)`: a connection keeps a reference to each of its cursors, and lets go of those that
    are gone only in its own `cursor`. A daemon grew by three megabytes an hour.
    """
    cursor = sqlite3.Connection.cursor(connection)
    cursor.row_factory = None
    return cursor


# -- transactions -------------------------------------------------------------------------------------------------------


def connect(
    path: str,
    factory: type[sqlite3.Connection] = sqlite3.Connection,
    *,
    cached_statements: int = 128,
    seconds: float = BUSY_SECONDS,
) -> sqlite3.Connection:
    """A new connection to the ledger's file: autocommit, FULL, no waiting of SQLite's own.

    The first look at a file may meet one that is being opened, recovered or left by its last user: it is tried again for so
    many seconds.
    """
    # One thread uses it at a time; the collector may close it in another.
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        timeout=0,
        check_same_thread=False,
        factory=factory,
        cached_statements=cached_statements,
    )
    try:
        while_busy(lambda: cursor_of(connection).execute("pragma synchronous = full"), seconds=seconds)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def begin(connection: sqlite3.Connection, lock: WriterLock, *, path: str, seconds: float) -> None:
    """Take the writer lock, then `BEGIN IMMEDIATE`, in so many seconds together. Raises `LedgerBusy`.

    While holding the lock BEGIN is retried quickly: writers that do not know the lock would starve us otherwise.
    """
    deadline = monotonic() + seconds
    if not lock.acquire(seconds):
        raise LedgerBusy(f"the ledger {path} stayed busy for {seconds:g} s; nothing was decided. Try again")
    try:
        while_busy(lambda: cursor_of(connection).execute("begin immediate"), seconds=deadline - monotonic())
    except BaseException:
        lock.release()
        raise


def commit(connection: sqlite3.Connection, *, seconds: float) -> None:
    """Commit. In rollback-journal mode SQLite answers busy, and keeps the transaction, while others still read."""
    while_busy(connection.commit, seconds=seconds)


def while_busy(act: Callable[[], T], *, seconds: float) -> T:
    """Do it again while SQLite says busy, with short pauses, for so many seconds at most."""
    try:
        return act()
    except sqlite3.OperationalError as e:
        if not _is_busy(e):
            raise
    pause, deadline = _FIRST_PAUSE, monotonic() + seconds
    while True:
        sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        try:
            return act()
        except sqlite3.OperationalError as e:
            if not _is_busy(e) or monotonic() > deadline:
                raise


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY)


def facts_of(connection: sqlite3.Connection, *, seconds: float) -> dict[str, str]:
    """What a ledger says of itself."""
    read = "select name, value from duly_meta"
    return dict(while_busy(lambda: connection.execute(read).fetchall(), seconds=seconds))


def refuse_newer(connection: sqlite3.Connection) -> None:
    """A ledger may be migrated under a running process: what may write it is read in each writing transaction.

    Raises `LedgerTooNew`.
    """
    row = cursor_of(connection).execute("select value from duly_meta where name = 'min_writer'").fetchone()
    if int(row[0]) > SCHEMA:
        raise LedgerTooNew


# -- the store ----------------------------------------------------------------------------------------------------------


class SqliteStore:
    """One ledger in one SQLite file. Each thread gets a connection of its own; a forked child gets new ones.

    `busy_seconds` is how long a write waits for its turn before it raises `LedgerBusy`. With `create` a missing ledger is
    made, also inside a database that is there already. Raises `NoLedger`, `LedgerUnavailable`, `LedgerUnwritable`,
    `LedgerCorrupt`, `LedgerTooNew` or `LedgerTooOld`.
    """

    claim_looks = False

    def __init__(self, path: str, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = os.path.realpath(path)  # by whatever link it is reached, its lock is one file
        self.busy_seconds = busy_seconds
        self._sessions = _local()
        refuse_network_file_system(self.path)
        if not create and not os.path.exists(self.path):
            raise NoLedger(f"there is no ledger at {self.path}; `duly exec` makes one at its first run")
        connection = None
        try:
            if os.path.exists(self.path):
                connection = connect(self.path, seconds=busy_seconds)
            self._believe((connection and self._meta(connection)) or (self._create() if create else None))
        except BaseException as e:
            if connection is not None:
                connection.close()
            if isinstance(e, sqlite3.Error):
                raise translated(e, path=self.path) from e
            raise
        if connection is not None:
            # To open a file again, and read its schema again, costs a wrapper more than all that it asks.
            self._sessions.session = Session(self, connection)

    def _believe(self, meta: dict[str, str] | None) -> None:
        """What the ledger says of itself, if it is one that this release may use."""
        if meta is None:
            raise NoLedger(f"{self.path} is a database, but holds no ledger; `duly exec` makes one at its first run")
        if (
            not {"schema", "min_writer", "ledger_id", "namespace", "clock"} <= meta.keys()
            or not (meta["schema"] + meta["min_writer"]).isdigit()
        ):
            raise LedgerCorrupt(f"{self.path} is a ledger without the facts about itself, in duly_meta")
        refuse_other_versions(meta, name=self.path)
        self.ledger_id = meta["ledger_id"]
        self.namespace = meta["namespace"]
        self.clock_by_hand = meta["clock"] == "hand"

    def _meta(self, connection: sqlite3.Connection) -> dict[str, str] | None:
        try:
            return facts_of(connection, seconds=self.busy_seconds)
        except sqlite3.OperationalError as e:
            if "no such table" in str(e):
                return None
            raise

    def _create(self) -> dict[str, str]:
        from duly.store.migrations.sqlite import create  # needed once in a ledger's life

        return create(self.path, busy_seconds=self.busy_seconds)

    @property
    def session(self) -> Session:
        """This thread's session, opened when it is first asked for, or with the store; and anew in a forked child."""
        session: Session | None = getattr(self._sessions, "session", None)
        if session is None or session.pid != os.getpid():
            if session is not None:
                _forsaken.append(session)
            session = self._sessions.session = Session(self)
        return session

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, in one snapshot, without a lock and without a commit."""
        return self._session_for(operation).read(operation)

    def glance(self, operation: Operation[T]) -> T:
        """Run an operation that only looks, each statement by itself: no transaction has to be begun and ended for it."""
        return self._session_for(operation).glance(operation)

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        """Run an operation in a transaction of its own and commit it. Raises `LedgerBusy` when its turn does not come.

        Without `durable` the commit is not flushed: for what a later, flushed commit makes durable with it, and whose
        loss loses nothing.
        """
        session = self._session_for(operation)
        return session.write(operation, durable=durable, busy_seconds=busy_seconds or self.busy_seconds)

    def _session_for(self, operation: Operation[T]) -> Session:
        """This thread's session. An operation for which there is none was not begun, and is not left so."""
        try:
            return self.session
        except BaseException:
            operation.close()
            raise

    def claim_at_once(self, claim: Operation[T | None], *, durable: bool = True) -> T | None:
        """As `write`: there is no wire between."""
        return self.write(claim, durable=durable)

    def now(self) -> int:
        """The ledger's instant. A clock set by hand lies in the file, and may be busy as that may."""
        try:
            return while_busy(self.session.answers.now, seconds=self.busy_seconds)
        except sqlite3.Error as e:
            raise translated(e, path=self.path) from e

    def owned(self) -> OwnedTransaction:
        """This thread's transaction for a run's own effect."""
        session = self.session
        if session.owned is not None and session.owned.is_spent:
            session.owned.close()
            session.owned = None
        if session.owned is None:
            from duly.store.owned.sqlite import OwnedTransaction  # a wrapper of commands has no use for it

            session.owned = OwnedTransaction(self)
        return session.owned

    def begin_pulse(self, attempt_id: bytes) -> int:
        """Show a pulse for an attempt; the answer is the descriptor that holds it, to be closed at its end."""
        return begin_pulse(lock_path(self.path), attempt_id)

    def run_in(self, tx: object, operation: Operation[T]) -> T:
        """Run an operation in a caller's transaction on this very ledger. Raises `WrongLedger` for another."""
        from duly.store.borrowed import run_in

        return run_in(tx, operation, self.origin)

    def stamp(self) -> str:
        """What is another as soon as something was committed: nothing is opened for it."""
        from duly.store.stamp import stamp_of_file

        return stamp_of_file(self.path)

    def listen(self, wake: Callable[[], None], is_over: Callable[[], bool]) -> None:
        """Nobody tells: a file is looked at."""

    @property
    def origin(self) -> Origin:
        """The ledger, as a claim of it names it to a borrowed transaction."""
        from duly.store.borrowed import Origin

        return Origin(self.ledger_id, self.path, self.path)

    def close(self) -> None:
        """Close this thread's connections. The store may be used again."""
        session: Session | None = getattr(self._sessions, "session", None)
        if session is not None:
            session.close()
            del self._sessions.session


# SQLite's connections may not be used, not even closed, in a forked child: they are kept from the collector.
_forsaken: list[Session] = []


class Session:
    """One thread's connection to the ledger, with its writer lock."""

    __slots__ = ("_busy_seconds", "_file", "_path", "answers", "connection", "lock", "owned", "pid")

    def __init__(self, store: SqliteStore, connection: sqlite3.Connection | None = None) -> None:
        self.pid = os.getpid()
        self.owned: OwnedTransaction | None = None
        self._path = store.path
        self._busy_seconds = store.busy_seconds
        try:
            self.connection = connection or connect(store.path, seconds=store.busy_seconds)
        except sqlite3.Error as e:
            raise translated(e, path=store.path) from e
        self._file = file_at(store.path)
        self.lock = WriterLock(store.path)
        self.answers = Answers(self.connection, store.path, clock_by_hand=store.clock_by_hand)

    def close(self) -> None:
        self.connection.close()
        self.lock.close()
        if self.owned is not None:
            self.owned.close()
            self.owned = None

    def __del__(self) -> None:
        if self.pid == os.getpid() and hasattr(self, "lock"):
            self.close()

    def read(self, operation: Operation[T]) -> T:
        return self._through(operation, _read, self._busy_seconds)

    def glance(self, operation: Operation[T]) -> T:
        return self._through(operation, _glance, self._busy_seconds)

    def write(self, operation: Operation[T], *, durable: bool, busy_seconds: float) -> T:
        if self.owned is not None and self.owned.is_open:
            operation.close()
            raise TransactionOwned(
                "this thread's run.tx is open and holds the ledger; do this before it, or after the run"
            )
        return self._through(operation, self._write if durable else self._write_unflushed, busy_seconds)

    def _through(self, operation: Operation[T], act: Callable[[Operation[T], Answers, float], T], seconds: float) -> T:
        """Do it on the connection of the thread's runs where there is one, for it knows already what they wrote: one that
        finds the file written by another reads it all anew. While a run has it, or after one failed, on one beside it.
        """
        try:
            if self.owned is None or self.owned.is_open or self.owned.is_spent:
                return act(operation, self.answers, seconds)
            return self.owned.lend(operation, act, seconds)
        except sqlite3.Error as e:
            raise translated(e, path=self._path) from e
        finally:
            operation.close()

    def _write(self, operation: Operation[T], answers: Answers, seconds: float) -> T:
        connection = answers.connection
        try:
            begin(connection, self.lock, path=self._path, seconds=seconds)
            refuse_moved(self._path, self._file)
            refuse_newer(connection)
            result = drive(operation, answers)
            commit(connection, seconds=seconds)
        finally:
            try:
                if connection.in_transaction:
                    sqlite3.Connection.rollback(connection)
            finally:
                self.lock.release()
        return result

    def _write_unflushed(self, operation: Operation[T], answers: Answers, seconds: float) -> T:
        execute = cursor_of(answers.connection).execute
        execute("pragma synchronous = normal")  # an error inside a transaction
        try:
            return self._write(operation, answers, seconds)
        finally:
            execute("pragma synchronous = full")


def file_at(path: str) -> tuple[int, int]:
    """Which file stands at a path."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def refuse_moved(path: str, opened: tuple[int, int]) -> None:
    """A commit into a file that was deleted, or has another in its place, would be a commit that nobody sees.

    Raises `LedgerUnavailable`.
    """
    try:
        here = file_at(path)
    except OSError:
        here = None
    if here != opened:
        raise LedgerUnavailable(f"the ledger {path} was deleted or replaced while it was open")


def _read(operation: Operation[T], answers: Answers, seconds: float) -> T:
    connection = answers.connection
    try:
        cursor_of(connection).execute("begin")
        return _glance(operation, answers, seconds)
    finally:
        sqlite3.Connection.rollback(connection)


def _glance(operation: Operation[T], answers: Answers, seconds: float) -> T:
    """In rollback-journal mode a reader may meet a committing writer."""

    def patiently(ask: Ask) -> object:
        try:
            return answers(ask)
        except sqlite3.OperationalError:
            return while_busy(lambda: answers(ask), seconds=seconds)

    return drive(operation, patiently)
