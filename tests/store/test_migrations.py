"""Migrations: each step is applied once and is on record; old code works on the next schema, unless that says it must not."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import duly
import duly.aio
from duly.errors import LedgerTooOld, LedgerUnwritable, MigrationDiffers, Misuse
from duly.ledger import states
from duly.ledger.open import Taken
from duly.ledger.records import Busy
from duly.store import SCHEMA, VERSION_LOCK
from duly.store.migrations import Step, apply, missing, postgres, script, split, sqlite, steps
from duly.testing.clock import HandClock
from tests.books import Book, PostgresBook
from tests.exec.stage import until
from tests.servers import Server

# Two steps that no release has: the ledger learns of priorities, then of labels.
PRIORITY = """
-- min_writer: as before
alter table duly_run add column priority integer;

create table duly_priority (
    job   integer not null,
    level integer not null
);
"""
LABEL = """
-- min_writer: as before
create table duly_label (series integer not null, body text not null);
create index label_body on duly_label (body);
"""
# And one after which a release that knows no priorities must not write.
CLOSED = PRIORITY.replace("as before", "2")
BROKEN = (
    "-- min_writer: as before\ncreate table duly_label (series integer);\ncreate table duly_run (series integer);\n"
)


class Place:
    """Where a ledger is, on either database, and its migrations with those that a story makes up."""

    def __init__(self, engine: str, where: str, folder: Path) -> None:
        self.engine, self.where = engine, where
        self._folder = folder
        folder.mkdir()

    def release(self, *made_up: str) -> list[Step]:
        """The steps of this release, and after them made-up ones."""
        for old in self._folder.iterdir():
            old.unlink()
        for number, sql in enumerate(made_up, start=SCHEMA + 1):
            text = sql if self.engine == "sqlite" else sql.replace("duly_", "duly.")
            (self._folder / f"{number:04}_made_up.{self.engine}.sql").write_text(text)
        return steps(self.engine, str(self._folder))

    def create(self, known: Sequence[Step] | None = None) -> dict[str, str]:
        if self.engine == "sqlite":
            return sqlite.create(self.where, by="dba@db1", known=known)
        return postgres.create(self.where, by="dba@db1", known=known)

    def migrate(self, known: Sequence[Step] | None = None) -> list[int]:
        if self.engine == "sqlite":
            return [step.number for step in sqlite.migrate(self.where, by="dba@db1", known=known)]
        return [step.number for step in postgres.migrate(self.where, by="dba@db1", known=known)]

    def pending(self, known: Sequence[Step] | None = None) -> list[int]:
        if self.engine == "sqlite":
            return [step.number for step in sqlite.pending(self.where, known=known)]
        return [step.number for step in postgres.pending(self.where, known=known)]

    def book(self) -> Book:
        """The ledger under a clock set by hand."""
        return Book(self.where) if self.engine == "sqlite" else PostgresBook(self.where)

    def ledger(self) -> duly.Ledger[Any]:
        return duly.sqlite(self.where) if self.engine == "sqlite" else duly.postgres(self.where)

    def ledger_aio(self) -> duly.aio.Ledger[Any]:
        return duly.aio.sqlite(self.where) if self.engine == "sqlite" else duly.aio.postgres(self.where)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.engine == "sqlite":
            with closing(sqlite3.connect(self.where)) as connection, connection:
                return connection.execute(sql).fetchall()
        with psycopg.connect(self.where) as server:
            cursor = server.execute(sql.replace("duly_", "duly.").encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def schema(self) -> int:
        ((value,),) = self.rows("select value from duly_meta where name = 'schema'")
        return int(value)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place("sqlite", str(tmp_path / "ledger.db"), tmp_path / "steps")
    server: Server = request.getfixturevalue("server")
    return Place("postgres", server.new_database(), tmp_path / "steps")


def complete_one(place: Place) -> None:
    """This release takes and completes a run."""
    claim = place.ledger().take("export:2026-10-05[UTC]")
    assert claim
    claim.complete()


# -- on record ----------------------------------------------------------------------------------------------------------


def test_both_databases_have_the_same_steps_up_to_the_schema_of_this_release() -> None:
    known = [[(step.number, step.name, step.min_writer) for step in steps(engine)] for engine in ("sqlite", "postgres")]

    assert known[0] == known[1]
    assert [number for number, *_ in known[0]] == list(range(1, SCHEMA + 1))


def test_a_new_ledger_has_every_step_on_record(place: Place) -> None:
    facts = place.create()

    on_record = place.rows("select number, name, sha256, by from duly_migration order by number")
    assert on_record == [(step.number, step.name, step.sha256, "dba@db1") for step in steps(place.engine)]
    assert (facts["schema"], facts["min_writer"], facts["clock"]) == (str(SCHEMA), "1", "system")
    assert re.fullmatch(r"[0-9a-f]{32}", facts["ledger_id"])
    assert facts["namespace"] == facts["ledger_id"]
    ((applied_at,),) = place.rows("select applied_at from duly_migration where number = 1")
    assert abs(applied_at - place.ledger()._store.now()) < 60_000_000


def test_a_ledger_takes_what_it_lacks_and_each_step_once(place: Place) -> None:
    place.create()
    known = place.release(PRIORITY, LABEL)

    assert place.pending(known) == [2, 3]
    assert place.schema == 1
    assert place.migrate(known) == [2, 3]
    assert place.migrate(known) == place.pending(known) == []
    assert place.schema == 3
    assert place.rows("select count(*) from duly_label") == [(0,)]


def test_making_a_ledger_that_is_there_changes_nothing_of_it(place: Place) -> None:
    made = place.create()

    assert place.create(place.release(PRIORITY)) == made

    assert place.schema == 1


def test_two_who_migrate_at_once_apply_each_step_once(place: Place) -> None:
    place.create()
    known = place.release(PRIORITY, LABEL)
    start, applied = threading.Barrier(4), list[int]()

    def migrate() -> None:
        start.wait()
        applied.extend(place.migrate(known))

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(applied) == [2, 3]
    assert place.rows("select number from duly_migration order by number") == [(1,), (2,), (3,)]


def test_a_step_that_fails_keeps_nothing_of_itself_and_all_of_those_before(place: Place) -> None:
    place.create()
    known = place.release(PRIORITY, BROKEN)

    with pytest.raises(
        LedgerUnwritable, match=r"0003_made_up\.\w+\.sql could not be applied .* nothing of it was kept"
    ):
        place.migrate(known)

    assert place.schema == 2
    assert place.pending(known) == [3]
    assert place.migrate(place.release(PRIORITY, LABEL)) == [3]  # it was never applied, so it may still be mended


def test_a_database_without_a_ledger_is_not_migrated(place: Place) -> None:
    with pytest.raises(duly.NoLedger) as caught:
        place.migrate()

    assert caught.value.next_step == "duly db create"


def test_a_step_that_was_edited_after_it_was_applied_is_refused_by_name(place: Place) -> None:
    place.create()
    place.migrate(place.release(PRIORITY))
    edited = place.release(PRIORITY + "-- a second thought\n", LABEL)

    for act in (place.migrate, place.pending):
        with pytest.raises(MigrationDiffers, match=r"0002_made_up\.\w+\.sql"):
            act(edited)

    assert place.schema == 2


def test_a_step_says_who_may_write_after_it(place: Place) -> None:
    with pytest.raises(ValueError, match=r"0002_made_up.*does not say in its head"):
        place.release("create table duly_label (series integer);\n")

    assert [step.min_writer for step in place.release(PRIORITY, CLOSED)] == [1, None, 2]


def test_line_ends_of_a_checkout_are_no_other_file(place: Place) -> None:
    before = place.release(LABEL)[-1]
    file = next(place._folder.iterdir())
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert steps(place.engine, str(place._folder))[-1].sha256 == before.sha256


# -- old code, new schema -----------------------------------------------------------------------------------------------


def test_old_code_tells_its_whole_story_on_the_next_schema(place: Place) -> None:
    book = place.book()
    book.job()
    book.complete(book.take("2026-10-01"))
    held = book.take("2026-10-02")
    place.migrate(place.release(PRIORITY, LABEL))  # under an open store, with an attempt at work

    assert book.renew(held)
    assert isinstance(book.ask("2026-10-02"), Busy)
    book.complete(held)
    book.fail(book.take("2026-10-03"), retry_in=None)
    failed = book.find("2026-10-03")[1]
    book.retry(failed)
    doubtful = book.take("2026-10-03")
    book.doubt(doubtful)
    book.resolve(failed, done=True, attempt_is_dead=True)
    book.reopen(failed)
    book.complete(book.take("2026-10-03"))
    book.skip("2026-10-04")
    book.unskip("2026-10-04")
    book.release(book.take("2026-10-04"))
    vanished = book.take("2026-10-04")
    book.lapse()
    taken_over = book.take("2026-10-04")
    with pytest.raises(duly.ClaimLost):
        book.complete(vanished)
    book.complete(taken_over)
    taken = book.poke()
    assert isinstance(taken, Taken)
    book.complete(taken.claim)

    assert place.schema == 3
    assert {state for _, state in book.runs()} == {states.COMPLETED, states.REPLACED}
    assert book.attempts(taken_over.run) == [(1, "released"), (2, "lost"), (3, "completed")]


def test_an_old_release_opens_a_newer_ledger_that_lets_it_write(place: Place) -> None:
    place.create()
    place.migrate(place.release(PRIORITY))

    complete_one(place)

    assert place.rows("select state, priority from duly_run") == [("completed", None)]
    assert place.migrate() == []  # nothing that it knows is missing


def test_an_old_release_is_refused_by_a_ledger_that_it_must_not_write(place: Place) -> None:
    place.create()
    place.migrate(place.release(CLOSED))

    with pytest.raises(duly.LedgerTooNew, match="upgrade duly"):
        place.ledger()
    for act in (place.migrate, place.pending):
        with pytest.raises(duly.LedgerTooNew, match="upgrade duly"):
            act()


@pytest.mark.parametrize("inline", [False, True])
def test_a_process_whose_ledger_is_closed_to_it_meanwhile_writes_no_more(place: Place, inline: bool) -> None:
    place.create()
    ledger = place.ledger()
    effects = []

    @ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, inline=inline)
    def export(run: duly.Run[Any]) -> None:
        effects.append(run.tx.execute("select 1").fetchone())

    export.run("2026-01-01")
    place.migrate(place.release(CLOSED))

    for refused in (lambda: export.run("2026-01-02"), lambda: ledger.take("export", "2026-01-03")):
        with pytest.raises(duly.LedgerTooNew):
            refused()

    assert len(effects) == 1
    assert place.rows("select state from duly_run where state = 'completed'") == [("completed",)]
    assert isinstance(export.run("2026-01-01"), duly.AlreadyCompleted)  # looking is allowed


@pytest.mark.parametrize("inline", [False, True])
def test_a_task_whose_ledger_is_closed_to_it_meanwhile_writes_no_more(place: Place, inline: bool) -> None:
    place.create()
    effects = []

    async def story(ledger: duly.aio.Ledger[Any]) -> None:
        @ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, inline=inline)
        async def export(run: duly.aio.Run[Any]) -> None:
            effects.append(await run.tx)

        await export.run("2026-01-01")
        place.migrate(place.release(CLOSED))
        with pytest.raises(duly.LedgerTooNew):
            await export.run("2026-01-02")
        await ledger.close()

    asyncio.run(story(place.ledger_aio()))

    assert len(effects) == 1
    assert place.rows("select state from duly_run where state <> 'open'") == [("completed",)]


def test_a_ledger_that_is_too_old_says_how_to_mend_it(place: Place) -> None:
    place.create()
    place.rows("update duly_meta set value = '0' where name = 'schema'")

    with pytest.raises(LedgerTooOld) as caught:
        place.ledger()

    assert caught.value.next_step == "duly db migrate"


def test_a_step_on_postgresql_waits_for_whoever_has_looked_whether_he_may_write(server: Server, tmp_path: Path) -> None:
    place = Place("postgres", server.new_database(), tmp_path / "steps")
    place.create()
    known = place.release(CLOSED)
    applied: list[int] = []
    migrating = threading.Thread(target=lambda: applied.extend(place.migrate(known)))
    waits = f"select 1 from pg_locks where locktype = 'advisory' and objid = {VERSION_LOCK} and not granted"

    @place.ledger().job("export", duly.daily("UTC"), catch_up=duly.EACH)
    def export(run: duly.Run[psycopg.Connection[Any]]) -> None:
        run.tx.execute("create table export (day text)")
        migrating.start()
        until(lambda: place.rows(waits), "the step waits")
        assert applied == []

    export.run("2026-10-05")
    migrating.join()

    assert applied == [2]
    assert place.rows("select state from duly_run") == [("completed",)]


# -- by hand ------------------------------------------------------------------------------------------------------------


def test_what_is_printed_makes_a_ledger_and_migrates_it(place: Place) -> None:
    known = place.release(PRIORITY, LABEL)
    for step in known:
        by_hand(place, script(step, by="dba's own hand"))

    assert place.migrate(known) == []
    assert place.rows("select by from duly_migration where number = 1") == [("dba's own hand",)]
    complete_one(place)


def by_hand(place: Place, text: str) -> None:
    if place.engine == "sqlite":
        with closing(sqlite3.connect(place.where)) as connection:
            connection.executescript(text)
        return
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed: nobody can run the SQL by hand here")
    call = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", place.where]
    subprocess.run(call, input=text, text=True, check=True)


def test_a_schema_that_was_made_beforehand_needs_no_right_to_make_one(server: Server) -> None:
    url = server.new_database()
    role = "duly_mig_plain"
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone() is None:
            connection.execute(f"create role {role} login".encode())
        connection.execute(f"create schema duly authorization {role}".encode())
    try:
        plain = re.sub(r"//[^@/]*@", f"//{role}@", url)

        assert postgres.create(plain)["schema"] == str(SCHEMA)
    finally:
        server.drop(url)
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"drop role {role}".encode())


# -- pieces -------------------------------------------------------------------------------------------------------------


def test_a_script_is_split_where_its_statements_end() -> None:
    function = "create function f() returns int language sql as $$\n  select 1;\n  select 2;\n$$;  -- its end; really\n"
    trigger = "create trigger t after insert on a\nbegin\n  select 1;\n  select 2;\nend;\n"
    plain = "select 1\n  from a;\n"

    assert split(plain + function + plain, "postgres") == [plain, function, plain]
    assert split(plain + trigger + plain, "sqlite") == [plain, trigger, plain]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_last_statement_that_does_not_end_is_refused_and_not_left_out(engine: str) -> None:
    whole = "select 1;\n\n-- that is all\n"
    assert split(whole, engine) == ["select 1;\n"]

    with pytest.raises(ValueError, match=r"no semicolon at its end: .*select 2"):
        split("select 1;\nselect 2\n", engine)


def test_what_a_ledger_lacks_is_found_by_number() -> None:
    known = [Step(number, "s", "sqlite", str(number), None) for number in (1, 2, 3)]
    recorded = [(known[0].number, known[0].sha256), (7, "of a newer release")]

    assert missing(recorded, known, min_writer=3, ledger="l.db") == known[1:]
    with pytest.raises(duly.LedgerTooNew):
        missing(recorded, known, min_writer=4, ledger="l.db")


def test_a_clock_by_hand_is_set_up_with_the_ledger(place: Place) -> None:
    clock = HandClock(place.where, at="2026-10-06T03:00:00Z")

    assert place.rows("select value from duly_meta where name = 'clock'") == [("hand",)]
    assert place.rows("select at from duly_clock") == [(clock.now(),)]


def test_a_clock_by_hand_keeps_no_connection_between_two_looks(server: Server) -> None:
    url = server.new_database()
    others = "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"

    clock = HandClock(url)

    with psycopg.connect(url, autocommit=True) as connection:
        until(lambda: connection.execute(others).fetchone() is None, "nobody else is connected", seconds=5)
    assert clock.now() == 0


# -- in the transaction of another tool ---------------------------------------------------------------------------------


def test_a_step_that_another_tool_applies_is_applied_whole_or_not_at_all(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:  # it begins no transaction for a table

        def breaks_off(statement: str) -> sqlite3.Cursor:
            if "create table duly_event" in statement:
                raise OSError("the connection broke")
            return connection.execute(statement)

        with pytest.raises(OSError, match="broke"):
            apply(1, breaks_off, dialect="sqlite", by="a tool")
        assert connection.execute("select name from sqlite_master").fetchall() == []

        apply(1, connection.execute, dialect="sqlite", by="a tool")
        apply(1, connection.execute, dialect="sqlite", by="a tool, again")
        connection.commit()

        assert connection.execute("select number, by from duly_migration").fetchall() == [(1, "a tool")]


def test_another_tool_must_have_begun_a_transaction_on_postgresql(server: Server) -> None:
    with (
        psycopg.connect(server.new_database(), autocommit=True) as connection,
        pytest.raises(psycopg.errors.NoActiveSqlTransaction),
    ):
        apply(1, lambda sql: connection.execute(sql.encode()), dialect="postgresql", by="a tool")


def test_a_database_that_keeps_no_ledger_is_named() -> None:
    with pytest.raises(Misuse, match="not on mysql"):
        apply(1, list, dialect="mysql", by="a tool")


@pytest.mark.parametrize("number", [0, 9999])
def test_a_step_that_this_release_does_not_have_is_refused_before_anything_is_run(number: int) -> None:
    ran: list[str] = []

    with pytest.raises(Misuse, match=f"no step {number} .*upgrade duly"):
        apply(number, ran.append, dialect="sqlite", by="a tool")

    assert ran == []


def test_no_statement_on_postgresql_holds_what_some_drivers_take_for_a_parameter() -> None:
    assert not [step.file for step in steps("postgres") if "%" in step.sql]
