"""`run.tx`: a real connection whose transaction commits with the run's completion, or not at all."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import duly
from duly.errors import DulyError
from duly.store.owned.sqlite import OwnedTransaction
from tests.work.bank import Bank, Worker, add_ten

Effect = Callable[[duly.Run[sqlite3.Connection]], object]


def job(bank: Bank, effect: Effect) -> duly.Job[sqlite3.Connection]:
    """A job with this effect, in a bank of its own ledger."""
    return bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(effect)


def test_the_effect_is_there_exactly_when_the_completion_is(bank: Bank) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        assert (bank.units, bank.completed) == (0, 0)  # nobody else sees either yet

    job(bank, effect).run("2026-09-13")

    assert (bank.units, bank.completed) == (10, 1)


def test_what_one_run_makes_of_rows_is_not_what_the_next_one_gets(bank: Bank) -> None:
    seen: list[object] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        seen.append(run.tx.execute("select 'x'").fetchone())
        run.tx.row_factory, run.tx.text_factory = sqlite3.Row, bytes

    credit = job(bank, effect)
    credit.run("2026-09-12")
    credit.run("2026-09-13")

    assert seen == [("x",), ("x",)]


def test_a_job_that_reads_no_transaction_is_completed_in_one_of_the_ledgers(bank: Bank) -> None:
    assert job(bank, lambda run: None).run("2026-09-13")
    assert bank.completed == 1


def test_it_is_a_connection_of_the_drivers_type(bank: Bank) -> None:
    seen: list[object] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.row_factory = sqlite3.Row
        seen.append(run.tx)
        seen.append(run.tx.execute("select units as u from balance").fetchone()["u"])
        run.tx.executemany("insert into export values (?)", [("a",), ("b",)])
        cursor = run.tx.cursor()
        cursor.execute("insert into export values ('c')")
        seen.append(cursor.lastrowid)

    job(bank, effect).run("2026-09-13")

    assert isinstance(seen[0], sqlite3.Connection)
    assert seen[1:] == [0, 3]
    assert bank.rows("select day from export") == [("a",), ("b",), ("c",)]


# -- what it refuses ----------------------------------------------------------------------------------------------------

REFUSED: dict[str, Effect] = {
    "commit": lambda run: run.tx.commit(),
    "rollback": lambda run: run.tx.rollback(),
    "close": lambda run: run.tx.close(),
    "with": lambda run: run.tx.__enter__(),
    "with, left": lambda run: sqlite3.Connection.__exit__(run.tx, None, None, None),
    "commit as SQL": lambda run: run.tx.execute("commit"),
    "end as SQL": lambda run: run.tx.execute("END TRANSACTION"),
    "commit as SQL, with a comment before it": lambda run: run.tx.execute("/* now */ commit"),
    "commit as SQL, by a cursor": lambda run: run.tx.cursor().execute("commit"),
    "commit as SQL, by a cursor of the caller's making": lambda run: sqlite3.Cursor(run.tx).execute("commit"),
    "rollback as SQL": lambda run: run.tx.execute("rollback"),
    "begin as SQL": lambda run: run.tx.execute("begin"),
    "begin immediate as SQL": lambda run: run.tx.execute("begin immediate"),
    "executescript": lambda run: run.tx.executescript("insert into export values ('x')"),
    "executescript, by a cursor": lambda run: run.tx.cursor().executescript("insert into export values ('x')"),
    "executescript, by a cursor of the caller's making": lambda run: sqlite3.Cursor(run.tx).executescript("select 1"),
    "no isolation level": lambda run: setattr(run.tx, "isolation_level", None),
    "the base class's commit": lambda run: sqlite3.Connection.commit(run.tx),
    "the base class's rollback": lambda run: sqlite3.Connection.rollback(run.tx),
    "another authorizer": lambda run: run.tx.set_authorizer(None),
}


@pytest.mark.parametrize("way", REFUSED)
def test_every_way_to_end_the_transaction_is_refused(bank: Bank, way: str) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        with pytest.raises((duly.TransactionOwned, sqlite3.DatabaseError)):
            REFUSED[way](run)
        assert run.tx.in_transaction
        raise RuntimeError("and then the job fails")

    with pytest.raises(RuntimeError):
        job(bank, effect).run("2026-09-13")

    assert (bank.units, bank.completed) == (0, 0)


@pytest.mark.parametrize("way", REFUSED)
def test_a_job_that_swallows_the_refusal_is_still_whole(bank: Bank, way: str) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        with pytest.raises((duly.TransactionOwned, sqlite3.DatabaseError)):
            REFUSED[way](run)
        run.tx.execute("insert into export values ('after')")

    job(bank, effect).run("2026-09-13")

    assert (bank.units, bank.completed) == (10, 1)
    assert bank.rows("select day from export") == [("after",)]


def test_a_statement_that_was_cached_is_refused_as_any(bank: Bank) -> None:
    """SQLite authorises a statement when it is compiled, and the driver keeps compiled statements."""

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        for text in ("begin immediate", "commit", "COMMIT", "rollback", "begin immediate"):
            with pytest.raises((duly.TransactionOwned, sqlite3.DatabaseError)):
                sqlite3.Cursor(run.tx).execute(text)
        raise RuntimeError

    credit = job(bank, effect)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            credit.run("2026-09-13")

    assert (bank.units, bank.completed) == (0, 0)


AUTOCOMMIT = """
@ledger.job("credit", duly.daily("UTC"), catch_up="each")
def credit(run):
    run.tx.execute("update balance set units = units + 10")
    for mode in (True, False):
        try:
            run.tx.autocommit = mode
        except (duly.TransactionOwned, sqlite3.DatabaseError):
            pass
    assert run.tx.in_transaction
    raise RuntimeError

