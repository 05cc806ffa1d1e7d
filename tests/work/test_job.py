"""Jobs: functions with a schedule. What they are given, what becomes of them, and what is kept of their failures."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import duly
from duly.errors import Misuse, NameInvalid, UnknownScope
from tests.books import LATE, LEASE
from tests.work.bank import Bank, Worker, add_ten, until

Run = duly.Run[sqlite3.Connection]


# -- what a run knows ---------------------------------------------------------------------------------------------------


def test_a_run_knows_its_window_and_never_when_it_was_started(bank: Bank) -> None:
    runs: list[Run] = []
    rates = bank.ledger.job("rates", duly.hourly("Europe/Berlin"), catch_up=duly.LATEST)(runs.append)
    bank.clock.set("2026-10-25T09:00:00Z")

    rates.run("2026-10-25T02~2")

    (run,) = runs
    assert (run.key, run.label, run.date) == (
        "rates:2026-10-25T02~2[Europe/Berlin]",
        "2026-10-25T02~2",
        date(2026, 10, 25),
    )
    assert run.window == (datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC))
    assert (run.job, run.scope, run.zone, run.attempt) == ("rates", "", "Europe/Berlin", 1)


def test_a_bare_repeated_hour_is_its_first_pass(bank: Bank) -> None:
    rates = bank.ledger.job("rates", duly.hourly("Europe/Berlin"), catch_up=duly.LATEST)(lambda run: None)
    bank.clock.set("2026-10-25T09:00:00Z")

    assert rates.run("2026-10-25T02") == duly.Completed("rates:2026-10-25T02[Europe/Berlin]", 1)
    assert rates.run("2026-10-25T02~2") == duly.Completed("rates:2026-10-25T02~2[Europe/Berlin]", 1)


def test_the_idempotency_key_is_the_same_on_every_attempt_and_another_for_every_run(bank: Bank) -> None:
    keys: list[tuple[str, str]] = []

    def charge(run: Run) -> None:
        keys.append((run.idempotency_key, run.attempt_id))
        if len(keys) == 1:
            raise ConnectionError

    job = bank.ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(charge)
    with pytest.raises(ConnectionError):
        job.run("2026-09-12")
    job.run("2026-09-12")
    job.run("2026-09-13")

    assert keys[0][0] == keys[1][0] != keys[2][0]
    assert len({attempt for _, attempt in keys}) == 3
    assert all(len(key) == 36 and key[14] == "5" for key, _ in keys)
    assert all(attempt[14] == "7" for _, attempt in keys)


# -- answers ------------------------------------------------------------------------------------------------------------


def test_the_answers_are_values_that_can_be_told_apart(bank: Bank) -> None:
    credit = bank.daily_credit()

    done, again, early = credit.run("2026-09-13"), credit.run("2026-09-13"), credit.run("2026-09-15")

    assert done == duly.Completed("credit:2026-09-13[UTC]", 1)
    assert again == duly.AlreadyCompleted("credit:2026-09-13[UTC]", 1, datetime(2026, 9, 15, 3, tzinfo=UTC))
    assert early == duly.NotDue("credit:2026-09-15[UTC]", datetime(2026, 9, 16, tzinfo=UTC))
    assert [bool(answer) for answer in (done, again, early)] == [True, False, False]


def test_a_duplicate_and_a_settled_catch_up_cost_no_commit(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.catch_up()

    with bank.no_commit():
        assert isinstance(credit.run("2026-09-14"), duly.AlreadyCompleted)
        assert credit.catch_up() == []


def test_a_busy_run_costs_no_commit(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.catch_up()
    holder = bank.take("2026-09-13", job=declared(bank, "credit"))

    with bank.no_commit():
        answer = credit.run("2026-09-13")

    assert isinstance(answer, duly.Busy)
    assert answer.owner == holder.owner


def declared(bank: Bank, name: str) -> str:
    bank.job(name)
    return name


def test_another_schedule_than_the_one_in_force_runs_nothing(bank: Bank) -> None:
    bank.daily_credit().run("2026-09-13")
    hourly = bank.ledger.job("credit", duly.hourly("UTC"), catch_up=duly.EACH)(lambda run: add_ten(run.tx))

    with pytest.raises(duly.ScheduleChanged, match="version 1"):
        hourly.run("2026-09-13T05")
    with pytest.raises(ExceptionGroup) as caught:
        hourly.catch_up()

    assert [type(error) for error in caught.value.exceptions] == [duly.ScheduleChanged]
    assert bank.units == 10


def test_catching_up_on_a_busy_ledger_says_so_once(bank: Bank) -> None:
    ledger = duly.sqlite(bank.path, busy_seconds=0.05)
    credit = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, scopes=("a", "b"))(lambda run: None)
    with bank.connected() as holder:
        holder.execute("begin immediate")

        with pytest.raises(ExceptionGroup) as caught:
            credit.catch_up()

    assert [type(error) for error in caught.value.exceptions] == [duly.LedgerBusy]


def test_the_scopes_of_a_declaration_close_the_roster_and_join_it(bank: Bank) -> None:
    worked: list[str] = []
    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, scopes=("acme", "globex"))(
        lambda run: worked.append(run.scope)
    )

    job.catch_up()

    assert worked == ["acme", "globex"]
    with pytest.raises(UnknownScope, match="initech"):
        job.run("2026-09-13", scope="initech")
    with pytest.raises(UnknownScope, match="closed roster"):
        bank.ledger.take("credit", "2026-09-13", scope="initech")


def test_a_payload_is_checked_on_every_path(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.run("2026-09-13", payload={"rate": 10})

    assert isinstance(credit.run("2026-09-13", payload={"rate": 10}), duly.AlreadyCompleted)
    with pytest.raises(duly.PayloadConflict):
        credit.run("2026-09-13", payload={"rate": 11})
    with pytest.raises(duly.PayloadConflict):
        bank.ledger.take("credit", "2026-09-13", payload={"rate": 11})
    with bank.connected() as connection, pytest.raises(duly.PayloadConflict):
        duly.once(connection, "credit:2026-09-13[UTC]", payload={"rate": 11})


@pytest.mark.parametrize(
    "payload", [{1: "x"}, float("nan"), [float("inf")], {"when": date(2026, 9, 13)}, {"raw": b"x"}]
)
def test_what_is_not_json_is_no_payload(bank: Bank, payload: Any) -> None:
    with pytest.raises(Misuse, match=r"^payload"):
        bank.daily_credit().run("2026-09-13", payload=payload)


# -- failures -----------------------------------------------------------------------------------------------------------


def test_the_jobs_own_exception_is_raised_with_a_note_that_names_run_and_attempt(bank: Bank) -> None:
    def fail(run: Run) -> None:
        raise ZeroDivisionError("as ever")

    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(fail)

    with pytest.raises(ZeroDivisionError, match="as ever") as caught:
        job.run("2026-09-13")

    assert caught.value.__notes__ == ["duly: in credit:2026-09-13[UTC], attempt 1"]


@pytest.mark.parametrize("by", ["job", "claim"])
def test_of_an_exception_its_type_and_place_are_kept_and_never_its_message(bank: Bank, by: str) -> None:
    secret = "hunter2-in-the-message"

    def fail(run: Run) -> None:
        run.tx.execute("insert into export values ('x')")
        raise ConnectionRefusedError(f"https://user:{secret}@provider.example refused")

    def by_claim() -> None:
        claim = bank.ledger.take("credit", "2026-09-13")
        assert isinstance(claim, duly.Claim)
        with claim:
            fail(claim.run)

    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(fail)
    bank.job("credit")
    with pytest.raises(ConnectionRefusedError, match=secret):
        job.run("2026-09-13") if by == "job" else by_claim()

    ((error,),) = bank.rows("select error from duly_attempt")
    assert error.startswith("ConnectionRefusedError at test_job.py:")
    assert error.endswith(" in fail")
    for file in Path(bank.path).parent.iterdir():
        assert secret.encode() not in file.read_bytes(), file


def test_of_an_error_of_the_database_its_code_is_kept(bank: Bank) -> None:
    bank.amend("create unique index one_day on export (day)")

    def twice(run: Run) -> None:
        run.tx.execute("insert into export values ('x')")
        run.tx.execute("insert into export values ('x')")

    with pytest.raises(sqlite3.IntegrityError):
        bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(twice).run("2026-09-13")

    ((error,),) = bank.rows("select error from duly_attempt")
    assert "SQLITE_CONSTRAINT_UNIQUE" in error


def test_retries_are_counted_spaced_and_then_wait_for_a_person(bank: Bank) -> None:
    def fail(run: Run) -> None:
        raise ZeroDivisionError

    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=2, retry_delay="10m")(fail)

    waits = []
    for _ in range(3):
        with pytest.raises(ExceptionGroup):
            job.catch_up()
        assert job.catch_up() == []  # its retry time has not come
        ((retry_at,),) = bank.rows("select retry_at from duly_run")
        waits.append(None if retry_at is None else (retry_at - bank.clock.now()) // 60_000_000)
        bank.clock.advance("20m")

    assert waits[2] is None
    assert 5 <= (waits[0] or 0) <= 10
    assert 10 <= (waits[1] or 0) <= 20
    with pytest.raises(duly.RunFailed):
        job.run("2026-09-14")


def test_catching_up_goes_on_after_a_failure_and_tells_of_all_at_the_end(bank: Bank) -> None:
    def fail_on_odd_days(run: Run) -> None:
        assert run.date is not None
        add_ten(run.tx)
        if run.date.day % 2:
            raise ZeroDivisionError(run.label)

    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(fail_on_odd_days)
    job.catch_up()
    bank.clock.advance("5d")

    with pytest.raises(ExceptionGroup) as caught:
        job.catch_up()

    assert [str(error) for error in caught.value.exceptions] == ["2026-09-15", "2026-09-17", "2026-09-19"]
    assert bank.units == 30
    assert [state for _, state in bank.runs("credit")] == [
        "completed",
        "failed",
        "completed",
        "failed",
        "completed",
        "failed",
    ]


def test_catching_up_answers_what_was_completed_oldest_first(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.catch_up()
    bank.clock.advance("3d")

    assert [done.key for done in credit.catch_up()] == [f"credit:2026-09-{day}[UTC]" for day in (15, 16, 17)]


def test_an_interrupt_ends_the_attempt_as_any_exception_does(bank: Bank) -> None:
    def interrupted(run: Run) -> None:
        add_ten(run.tx)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(interrupted).run("2026-09-13")

    assert (bank.units, bank.history()) == (0, [(1, "failed")])


# -- scopes -------------------------------------------------------------------------------------------------------------


def test_a_job_works_the_scopes_that_it_names_and_no_other(bank: Bank) -> None:
    worked: list[str] = []
    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, scopes=("acme", "globex"))(
        lambda run: worked.append(run.key)
    )

    job.catch_up()

    assert worked == ["acme/credit:2026-09-14[UTC]", "globex/credit:2026-09-14[UTC]"]
    with pytest.raises(UnknownScope, match="acme"):
        job.run("2026-09-14", scope="initech")


def test_a_job_works_every_scope_of_its_roster(bank: Bank) -> None:
    worked: list[str] = []
    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: worked.append(run.key))
    job.run("2026-09-14", scope="acme")
    job.run("2026-09-14", scope="globex")
    bank.clock.advance("1d")
    worked.clear()

    job.catch_up()

    assert worked == ["acme/credit:2026-09-15[UTC]", "globex/credit:2026-09-15[UTC]"]


# -- leases -------------------------------------------------------------------------------------------------------------


def test_a_long_run_is_never_taken_over_while_its_process_lives(bank: Bank) -> None:
    rival = duly.sqlite(bank.path)
    answers: list[object] = []

    def long(run: Run) -> None:
        for _ in range(5):
            bank.clock.advance(10 * LATE)
            answers.append(rival.take("credit", "2026-09-13"))
        add_ten(run.tx)

    bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(long).run("2026-09-13")

    assert [type(answer) for answer in answers] == [duly.Busy] * 5
    assert (bank.units, bank.history()) == (10, [(1, "completed")])
    rival.close()


def test_a_lease_is_renewed_when_a_third_of_it_is_over(bank: Bank) -> None:
    def long(run: Run) -> None:
        assert bank.rows("select * from duly_renewal") == []
        bank.clock.advance(LEASE // 3 + 1)
        until(lambda: bank.rows("select until from duly_renewal") == [(bank.clock.now() + LEASE,)])

    bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(long).run("2026-09-13")

    assert bank.completed == 1


def test_a_run_that_was_superseded_is_told_while_it_works(bank: Bank) -> None:
    def long(run: Run) -> None:
        assert not run.superseded
        bank.amend("update duly_run set fence = fence + 1, attempt_id = x'00112233445566778899aabbccddeeff'")
        bank.clock.advance(LEASE // 2)
        until(lambda: run.superseded)
        add_ten(run.tx)

    with pytest.raises(duly.ClaimLost):
        bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(long).run("2026-09-13")

    assert bank.units == 0


def test_a_thread_of_another_job_is_not_disturbed_by_one_that_ends(bank: Bank) -> None:
    credit = bank.daily_credit(overlap=True)
    days = [f"2026-09-{day:02d}" for day in range(1, 9)]
    threads = [Thread(target=credit.run, args=(day,)) for day in days]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (bank.units, bank.completed) == (80, 8)


def test_a_forked_child_has_connections_of_its_own(bank: Bank) -> None:
    script = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    run.tx.execute("update balance set units = units + 10")

credit.run("2026-09-11")
child = os.fork()
if child == 0:
    credit.run("2026-09-12")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
credit.run("2026-09-13")
print("done")
ledger.close()
"""

    assert Worker(bank, script).ends() == "done"

    assert (bank.units, bank.completed) == (30, 3)
    assert len(bank.rows("select distinct owner from duly_attempt")) == 2


