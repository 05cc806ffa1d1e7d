"""The ledger's file: who makes it, what it refuses, and what it leaves as it was."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic

import pytest

import duly
import duly.store.migrations  # what is imported late is imported here, before a test gives up its rights
import duly.store.owned.sqlite
from duly.errors import Misuse
from duly.store.sqlite import SqliteStore, ledger_path
from duly.testing.clock import HandClock
from tests.books import Book
from tests.work.bank import SOURCE, Bank

NOBODY = 65534


# -- making it ----------------------------------------------------------------------------------------------------------

OPEN_IT = """
import sys
from duly.store.sqlite import SqliteStore
import duly.store.migrations

print("ready", flush=True)
sys.stdin.readline()
print(SqliteStore(sys.argv[1]).ledger_id)
"""


def test_eight_processes_that_make_a_ledger_at_once_make_one(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")
    makers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", OPEN_IT, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
        for _ in range(8)
    ]
    for maker in makers:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "ready\n"

    said = [maker.communicate("\n")[0] for maker in makers]

    assert [maker.returncode for maker in makers] == [0] * 8
    assert len(set(said)) == 1
    assert said[0].strip() == SqliteStore(path).ledger_id


def test_a_file_of_ours_has_a_write_ahead_log(tmp_path: Path) -> None:
    duly.sqlite(tmp_path / "jobs.db").close()

    assert journal_mode(tmp_path / "jobs.db") == "wal"


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_a_database_that_was_there_keeps_its_journal_mode_and_its_tables(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma journal_mode = {mode}")
        connection.execute("create table customer (name text)")

    ledger = duly.sqlite(path)

    assert journal_mode(path) == ("wal" if mode == "wal" else "delete")  # only wal is a mode of the file
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select * from customer").fetchall() == []
    claim = ledger.take("export:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    claim.complete()
    ledger.close()


def journal_mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("pragma journal_mode").fetchone()[0])


def test_a_ledger_that_was_made_before_is_opened_as_it_is(tmp_path: Path) -> None:
    first = SqliteStore(str(tmp_path / "jobs.db"))

    second = SqliteStore(str(tmp_path / "jobs.db"))

    assert (first.ledger_id, first.namespace) == (second.ledger_id, second.namespace)


def test_two_ledgers_have_two_identities(tmp_path: Path) -> None:
    assert SqliteStore(str(tmp_path / "a.db")).ledger_id != SqliteStore(str(tmp_path / "b.db")).ledger_id


def test_a_missing_ledger_is_not_made_by_whoever_only_looks(tmp_path: Path) -> None:
    with pytest.raises(duly.NoLedger):
        SqliteStore(str(tmp_path / "jobs.db"), create=False)
    (tmp_path / "shop.db").write_bytes(b"")
    with pytest.raises(duly.NoLedger):
        SqliteStore(str(tmp_path / "shop.db"), create=False)

    assert sorted(file.name for file in tmp_path.iterdir()) == ["shop.db"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(duly.LedgerUnwritable, match="no folder"):
        duly.sqlite(tmp_path / "nowhere" / "jobs.db")


def test_a_clock_by_hand_is_not_given_to_a_ledger_that_has_a_clock(tmp_path: Path) -> None:
    duly.sqlite(tmp_path / "jobs.db").close()

    with pytest.raises(ValueError, match="clock of its own"):
        HandClock(str(tmp_path / "jobs.db"))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("jobs.db", "jobs.db"),
        ("/var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
    ],
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert ledger_path(url) == path


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/jobs.db", "mysql://host/jobs"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(Misuse, match=r"^ledger:"):
        ledger_path(url)


# -- versions -----------------------------------------------------------------------------------------------------------


def test_a_ledger_that_only_newer_releases_may_write_is_refused(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.amend("update duly_meta set value = '99' where name = 'min_writer'")

    with pytest.raises(duly.LedgerTooNew, match="upgrade duly"):
        duly.sqlite(book.path)


def test_a_newer_ledger_that_lets_us_write_is_written(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.amend("update duly_meta set value = '99' where name = 'schema'")

    ledger = duly.sqlite(book.path)

    claim = ledger.take("export:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    claim.release()
    ledger.close()


def test_a_ledger_that_is_migrated_under_an_open_store_is_written_no_more(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "bank.db")
    credit = bank.daily_credit()
    credit.run("2026-09-12")
    bank.amend("update duly_meta set value = '99' where name = 'min_writer'")

    with pytest.raises(duly.LedgerTooNew):
        credit.run("2026-09-13")
    with bank.connected() as connection, pytest.raises(duly.LedgerTooNew):
        duly.once(connection, "credit:2026-09-13[UTC]")

    assert bank.units == 10
    assert isinstance(credit.run("2026-09-12"), duly.AlreadyCompleted)  # looking is allowed


# -- damage -------------------------------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_told_apart_from_a_missing_ledger(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_bytes(b"PK\x03\x04 this is not a database" * 100)

    with pytest.raises(duly.LedgerCorrupt, match=r"jobs\.db"):
        duly.sqlite(tmp_path / "jobs.db")


def test_a_damaged_file_is_told_and_never_a_duplicate(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "bank.db")
    credit = bank.daily_credit()
    credit.run("2026-09-12")
    bank.ledger.close()
    bank.store.close()
    bank.amend("pragma wal_checkpoint(truncate)")
    with open(bank.path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(os.path.getsize(bank.path) - 4096))

    with pytest.raises(duly.LedgerCorrupt):
        duly.sqlite(bank.path).take("credit", "2026-09-13")


# -- rights -------------------------------------------------------------------------------------------------------------


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who owns nothing here. Root may write what is read-only, so root becomes nobody for a while."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if me == 0:
            os.seteuid(0)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that every user may enter, and only its owner may write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


def read_only(path: Path) -> None:
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


def test_a_folder_that_may_not_be_written_is_told_when_the_ledger_is_made(shared_folder: Path) -> None:
    read_only(shared_folder)

    with without_rights(), pytest.raises(duly.LedgerUnwritable, match=r"jobs\.db"):
        duly.sqlite(shared_folder / "jobs.db")


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("what", ["file", "file and folder"])
def test_a_ledger_that_may_not_be_written_is_told_and_never_a_duplicate(
    shared_folder: Path, what: str, mode: str
) -> None:
    path = shared_folder / "jobs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma journal_mode = {mode}")
        connection.execute("create table mine (x)")
    ledger = duly.sqlite(path)
    claim = ledger.take("export:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    claim.complete()
    ledger.close()
    for file in shared_folder.iterdir():
        read_only(file)
    if what == "file and folder":
        read_only(shared_folder)

    with without_rights(), pytest.raises(duly.LedgerUnavailable, match=r"jobs\.db") as caught:
        duly.sqlite(path).take("export:2026-09-14[UTC]")

    assert not isinstance(caught.value, duly.NoLedger | duly.LedgerCorrupt)


# -- busy ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_database_held_by_a_foreign_writer_is_busy_after_the_time_out_and_not_before(
    tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma journal_mode = {mode}")
        connection.execute("create table mine (x)")
    ledger = duly.sqlite(path, busy_seconds=0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("begin immediate")
        began = monotonic()

        with pytest.raises(duly.LedgerBusy, match="Try again"):
            ledger.take("export:2026-09-13[UTC]")

        assert monotonic() - began >= 0.2
        foreign.execute("rollback")
    claim = ledger.take("export:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    claim.release()
    ledger.close()


def test_a_database_held_exclusively_is_busy_after_the_time_out_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    duly.sqlite(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("pragma locking_mode = exclusive")
        foreign.execute("create table mine (x)")
        began = monotonic()

        with pytest.raises(duly.LedgerBusy):
            duly.sqlite(path, busy_seconds=0.2)

        assert monotonic() - began >= 0.2


def test_a_clock_set_by_hand_is_read_as_patiently_as_all_else(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = delete")
        connection.execute("create table mine (x)")
    clock = HandClock(str(path), at="2026-10-06T03:00:00Z")
    store = SqliteStore(str(path), busy_seconds=0.2)
    assert store.now() == clock.now()
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("begin exclusive")
        began = monotonic()

        with pytest.raises(duly.LedgerBusy):
            store.now()

        assert monotonic() - began >= 0.2
        foreign.execute("rollback")
    store.close()


def test_a_reader_waits_while_a_rollback_journal_is_committed(tmp_path: Path) -> None:
    """Without a write-ahead log nobody reads while somebody commits."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = delete")
        connection.execute("create table mine (x)")
    ledger = duly.sqlite(path, busy_seconds=0.2)
    credit = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    credit.run("2026-09-13")
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("begin exclusive")
        began = monotonic()

        with pytest.raises(duly.LedgerBusy):
            credit.run("2026-09-13")

        assert monotonic() - began >= 0.2
        foreign.execute("rollback")
    assert isinstance(credit.run("2026-09-13"), duly.AlreadyCompleted)
    ledger.close()
