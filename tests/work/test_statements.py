"""How many statements a run costs on SQLite, counted by SQLite itself, so that nobody adds one unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import duly
from duly.store.sqlite import SqliteStore
from tests.work.bank import Bank


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank.db")


def traced(bank: Bank, act: Callable[[], object]) -> list[str]:
    """The first words of each statement of this thread's connections while something is done."""
    store = bank.ledger._store
    assert isinstance(store, SqliteStore)
    session = store.session
    assert session.owned is not None
    told: list[str] = []
    for connection in (session.connection, session.owned.connection):
        connection.set_trace_callback(told.append)
    act()
    for connection in (session.connection, session.owned.connection):
        connection.set_trace_callback(None)
    return [" ".join(sql.lower().split()[:3]) for sql in told if "duly_clock" not in sql]


CLAIM = [
    "select state, fence,",  # whether anybody has touched it: a duplicate ends here
    "pragma synchronous =",
    "begin immediate",
    "select value from",  # whether this release may write
    "update duly_line set",
    "insert into duly_run",
    "select state, fence,",
    "commit",
    "pragma synchronous =",
]
COMPLETION = ["update duly_run set", "insert or rollback", "commit"]


def test_a_run_of_a_line_that_is_known(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.run("2026-09-10")

    told = traced(bank, lambda: credit.run("2026-09-11"))

    assert told == [*CLAIM, "begin immediate", "select value from", "update balance set", *COMPLETION]


def test_a_run_whose_runs_may_overlap_notes_nothing_on_its_line(bank: Bank) -> None:
    credit = bank.daily_credit(overlap=True)
    credit.run("2026-09-10")

    told = traced(bank, lambda: credit.run("2026-09-11"))

    assert "update duly_line set" not in told


def test_a_claim_that_must_survive_is_flushed_where_others_are_not(bank: Bank) -> None:
    bank.ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, effect="external")(lambda run: None)
    bank.daily_credit().run("2026-09-10")
    export = bank.ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, effect="external")(lambda run: None)
    export.run("2026-09-10")

    told = traced(bank, lambda: export.run("2026-09-11"))

    assert "pragma synchronous =" not in told


def test_a_duplicate_is_one_look(bank: Bank) -> None:
    credit = bank.daily_credit()
    credit.run("2026-09-10")

    assert traced(bank, lambda: credit.run("2026-09-10")) == ["select state, fence,"]


def test_a_claim_and_its_duplicate_without_a_function_cost_the_same(bank: Bank) -> None:
    bank.daily_credit().run("2026-09-09")
    for day in ("2026-09-10", "2026-09-11"):
        with_claim(bank, day)

    told = traced(bank, lambda: with_claim(bank, "2026-09-12"))
    again = traced(bank, lambda: bank.ledger.take("credit", "2026-09-12"))

    flushed = [sql for sql in CLAIM if not sql.startswith("pragma")]
    assert told == [*flushed, "begin immediate", "select value from", *COMPLETION]
    assert again == ["select state, fence,"]


def with_claim(bank: Bank, day: str) -> None:
    claim = bank.ledger.take("credit", day)
    assert isinstance(claim, duly.Claim)
    with claim:
        claim.complete()