try:
    credit.run("2026-09-13")
except RuntimeError:
    print("failed")
ledger.close()
"""


def test_a_change_of_autocommit_does_not_end_the_transaction(bank: Bank) -> None:
    from tests.work.test_once import other_pythons

    pythons = other_pythons()
    if not pythons:
        pytest.skip("NO PYTHON 3.12 OR LATER ON THIS HOST: sqlite3's autocommit is not tested")
    for python in pythons:
        assert Worker(bank, AUTOCOMMIT, python=python).ends() == "failed"
        bank.clock.advance("2h")
        assert (bank.units, bank.completed) == (0, 0)


def test_savepoints_are_allowed(bank: Bank) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.execute("savepoint try_it")
        run.tx.execute("insert into export values ('tried')")
        run.tx.execute("rollback to try_it")
        run.tx.execute("release try_it")
        run.tx.execute("savepoint keep_it")
        run.tx.execute("insert into export values ('kept')")
        run.tx.execute("release keep_it")

    job(bank, effect).run("2026-09-13")

    assert bank.rows("select day from export") == [("kept",)]


# -- transactions that SQLite ends by itself ----------------------------------------------------------------------------

WRITES: dict[str, Effect] = {
    "execute": lambda run: run.tx.execute("insert into export values ('after')"),
    "executemany": lambda run: run.tx.executemany("insert into export values (?)", [("after",)]),
    "cursor": lambda run: run.tx.cursor().execute("insert into export values ('after')"),
    "a cursor of the caller's class": lambda run: run.tx.cursor(Plain).execute("insert into export values ('after')"),
    "a cursor of the caller's making": lambda run: sqlite3.Cursor(run.tx).execute(
        "insert into export values ('after')"
    ),
    "a transaction of its own": lambda run: sqlite3.Cursor(run.tx).execute("begin immediate"),
    "a savepoint": lambda run: run.tx.execute("savepoint again"),
    "a savepoint, by a cursor of the caller's making": lambda run: sqlite3.Cursor(run.tx).execute("savepoint again"),
}


class Plain(sqlite3.Cursor):
    """A caller's own class of cursors."""


@pytest.mark.parametrize("way", WRITES)
def test_after_sqlite_ended_the_transaction_nothing_more_can_be_written(bank: Bank, way: str) -> None:
    bank.amend("create table account (id integer primary key)")

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.execute("insert into account values (1)")
        run.tx.execute("insert into export values ('before')")
        WRITES_BEFORE(run)
        with pytest.raises(sqlite3.IntegrityError):
            run.tx.execute("insert or rollback into account values (1)")
        with pytest.raises((duly.TransactionOwned, sqlite3.DatabaseError)):
            WRITES[way](run)

    with pytest.raises(duly.TransactionOwned, match="nothing of it is kept"):
        job(bank, effect).run("2026-09-13")

    assert bank.rows("select * from export") == []
    assert bank.rows("select * from account") == []
    assert bank.completed == 0
    assert bank.history() == [(1, "failed")]


