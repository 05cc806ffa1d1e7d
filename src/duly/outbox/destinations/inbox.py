"""SQL inbox: one row in a table of another database, SQLite or PostgreSQL, with the key as its primary key.

The table is the receiver's, and made by it (`TABLE`; docs/destinations.md). The row is inserted where no row has the key;
where one has it, with the same body, that is an earlier sending of ours, and with another body a conflict. The commit is the
one point where an answer may be lost: what fails before it was surely not sent.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing, contextmanager
from math import ceil
from urllib.parse import quote, unquote, urlsplit

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, DidNot, Happened, NotSent, Refused, Unknown, too_long
from duly.outbox.destinations.line import Deadline, NoLine
from duly.outbox.destinations.probes import probe_of
from duly.outbox.destinations.settings import SecretMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    import psycopg

    from duly.outbox.destinations import Finding, Message, Outcome
    from duly.outbox.destinations.probes import Probe
    from duly.outbox.destinations.settings import Secret, Settings

TABLE = """\
create table {table} (
    key           text not null primary key,
    run           text not null,
    name          text not null,
    content_type  text not null,
    body          {bytes} not null,
    received_at   {instant} not null default current_timestamp
)
"""

# The receiver's own transaction reads a row, does what it says, and deletes it or notes that; the key stays for as long as the
# row does. A duplicate changes nothing: neither the row nor the instant at which it came.
INSERT = """\
insert into {table} (key, run, name, content_type, body)
values ({key}, {run}, {name}, {content_type}, {body})
    on conflict (key) do nothing
"""
LOOK = "select body from {table} where key = {key}"


def declared(settings: Settings) -> Inbox:
    """The destination that a table with `kind = "inbox"` declares."""
    url = settings.url(as_in="postgresql://shop@db.example.com/shop")
    table = settings.text("table", "duly_inbox", as_in="duly_inbox")
    if not all(part.isascii() and part.isidentifier() for part in table.split(".")) or table.count(".") > 1:
        raise Misuse(f'{settings.key("table")}: {table!r} is no name of a table; write table = "duly_inbox"')
    return Inbox(
        url=url,
        table=table,
        password=settings.secret("password"),
        probe=probe_of(settings),
        remembers=settings.remembers(None),
        max_length=settings.number("max_length", None),
    )


class Failed(Exception):
    """A statement or a commit failed. `outcome`: what that means, by the phase and by what the database said."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


if TYPE_CHECKING:

    class Database(Protocol):
        """What an inbox needs of a database. Each raises `Failed`."""

        is_worth_keeping: bool

        def within(self, deadline: Deadline) -> None: ...
        def insert(self, message: Message) -> bool: ...
        def look(self, message: Message) -> bytes | None: ...
        def commit(self) -> None: ...
        def close(self) -> None: ...


