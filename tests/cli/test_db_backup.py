"""duly db backup, verify and restored: a copy while the ledger is worked on, whole or not there, and put back in its place."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from duly.cli.dispatch import dispatch
from duly.ledger.truths import TRUTHS
from duly.store import backup as backups
from duly.times import DAY
from tests.books import Book
from tests.servers import Server

COPY = "copies/ledger.db"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Book:
    """A ledger with a complete day, and a folder for copies, beside which the command line is called."""
    monkeypatch.chdir(tmp_path)
    Path("copies").mkdir()
    book = Book(tmp_path / "ledger.db")
    monkeypatch.setenv("DULY_LEDGER", book.path)
    book.job(contract="external")
    book.work_all()
    return book


def rows(path: str, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def amend(path: str, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


# -- backup -------------------------------------------------------------------------------------------------------------


def test_a_copy_is_the_ledger(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    os.chmod(book.path, 0o640)

    assert dispatch(["db", "backup", COPY, "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["file"], said["at"]) == (
        "duly.backup.v1",
        os.path.abspath(COPY),
        "2026-10-06T03:00:00Z",
    )
    assert said["bytes"] == os.path.getsize(COPY)
    assert os.listdir("copies") == ["ledger.db"]
    assert stat.S_IMODE(os.stat(COPY).st_mode) == 0o640
    assert rows(COPY, "select * from duly_run") == book.rows("select * from duly_run")


def test_a_copy_takes_the_place_of_another_only_if_that_is_said(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    Path(COPY).write_text("yesterday's")

    assert dispatch(["db", "backup", COPY]) == 64
    assert capsys.readouterr().err.endswith(f"  try: duly db backup {COPY} --replace\n")
    assert Path(COPY).read_text() == "yesterday's"

    assert dispatch(["db", "backup", COPY, "--replace"]) == 0
    assert rows(COPY, "select count(*) from duly_run") == [(1,)]


def test_the_ledger_is_no_copy_of_itself(book: Book) -> None:
    os.symlink(book.path, "copies/link.db")

    assert dispatch(["db", "backup", book.path, "--replace"]) == 64
    assert dispatch(["db", "backup", "copies/link.db", "--replace"]) == 64
    assert book.work_all() == []


def test_who_writes_goes_on_and_the_copy_is_of_one_instant(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step somebody completes a run: the copy ends all the same, and has none of them."""
    monkeypatch.setattr(backups, "PAGES", 1)
    written: list[str] = []

    def write(done: int, of: int) -> None:
        if len(written) < 10:
            book.clock.advance(DAY)
            written.extend(book.work_all())

    backups.backup(book.path, COPY, may_replace=False, now=book.clock.now, tell=write)

    assert len(written) == 10
    assert rows(COPY, "select count(*) from duly_run") == [(1,)]
    assert dispatch(["db", "verify", COPY]) == 0


def test_where_there_is_no_wal_a_copy_ends_too(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins anew when somebody has written meanwhile, and after a few times lets nobody write."""
    book.store.close()
    with closing(sqlite3.connect(book.path)) as connection:
        assert connection.execute("pragma journal_mode = delete").fetchone() == ("delete",)
    monkeypatch.setattr(backups, "PAGES", 1)
    written: list[str] = []

    def write(done: int, of: int) -> None:
        if len(written) < backups.BEGINNINGS:
            book.clock.advance(DAY)
            written.extend(book.work_all())

    backups.backup(book.path, COPY, may_replace=False, now=book.clock.now, tell=write)

    assert len(written) >= backups.BEGINNINGS - 1
    assert rows(COPY, "select count(*) from duly_run") == [(1 + len(written),)]
    assert dispatch(["db", "verify", COPY]) == 0


def test_nothing_is_left_of_a_copy_that_is_not_sound(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    Path(COPY).write_text("yesterday's")
    book.store.close()
    damage(book.path)

    assert dispatch(["db", "backup", COPY, "--replace"]) == 73

    assert "is not sound, and was not kept" in capsys.readouterr().err
    assert Path(COPY).read_text() == "yesterday's"
    assert os.listdir("copies") == ["ledger.db"]


def damage(path: str) -> None:
    """Overwrite a page in the midst of the attempts' tree, and leave the first ones."""
    ((root,),) = rows(path, "select rootpage from sqlite_master where name = 'duly_attempt'")
    ((size,),) = rows(path, "pragma page_size")
    assert isinstance(root, int)
    assert isinstance(size, int)
    with open(path, "r+b") as f:
        f.seek((root - 1) * size)
        f.write(b"\x55" * size)


def test_a_copy_that_cannot_be_written_says_so(book: Book) -> None:
    assert dispatch(["db", "backup", "nowhere/ledger.db"]) == 73


def test_of_postgresql_its_own_tool_makes_a_copy(capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://duly:hunter2@db.example/shop"

    assert dispatch(["db", "backup", "shop.dump", "--ledger", url]) == 64

    said = capsys.readouterr().err
    assert "  try: pg_dump --format=custom --file=shop.dump postgresql://duly@db.example/shop\n" in said


# -- verify -------------------------------------------------------------------------------------------------------------


def test_a_ledger_that_is_whole_is_said_to_be(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["db", "verify"]) == 0

    said = capsys.readouterr()
    assert said.out == ""
    assert f"{len(TRUTHS) + 2} things looked at, and all of them hold" in said.err


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("drop table duly_probe", "duly_probe is not there"),
        ("drop index duly_run_unsettled", "duly_run_unsettled is not there"),
        ("drop trigger duly_complete_run", "duly_complete_run is not there"),
        ("drop view duly_run_readable", "duly_run_readable is not there"),
        ("alter table duly_run add column mine text", "duly_run was changed"),
    ],
)
def test_what_a_ledger_lacks_is_found(change: str, found: str, book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["db", "backup", COPY])
    amend(COPY, change)
    capsys.readouterr()

    assert dispatch(["db", "verify", COPY]) == 1

    assert found in capsys.readouterr().out