def WRITES_BEFORE(run: duly.Run[sqlite3.Connection]) -> None:  # noqa: N802
    """The same texts as after, so that they are in the driver's cache of statements."""
    sqlite3.Cursor(run.tx).execute("insert into export values ('after')")
    sqlite3.Cursor(run.tx).execute("savepoint again")
    sqlite3.Cursor(run.tx).execute("release again")


# -- superseded attempts ------------------------------------------------------------------------------------------------


def take_over(bank: Bank) -> None:
    """As another attempt would, had this one's lease been over and its lock free."""
    bank.amend("update duly_run set fence = fence + 1, attempt_id = x'00112233445566778899aabbccddeeff'")


def test_an_attempt_that_was_superseded_commits_nothing_whatever_it_catches(bank: Bank) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        take_over(bank)
        add_ten(run.tx)

    with pytest.raises(duly.ClaimLost):
        job(bank, effect).run("2026-09-13")

    assert (bank.units, bank.completed) == (0, 0)


def test_an_attempt_that_completes_by_hand_and_swallows_the_loss_commits_nothing(bank: Bank) -> None:
    bank.daily_credit().catch_up()
    claim = bank.ledger.take("credit", "2026-09-13")
    assert isinstance(claim, duly.Claim)
    take_over(bank)
    before = bank.units

    with bank.connected() as connection:
        add_ten(connection)
        with pytest.raises(duly.ClaimLost):
            claim.complete(connection)
        connection.commit()
    claim.close()

    assert bank.units == before