class Inbox:
    """A table of another database."""

    kind = "inbox"
    key_form = "primary key of the inbox"

    def __init__(
        self,
        *,
        url: Secret,
        table: str,
        password: Secret | None,
        probe: Probe,
        remembers: int | None,
        max_length: int | None,
    ) -> None:
        self.remembers = remembers
        self.max_length = max_length
        self._url = url
        self._table = table
        self._password = password
        self._probe = probe
        self._kept: tuple[str, Database] | None = None

    @property
    def reads_own_writes(self) -> bool:
        """On SQLite, where a commit that was not seen to end was not made. PostgreSQL may still be at it."""
        try:
            return self._url.read().startswith("sqlite:")
        except SecretMissing:
            return False

    def deliver(self, message: Message, *, seconds: float) -> Outcome:
        """Insert one row, unless it is there."""
        if (refused := too_long(message, self.max_length)) is not None:
            return refused
        deadline = Deadline(seconds)
        try:
            url = self._url.read()
            if (kept := self._take_kept(url, deadline)) is not None:
                outcome = self._put(kept, url, message)
                if not isinstance(outcome, NotSent) or deadline.is_over:
                    return outcome  # else it was surely not sent on that connection, and there may be a better one
            return self._put(self._opened(url, deadline), url, message)
        except (NoLine, SecretMissing) as e:
            return NotSent(str(e))

    def probe(self, message: Message, *, seconds: float) -> Finding:
        """Look for the row."""
        if self._probe.is_declared:
            return self._probe.ask(message, seconds=seconds)
        deadline = Deadline(seconds)
        try:
            with closing(self._opened(self._url.read(), deadline)) as database:
                found = database.look(message)
        except (NoLine, SecretMissing) as e:
            return CannotTell(str(e))
        except Failed as e:
            return CannotTell(e.outcome.evidence if isinstance(e.outcome, Delivered) else e.outcome.cause)
        if found is None:
            return DidNot("no row has its key")
        return (
            Happened("its row is there") if found == message.body else CannotTell("a row with its key has another body")
        )

    def close(self) -> None:
        """Let go of the connection."""
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None

    def _put(self, database: Database, url: str, message: Message) -> Outcome:
        """One row, committed. Where that went well the connection is kept: what fails on it before a commit costs nothing."""
        try:
            if database.insert(message):
                database.commit()
                outcome: Outcome = Delivered("one row")
                self._kept = (url, database) if database.is_worth_keeping else None
            else:
                outcome = self._duplicate(database.look(message), message)
        except Failed as e:
            outcome = e.outcome
        if self._kept is None:
            database.close()
        return outcome

    def _take_kept(self, url: str, deadline: Deadline) -> Database | None:
        """The connection that was kept, if it is to the same place."""
        if self._kept is None:
            return None
        (place, database), self._kept = self._kept, None
        if place != url:
            database.close()
            return None
        database.within(deadline)
        return database

    @staticmethod
    def _duplicate(found: bytes | None, message: Message) -> Outcome:
        if found is None:  # it was there, and its receiver has done with it in this moment
            return Delivered("a row with its key was there")
        return (
            Delivered("its row was there") if found == message.body else Refused("a row with its key has another body")
        )

    def _opened(self, url: str, deadline: Deadline) -> Database:
        scheme = url.partition(":")[0]
        if scheme == "sqlite":
            return Sqlite(url, self._table, deadline)
        if scheme in ("postgresql", "postgres"):
            return Postgres(url, self._table, self._password.read() if self._password else None, deadline)
        raise NoLine("its URL is not one of sqlite or postgresql")


# -- SQLite -------------------------------------------------------------------------------------------------------------

_FIELDS = ("key", "run", "name", "content_type", "body")


def _given(message: Message) -> dict[str, str | bytes]:
    return {
        "key": message.key,
        "run": message.run,
        "name": message.name,
        "content_type": message.content_type,
        "body": message.body,
    }


class Sqlite:
    """A transaction on a file of SQLite, which is there already: nothing is created."""

    is_worth_keeping = (
        False  # another file may have its name by now, and what was committed to the old one would be lost
    )

    def __init__(self, url: str, table: str, deadline: Deadline) -> None:
        import sqlite3

        self._words = {"table": table, **{name: f":{name}" for name in _FIELDS}}
        path = unquote(urlsplit(url).path).removeprefix("/")  # sqlite:///beside.db, sqlite:////var/lib/it.db
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(path)}?mode=rw", uri=True, timeout=deadline.left(), isolation_level=None
            )
        except sqlite3.Error:
            raise NoLine("its database cannot be opened") from None

    def within(self, deadline: Deadline) -> None:
        """It is never kept."""

    def insert(self, message: Message) -> bool:
        with _on_sqlite():
            self._connection.execute("begin immediate")
            return self._connection.execute(INSERT.format_map(self._words), _given(message)).rowcount == 1

    def look(self, message: Message) -> bytes | None:
        with _on_sqlite():
            row = self._connection.execute(LOOK.format_map(self._words), {"key": message.key}).fetchone()
            return None if row is None else _bytes(row[0])

    def commit(self) -> None:
        with _on_sqlite(committing=True):
            self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()  # what was not committed is rolled back


