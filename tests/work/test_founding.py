"""The behaviours that duly was made for, as they are told in the README."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import duly
from tests.work.bank import Bank, add_ten

THIRTEENTH = "daily-credit:2026-09-13T00:00:00Z"
FOURTEENTH = "daily-credit:2026-09-14T00:00:00Z"


class ProviderDown(Exception):
    """What goes wrong in these stories."""


def credit(bank: Bank, key: str) -> bool:
    """Ten units for a key, in a transaction of the caller's own."""
    with bank.connected() as connection:
        applied = duly.once(connection, key)
        if applied:
            add_ten(connection)
        connection.commit()
        return applied


# -- (a) once, in the caller's transaction ------------------------------------------------------------------------------


def test_an_effect_that_fails_before_commit_leaves_no_units_and_no_completion(bank: Bank) -> None:
    def credit_and_fail() -> None:
        with bank.connected() as connection, connection:
            assert duly.once(connection, THIRTEENTH)
            add_ten(connection)
            raise ProviderDown

    with pytest.raises(ProviderDown):
        credit_and_fail()

    assert bank.units == 0
    assert bank.completed == 0
    assert bank.rows("select * from duly_run") == []


def test_eight_threads_on_one_key_apply_it_once(bank: Bank) -> None:
    together = Barrier(8)

    def one_of_eight(_: int) -> bool:
        together.wait()
        return credit(bank, THIRTEENTH)

    with ThreadPoolExecutor(8) as threads:
        applied = list(threads.map(one_of_eight, range(8)))

    assert sorted(applied) == [False] * 7 + [True]
    assert bank.units == 10
    assert bank.completed == 1


def test_a_replay_is_a_duplicate_and_the_next_date_applies(bank: Bank) -> None:
    assert credit(bank, THIRTEENTH)

    assert not credit(bank, THIRTEENTH)
    assert credit(bank, FOURTEENTH)

    assert bank.units == 20
    assert bank.rows("select job, nominal from duly_run_readable where state = 'completed' order by nominal") == [
        ("daily-credit", "2026-09-13T00:00:00"),
        ("daily-credit", "2026-09-14T00:00:00"),
    ]


# -- (b) a job whose attempts are on record -----------------------------------------------------------------------------


def invoice_export(bank: Bank, troubles: list[Exception]) -> duly.Job[sqlite3.Connection]:
    """Exports a day's invoices; the first attempts meet the troubles, after their effect and before its commit."""

    @bank.ledger.job("invoice-export", duly.daily("UTC"), catch_up=duly.EACH)
    def export(run: duly.Run[sqlite3.Connection]) -> None:
        run.tx.execute("insert into export values (?)", (str(run.date),))
        if troubles:
            raise troubles.pop()

    return export


def test_two_attempts_for_one_export_the_first_failing_before_commit(bank: Bank) -> None:
    export = invoice_export(bank, [ProviderDown()])

    with pytest.raises(ProviderDown):
        export.run("2026-09-13")
    bank.clock.advance("10m")
    second = export.run("2026-09-13")
    third = export.run("2026-09-13")

    assert second == duly.Completed("invoice-export:2026-09-13[UTC]", 2)
    assert isinstance(third, duly.AlreadyCompleted)
    assert bank.rows("select day from export") == [("2026-09-13",)]
    assert bank.history() == [(1, "failed"), (2, "completed")]


# -- (c) history --------------------------------------------------------------------------------------------------------


def test_the_schema_tells_apart_what_never_ran_what_failed_what_is_done_and_what_nobody_knows(bank: Bank) -> None:
    bank.job("invoice-export", contract="external", overlap=1)
    bank.write(opened(bank, "2026-09-10"))
    failed = bank.take("2026-09-11", job="invoice-export")
    bank.clock.advance("90s")
    bank.fail(failed)
    completed = bank.take("2026-09-12", job="invoice-export")
    bank.clock.advance("30s")
    bank.complete(completed)
    unknown = bank.take("2026-09-13", job="invoice-export")
    bank.clock.advance("45s")
    bank.doubt(unknown)

    told = bank.rows(
        """
        select r.job || ':' || date(r.nominal), a.started, a.outcome, (a.ended_at - a.started_at) / 1000000
          from duly_run_readable r
          left join duly_attempt_readable a
            on a.series = r.series and a.nominal = r.stored_nominal and a.revision = r.revision
         order by r.nominal
        """
    )

    assert told == [
        ("invoice-export:2026-09-10", None, None, None),
        ("invoice-export:2026-09-11", "2026-09-15T03:00:00.000Z", "failed", 90),
        ("invoice-export:2026-09-12", "2026-09-15T03:01:30.000Z", "completed", 30),
        ("invoice-export:2026-09-13", "2026-09-15T03:02:00.000Z", "unknown", None),
    ]
    assert [state for _, state in bank.runs("invoice-export")] == ["open", "failed", "completed", "unknown"]


async def opened(bank: Bank, window: str) -> None:
    from duly.ledger.address import by_window
    from duly.ledger.windows import open_window

    addressed = await by_window("invoice-export", "", window)
    assert addressed.occurrence is not None
    await open_window(addressed.known, addressed.run, addressed.occurrence)