@pytest.mark.parametrize("level", ["", "IMMEDIATE", None])
def test_a_commit_after_a_lost_claim_finds_nothing_to_commit(bank: Bank, level: str | None) -> None:
    claim = bank.ledger.take("credit:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    take_over(bank)

    with bank.connected(isolation_level=level) as connection:
        if level is None:
            connection.execute("begin")
        add_ten(connection)
        with pytest.raises(duly.ClaimLost):
            claim.complete(connection)
        assert not connection.in_transaction
        connection.commit()
    claim.close()

    assert bank.units == 0


def test_completing_twice_undoes_the_second_effect_and_keeps_the_first(bank: Bank) -> None:
    claim = bank.ledger.take("credit:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    with bank.connected() as connection:
        add_ten(connection)
        claim.complete(connection)
        connection.commit()

        add_ten(connection)
        with pytest.raises(duly.ClaimLost):
            claim.complete(connection)
        connection.commit()
    claim.close()

    assert (bank.units, bank.completed) == (10, 1)


def test_completing_twice_in_one_transaction_undoes_both(bank: Bank) -> None:
    claim = bank.ledger.take("credit:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)
    with bank.connected() as connection:
        claim.complete(connection)
        add_ten(connection)
        with pytest.raises(duly.ClaimLost):
            claim.complete(connection)
        connection.commit()
    claim.close()

    assert (bank.units, bank.completed) == (0, 0)


# -- when the run is over -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", [True, False])
def test_a_run_that_is_over_has_no_transaction_any_more(bank: Bank, used: bool) -> None:
    kept: list[duly.Run[sqlite3.Connection]] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        kept.append(run)
        if used:
            add_ten(run.tx)

    job(bank, effect).run("2026-09-13")

    with pytest.raises(duly.TransactionOwned, match="over"):
        add_ten(kept[0].tx)
    bank.amend("insert into export values ('the ledger is free')")
    assert job(bank, effect).run("2026-09-14")


def test_the_ledger_is_free_again_after_a_job_that_failed(bank: Bank) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        job(bank, effect).run("2026-09-13")

    bank.amend("insert into export values ('the ledger is free')")
    assert bank.units == 0


def test_a_job_inside_a_jobs_transaction_is_refused_and_the_outer_one_stays_whole(bank: Bank) -> None:
    inner = bank.ledger.job("inner", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        with pytest.raises(duly.TransactionOwned, match=r"run\.tx is open"):
            inner.run("2026-09-13")

    job(bank, effect).run("2026-09-13")

    assert (bank.units, bank.completed) == (10, 1)


def test_a_claim_may_use_a_transaction_of_duly_too(bank: Bank) -> None:
    claim = bank.ledger.take("credit:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)

    with claim:
        add_ten(claim.run.tx)
        claim.complete()

    assert (bank.units, bank.completed) == (10, 1)
    bank.amend("insert into export values ('the ledger is free')")


def test_a_claim_that_is_left_by_an_exception_keeps_nothing_of_dulys_transaction(bank: Bank) -> None:
    claim = bank.ledger.take("credit:2026-09-13[UTC]")
    assert isinstance(claim, duly.Claim)

    def work() -> None:
        with claim:
            add_ten(claim.run.tx)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()

    assert (bank.units, bank.completed) == (0, 0)
    bank.amend("insert into export values ('the ledger is free')")


def test_two_claims_of_one_thread_do_not_share_a_transaction(bank: Bank) -> None:
    first, second = bank.ledger.take("credit:2026-09-13[UTC]"), bank.ledger.take("debit:2026-09-13[UTC]")
    assert isinstance(first, duly.Claim)
    assert isinstance(second, duly.Claim)

    with first:
        add_ten(first.run.tx)
        with pytest.raises(duly.TransactionOwned):
            add_ten(second.run.tx)
        first.complete()
    with second:
        add_ten(second.run.tx)
        second.complete()

    assert (bank.units, bank.completed) == (20, 2)


def test_a_transaction_that_is_held_long_is_told(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    from duly.work.run import LongTransaction

    hours = iter(range(10))
    monkeypatch.setattr("duly.work.run.time.monotonic", lambda: 3600.0 * next(hours))

    with pytest.raises(LongTransaction):  # warnings are errors here
        job(bank, lambda run: add_ten(run.tx)).run("2026-09-13")


def test_a_full_disk_leaves_neither_effect_nor_completion(bank: Bank) -> None:
    """SQLite ends a transaction by itself when the disk is full; here the database may not grow."""

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        pages = run.tx.execute("pragma page_count").fetchone()[0]
        run.tx.execute(f"pragma max_page_count = {pages}")
        add_ten(run.tx)
        run.tx.execute("insert into export values (hex(zeroblob(1000000)))")

    with pytest.raises(sqlite3.OperationalError, match="full"):
        job(bank, effect).run("2026-09-13")

    assert (bank.units, bank.completed) == (0, 0)


def test_foreign_writers_are_kept_out_while_it_is_open_and_let_in_after(bank: Bank, tmp_path: Path) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        with bank.connected(timeout=0) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("insert into export values ('x')")

    job(bank, effect).run("2026-09-13")

    bank.amend("insert into export values ('y')")
    assert bank.rows("select day from export") == [("y",)]


def test_a_busy_ledger_is_told_and_never_a_duplicate(bank: Bank) -> None:
    ledger = duly.sqlite(bank.path, busy_seconds=0.05)
    credit = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: add_ten(run.tx))
    with bank.connected() as holder:
        holder.execute("begin immediate")

        with pytest.raises(DulyError) as caught:
            credit.run("2026-09-13")

        holder.rollback()
    assert type(caught.value) is duly.LedgerBusy
    assert credit.run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 1)


@pytest.mark.parametrize("left", ["query_only", "progress handler"])
def test_what_a_run_that_failed_did_to_its_connection_keeps_nothing_from_being_recorded(bank: Bank, left: str) -> None:
    days: list[str] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        days.append(run.label)
        if len(days) > 1:
            add_ten(run.tx)
            return
        if left == "query_only":
            run.tx.execute("pragma query_only = on")
        else:
            run.tx.set_progress_handler(lambda: 1, 1)
        raise LookupError

    credit = job(bank, effect)
    with pytest.raises(LookupError):
        credit.run("2026-09-12")

    assert bank.rows("select outcome from duly_attempt") == [("failed",)]
    assert credit.run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 1)
    assert bank.units == 10


def test_while_duly_has_the_connection_another_thread_cannot_commit_either(bank: Bank) -> None:
    """Others may use `run.tx` once it is open. What duly does is lifted for its own thread alone."""
    refused: list[type[Exception]] = []
    kept: list[sqlite3.Connection] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        kept.append(run.tx)
        add_ten(run.tx)

    def meddle() -> None:
        for way in (
            kept[0].commit,
            lambda: kept[0].execute("commit"),
            lambda: sqlite3.Cursor(kept[0]).execute("select 1"),
        ):
            try:
                way()
            except Exception as e:
                refused.append(type(e))

    credit = job(bank, effect)
    credit.run("2026-09-12")
    owned = bank.ledger._store.owned()
    assert isinstance(owned, OwnedTransaction)

    def between(operation: object, answers: object, seconds: float) -> None:
        other = threading.Thread(target=meddle)
        other.start()
        other.join()

    operation = nothing()
    owned.lend(operation, between, 1.0)
    operation.close()

    assert refused == [duly.TransactionOwned, duly.TransactionOwned, sqlite3.DatabaseError]


async def nothing() -> None:
    """An operation of the ledger that asks nothing."""


def test_a_rival_of_a_run_that_holds_the_ledger_is_told_so_at_once(bank: Bank) -> None:
    """Also where it remembers the line: it does not wait for a turn to write, which is not to come."""
    rival = duly.sqlite(bank.path, busy_seconds=600)
    again = rival.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(lambda run: None)
    answers: list[object] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        answers.append(again.run(run.label))
        answers.append(rival.take("credit", run.label))

    credit = job(bank, effect)
    again.run("2026-09-12")
    rival.take("credit", "2026-09-12")
    credit.run("2026-09-13")

    assert [type(answer) for answer in answers] == [duly.Busy, duly.Busy]


def test_a_cursor_that_is_read_by_half_and_kept_does_not_keep_the_ledger_in_the_past(bank: Bank) -> None:
    kept: list[object] = []

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        add_ten(run.tx)
        cursor = run.tx.execute("select 1 union select 2")
        cursor.fetchone()
        kept.append(cursor)

    credit = job(bank, effect)
    credit.run("2026-09-12")
    bank.amend("update duly_job set owner = 'data-team'")  # somebody else writes meanwhile

    assert credit.run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 1)
    assert bank.rows("pragma wal_checkpoint(truncate)")[0][0] == 0  # nobody reads an old state


@pytest.mark.parametrize("fails", [False, True])
def test_rows_that_come_when_the_run_is_over_are_not_written(bank: Bank, fails: bool) -> None:
    """`executemany` in another thread asks for each of its rows."""
    begun, over = threading.Event(), threading.Event()
    ended: list[Exception] = []

    def rows() -> Iterator[tuple[str]]:
        yield ("early",)
        begun.set()
        over.wait(10)
        yield ("late",)

    def write(tx: sqlite3.Connection) -> None:
        try:
            tx.executemany("insert into export values (?)", rows())
        except Exception as e:
            ended.append(e)

    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        threads.append(threading.Thread(target=write, args=(run.tx,)))
        threads[0].start()
        begun.wait(10)
        if fails:
            raise LookupError

    threads: list[threading.Thread] = []
    try:
        job(bank, effect).run("2026-09-13")
    except LookupError:
        assert fails
    over.set()
    threads[0].join()

    assert [type(e) for e in ended] == [duly.TransactionOwned]
    assert bank.rows("select day from export where day = 'late'") == []


@pytest.mark.parametrize("kind", ["table duly_run (a)", "view duly_run as select 1", "table DULY_ATTEMPT as select 1"])
def test_nothing_temporary_may_stand_before_the_ledgers_own_tables(bank: Bank, kind: str) -> None:
    def effect(run: duly.Run[sqlite3.Connection]) -> None:
        with pytest.raises(duly.TransactionOwned):
            run.tx.execute(f"create temp {kind}")
        run.tx.execute("create temp table mine (a)")
        add_ten(run.tx)

    assert job(bank, effect).run("2026-09-13")
    assert (bank.units, bank.completed) == (10, 1)


@pytest.mark.parametrize("inline", [False, True])
def test_a_ledger_that_was_replaced_is_noticed_by_its_next_run(bank: Bank, tmp_path: Path, inline: bool) -> None:
    credit = bank.daily_credit(inline=inline)
    credit.run("2026-09-12")
    os.rename(tmp_path / "bank.db", tmp_path / "old-bank.db")
    for file in ("bank.db-wal", "bank.db-shm"):
        with suppress(FileNotFoundError):  # a connection that the collector closed meanwhile may have taken it away
            os.rename(tmp_path / file, tmp_path / f"old-{file}")
    Bank(Path(bank.path))

    with pytest.raises(duly.LedgerUnavailable, match="deleted or replaced"):
        credit.run("2026-09-13")
