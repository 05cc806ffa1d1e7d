"""Groups: of a job that asks for it, runs that are owed share one transaction and its commit."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from typing import Any

import pytest

import duly
from duly.errors import Misuse
from duly.work import job as job_of_work
from tests.work.bank import Bank, Worker, add_ten
from tests.work.test_statements import traced

Run = duly.Run[sqlite3.Connection]
Effect = Callable[[Run], object]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy ends no group."""
    monkeypatch.setattr(job_of_work, "GROUP_SECONDS", 60.0)


def behind(bank: Bank, effect: Effect, *, days: int = 10, **settings: Any) -> duly.Job[sqlite3.Connection]:
    """A job whose runs are worked in groups of up to a hundred, so many days after its last one; the balance is 0."""
    settings = {"catch_up": duly.EACH, "inline": True, "group": 100, "retry_delay": "1h", **settings}
    credit = bank.ledger.job("credit", settings.pop("schedule", duly.daily("UTC")), **settings)(effect)
    with_errors_allowed(credit.catch_up)
    if days:
        bank.clock.advance(f"{days}d")
    bank.amend("update balance set units = 0")
    return credit


def with_errors_allowed(act: Callable[[], object]) -> None:
    with suppress(ExceptionGroup):
        act()


def ten(run: Run) -> None:
    add_ten(run.tx)


def commits(bank: Bank, act: Callable[[], object]) -> int:
    return traced(bank, act).count("commit")


def days_of(done: list[duly.Completed]) -> list[str]:
    return [each.key.partition(":")[2].partition("[")[0] for each in done]


# -- one commit ---------------------------------------------------------------------------------------------------------


def test_what_is_owed_is_worked_in_one_commit_each_run_on_record(bank: Bank) -> None:
    credit = behind(bank, ten)

    told: list[list[duly.Completed]] = []
    assert commits(bank, lambda: told.append(credit.catch_up())) == 1

    assert days_of(told[0]) == [f"2026-09-{day}" for day in range(15, 25)]
    assert (bank.units, bank.completed) == (100, 11)
    assert bank.history() == [(1, "completed")] * 11
    assert bank.rows("select count(distinct attempt_id) from duly_attempt") == [(11,)]
    assert bank.rows("select count(*) from duly_attempt where started_at > ended_at") == [(0,)]
    rows = "select distinct state, fence, contract, payload, retry_at, cause, trigger from duly_run order by trigger"
    assert bank.rows(rows) == [("completed", 1, "transactional", "none", None, None, "catch-up")]
    with bank.no_commit():
        assert credit.catch_up() == []


def test_no_more_than_asked_for_share_a_commit(bank: Bank) -> None:
    credit = behind(bank, ten, group=4)

    assert commits(bank, credit.catch_up) == 3

    assert bank.units == 100


def test_a_line_whose_runs_must_not_overlap_is_never_seen_with_two(bank: Bank) -> None:
    seen: list[object] = []

    def effect(run: Run) -> None:
        running = "select count(*) from duly_run where state = 'running'"
        seen.append((bank.rows(running), run.tx.execute(running).fetchall()))  # by others, and from within
        add_ten(run.tx)

    credit = behind(bank, effect)
    seen.clear()
    credit.catch_up()

    assert seen == [([(0,)], [(1,)])] * 10


