"""Scopes that code declares: all of them are on the roster before any of them is run; and names that jobs gave up."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime

import pytest

import duly
from duly.errors import Misuse, NameInvalid
from duly.ledger.rename import rename
from duly.ledger.roster import retire_scopes
from tests.books import WORD
from tests.story import duly as command
from tests.work.bank import Bank

Run = duly.Run[sqlite3.Connection]


def credit(bank: Bank, *scopes: str | duly.Scope) -> duly.Job[sqlite3.Connection]:
    """The job as a process declares it that has just begun."""
    return bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, scopes=scopes)(lambda run: None)


def check(bank: Bank, *words: str) -> int:
    return command("check", "credit", *words, DULY_LEDGER=bank.path).code


def test_a_scope_that_is_declared_and_never_run_is_missing(bank: Bank) -> None:
    credit(bank, "acme", "globex").run("2026-09-14", scope="acme")

    assert check(bank, "--scope", "acme") == 0
    assert check(bank, "--scope", "globex") == 1
    assert check(bank) == 1
    assert "globex/credit" in command("status", DULY_LEDGER=bank.path).out


def test_a_scope_begins_and_ends_where_the_code_says(bank: Bank) -> None:
    job = credit(
        bank,
        duly.Scope("acme", since="2026-09-12"),
        duly.Scope("beta", since=date(2026, 9, 13), until="2026-09-14"),
        duly.Scope("gamma", since=datetime(2026, 9, 20, tzinfo=UTC)),
    )

    assert [done.key for done in job.catch_up()] == [
        "acme/credit:2026-09-12[UTC]",
        "acme/credit:2026-09-13[UTC]",
        "acme/credit:2026-09-14[UTC]",
        "beta/credit:2026-09-13[UTC]",
    ]
    assert check(bank) == 0
    assert check(bank, "--scope", "gamma") == 3


def test_a_window_after_the_end_of_its_scope_is_refused(bank: Bank) -> None:
    job = credit(bank, duly.Scope("acme", until="2026-09-14"))

    with pytest.raises(duly.Retired, match="the scope was retired at 2026-09-15T00:00:00Z"):
        job.run("2026-09-14", scope="acme")
    assert job.catch_up() == []
    with pytest.raises(duly.Retired):
        bank.ledger.take("credit", "2026-09-14", scope="acme")


def test_a_scope_that_was_retired_meanwhile_is_noticed_by_who_has_worked_it_before(bank: Bank) -> None:
    job = credit(bank, "acme")
    job.run("2026-09-13", scope="acme")
    bank.write(retire_scopes("credit", ["acme"], WORD, at="2026-09-14"))

    with pytest.raises(duly.Retired):
        job.run("2026-09-14", scope="acme")


def test_a_scope_that_code_no_longer_names_is_shown_and_not_worked(bank: Bank) -> None:
    credit(bank, "acme", "globex").catch_up()
    bank.clock.advance("1d")

    done = credit(bank, "acme").catch_up()

    assert [one.key for one in done] == ["acme/credit:2026-09-15[UTC]"]
    said = command("status", DULY_LEDGER=bank.path).out
    assert "globex/credit   2026-09-15   never started; its scope is no longer declared" in said
    assert "no longer declared" in command("jobs", "scopes", "list", "credit", DULY_LEDGER=bank.path).out


def test_a_roster_that_is_as_declared_is_not_written_again(bank: Bank) -> None:
    credit(bank, "acme", "globex").catch_up()

    with bank.no_commit():
        assert credit(bank, "acme", "globex").catch_up() == []


@pytest.mark.parametrize(
    ("scope", "error"),
    [
        (duly.Scope("acme", since="soon"), duly.WindowInvalid),
        (duly.Scope("acme", since="2026-09-14", until="2026-09-14"), Misuse),
    ],
)
def test_bounds_that_cannot_be_are_refused_before_anything_runs(
    bank: Bank, scope: duly.Scope, error: type[Exception]
) -> None:
    with pytest.raises(error):
        credit(bank, scope).run("2026-09-13", scope="acme")

    assert bank.completed == 0


def test_bounds_of_another_kind_are_refused_where_they_are_written(bank: Bank) -> None:
    for wrong in (duly.Scope("acme", since=datetime(2026, 9, 14)), duly.Scope("acme", until=5)):  # type: ignore[arg-type]
        with pytest.raises(Misuse, match=r"^(since|until):"):
            credit(bank, wrong)
    with pytest.raises(NameInvalid):
        credit(bank, duly.Scope(" acme"))


def test_a_job_that_was_renamed_says_so_to_who_still_declares_it(bank: Bank) -> None:
    keys: list[str] = []

    def work(run: Run) -> None:
        keys.append(run.idempotency_key)
        if len(keys) == 1:
            raise ConnectionError

    def declared(name: str) -> duly.Job[sqlite3.Connection]:
        return bank.ledger.job(name, duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(work)

    old = declared("credit")
    with pytest.raises(ConnectionError):
        old.run("2026-09-14")
    bank.write(rename("credit", "interest", WORD))

    with pytest.raises(duly.JobRenamed, match="Declare it as interest"):
        old.run("2026-09-14")
    with pytest.raises(ExceptionGroup) as caught:
        old.catch_up()
    assert isinstance(caught.value.exceptions[0], duly.JobRenamed)
    assert declared("interest").run("2026-09-14") == duly.Completed("interest:2026-09-14[UTC]", 2)
    claim = bank.ledger.take("interest", "2026-09-13")
    assert isinstance(claim, duly.Claim)
    with claim:
        claim.complete()
    assert len(set(keys)) == 1
