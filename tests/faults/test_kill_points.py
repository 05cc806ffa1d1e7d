"""The kit that kills a process at a point of its run: each point is come to, and what is there after it is what must be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import duly
from duly.testing.faults import (
    AFTER_CLAIM,
    AFTER_COMPLETION,
    AFTER_EFFECT,
    BEFORE_CLAIM,
    BEFORE_COMPLETION,
    POINTS,
    VARIABLE,
    kill_at,
    mortal,
)
from tests.books import LATE
from tests.exec.stage import environment
from tests.faults.account import DAY, KEY, Account

MORTAL = """
from duly.testing.faults import mortal

ledger = mortal(ledger)

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries=1000, retry_delay=0, overlap=True{settings})
def credit(run):
    run.tx.execute(f"insert into credited (day, units) values ('{{run.label}}', 10)")

print(credit.run("2026-10-05").attempt)
ledger.close()
"""


@pytest.fixture(params=["on_sqlite", "on_postgres"])
def account(request: pytest.FixtureRequest) -> Account:
    """An account on each database."""
    found: Account = request.getfixturevalue(request.param)
    return found


def killed_at(account: Account, point: str, *, script: str = MORTAL, settings: str = "") -> None:
    """A process that comes to a point and dies there."""
    with kill_at(point):
        worker = account.worker(script.format(settings=settings))
    said, complaint = worker.process.communicate(timeout=30)
    assert worker.process.returncode == -signal.SIGKILL, (said, complaint)


@pytest.mark.parametrize("point", [AFTER_CLAIM, AFTER_EFFECT, BEFORE_COMPLETION])
def test_between_its_two_commits_a_killed_run_did_nothing_and_is_taken_over(account: Account, point: str) -> None:
    killed_at(account, point)

    assert account.days == []
    assert account.history() == [(1, "running")]
    account.clock.advance(LATE)
    assert account.credit().run(DAY) == duly.Completed(KEY, 2)
    assert account.days == [DAY]
    assert account.history() == [(1, "lost"), (2, "completed")]


def test_before_the_commit_of_its_claim_it_was_never_there(account: Account) -> None:
    killed_at(account, BEFORE_CLAIM)

    assert account.history() == []
    assert account.credit().run(DAY) == duly.Completed(KEY, 1)


def test_after_the_commit_of_its_completion_it_is_done_though_nobody_was_told(account: Account) -> None:
    killed_at(account, AFTER_COMPLETION)

    assert account.days == [DAY]
    assert isinstance(account.credit().run(DAY), duly.AlreadyCompleted)


@pytest.mark.parametrize("point", [BEFORE_CLAIM, AFTER_EFFECT, BEFORE_COMPLETION])
def test_an_inline_run_that_is_killed_leaves_nothing(account: Account, point: str) -> None:
    killed_at(account, point, settings=", inline=True")

    assert (account.days, account.history()) == ([], [])
    assert account.credit().run(DAY) == duly.Completed(KEY, 1)


CHARGING = """
from duly.testing.faults import mortal

ledger = mortal(ledger)

@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, effect="external"{settings})
def credit(run):
    pass

credit.run("2026-10-05")
"""


@pytest.mark.parametrize("point", [AFTER_CLAIM, AFTER_EFFECT, BEFORE_COMPLETION])
def test_an_external_run_that_is_killed_is_unknown(account: Account, point: str) -> None:
    killed_at(account, point, script=CHARGING)

    account.clock.advance(LATE)
    with pytest.raises(duly.OutcomeUnknown):
        account.credit(effect="external").run(DAY)


def test_without_a_point_a_mortal_ledger_is_one_as_any(account: Account) -> None:
    assert account.worker(MORTAL.format(settings="")).ends() == "1"

    assert account.days == [DAY]
    assert account.history() == [(1, "completed")]


def test_a_claim_of_a_mortal_ledger_comes_to_its_points_too(account: Account) -> None:
    account.credit().catch_up()
    script = """
from duly.testing.faults import mortal

with mortal(ledger).take("credit", "2026-10-01") as claim:
    claim.complete()
"""

    killed_at(account, BEFORE_COMPLETION, script=script)

    assert account.history() == [(1, "running"), (1, "completed")]


@pytest.mark.parametrize("name", ["", "after", "AFTER-EFFECT"])
def test_what_is_no_point_is_refused_by_name(on_sqlite: Account, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(duly.Misuse, match="after-effect"), kill_at(name):
        pass
    monkeypatch.setenv(VARIABLE, name)
    with pytest.raises(duly.Misuse, match="after-effect"):
        mortal(on_sqlite.ledger())


def test_a_point_is_named_for_as_long_as_it_is_meant() -> None:
    with kill_at(POINTS[0]):
        with kill_at(POINTS[1]):
            assert os.environ[VARIABLE] == POINTS[1]
        assert os.environ[VARIABLE] == POINTS[0]

    assert VARIABLE not in os.environ


def test_who_does_not_ask_for_it_has_nothing_of_it(on_sqlite: Account) -> None:
    """A ledger that is not made mortal lives through every point, and loads nothing of the kit."""
    job = '@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)\ndef credit(run): run.tx.execute("select 1")\n'
    script = f"import sys, duly\nledger = duly.sqlite(sys.argv[1])\n{job}credit.run('{DAY}')\n"
    show = "print(*(name for name in sys.modules if name.startswith('duly.testing')))"

    said = subprocess.run(
        [sys.executable, "-c", script + show, on_sqlite.url],
        env=environment(**{VARIABLE: AFTER_EFFECT}),
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout == "\n"
