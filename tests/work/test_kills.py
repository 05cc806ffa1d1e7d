"""Processes that are killed at the worst moment, and processes that come all at once. Real ones, with SIGKILL."""

from __future__ import annotations

import pytest

import duly
from tests.books import LATE
from tests.work.bank import Bank, Worker

# A job that stops at each point of its attempt. The commit is stopped at from outside: what it does is not changed.
STOPPING_JOB = """
import duly.store.owned.sqlite

commit = duly.store.owned.sqlite.commit

def stopping_commit(connection, **settings):
    stop("before commit")
    commit(connection, **settings)
    stop("after commit")

duly.store.owned.sqlite.commit = stopping_commit

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    stop("before the effect")
    run.tx.execute("update balance set units = units + 10")
    stop("after the effect")

credit.run("2026-09-13")
"""

POINTS = ("before the effect", "after the effect", "before commit", "after commit")


def killed_at(bank: Bank, last: str) -> None:
    """A worker that gets as far as this point and is killed there."""
    worker = Worker(bank, STOPPING_JOB)
    for point in POINTS:
        worker.reaches(point)
        if point == last:
            break
        worker.go_on()
    worker.kill()


@pytest.mark.parametrize("point", ["before the effect", "after the effect", "before commit"])
def test_a_worker_killed_before_its_commit_did_nothing_and_the_next_attempt_does_it(bank: Bank, point: str) -> None:
    credit = bank.daily_credit()

    killed_at(bank, point)

    assert (bank.units, bank.completed) == (0, 0)
    assert bank.history() == [(1, "running")]
    assert isinstance(credit.run("2026-09-13"), duly.Busy)  # until its lease is over
    bank.clock.advance(LATE)
    assert credit.run("2026-09-13") == duly.Completed("credit:2026-09-13[UTC]", 2)
    assert (bank.units, bank.completed) == (10, 1)
    assert bank.history() == [(1, "lost"), (2, "completed")]


def test_a_worker_killed_after_its_commit_is_done_and_nobody_does_it_again(bank: Bank) -> None:
    credit = bank.daily_credit()

    killed_at(bank, "after commit")

    assert (bank.units, bank.completed) == (10, 1)
    bank.clock.advance(LATE)
    assert isinstance(credit.run("2026-09-13"), duly.AlreadyCompleted)
    assert (bank.units, bank.history()) == (10, [(1, "completed")])


def test_a_worker_killed_while_it_holds_the_ledger_does_not_keep_others_out(bank: Bank) -> None:
    killed_at(bank, "after the effect")

    bank.amend("insert into export values ('the ledger is free')")


# A claim whose effect is elsewhere: the marker file is the provider's book.
CHARGING = """
import pathlib

claim = ledger.take("charge", "2026-09-13")
assert claim, claim
with claim:
    stop("before the charge")
    pathlib.Path(path + ".charged").write_text("charged")
    stop("after the charge")
    claim.complete()
"""


@pytest.mark.parametrize("point", ["before the charge", "after the charge"])
@pytest.mark.parametrize(
    ("contract", "remembers"),
    [("external", None), ("idempotent", None), ("idempotent", LATE // 2), ("transactional", None)],
)
def test_what_follows_on_a_killed_charge_is_its_contracts_word(
    bank: Bank, contract: str, remembers: int | None, point: str
) -> None:
    """Nobody can see from here whether the provider was charged: that is what the contract is for."""
    bank.job("charge", contract=contract, remembers=remembers)
    worker = Worker(bank, CHARGING)
    worker.reaches("before the charge")
    if point == "after the charge":
        worker.go_on()
        worker.reaches("after the charge")
    worker.kill()
    bank.clock.advance(LATE)

    answer = bank.ask("2026-09-13", job="charge")

    if contract == "external" or remembers is not None:
        assert isinstance(answer, duly.OutcomeUnknown)
        assert bank.history() == [(1, "unknown")]
    else:
        assert bank.history() == [(1, "lost"), (2, "running")]


def test_a_worker_that_lives_is_not_taken_over_however_late_it_is(bank: Bank) -> None:
    bank.job("charge", contract="transactional")
    worker = Worker(bank, CHARGING)
    worker.reaches("before the charge")
    bank.clock.advance(1000 * LATE)

    assert isinstance(bank.ledger.take("charge", "2026-09-13"), duly.Busy)

    worker.go_on()
    worker.reaches("after the charge")
    worker.go_on()
    worker.ends()
    assert bank.history() == [(1, "completed")]


# -- many at once -------------------------------------------------------------------------------------------------------

ONE_OF_EIGHT = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    run.tx.execute("update balance set units = units + 10")

stop("ready")
print(type(credit.run("2026-09-13", wait="1h")).__name__)
ledger.close()
"""


def test_eight_processes_on_one_key_complete_it_once_and_all_learn_that_it_is(bank: Bank) -> None:
    workers = [Worker(bank, ONE_OF_EIGHT) for _ in range(8)]
    for worker in workers:
        worker.reaches("ready")
    for worker in workers:
        worker.go_on()

    said = sorted(worker.ends() for worker in workers)

    assert said == ["AlreadyCompleted"] * 7 + ["Completed"]
    assert (bank.units, bank.completed) == (10, 1)
    assert bank.history() == [(1, "completed")]


CATCHING_UP = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
def credit(run):
    run.tx.execute("update balance set units = units + 10")

stop("ready")
print(len(credit.catch_up()))
ledger.close()
"""


def test_three_processes_that_catch_up_at_once_share_the_days(bank: Bank) -> None:
    bank.daily_credit().catch_up()
    bank.clock.advance("12d")
    workers = [Worker(bank, CATCHING_UP) for _ in range(3)]
    for worker in workers:
        worker.reaches("ready")
    for worker in workers:
        worker.go_on()

    done = sum(int(worker.ends()) for worker in workers)
    done += len(bank.daily_credit().catch_up())  # one that found the line held went home early

    assert done == 12
    assert (bank.units, bank.completed) == (130, 13)
    assert {outcome for _, outcome in bank.history()} == {"completed"}
