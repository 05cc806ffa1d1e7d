"""Progress and output of Python jobs: told beside the run, never in its transaction."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

import duly
from duly.store.lock import HAS_PULSE, begin_pulse, lock_path
from tests.books import LATE, LEASE, let_die
from tests.story import duly as command
from tests.work.bank import Bank, add_ten, until

DAY = "2026-09-13"
KEY = f"credit:{DAY}[UTC]"
Run = duly.Run[sqlite3.Connection]


def job(bank: Bank, function: Any, **settings: Any) -> duly.Job[sqlite3.Connection]:
    return bank.ledger.job("credit", duly.daily("UTC"), **{"catch_up": duly.EACH, "lease": "1m", **settings})(function)


def told(bank: Bank) -> list[tuple[Any, ...]]:
    return bank.rows("select done, total from duly_progress")


def said(bank: Bank, *words: str) -> str:
    answer = command(*words, DULY_LEDGER=bank.path)
    assert answer.code == 0, answer
    return answer.out


# -- progress -----------------------------------------------------------------------------------------------------------


def test_how_far_it_is_is_seen_while_it_works(bank: Bank) -> None:
    seen: list[str] = []

    def function(run: Run) -> None:
        run.progress(14, of=20)
        until(lambda: told(bank) == [(14, 20)])
        bank.clock.advance(3 * LEASE)
        until(lambda: bool(bank.rows("select 1 from duly_renewal where until > ?", bank.clock.now())))
        seen.extend(said(bank, *view) for view in VIEWS)

    job(bank, function).run(DAY)

    status, shown, explained = seen
    assert "14/20, 70 %, 3m ago" in status
    assert "14/20, 70 %, 3m ago" in shown
    assert "It said 3m ago that it had done 14/20, 70 %." in explained


VIEWS = (("status", "credit"), ("runs", "show", "credit", DAY), ("explain", "credit", DAY))


def test_it_is_written_every_few_seconds_at_most_and_the_newest_counts(bank: Bank) -> None:
    def function(run: Run) -> None:
        run.progress(0)
        until(lambda: told(bank) == [(0, None)])
        for done in range(1, 1000):
            run.progress(done)
        bank.clock.advance(1_000_000)
        assert told(bank) == [(0, None)]
        bank.clock.advance(2_000_000)
        until(lambda: told(bank) == [(999, None)])

    job(bank, function).run(DAY)


def test_neither_the_run_nor_its_transaction_is_touched(bank: Bank) -> None:
    def function(run: Run) -> None:
        before = bank.rows("select * from duly_run")
        run.progress(1)
        until(lambda: told(bank) == [(1, None)])
        assert bank.rows("select * from duly_run") == before
        bank.clock.advance(3_000_000)
        add_ten(run.tx)
        run.progress(2)  # nobody else can write now, and the run waits for nobody

    job(bank, function).run(DAY)

    assert (bank.units, bank.completed) == (10, 1)


def test_an_attempt_that_fails_leaves_how_far_it_came(bank: Bank) -> None:
    def function(run: Run) -> None:
        run.progress(7, of=20)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        job(bank, function, effect="external").run(DAY)

    assert told(bank) == [(7, 20)]
    assert "7/20, 35 %" in said(bank, "status")


def test_the_next_attempt_has_a_progress_of_its_own(bank: Bank) -> None:
    attempts: list[int] = []

    def function(run: Run) -> None:
        attempts.append(run.attempt)
        if run.attempt == 1:
            run.progress(7, of=20)
            raise ConnectionError
        assert "7/20" not in said(bank, "status", "credit")

    credit = job(bank, function, retry_delay=0)
    with pytest.raises(ConnectionError):
        credit.run(DAY)
    bank.clock.advance(LEASE)
    credit.run(DAY)

    assert attempts == [1, 2]


def test_an_attempt_that_was_superseded_tells_nothing_more(bank: Bank) -> None:
    def function(run: Run) -> None:
        bank.amend("update duly_run set fence = fence + 1, attempt_id = x'00112233445566778899aabbccddeeff'")
        run.progress(7)
        bank.clock.advance(LEASE // 2)
        until(lambda: run.superseded)

    with pytest.raises(duly.ClaimLost):
        job(bank, function).run(DAY)

    assert told(bank) == []


def test_a_claim_tells_of_its_own(bank: Bank) -> None:
    bank.job("credit")
    claim = bank.ledger.take("credit", DAY)
    assert isinstance(claim, duly.Claim)

    with claim:
        claim.run.progress(3)
        until(lambda: told(bank) == [(3, None)])
        claim.complete()


@pytest.mark.parametrize(
    ("done", "of", "names"),
    [
        (-1, None, "done"),
        (0.5, None, "done"),
        (True, None, "done"),
        (1, 0, "of"),
        (1, "20", "of"),
        (1 << 63, None, "done"),
    ],
)
def test_what_is_no_number_of_things_is_refused_by_its_name(bank: Bank, done: Any, of: Any, names: str) -> None:
    def function(run: Run) -> None:
        with pytest.raises(duly.Misuse, match=f"progress: {names} has to be a whole number"):
            run.progress(done, of=of)

    job(bank, function).run(DAY)


# -- output -------------------------------------------------------------------------------------------------------------


def test_where_the_output_is_is_kept_with_the_completion_and_explained(bank: Bank) -> None:
    def function(run: Run) -> None:
        add_ten(run.tx)
        run.output = "s3://exports/2026-09-13.csv"

    job(bank, function).run(DAY)

    assert bank.rows("select kind, body from duly_text") == [("output", "s3://exports/2026-09-13.csv")]
    assert "Its output: s3://exports/2026-09-13.csv." in said(bank, "explain", "credit", DAY)
    assert "s3://exports/2026-09-13.csv" in said(bank, "runs", "show", "credit", DAY)


def test_a_result_is_kept_with_the_completion_and_can_be_read(bank: Bank) -> None:
    def export(run: Run) -> None:
        run.result = {"rows": 3, "days": [str(run.date)], "total": 1.5}
        run.output = "s3://exports/2026-09-13.csv"

    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(export)
    job.run(DAY)

    assert bank.ledger.result("credit", DAY) == {"rows": 3, "days": [DAY], "total": 1.5}
    assert 'Its result: {"days":["2026-09-13"],"rows":3,"total":1.5}.' in said(bank, "explain", "credit", DAY)
    with pytest.raises(duly.NotComplete):
        bank.ledger.result("credit", "2026-09-12")


def test_a_run_that_left_none_has_no_result_nor_has_one_that_is_done_again(bank: Bank) -> None:
    results: list[Any] = [None, {"rows": 1}]

    def export(run: Run) -> None:
        run.result = results[-1]
        run.result = results.pop(0)

    job = bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(export)
    job.run(DAY)
    assert bank.ledger.result("credit", DAY) is None

    said(bank, "reopen", "credit", DAY, "--reason", "the rates were wrong")
    with pytest.raises(duly.NotComplete):
        bank.ledger.result("credit", DAY)
    job.run(DAY)
    assert bank.ledger.result("credit", DAY) == {"rows": 1}


def holds_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def test_a_result_may_be_filled_in_after_it_was_set(bank: Bank) -> None:
    def export(run: Run) -> None:
        run.result = {}
        run.result["rows"] = 3

    bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(export).run(DAY)

    assert bank.ledger.result("credit", DAY) == {"rows": 3}


def test_what_a_result_holds_is_shown_so_that_a_terminal_obeys_none_of_it(bank: Bank) -> None:
    def export(run: Run) -> None:
        run.result, run.output = "\u009b2J\u202e", "\x1b[2Jout.csv"

    bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(export).run(DAY)

    for told in (said(bank, "explain", "credit", DAY), said(bank, "runs", "show", "credit", DAY)):
        assert not {"\x1b", "\u009b", "\u202e"} & set(told)


@pytest.mark.parametrize(
    "value",
    [float("nan"), {1: 2}, {"when": DAY.encode()}, "x" * 70_000, "\ud800", {"\udfff": 1}, 10**5000, holds_itself()],
    ids=["nan", "key", "bytes", "long", "surrogate", "surrogate key", "huge", "itself"],
)
def test_a_result_that_is_not_json_or_too_long_is_refused_by_name(bank: Bank, value: Any) -> None:
    def export(run: Run) -> None:
        with pytest.raises(duly.Misuse, match=r"^result"):
            run.result = value

    bank.ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(export).run(DAY)

    assert bank.rows("select * from duly_text") == []


def test_an_attempt_that_fails_has_no_output(bank: Bank) -> None:
    def function(run: Run) -> None:
        run.output = "s3://exports/half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        job(bank, function).run(DAY)

    assert bank.rows("select * from duly_text") == []


@pytest.mark.parametrize("where", ["", " ", 7, b"s3://", "x" * 5000])
def test_what_is_no_place_is_refused(bank: Bank, where: Any) -> None:
    def function(run: Run) -> None:
        with pytest.raises(duly.Misuse, match=r"^output: "):
            run.output = where
        assert run.output is None

    job(bank, function).run(DAY)


# -- superseded ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_PULSE, reason="this system shows no pulse")
def test_of_an_attempt_that_was_declared_lost_it_is_said_whether_it_shows_a_pulse(bank: Bank) -> None:
    bank.job("credit")
    first = bank.take(DAY, job="credit")
    bank.clock.advance(LATE)
    bank.take(DAY, job="credit")

    dead = said(bank, "explain", "credit", DAY), said(bank, "runs", "show", "credit", DAY)
    pulse = begin_pulse(lock_path(bank.path), first.attempt_id)  # it was only asleep
    alive = said(bank, "explain", "credit", DAY), said(bank, "runs", "show", "credit", DAY)
    let_die(pulse)

    assert "It was superseded, and shows no pulse any more" in dead[0]
    assert "superseded, no pulse" in dead[1]
    assert "It was superseded, and its process is alive still: what it reports is refused." in alive[0]
    assert "superseded, still alive" in alive[1]