# -- declarations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"catch_up": "sometimes"}, "catch_up"),
        ({"effect": "magic"}, "effect"),
        ({"effect": "idempotent"}, "remembers"),
        ({"remembers": "1h"}, "remembers"),
        ({"lease": "soon"}, "lease"),
        ({"lease": 1}, "lease"),
        ({"retries": -1}, "retries"),
        ({"grace": "never"}, "grace"),
        ({"timeout": "1 hour"}, "timeout"),
        ({"retry_delay": "x"}, "retry_delay"),
        ({"scopes": ("",)}, "scope"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_by_name_before_anything_is_written(
    bank: Bank, settings: dict[str, Any], field: str
) -> None:
    with bank.no_commit(), pytest.raises(Misuse, match=field):
        bank.daily_credit(**settings)


def test_declaring_a_job_writes_nothing(bank: Bank) -> None:
    with bank.no_commit():
        bank.daily_credit()


def test_policies_are_stored_as_they_were_declared(bank: Bank) -> None:
    job = bank.daily_credit(
        effect="idempotent", remembers="24h", retries=5, lease="30s", retain="90d", overlap=True, owner="payments"
    )

    job.catch_up()

    assert bank.rows("select contract, remembers, retries, lease, retain, overlap, owner from duly_job") == [
        ("idempotent", 86_400_000_000, 5, 30_000_000, 90 * 86_400_000_000, 1, "payments")
    ]


@pytest.mark.parametrize("scope", ["a\nb", "\x1b[31mred", " lead", "x" * 201])
def test_what_cannot_be_a_scope_enters_no_roster(bank: Bank, scope: str) -> None:
    credit = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: add_ten(run.tx))

    with pytest.raises(NameInvalid, match="scope"):
        credit.run("2026-09-13", scope=scope)
    with pytest.raises(NameInvalid, match="scope"):
        credit.attempt(scope, "test")

    assert bank.units == 0