def test_a_group_ends_when_it_has_lasted_long_enough(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is held meanwhile."""
    credit = behind(bank, ten)
    monkeypatch.setattr(job_of_work, "GROUP_SECONDS", 0.0)

    assert commits(bank, credit.catch_up) == 10


def test_each_run_has_its_own_facts_and_output(bank: Bank) -> None:
    facts: list[tuple[date | None, int, str]] = []

    def effect(run: Run) -> None:
        facts.append((run.date, run.window.end.day - run.window.start.day, run.attempt_id))
        run.output = f"s3://exports/{run.date}.csv"

    credit = behind(bank, effect, days=3)
    facts.clear()
    credit.catch_up()

    assert [(day, length) for day, length, _ in facts] == [(date(2026, 9, day), 1) for day in (15, 16, 17)]
    assert len({attempt for _, _, attempt in facts}) == 3
    kept = bank.rows("select body from duly_text where kind = 'output' order by nominal")
    assert [body for (body,) in kept][-3:] == [f"s3://exports/2026-09-{day}.csv" for day in (15, 16, 17)]


def test_what_a_run_leaves_is_what_it_had_when_its_function_returned(bank: Bank) -> None:
    """One object may be the result of several, and a run that is over changes no more."""
    counts: dict[str, Any] = {"rows": 0}
    before: list[Run] = []

    def effect(run: Run) -> None:
        counts["rows"] += 10
        run.result = counts
        if before:
            for setting in ("result", "output"):
                with pytest.raises(duly.TransactionOwned):
                    setattr(before[-1], setting, "late")
        before.append(run)

    credit = behind(bank, effect, days=3)
    before.clear()
    counts["rows"] = 0
    credit.catch_up()

    assert [bank.ledger.result("credit", f"2026-09-{day}") for day in (15, 16, 17)] == [
        *({"rows": 10}, {"rows": 20}, {"rows": 30})
    ]
    assert bank.rows("select * from duly_text where kind = 'output'") == []


def test_windows_of_a_night_when_clocks_change_are_worked_in_their_order(bank: Bank) -> None:
    credit = behind(bank, ten, days=0, schedule=duly.hourly("Europe/Berlin"))
    bank.clock.set("2026-10-25T04:30:00Z")
    bank.amend("update balance set units = 0")

    done = days_of(credit.catch_up())

    assert len(done) == 961
    assert done[-5:] == ["2026-10-25T01", "2026-10-25T02", "2026-10-25T02~2", "2026-10-25T03", "2026-10-25T04"]
    assert bank.units == 9610


# -- when something goes wrong ------------------------------------------------------------------------------------------


def test_one_that_fails_is_on_record_and_the_others_are_done_once(bank: Bank) -> None:
    called: Counter[int] = Counter()

    def effect(run: Run) -> None:
        assert run.date is not None
        called[run.date.day] += 1
        add_ten(run.tx)
        if run.date.day == 18:
            raise ZeroDivisionError

    credit = behind(bank, effect)
    with pytest.raises(ExceptionGroup) as caught:
        credit.catch_up()

    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]
    assert "credit:2026-09-18[UTC], attempt 1" in caught.value.exceptions[0].__notes__[0]
    assert (bank.units, bank.completed) == (90, 10)
    assert dict(bank.runs("credit"))["2026-09-18T00:00:00"] == "failed"
    assert (called[15], called[18], called[19]) == (2, 2, 1)  # with those before it, it is tried alone
    assert Counter(outcome for _, outcome in bank.history()) == {"completed": 10, "failed": 1}


def test_however_many_fail_a_function_is_called_twice_at_most(bank: Bank) -> None:
    called: Counter[str] = Counter()

    def effect(run: Run) -> None:
        called[run.key] += 1
        assert run.date is not None
        if run.date.day % 3 == 0:
            raise ZeroDivisionError

    credit = behind(bank, effect, days=14)
    with_errors_allowed(credit.catch_up)

    assert max(called.values()) == 2
    assert Counter(state for _, state in bank.runs("credit")) == {"completed": 10, "failed": 5}


def test_what_one_run_has_broken_is_not_put_on_record_against_the_next(bank: Bank) -> None:
    """SQLite ends the transaction; who did it has swallowed the error."""
    bank.amend(
        "create trigger odd before insert on export when new.day = '2026-09-17' begin select raise(rollback, 'no'); end"
    )

    def effect(run: Run) -> None:
        with suppress(sqlite3.IntegrityError):
            run.tx.execute("insert into export values (?)", (str(run.date),))

    credit = behind(bank, effect, days=6)
    with pytest.raises(ExceptionGroup) as caught:
        credit.catch_up()

    assert len(caught.value.exceptions) == 1
    assert [day for day, state in bank.runs("credit") if state == "failed"] == ["2026-09-17T00:00:00"]


def test_runs_of_a_zone_that_is_no_longer_in_force_keep_their_names(bank: Bank) -> None:
    seen: list[tuple[str, str]] = []

    def effect(run: Run) -> None:
        seen.append((run.key, run.idempotency_key))

    behind(bank, effect, days=4, schedule=duly.daily("Europe/Berlin"), version="a")
    seen.clear()
    weekly = bank.ledger.job("credit", duly.weekly("UTC"), catch_up=duly.EACH, inline=True, group=100, version="b")(
        effect
    )

    done = [each.key for each in weekly.catch_up()]

    assert done == [f"credit:2026-09-{day}[Europe/Berlin]" for day in range(15, 19)]
    assert [key for key, _ in seen] == done
    assert len({key for _, key in seen}) == 4


def test_a_failed_run_whose_time_has_come_is_worked_in_its_group_again(bank: Bank) -> None:
    troubles = [18]

    def effect(run: Run) -> None:
        assert run.date is not None
        add_ten(run.tx)
        if run.date.day in troubles:
            raise ZeroDivisionError

    credit = behind(bank, effect)
    with_errors_allowed(credit.catch_up)
    troubles.clear()
    bank.clock.advance("2d")

    assert commits(bank, credit.catch_up) == 2  # rows that there are come before windows without one

    assert (bank.units, bank.completed) == (120, 13)
    assert bank.rows("select number, outcome from duly_attempt where number > 1") == [(2, "completed")]


@pytest.mark.parametrize("state", ["skipped", "completed", "unknown"])
def test_what_is_not_free_any_more_is_not_completed_and_takes_its_group_along(bank: Bank, state: str) -> None:
    """Here the first run's own effect has written it; on PostgreSQL any other transaction might have."""
    worked: list[int] = []

    def effect(run: Run) -> None:
        assert run.date is not None
        worked.append(run.date.day)
        if run.date.day == 15:
            run.tx.execute(
                "update duly_run set state = ?, settled_at = 1, cause = 'so' where nominal = (select max(nominal) - 172800"
                " from duly_run) and state = 'open'",
                (state,),
            )
        add_ten(run.tx)

    credit = behind(bank, effect, days=3)
    worked.clear()
    credit.catch_up()

    assert worked == [15, 16, 17, 15, 17]
    assert [state for _, state in bank.runs("credit")] == ["completed", "completed", state, "completed"]
    assert bank.units == 20


def test_a_run_of_before_cannot_write_for_the_next_one(bank: Bank) -> None:
    before: list[Run] = []

    def effect(run: Run) -> None:
        add_ten(run.tx)
        if before:
            with pytest.raises(duly.TransactionOwned):
                before[-1].tx.execute("update balance set units = 0")
        before.append(run)

    credit = behind(bank, effect, days=3)
    before.clear()
    credit.catch_up()

    assert bank.units == 30
    with pytest.raises(duly.TransactionOwned):
        before[-1].tx.execute("update balance set units = 0")


def test_a_worker_that_is_killed_in_the_midst_leaves_nothing_of_its_group(bank: Bank) -> None:
    credit = behind(bank, ten)
    script = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True, group=100)
