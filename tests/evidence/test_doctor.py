"""The doctor: each trouble that is planted is found, with a line to type; of a ledger that is well it says nothing bad."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from duly.cli.dispatch import dispatch
from duly.evidence.doctor import NOTE, OK, TROUBLE, WARNING, Finding, ledger, postgres, sqlite
from duly.ledger.found import FoundNothing
from duly.ledger.probe import hold_question, record_finding
from duly.schedule.facts import release_in_use
from duly.schedule.spec import cron, daily
from duly.store.postgres import PostgresStore
from duly.times import DAY, HOUR, SECOND
from duly.work.identity import new_attempt_id
from tests.books import LEASE, Book, PostgresBook
from tests.outbox import post as said
from tests.outbox.post import Post
from tests.servers import Server

EXAMINATIONS = {examine.__name__: examine for examine in ledger.EXAMINATIONS}


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A ledger that is well: one job, all of it done."""
    tmp_path.chmod(0o700)
    book = Book(tmp_path / "jobs.db")
    os.chmod(book.path, 0o600)
    for beside in ("-wal", "-shm", "-lock"):
        if os.path.exists(book.path + beside):
            os.chmod(book.path + beside, 0o600)
    book.job()
    book.work_all()
    return book


def seen(book: Book, examination: str) -> list[Finding]:
    return book.store.read(EXAMINATIONS[examination]())


def doctor(book: Book, *words: str) -> int:
    return dispatch(["doctor", "--ledger", book.path, *words])


# -- a ledger that is well ---------------------------------------------------------------------------------------------


def test_a_ledger_that_is_well_has_nothing_bad(book: Book, capfd: pytest.CaptureFixture[str]) -> None:
    assert doctor(book, "--json") == 0

    document = json.loads(capfd.readouterr().out)
    assert (document["schema"], document["needs_a_person"]) == ("duly.doctor.v1", False)
    assert {one["severity"] for one in document["findings"]} == {OK}
    assert {one["key"] for one in document["findings"]} == {
        *EXAMINATIONS,
        *(examine.__name__ for examine in (*sqlite.EXAMINATIONS, *sqlite.OF_FILE)),
    }
    assert doctor(book, "-q") == 0
    assert capfd.readouterr() == ("", "duly: nothing needs a person\n")


