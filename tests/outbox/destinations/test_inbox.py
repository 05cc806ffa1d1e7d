"""SQL inbox: what the other database does, and what it means. Real files of SQLite, a real server of PostgreSQL."""

from __future__ import annotations

import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest

from duly.errors import Misuse
from duly.outbox.destinations import CannotTell, Delivered, DidNot, Happened, NotSent, Refused, Unknown, destination_of
from duly.outbox.destinations.inbox import TABLE, meaning_of
from duly.records import replace
from tests.outbox.destinations.rogue import nobodys_port, rogue
from tests.outbox.destinations.table import BODY_SECRET, MESSAGE, Row, agrees, names
from tests.proxy import Proxy
from tests.servers import Server

if TYPE_CHECKING:
    from duly.outbox.destinations import Destination

SOON, LATE = 0.5, 20.0
OTHER = replace(MESSAGE, body=b'{"for": "somebody else"}')
PASSWORD = "inbox-5ecret"


def to(url: str, **settings: Any) -> Destination:
    return destination_of("shop", {"kind": "inbox", "url": url, **settings})


def delivered(destination: Destination, *, seconds: float = LATE) -> object:
    try:
        return destination.deliver(MESSAGE, seconds=seconds)
    finally:
        destination.close()


# -- SQLite -------------------------------------------------------------------------------------------------------------

SQLITE_TABLE = TABLE.format(table="duly_inbox", bytes="blob", instant="text")


class File:
    """A database of SQLite, with the receiver's table in it or another."""

    def __init__(self, folder: Path, made: str = SQLITE_TABLE) -> None:
        self.path = folder / "shop.db"
        self.url = f"sqlite:///{self.path}"
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(made)

    def rows(self) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute("select key, run, name, content_type, body from duly_inbox").fetchall()


def file(made: str = SQLITE_TABLE, **settings: Any) -> Callable[[Path], object]:
    return lambda folder: to(File(folder, made).url, **settings).deliver(MESSAGE, seconds=LATE)


def no_file(folder: Path) -> object:
    outcome = to(f"sqlite:///{folder}/nowhere.db").deliver(MESSAGE, seconds=LATE)
    assert not (folder / "nowhere.db").exists()
    return outcome


def no_database(folder: Path) -> object:
    (folder / "shop.db").write_bytes(b"a letter, and no database " * 100)
    return to(f"sqlite:///{folder}/shop.db").deliver(MESSAGE, seconds=LATE)