def credit(run):
    run.tx.execute("update balance set units = units + 10")
    if run.date.day == 18:
        stop("in the midst")

credit.catch_up()
"""
    worker = Worker(bank, script)
    worker.reaches("in the midst")
    worker.kill()

    assert (bank.units, bank.completed) == (0, 1)
    assert len(credit.catch_up()) == 10
    assert (bank.units, bank.completed) == (100, 11)


def test_a_child_that_a_run_has_forked_works_none_of_its_parents_runs(bank: Bank) -> None:
    credit = behind(bank, ten, days=4)
    script = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True, group=100)
def credit(run):
    global parent
    run.tx.execute("update balance set units = units + 10")
    if run.date.day == 16:
        parent = os.getpid()
        child = os.fork()
        if child:
            stop(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    if os.getpid() != parent:
        calls.append(run.date.day)

import os
parent, calls = os.getpid(), []
try:
    credit.catch_up()
finally:
    if os.getpid() != parent:
        os._exit(10 + len(calls))
"""
    worker = Worker(bank, script)
    worker.reaches("11")  # it has come to the end of its own run, and no further
    worker.kill()

    assert len(credit.catch_up()) == 4
    assert bank.units == 40


def test_what_ends_the_process_is_on_record_too(bank: Bank) -> None:
    def effect(run: Run) -> None:
        assert run.date is not None
        if run.date.day == 18:
            raise KeyboardInterrupt

    credit = behind(bank, effect)
    with pytest.raises(KeyboardInterrupt):
        credit.catch_up()

    assert bank.completed == 1
    assert dict(bank.runs("credit"))["2026-09-18T00:00:00"] == "failed"


# -- other policies, and what is refused --------------------------------------------------------------------------------


def test_where_the_policy_works_the_newest_only_there_is_nothing_to_share(bank: Bank) -> None:
    credit = behind(bank, ten, catch_up=duly.LATEST)

    assert days_of(credit.catch_up()) == ["2026-09-24"]

    assert bank.units == 10


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group": 0}, "group: 0 is not how many runs"),
        ({"group": 2**64}, "write 1 to 10000"),
        ({"group": True}, "group: True is not"),
        ({"group": "9"}, "group: '9' is not"),
        ({"group": 2}, "say inline=True as well"),
        ({"group": 2, "inline": True, "ordered": True}, "one by one"),
    ],
)
def test_a_group_is_asked_for_in_words_that_make_sense(bank: Bank, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, **settings)