def test_it_changes_nothing(book: Book) -> None:
    """Not a byte of the ledger, nor of the files beside it, whatever is wrong with it."""
    book.clock.advance(40 * DAY)

    def state() -> dict[str, str]:
        folder = Path(book.path).parent
        # The index of the WAL is shared memory, in which a reader marks where it reads.
        files = (path for path in folder.iterdir() if not path.name.endswith("-shm"))
        return {path.name: f"{path.stat().st_mode} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files}

    with closing(sqlite3.connect(book.path)) as other:  # else who closes the ledger last writes the WAL into the file
        other.execute("select count(*) from duly_run").fetchone()
        before = state()
        assert doctor(book) == 1
        assert state() == before


def test_a_ledger_that_cannot_be_opened_is_a_finding(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.db").write_bytes(b"this is no database at all" * 100)

    assert dispatch(["doctor", "--ledger", str(tmp_path / "jobs.db")]) == 1

    assert "opening" in capfd.readouterr().out
    assert dispatch(["doctor", "--ledger", str(tmp_path / "none.db"), "--json"]) == 1
    (found,) = json.loads(capfd.readouterr().out)["findings"]
    assert (found["key"], found["severity"]) == ("opening", TROUBLE)
    assert found["next_step"].startswith("ls -l ")


# -- what the ledger holds ---------------------------------------------------------------------------------------------


def no_poke(book: Book) -> None:
    book.clock.advance(3 * DAY)


def vanished(book: Book) -> None:
    book.clock.advance(DAY)
    book.take("2026-10-06")
    book.clock.advance(12 * LEASE)


def runs_for_long(book: Book) -> None:
    book.clock.advance(DAY)
    claim = book.take("2026-10-06")
    book.clock.advance(2 * DAY)
    book.renew(claim)


def lease_too_far_ahead(book: Book) -> None:
    book.clock.advance(DAY)
    book.take("2026-10-06")
    book.clock.advance(-HOUR)


def clock_back(book: Book) -> None:
    book.clock.advance(DAY)
    book.pause()
    book.clock.advance(-HOUR)


def unknown_run(book: Book) -> None:
    book.job("charge", contract="external")
    book.doubt(book.take(job="charge"))


def probe_cannot_tell(book: Book) -> None:
    unknown_run(book)
    book.lapse()
    run = book.find(job="charge")[1]
    question = book.write(hold_question(run, new_attempt_id(), lease=LEASE, probe_after=LEASE))
    assert question is not None
    book.write(record_finding(question, FoundNothing("no answer came", HOUR), by="host/9@1+b"))


def old_failure(book: Book) -> None:
    book.job("charge")
    book.fail(book.take(job="charge"), retry_in=None)
    book.clock.advance(40 * DAY)


def old_backfill(book: Book) -> None:
    book.job("charge", catch_up="latest")
    book.work_all("charge")
    book.amend("update duly_line set starts = 0")
    book.backfill("2026-10-01", "2026-10-03", job="charge")
    book.clock.advance(40 * DAY)


def stuck_message(book: Book) -> None:
    post = Post(book)
    book.job("mail")
    post.complete(book.take(job="mail"), "a")
    post.report(post.take_one(), said.REFUSED)


def nobody_relays(book: Book) -> None:
    book.job("mail")
    Post(book).complete(book.take(job="mail"), "a")
    book.clock.advance(2 * HOUR)


def older_tzdata(book: Book) -> None:
    here = release_in_use("Europe/Berlin").version
    book.amend(
        "insert into duly_zone_facts (zone, release, source, fingerprint) values ('Europe/Berlin', ?, 'elsewhere', '0')",
        f"{int(here[:4]) + 1}a",
    )


def drifted(book: Book) -> None:
    book.amend(
        "insert into duly_event (at, kind, by, reason, detail, before, after) values (?, 'tz_drift', '', '', '', '', '')",
        book.clock.now(),
    )


def dst_night(book: Book) -> None:
    """Berlin's clocks went from 03:00 back to 02:00 on 25 October 2026."""
    book.job("backup", cron("30 2 * * *", zone="Europe/Berlin"))


def failed_migration(book: Book) -> None:
    book.amend("delete from duly_migration")


def other_migration(book: Book) -> None:
    book.amend("update duly_migration set sha256 = 'of another text'")


def older_release(book: Book) -> None:
    book.amend("update duly_meta set value = '99' where name = 'min_writer'")


PLANTED: dict[str, tuple[Callable[[Book], None], str, str, str, str]] = {
    "no poke has come for long": (no_poke, "pokes", WARNING, "due for 2d3h, and no poke", "duly status export"),
    "an attempt is gone and nobody judges it": (
        *(vanished, "leases", WARNING, "its attempt is gone for 11m"),
        "duly explain 'export:2026-10-06[UTC]'",
    ),
    "an attempt runs for long": (
        *(runs_for_long, "leases", WARNING, "runs for 2d"),
        "duly runs show 'export:2026-10-06[UTC]'",
    ),
    "a lease ends too far ahead": (
        *(lease_too_far_ahead, "leases", TROUBLE, "its lease ends in 1h1m, and is 1m long"),
        "duly runs show 'export:2026-10-06[UTC]'",
    ),
    "the clock went back": (clock_back, "clock", TROUBLE, "written 1h from now", "timedatectl status"),
    "an outcome is unknown": (
        *(unknown_run, "unknown", WARNING, "nobody knows what attempt 1 did 0s ago; no probe was asked"),
        "duly resolve 'charge:2026-10-05[UTC]' --as 'done|not-done' --evidence '…'",
    ),
    "a probe cannot tell": (
        *(probe_cannot_tell, "unknown", WARNING, "its probe was asked 1 times: cannot tell: no answer came"),
        "duly resolve 'charge:2026-10-05[UTC]' --as 'done|not-done' --evidence '…'",
    ),
    "an old failure holds a horizon": (
        *(old_failure, "horizons", NOTE, "charge:2026-10-05[UTC] is failed for 40d"),
        "duly explain 'charge:2026-10-05[UTC]'",
    ),
    "an old backfill holds a horizon": (
        *(old_backfill, "horizons", NOTE, "backfill 1 of charge, 2026-10-01..2026-10-03"),
        "duly backfill show 1",
    ),
    "a message is stuck": (
        *(stuck_message, "messages", WARNING, "billing: 0 of unknown outcome, 1 refused or dead"),
        "duly outbox list --to billing",
    ),
    "nobody delivers": (
        nobody_relays,
        *("messages", WARNING, "billing: 1 wait, the oldest 2h ago", "duly outbox list --to billing"),
    ),
    "another host has newer rules": (
        older_tzdata,
        *("zones", WARNING, "Europe/Berlin: this host reads 2", "pip install --upgrade tzdata"),
    ),
    "rules disagreed": (drifted, "zones", WARNING, "1 times in 30d", "duly runs events --kind tz_drift --since -30d"),
    "a time comes twice soon": (
        *(dst_night, "nights", NOTE, "backup, around 2026-10-25: 02:30 comes twice on 2026-10-25"),
        "duly next backup",
    ),
    "a migration is not on record": (failed_migration, "schema", TROUBLE, "one failed", "duly db migrate --dry-run"),
    "a migration was another": (
        *(other_migration, "schema", TROUBLE, "migration 1 was applied as another text"),
        "duly db migrate --dry-run",
    ),
    "only newer releases may write": (
        *(older_release, "schema", TROUBLE, "written only by releases that know schema 99"),
        "pip install --upgrade duly",
    ),
}


@pytest.mark.parametrize("trouble", PLANTED)
def test_what_is_planted_is_found(book: Book, trouble: str) -> None:
    plant, examination, severity, text, step = PLANTED[trouble]
    assert [one.severity for one in seen(book, examination)] == [OK]

    plant(book)

    (found,) = seen(book, examination)
    assert (found.examination, found.severity, found.step) == (examination, severity, step)
    assert text in found.seen


def test_what_is_meant_to_wait_is_not_found(book: Book) -> None:
    book.job("paused")
    book.pause("paused")
    book.job("retired")
    book.amend("update duly_line set ends = 0, next_due = null where id = (select max(id) from duly_line)")
    book.clock.advance(3 * DAY)
    book.work_all()

    assert [one.severity for one in seen(book, "pokes")] == [OK]


def test_a_night_that_is_far_off_is_not_told(book: Book) -> None:
    book.clock.set("2026-08-01T00:00:00Z")
    book.job("backup", cron("30 2 * * *", zone="Europe/Berlin"))
    book.job("noon", daily("Europe/Berlin", at="12:00"))

    assert [one.severity for one in seen(book, "nights")] == [OK]


# -- the file ----------------------------------------------------------------------------------------------------------


def of_file(book: Book, examination: str) -> list[Finding]:
    (examine,) = (each for each in sqlite.OF_FILE if each.__name__ == examination)
    return examine(book.path)


def all_write(path: str) -> None:
    os.chmod(path, 0o666)


def lock_for_all(path: str) -> None:
    os.chmod(path + "-lock", 0o666)


def lock_for_one(path: str) -> None:
    os.chmod(path, 0o660)
    for beside in ("-wal", "-shm"):
        os.chmod(path + beside, 0o660)
    os.chmod(path + "-lock", 0o600)


def lock_elsewhere(path: str) -> None:
    os.rename(path + "-lock", path + "-elsewhere")
    os.symlink(path + "-elsewhere", path + "-lock")


def folder_for_all(path: str) -> None:
    os.chmod(os.path.dirname(path), 0o777)


WRONG_MODES: dict[str, tuple[Callable[[str], None], str, str, str]] = {
    "everybody writes the ledger": (all_write, TROUBLE, "may be written by every user of this host", "chmod o-w"),
    "everybody takes the lock": (lock_for_all, WARNING, "they can stop all who do", "chmod --reference="),
    "not all who write take the lock": (lock_for_one, TROUBLE, "they cannot claim", "chmod --reference="),
    "the lock is a link": (lock_elsewhere, TROUBLE, "is a symbolic link", "ls -l"),
    "everybody writes the folder": (folder_for_all, TROUBLE, "put another file in the ledger's place", "chmod o-w"),
}


@pytest.mark.parametrize("wrong", WRONG_MODES)
def test_wrong_permissions_are_found(book: Book, wrong: str) -> None:
    plant, severity, text, step = WRONG_MODES[wrong]
    assert [one.severity for one in of_file(book, "permissions")] == [OK]

    plant(book.path)

    found = {one.severity: one for one in of_file(book, "permissions") if text in one.seen}
    assert found[severity].step.startswith(step)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_owner_is_found(book: Book) -> None:
    os.chown(book.path + "-lock", 65534, 65534)

    (found,) = of_file(book, "permissions")

    assert (found.severity, found.step) == (TROUBLE, f"chown 0:{os.stat(book.path).st_gid} {book.path}-lock")


def test_a_wal_that_grew_is_found(book: Book) -> None:
    os.truncate(book.path + "-wal", sqlite.LARGE_WAL + 1)

    (found,) = of_file(book, "wal")

    assert (found.severity, found.step) == (WARNING, f"fuser -v {book.path}")


def test_a_network_file_system_and_a_full_disk_are_found() -> None:
    (network,) = sqlite.on_disk("/srv/jobs.db", "nfs4", 1 << 40)
    (full,) = sqlite.on_disk("/srv/jobs.db", None, 1 << 20)

    assert (network.severity, "nfs4" in network.seen) == (TROUBLE, True)
    assert (full.severity, full.step) == (WARNING, "df -h /srv")


def test_a_damaged_file_is_found(book: Book, capfd: pytest.CaptureFixture[str]) -> None:
    book.store.close()
    with closing(sqlite3.connect(book.path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        (root,) = connection.execute("select rootpage from sqlite_master where name = 'duly_event_run'").fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    with open(book.path, "r+b") as f:
        f.seek((root - 1) * size + 100)
        f.write(os.urandom(size - 100))
        f.seek((root - 1) * size)
        f.write(b"\xff" * 8)

    assert doctor(book, "--json") == 1

    findings = {one["key"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert findings["integrity"]["severity"] == TROUBLE


def test_a_file_that_keeps_another_journal_is_noted(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table balance (units integer)")
    book = Book(tmp_path / "shop.db")

    (found,) = book.store.read(sqlite.journal())

    assert (found.severity, "delete" in found.seen) == (NOTE, True)


# -- the server --------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_postgres(server: Server) -> Iterator[PostgresBook]:
    url = server.new_database()
    yield PostgresBook(url)
    server.drop(url)


def test_a_ledger_on_postgres_that_is_well_has_nothing_bad(
    on_postgres: PostgresBook, capfd: pytest.CaptureFixture[str]
) -> None:
    on_postgres.job()
    on_postgres.work_all()

    dispatch(["doctor", "--ledger", on_postgres.path, "--json"])

    findings = json.loads(capfd.readouterr().out)["findings"]
    keys = {one["key"] for one in findings}
    assert keys == {*EXAMINATIONS, *(examine.__name__ for examine in postgres.EXAMINATIONS), "pooler"}
    # How this server is set, and who else uses it, is not ours to say.
    bad = [one for one in findings if one["severity"] in (WARNING, TROUBLE)]
    assert [one for one in bad if one["key"] not in ("settings", "transactions")] == []


def test_what_the_database_is_set_to_is_found(on_postgres: PostgresBook, capfd: pytest.CaptureFixture[str]) -> None:
    name = psycopg.conninfo.conninfo_to_dict(on_postgres.path)["dbname"]
    with psycopg.connect(on_postgres.path, autocommit=True) as connection:
        for setting in ("synchronous_commit = off", "statement_timeout = '90s'"):
            connection.execute(f'alter database "{name}" set {setting}'.encode())

    assert dispatch(["doctor", "--ledger", on_postgres.path, "--json"]) == 1

    told = [one["seen"] for one in json.loads(capfd.readouterr().out)["findings"] if one["key"] == "settings"]
    assert any("synchronous_commit is off" in text for text in told)
    assert any("statement_timeout is 90000 ms" in text for text in told)


WELL = {
    "server_version_num": "160004",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "idle_in_transaction_session_timeout": "900000",
    "statement_timeout": "0",
    "default_transaction_read_only": "off",
}


@pytest.mark.parametrize(
    ("name", "setting", "severity"),
    [
        ("server_version_num", "120020", TROUBLE),
        ("fsync", "off", TROUBLE),
        ("full_page_writes", "off", TROUBLE),
        ("synchronous_commit", "off", TROUBLE),
        ("default_transaction_read_only", "on", TROUBLE),
        ("idle_in_transaction_session_timeout", "0", NOTE),
        ("statement_timeout", "30000", NOTE),
    ],
)
def test_each_setting_that_hurts_is_found(name: str, setting: str, severity: str) -> None:
    assert [one.severity for one in postgres.of_settings(WELL)] == [OK]

    (found,) = postgres.of_settings({**WELL, name: setting})

    assert found.severity == severity
    assert found.step.startswith("psql -c")


def test_a_transaction_that_is_open_for_long_is_found(
    on_postgres: PostgresBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LONG", 0)  # an hour is not waited for
    with psycopg.connect(on_postgres.path) as connection:
        connection.execute("select 'what it says is nobody''s business'")

        found = on_postgres.store.read(postgres.transactions())

        pid = connection.info.backend_pid
        assert [one.step for one in found if str(pid) in one.seen] == [f"psql -c 'select pg_terminate_backend({pid})'"]
        assert "business" not in str(found)


def test_a_role_that_may_only_look_is_noted(on_postgres: PostgresBook) -> None:
    role = f"looks_{os.getpid()}"
    with psycopg.connect(on_postgres.path, autocommit=True) as connection:
        connection.execute(f"create role {role}".encode())
        try:
            connection.execute(f"grant usage on schema duly to {role}".encode())
            connection.execute(f"grant select on all tables in schema duly to {role}".encode())
            joined = "&" if "?" in on_postgres.path else "?"
            looker = PostgresStore(f"{on_postgres.path}{joined}options=-c%20role%3D{role}")

            (found,) = looker.read(postgres.server())

            looker.close()
            assert (found.severity, "may look, and not write" in found.seen) == (NOTE, True)
            assert [one.severity for one in on_postgres.store.read(postgres.server())] == [OK]
        finally:
            connection.execute(f"drop owned by {role}".encode())
            connection.execute(f"drop role {role}".encode())


def test_a_pooler_in_transaction_mode_is_seen() -> None:
    (through,) = postgres.pooler(4711, 815)
    (direct,) = postgres.pooler(815, 815)

    assert (through.severity, through.step) == (NOTE, "duly daemon --help")
    assert direct.severity == OK


@pytest.mark.parametrize(
    ("by_server", "severity"),
    [(10, OK), (14, OK), (10 + SECOND // 2, OK), (3 * SECOND, WARNING), (-9 * SECOND, TROUBLE)],
)
def test_a_host_whose_clock_is_off_is_found(by_server: int, severity: str) -> None:
    (found,) = postgres.skew(10, by_server, 14)

    assert found.severity == severity