@contextmanager
def _on_sqlite(*, committing: bool = False) -> Iterator[None]:
    """What an error of SQLite means: by its result code, which are in sqlite3.h."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as e:
        code = getattr(e, "sqlite_errorcode", 0) & 0xFF
        name = getattr(e, "sqlite_errorname", type(e).__name__)
        if committing and code not in _SURELY_NOT_COMMITTED:
            raise Failed(Unknown(f"the commit failed: {name}")) from None
        raise Failed(Refused(name) if code in _REFUSED_BY_SQLITE else NotSent(name)) from None


_REFUSED_BY_SQLITE = (1, 18, 19, 20, 23, 25)  # ERROR (no such table), TOOBIG, CONSTRAINT, MISMATCH, AUTH, RANGE
_SURELY_NOT_COMMITTED = (5, 6, 8, 13, 19)  # BUSY, LOCKED, READONLY, FULL, CONSTRAINT: the transaction is as it was


def _bytes(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]


# -- PostgreSQL ---------------------------------------------------------------------------------------------------------


class Postgres:
    """A transaction on a connection of its own."""

    is_worth_keeping = True

    def __init__(self, url: str, table: str, password: str | None, deadline: Deadline) -> None:
        try:
            import psycopg
            from psycopg.conninfo import make_conninfo
        except ImportError:
            raise NoLine("its database needs a package: pip install 'duly[postgres]'") from None
        self._words = {"table": table, **{name: f"%({name})s" for name in _FIELDS}}
        self._deadline = deadline
        try:
            place = make_conninfo(url) if password is None else make_conninfo(url, password=password)
            wait = max(ceil(deadline.left()), 2)  # libpq takes whole seconds, and 2 at least
            self._connection = psycopg.connect(place, connect_timeout=wait, prepare_threshold=None)
        except (psycopg.Error, UnicodeError, ValueError):
            raise NoLine("no connection to its database") from None
        self._line = socket.socket(fileno=os.dup(self._connection.fileno()))

    def within(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def insert(self, message: Message) -> bool:
        with self._meaning():
            return self._cursor(INSERT, _given(message)).rowcount == 1

    def look(self, message: Message) -> bytes | None:
        with self._meaning():
            row = self._cursor(LOOK, {"key": message.key}).fetchone()
            return None if row is None else _bytes(row[0])

    def commit(self) -> None:
        with self._meaning(committing=True):
            self._connection.commit()

    def close(self) -> None:
        self._line.close()
        self._connection.close()  # what was not committed is rolled back

    def _cursor(self, statement: str, given: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(statement.format_map(self._words).encode(), given)

    @contextmanager
    def _meaning(self, *, committing: bool = False) -> Iterator[None]:
        import psycopg

        try:
            with self._deadline.over(lambda: self._line):
                yield
        except psycopg.Error as e:
            raise Failed(meaning_of(e.sqlstate, committing=committing, why=self._deadline.why)) from None


def meaning_of(sqlstate: str | None, *, committing: bool, why: Callable[[str], str] = str) -> Outcome:
    """What an error means, by its SQLSTATE (PostgreSQL's manual, appendix A); None: the connection was lost.

    An error that the server itself says of a commit means that the transaction was rolled back, but for those of a server that
    is going away.
    """
    if sqlstate is None or sqlstate[:2] in ("08", "58", "XX") or sqlstate in _GOING_AWAY:
        lost = why("the connection was lost" if sqlstate is None else f"SQLSTATE {sqlstate}")
        return Unknown(f"{lost}, at the commit") if committing else NotSent(f"{lost}, before the commit")
    if sqlstate[:2] in ("0A", "21", "22", "23", "2B", "3F", "42", "44", "P0"):
        return Refused(f"SQLSTATE {sqlstate}")
    return NotSent(f"SQLSTATE {sqlstate}")


_GOING_AWAY = ("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "40003")