def test_a_folder_is_no_ledger(book: Book, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["db", "verify", str(tmp_path)]) != 0

    assert f"there is no file {tmp_path}" in capsys.readouterr().err


def test_what_does_not_hold_is_named_with_the_runs(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["db", "backup", COPY])
    amend(COPY, "delete from duly_attempt")
    capsys.readouterr()

    assert dispatch(["db", "verify", COPY]) == 1

    said = capsys.readouterr()
    assert said.out == (
        "✗ completions-have-attempts: not so: every completed run has the attempt that completed it (I1)\n"
        "    export:2026-10-05[UTC]: completed\n"
    )
    assert os.listdir("copies") == ["ledger.db"]  # without a trace


@pytest.mark.parametrize(
    ("corruption", "found"),
    [
        ("update duly_migration set sha256 = 'of another file'", "migrations"),
        ("update duly_line set job = 99", "database"),
        ("update duly_run set series = 99", "series-of-runs"),
    ],
)
def test_programs_are_told_what_does_not_hold(
    book: Book, capsys: pytest.CaptureFixture[str], corruption: str, found: str
) -> None:
    amend(book.path, corruption)
    capsys.readouterr()

    assert dispatch(["db", "verify", "--json"]) == 1

    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["holds"]) == ("duly.verify.v1", False)
    assert found in [check["key"] for check in said["checks"] if not check["holds"]]


def test_a_damaged_page_is_found(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["db", "backup", COPY])
    damage(COPY)
    capsys.readouterr()

    assert dispatch(["db", "verify", COPY]) == 1

    assert capsys.readouterr().out.startswith("✗ database: not so: the database itself is sound\n")


def test_what_is_no_ledger_is_not_said_to_be_one(book: Book) -> None:
    Path("copies/notes.txt").write_text("to buy: milk" * 500)
    with closing(sqlite3.connect("copies/shop.db")) as connection, connection:
        connection.execute("create table t (x)")

    assert dispatch(["db", "verify", "copies/notes.txt"]) == 1
    assert dispatch(["db", "verify", "copies/shop.db"]) == 69
    assert dispatch(["db", "verify", "copies/nothing.db"]) == 69


def test_a_ledger_on_postgresql_is_verified_too(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with server.ledger() as url:
        assert dispatch(["db", "verify", "--ledger", url]) == 0
        with psycopg.connect(url) as connection:
            connection.execute("alter table duly.run add constraint mine check (fence >= 0) not valid")
            connection.execute("drop table duly.probe")
        capsys.readouterr()

        assert dispatch(["db", "verify", "--ledger", url]) == 1
        said = capsys.readouterr().out
        assert "the constraint mine was never validated" in said
        assert "duly.probe is not there" in said


# -- restoring ----------------------------------------------------------------------------------------------------------


def test_a_ledger_that_is_no_copy_has_to_be_told_until_when_it_is_whole(
    book: Book, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["db", "restored", "--reason", "the disk failed"]) == 64
    assert "--at" in capsys.readouterr().err


def test_a_copy_that_was_put_back_knows_it_once(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    """After that the ledger goes on, and a later failure is another one."""
    dispatch(["db", "backup", COPY])
    book.store.close()
    os.replace(COPY, book.path)
    capsys.readouterr()

    assert dispatch(["db", "restored", "--reason", "the disk failed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["at"] == "2026-10-06T03:00:00Z"
    assert dispatch(["db", "restored", "--reason", "the disk failed"]) == 64