def held(folder: Path) -> object:
    it = File(folder)
    with closing(sqlite3.connect(it.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        return to(it.url).deliver(MESSAGE, seconds=SOON)


def full(folder: Path) -> object:
    """The disk takes no more at the moment of the commit: until then the row was in memory."""
    it = File(folder)
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))  # Python ignores SIGXFSZ
    try:
        return to(it.url).deliver(replace(MESSAGE, body=b"x" * 100_000), seconds=LATE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


def twice(folder: Path) -> object:
    destination = to(File(folder).url)
    destination.deliver(MESSAGE, seconds=LATE)
    return destination.deliver(MESSAGE, seconds=LATE)


def with_another_body(folder: Path) -> object:
    destination = to(File(folder).url)
    destination.deliver(OTHER, seconds=LATE)
    return destination.deliver(MESSAGE, seconds=LATE)


PICKY = SQLITE_TABLE.rstrip().removesuffix(")") + ", check (length(body) > 1000))"
SQLITE_ROWS = (
    Row("there is no such file: none is made", NotSent, no_file, "its database cannot be opened"),
    Row("the file is no database", NotSent, no_database, "SQLITE_NOTADB"),
    Row("there is no such table", Refused, file("create table other (a)"), "SQLITE_ERROR"),
    Row("another writer holds it for longer than we wait", NotSent, held, "SQLITE_BUSY"),
    Row("the table does not take the row", Refused, file(PICKY), "SQLITE_CONSTRAINT_CHECK"),
    Row("the body is longer than `max_length`", Refused, file(max_length=10)),
    Row("the disk fails at the commit", Unknown, full),
    Row("the row is inserted", Delivered, file(), "one row"),
    Row("a row with its key is there, with the same body", Delivered, twice, "its row was there"),
    Row(
        "a row with its key is there, with another body",
        Refused,
        with_another_body,
        "a row with its key has another body",
    ),
)


@pytest.mark.parametrize("row", SQLITE_ROWS, ids=names(SQLITE_ROWS))
def test_what_a_file_of_sqlite_does_means(row: Row, tmp_path: Path) -> None:
    agrees(row.how(tmp_path), row)


def test_a_message_is_one_row_however_often_it_comes(tmp_path: Path) -> None:
    it = File(tmp_path)
    for attempt in (1, 2, 3):
        to(it.url).deliver(replace(MESSAGE, attempt=attempt), seconds=LATE)

    assert it.rows() == [(MESSAGE.key, MESSAGE.run, "invoice", "application/json", MESSAGE.body)]


def test_on_sqlite_what_a_probe_does_not_find_did_not_happen(tmp_path: Path) -> None:
    it = File(tmp_path)
    destination = to(it.url)

    before = destination.probe(MESSAGE, seconds=LATE)
    destination.deliver(MESSAGE, seconds=LATE)
    after = destination.probe(MESSAGE, seconds=LATE)
    other = destination.probe(OTHER, seconds=LATE)

    assert (before, after) == (DidNot("no row has its key"), Happened("its row is there"))
    assert other == CannotTell("a row with its key has another body")
    assert destination.reads_own_writes
    assert destination.remembers is None
    assert to("sqlite:////nowhere/it.db").probe(MESSAGE, seconds=LATE) == CannotTell("its database cannot be opened")


# -- PostgreSQL ---------------------------------------------------------------------------------------------------------

POSTGRES_TABLE = TABLE.format(table="duly_inbox", bytes="bytea", instant="timestamptz")

# What a table does at an insert, or at the commit of one.
ON = """
create function does() returns trigger language plpgsql as $$ begin {what}; return new; end $$;
create constraint trigger does after insert on duly_inbox {when} for each row execute function does()
"""
AT_ONCE, AT_THE_COMMIT = "not deferrable", "deferrable initially deferred"
RAISES = "raise exception 'no: %', convert_from(new.body, 'utf8') using errcode = '{}', detail = new.key"
DIES = "perform pg_terminate_backend(pg_backend_pid())"


class Base:
    """A database of PostgreSQL."""

    def __init__(self, url: str, made: str = "") -> None:
        self.url = url
        self.do(POSTGRES_TABLE + ";" + made)

    def do(self, statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statements.encode())

    def rows(self) -> int:
        with psycopg.connect(self.url) as connection:
            row = connection.execute("select count(*) from duly_inbox").fetchone()
            assert row is not None
            return int(row[0])


def base(what: str = "", when: str = AT_ONCE, **settings: Any) -> Callable[[str], object]:
    def told(url: str) -> object:
        it = Base(url, ON.format(what=what, when=when) if what else "")
        return delivered(to(it.url, **settings))

    return told


def refused(url: str) -> object:
    return delivered(to(f"postgresql://ada:{PASSWORD}@127.0.0.1:{nobodys_port()}/shop"))


def no_postgres(url: str) -> object:
    with rogue(lambda caller: caller.say(b"220 mail.example.com\r\n")) as it:
        return delivered(to(f"postgresql://ada:{PASSWORD}@127.0.0.1:{it.port}/shop"))


def not_let_in(url: str) -> object:
    return delivered(to(urlsplit(url)._replace(path="/no_such_database").geturl()))


def no_table(url: str) -> object:
    return delivered(to(url))


def key_in_the_hands_of_another(url: str) -> object:
    it = Base(url)
    with psycopg.connect(it.url) as other:
        other.execute("insert into duly_inbox values (%s, '', '', '', '')", [MESSAGE.key])
        return delivered(to(it.url), seconds=SOON)


def twice_there(url: str) -> object:
    Base(url)
    delivered(to(url))
    return delivered(to(url))


def another_body_there(url: str) -> object:
    Base(url)
    other = to(url)
    other.deliver(OTHER, seconds=LATE)
    other.close()
    return delivered(to(url))


@contextmanager
def behind(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url, b"COMMIT")
    try:
        yield proxy
    finally:
        proxy.close()


def swallowed(url: str) -> object:
    it = Base(url)
    with behind(it.url) as proxy:
        proxy.swallow(1)
        outcome = delivered(to(proxy.url))
    assert it.rows() == 0
    return outcome


def reply_swallowed(url: str) -> object:
    it = Base(url)
    with behind(it.url) as proxy:
        proxy.swallow_the_reply_of(1)
        outcome = delivered(to(proxy.url))
    assert it.rows() == 1
    return outcome


LOST = "the connection was lost, at the commit"
POSTGRES_ROWS = (
    Row("the connection is refused", NotSent, refused, "no connection to its database"),
    Row("it is no PostgreSQL", NotSent, no_postgres, "no connection to its database"),
    Row("it does not let us in, or has no such database", NotSent, not_let_in, "no connection to its database"),
    Row("there is no such table, or we may not write there", Refused, no_table, "SQLSTATE 42P01"),
    Row("the table does not take the row", Refused, base(RAISES.format("23514")), "SQLSTATE 23514"),
    Row("a trigger of it says no", Refused, base(RAISES.format("P0001")), "SQLSTATE P0001"),
    Row(
        "it could not be serialized, or was the victim of a deadlock",
        NotSent,
        base(RAISES.format("40001")),
        "SQLSTATE 40001",
    ),
    Row("it is out of memory, disk or connections", NotSent, base(RAISES.format("53200")), "SQLSTATE 53200"),
    Row(
        "a transaction that goes on holds the key for longer than we wait",
        NotSent,
        key_in_the_hands_of_another,
        f"no answer within {SOON} s, before the commit",
    ),
    Row("the connection is lost before the commit", NotSent, base(DIES), "SQLSTATE 57P01, before the commit"),
    Row(
        "the commit is refused: a deferred constraint",
        Refused,
        base(RAISES.format("23514"), AT_THE_COMMIT),
        "SQLSTATE 23514",
    ),
    Row("the server goes away in the commit", Unknown, base(DIES, AT_THE_COMMIT), "SQLSTATE 57P01, at the commit"),
    Row("the commit is lost on its way", Unknown, swallowed, LOST),
    Row("the reply to the commit is lost", Unknown, reply_swallowed, LOST),
    Row("the row is inserted", Delivered, base(), "one row"),
    Row("a row with its key is there, with the same body", Delivered, twice_there, "its row was there"),
    Row(
        "a row with its key is there, with another body",
        Refused,
        another_body_there,
        "a row with its key has another body",
    ),
)


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    made = server.new_database()
    yield made
    server.drop(made)


@pytest.mark.parametrize("row", POSTGRES_ROWS, ids=names(POSTGRES_ROWS))
def test_what_a_postgres_does_means(row: Row, url: str) -> None:
    agrees(row.how(url), row, PASSWORD)


def test_after_a_lost_reply_the_row_is_found_and_not_inserted_again(url: str) -> None:
    it = Base(url)
    with behind(it.url) as proxy:
        proxy.swallow_the_reply_of(1)
        first = delivered(to(proxy.url))
    found = to(it.url).probe(MESSAGE, seconds=LATE)
    second = delivered(to(it.url))

    assert (first, second) == (Unknown(LOST), Delivered("its row was there"))
    assert found == Happened("its row is there")
    assert it.rows() == 1


def test_one_row_after_the_other_goes_over_one_connection_and_one_that_was_lost_while_it_was_idle_costs_nothing(
    url: str,
) -> None:
    it = Base(url, "alter table duly_inbox add column backend int default pg_backend_pid()")
    destination = to(it.url)
    outcomes = [destination.deliver(replace(MESSAGE, key=key), seconds=LATE) for key in ("a", "b")]
    with psycopg.connect(it.url, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(backend) from duly_inbox where key = 'b'")
    outcomes += [destination.deliver(replace(MESSAGE, key=key), seconds=LATE) for key in ("c", "d")]
    destination.close()

    assert outcomes == [Delivered("one row")] * 4
    with psycopg.connect(it.url) as connection:
        backends: dict[str, int] = dict(connection.execute("select key, backend from duly_inbox").fetchall())
    assert backends["a"] == backends["b"] != backends["c"] == backends["d"]


def test_on_postgres_a_probe_that_finds_nothing_has_to_look_twice(url: str) -> None:
    Base(url)

    assert to(url).probe(MESSAGE, seconds=LATE) == DidNot("no row has its key")
    assert not to(url).reads_own_writes


def test_a_password_may_come_from_a_file(url: str, tmp_path: Path) -> None:
    Base(url)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")

    outcome = delivered(to(url, password_file=str(tmp_path / "password")))

    assert outcome == Delivered("one row")  # whoever is trusted is not asked for it


@pytest.mark.parametrize(
    ("sqlstate", "before", "at_the_commit"),
    [
        (None, NotSent, Unknown),
        ("08006", NotSent, Unknown),
        ("57P01", NotSent, Unknown),
        ("58030", NotSent, Unknown),
        ("XX000", NotSent, Unknown),
        ("40003", NotSent, Unknown),
        ("40001", NotSent, NotSent),
        ("40P01", NotSent, NotSent),
        ("55P03", NotSent, NotSent),
        ("57014", NotSent, NotSent),
        ("25006", NotSent, NotSent),
        ("53100", NotSent, NotSent),
        ("23505", Refused, Refused),
        ("22001", Refused, Refused),
        ("42501", Refused, Refused),
        ("P0001", Refused, Refused),
    ],
)
def test_what_a_sqlstate_means(sqlstate: str | None, before: type, at_the_commit: type) -> None:
    assert type(meaning_of(sqlstate, committing=False)) is before
    assert type(meaning_of(sqlstate, committing=True)) is at_the_commit


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, 'destinations.shop.url: it has to be there; write url = "postgresql://shop@db.example.com/shop"'),
        (
            {"url": "sqlite:///a.db", "table": "a; drop table b"},
            "destinations.shop.table: 'a; drop table b' is no name of a table",
        ),
        ({"url": "sqlite:///a.db", "url_env": "A"}, "destinations.shop.url and url_env are both there; keep one"),
        ({"url_env": f"x:{PASSWORD}"}, "destinations.shop.url_env: it takes the name of a variable, without $"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_write(settings: dict[str, object], said: str) -> None:
    with pytest.raises(Misuse) as told:
        destination_of("shop", {"kind": "inbox", **settings})

    assert str(told.value).startswith(said)
    assert PASSWORD not in str(told.value)
    assert BODY_SECRET not in str(told.value)


def test_without_the_package_of_its_database_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as where it is not installed
    it = to("postgresql://ada@127.0.0.1:1/shop")

    cause = "its database needs a package: pip install 'duly[postgres]'"
    assert delivered(it) == NotSent(cause)
    assert it.probe(MESSAGE, seconds=SOON) == CannotTell(cause)
