"""duly in an event loop: jobs, claims, cancellation, and what a forgotten await does, which is nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import warnings
from typing import Any

import psycopg
import pytest

import duly
import duly.aio
from duly.errors import ClaimLost, Misuse, TransactionOwned
from duly.times import MINUTE
from tests.aio.till import Till, add_ten, job
from tests.books import LATE, PostgresBook

Ledger = duly.aio.Ledger[Any]
Run = duly.aio.Run[Any]

KEY = "credit:2026-09-13[UTC]"


# -- jobs ---------------------------------------------------------------------------------------------------------------


def test_a_run_takes_effect_once_and_says_so_the_second_time(till: Till) -> None:
    async def story(ledger: Ledger) -> list[object]:
        credit = job(ledger)
        return [await credit.run("2026-09-13"), await credit.run("2026-09-13")]

    first, again = till.play(story)

    assert first == duly.Completed(KEY, 1)
    assert isinstance(again, duly.AlreadyCompleted)
    assert till.units == 10


def test_what_is_owed_is_worked_oldest_first(till: Till) -> None:
    async def story(ledger: Ledger) -> list[duly.Completed]:
        credit = job(ledger)
        await credit.run("2026-09-14")
        till.book.clock.set("2026-09-17T03:00:00Z")
        return await credit.catch_up()

    done = till.play(story)

    assert [completed.key for completed in done] == ["credit:2026-09-15[UTC]", "credit:2026-09-16[UTC]"]
    assert till.units == 30


def test_an_exception_leaves_no_effect_and_its_own_record(till: Till) -> None:
    async def breaks(run: Run) -> None:
        await add_ten(run)
        raise ConnectionError("password=hunter2")

    with pytest.raises(ConnectionError) as raised:
        till.play(lambda ledger: _run(job(ledger, breaks)))

    assert raised.value.__notes__ == [f"duly: in {KEY}, attempt 1"]
    ((outcome, error),) = till.ends()
    assert (outcome, (error or "").startswith("ConnectionError at test_aio.py")) == ("failed", True)
    assert till.units == 0


def test_inline_claims_works_and_completes_in_one_transaction(till: Till) -> None:
    async def story(ledger: Ledger) -> list[object]:
        credit = job(ledger, inline=True)
        return [await credit.run("2026-09-13"), await credit.run("2026-09-13")]

    first, again = till.play(story)

    assert (first, bool(again), till.units) == (duly.Completed(KEY, 1), False, 10)


def test_an_inline_attempt_that_fails_is_on_record(till: Till) -> None:
    async def breaks(run: Run) -> None:
        await add_ten(run)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        till.play(lambda ledger: _run(job(ledger, breaks, inline=True)))

    assert [outcome for outcome, _ in till.ends()] == ["failed"]
    assert till.units == 0


def test_a_result_is_kept_with_the_completion_and_can_be_read(till: Till) -> None:
    async def counts(run: Run) -> None:
        run.result = {"rows": 3}

    async def story(ledger: Ledger) -> object:
        await job(ledger, counts).run("2026-09-13")
        return await ledger.result("credit", "2026-09-13")

    assert till.play(story) == {"rows": 3}


def test_two_tasks_at_once_are_one_effect(till: Till) -> None:
    async def slow(run: Run) -> None:
        await asyncio.sleep(0)
        await add_ten(run)

    async def story(ledger: Ledger) -> list[object]:
        credit = job(ledger, slow)
        await credit.run("2026-09-12")

        async def run_it() -> object:
            return await credit.run("2026-09-13", wait=5)

        return list(await asyncio.gather(*(run_it() for _ in range(8))))

    answers = till.play(story)

    assert sum(isinstance(answer, duly.Completed) for answer in answers) == 1
    assert sum(isinstance(answer, duly.AlreadyCompleted) for answer in answers) == 7
    assert till.units == 20


def test_the_function_of_a_job_is_async(till: Till) -> None:
    with pytest.raises(Misuse, match="async def"):
        till.ledger().job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)  # type: ignore[arg-type,return-value]


def test_work_that_was_only_promised_is_no_completion(till: Till) -> None:
    async def promises(run: Run) -> object:
        return add_ten(run)

    with pytest.raises(TypeError, match="which nobody would run"):
        till.play(lambda ledger: _run(job(ledger, promises)))

    assert till.units == 0


# -- a forgotten await ---------------------------------------------------------------------------------------------------


def test_an_answer_that_was_not_awaited_is_neither_true_nor_false(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        credit = job(ledger)
        for forgotten in (credit.run("2026-09-13"), credit.catch_up(), ledger.take("credit", "2026-09-13")):
            with pytest.raises(TypeError, match="awaited"):
                bool(forgotten)
        with pytest.raises(TypeError, match="awaited"):
            bool(duly.aio.once(object(), KEY))

    till.play(story)

    assert till.book.runs("credit") == []


def test_what_was_not_awaited_does_nothing_and_warns(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        credit = job(ledger)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            credit.run("2026-09-13")  # type: ignore[unused-awaitable]
            gc.collect()
        assert any("never awaited" in str(warning.message) for warning in told)

    till.play(story)

    assert till.book.runs("credit") == []


# -- the run's own transaction -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["commit", "rollback", "close", "words", "with"])
def test_the_transaction_of_a_run_cannot_be_ended_from_inside(till: Till, how: str) -> None:
    async def ends(run: Run) -> None:
        await add_ten(run)
        tx = await run.tx
        match how:
            case "words":
                await tx.execute("commit")
            case "with":
                async with tx:
                    pass
            case _:
                await getattr(tx, how)()

    with pytest.raises((TransactionOwned, TypeError)):
        till.play(lambda ledger: _run(job(ledger, ends)))

    assert (till.units, [outcome for outcome, _ in till.ends()]) == (0, ["failed"])


def test_a_run_that_is_over_writes_nothing_more(till: Till) -> None:
    kept: list[Run] = []

    async def story(ledger: Ledger) -> None:
        async def keeps(run: Run) -> None:
            await add_ten(run)
            kept.append(run)

        await job(ledger, keeps).run("2026-09-13")
        with pytest.raises(TransactionOwned, match="over"):
            await kept[0].tx

    till.play(story)

    assert till.units == 10


# -- cancellation --------------------------------------------------------------------------------------------------------


def test_a_cancelled_run_leaves_no_effect_no_lock_and_a_record(till: Till) -> None:
    async def story(ledger: Ledger) -> object:
        began = asyncio.Event()

        async def waits(run: Run) -> None:
            await add_ten(run)
            began.set()
            await asyncio.Event().wait()

        credit = job(ledger, waits, retry_delay=0)
        task = asyncio.ensure_future(_run(credit))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await job(ledger).run("2026-09-13")

    again = till.play(story)

    assert again == duly.Completed(KEY, 2)
    assert [outcome for outcome, _ in till.ends()] == ["failed", "completed"]
    assert till.units == 10
    assert open_transactions(till) == 0


@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_cancelled_at_any_moment_a_run_is_done_whole_or_not_at_all(till: Till, turns: int) -> None:
    async def story(ledger: Ledger) -> object:
        credit = job(ledger, retry_delay=0)
        await credit.run("2026-09-12")
        task = asyncio.ensure_future(_run(credit))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return await credit.run("2026-09-13", wait=5)

    again = till.play(story)

    assert isinstance(again, (duly.Completed, duly.AlreadyCompleted))
    assert till.units == 20
    assert open_transactions(till) == 0


@pytest.mark.parametrize("turns", range(0, 30, 3))
def test_a_cancelled_take_leaves_nothing_claimed(till: Till, turns: int) -> None:
    async def story(ledger: Ledger) -> object:
        await job(ledger).run("2026-09-12")
        task = asyncio.ensure_future(_take(ledger))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            await task.result().release()
        return await ledger.take("credit", "2026-09-13")

    again = till.play(story)

    assert isinstance(again, duly.aio.Claim)


# -- claims --------------------------------------------------------------------------------------------------------------


def test_a_claim_left_by_an_exception_is_judged_by_its_contract(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        await job(ledger).run("2026-09-12")
        async with await _take(ledger) as claim:
            await add_ten(claim.run)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        till.play(story)

    assert [outcome for outcome, _ in till.ends()] == ["completed", "failed"]
    assert till.units == 10


def test_a_claim_completes_in_its_own_transaction(till: Till) -> None:
    async def story(ledger: Ledger) -> object:
        await job(ledger).run("2026-09-12")
        async with await _take(ledger) as claim:
            await add_ten(claim.run)
            return await claim.complete(output="s3://exports/13")

    assert till.play(story) == duly.Completed(KEY, 1)
    assert till.units == 20
    assert till.book.rows("select body from duly_text") == [("s3://exports/13",)]


def test_a_claim_that_was_taken_over_keeps_nothing(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        credit = job(ledger, lease="1m")
        await credit.run("2026-09-12")
        claim = await _take(ledger)
        if isinstance(till.book, PostgresBook):  # of SQLite, whoever has written holds off the take-over too
            await add_ten(claim.run)
        till.book.clock.advance(LATE)
        claim._pulse.stop()
        assert isinstance(till.book.ask_key(KEY), duly.ledger.records.Claim)
        with pytest.raises((ClaimLost, TransactionOwned)):
            await claim.complete()
        await claim.close()

    till.play(story)

    assert till.units == 10


def test_a_lease_is_renewed_while_the_block_lasts_and_its_loss_is_told(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        await job(ledger, lease="1m").run("2026-09-12")
        async with await _take(ledger) as claim:
            till.book.clock.advance(MINUTE // 2)
            while not till.book.rows("select until from duly_renewal"):
                await asyncio.sleep(0.005)
            till.book.amend("update duly_run set attempt_id = null, fence = fence + 1 where state = 'running'")
            till.book.clock.advance(MINUTE // 2)
            while not claim.superseded:
                await asyncio.sleep(0.005)
            with pytest.raises(ClaimLost):
                await claim.complete()
            claim._ended = True

    till.play(story)


@pytest.mark.parametrize("turns", range(5))
def test_a_claim_that_is_given_back_by_whom_is_cancelled_leaves_nothing_open(till: Till, turns: int) -> None:
    async def story(ledger: Ledger) -> None:
        await job(ledger).run("2026-09-12")
        claim = await _take(ledger)
        await add_ten(claim.run)
        transaction: Any = claim.run._transaction
        task = asyncio.ensure_future(claim.release())
        for _ in range(turns + 1):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await claim.close()
        assert not getattr(transaction, "_has_thread", False)

    till.play(story)

    assert till.units == 10
    assert open_transactions(till) == 0


@pytest.mark.parametrize("turns", range(0, 24, 2))
def test_a_ledger_that_is_closed_stays_closed_whatever_its_renewals_were_in_the_midst_of(
    till: Till, turns: int
) -> None:
    async def story(ledger: Ledger) -> None:
        await job(ledger).run("2026-09-12")
        claim = await _take(ledger)
        async with claim:
            await asyncio.sleep(0.02)  # a clock that is set by hand is looked at each few milliseconds
            for _ in range(turns):
                await asyncio.sleep(0)
            await claim.release()

        await ledger.close()

        await asyncio.sleep(0.02)
        assert getattr(ledger._store, "_free", []) == []

    till.play(story)


# -- helpers -------------------------------------------------------------------------------------------------------------


async def _run(credit: duly.aio.Job[Any]) -> object:
    return await credit.run("2026-09-13")


async def _take(ledger: Ledger) -> duly.aio.Claim:
    claim = await ledger.take("credit", "2026-09-13")
    assert isinstance(claim, duly.aio.Claim), claim
    return claim


def open_transactions(till: Till) -> int:
    """How many transactions somebody left open: of SQLite, whether a writer could not begin at once."""
    if not isinstance(till.book, PostgresBook):
        till.book.amend("update balance set units = units")  # waits for nobody: it would be busy
        return 0
    with psycopg.connect(till.book.path, autocommit=True) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
            "and state like 'idle in transaction%'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_the_scopes_that_are_declared_are_on_the_roster_before_they_run(till: Till) -> None:
    async def story(ledger: duly.aio.Ledger[Any]) -> object:
        credit = job(ledger, scopes=("acme", duly.Scope("globex", until="2026-09-14")))
        await credit.run("2026-09-14", scope="acme")
        with pytest.raises(duly.Retired):
            await credit.run("2026-09-14", scope="globex")
        return await credit.catch_up()

    assert till.play(story) == []
    assert till.book.rows("select scope from duly_line order by scope") == [("acme",), ("globex",)]


# -- asked to stop -------------------------------------------------------------------------------------------------------


async def _heard(till: Till, day: str = "2026-09-13") -> None:
    """A person cancels the run, and time passes until a heartbeat hears of it."""
    await asyncio.to_thread(till.book.cancel, day, job="credit")
    till.book.clock.advance(MINUTE // 2)


def test_the_task_of_a_run_that_a_person_cancels_is_cancelled_and_its_caller_is_not(till: Till) -> None:
    seen: list[bool] = []

    async def story(ledger: Ledger) -> object:
        async def waits(run: Run) -> None:
            await _heard(till)
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(run.cancelled)

        with pytest.raises(duly.RunCancelled, match=f"attempt 1 of {re.escape(KEY)}"):
            await job(ledger, waits, lease="1m").run("2026-09-13")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # the caller goes on
        return "went on"

    assert till.play(story) == "went on"
    assert seen == [True]
    assert [outcome for outcome, _ in till.ends()] == ["cancelled"]
    assert till.book.rows("select state, cause, retry_at from duly_run") == [("failed", "cancelled", None)]
    assert open_transactions(till) == 0


def test_a_run_that_heeds_no_cancellation_completes_and_its_caller_goes_on(till: Till) -> None:
    async def story(ledger: Ledger) -> object:
        async def stubborn(run: Run) -> None:
            await _heard(till)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await add_ten(run)

        done = await job(ledger, stubborn, lease="1m").run("2026-09-13")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        return done

    assert till.play(story) == duly.Completed(KEY, 1)
    assert till.units == 10


def test_whoever_cancels_the_caller_too_is_heeded(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        async def waits(run: Run) -> None:
            await _heard(till)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                task.cancel()
                raise

        task = asyncio.ensure_future(_run(job(ledger, waits, lease="1m")))
        with pytest.raises(asyncio.CancelledError):
            await task

    till.play(story)

    assert [outcome for outcome, _ in till.ends()] == ["cancelled"]


def test_what_is_owed_after_a_cancelled_run_is_worked_all_the_same(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        async def waits(run: Run) -> None:
            if str(run.date) == "2026-09-15":
                await _heard(till, "2026-09-15")
                await asyncio.Event().wait()
            await add_ten(run)

        credit = job(ledger, waits, lease="1m")
        await credit.run("2026-09-14")
        till.book.clock.set("2026-09-17T03:00:00Z")
        with pytest.raises(ExceptionGroup) as raised:
            await credit.catch_up()
        assert [type(e) for e in raised.value.exceptions] == [duly.RunCancelled]

    till.play(story)

    assert [outcome for outcome, _ in till.ends()] == ["completed", "cancelled", "completed"]


def test_a_claim_is_told_and_its_block_goes_on(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        await job(ledger, lease="1m").run("2026-09-12")
        async with await _take(ledger) as claim:
            await _heard(till)
            while not claim.cancelled:
                await asyncio.sleep(0.005)

    till.play(story)

    assert [outcome for outcome, _ in till.ends()] == ["completed", "cancelled"]


# -- progress and output -------------------------------------------------------------------------------------------------


def test_how_far_a_run_is_and_where_its_output_is_are_told(till: Till) -> None:
    async def story(ledger: Ledger) -> None:
        async def works(run: Run) -> None:
            run.progress(3, of=20)
            while not till.book.rows("select 1 from duly_progress where done = 3 and total = 20"):
                await asyncio.sleep(0.005)
            run.output = "s3://exports/13"

        await job(ledger, works, lease="1m").run("2026-09-13")

    till.play(story)

    assert till.book.rows("select kind, body from duly_text") == [("output", "s3://exports/13")]


def test_how_far_it_came_is_left_by_a_run_that_fails(till: Till) -> None:
    async def breaks(run: Run) -> None:
        run.progress(3)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        till.play(lambda ledger: _run(job(ledger, breaks)))

    assert till.book.rows("select done, total from duly_progress") == [(3, None)]


# -- versions -----------------------------------------------------------------------------------------------------------


def test_a_new_version_in_code_is_put_in_force_and_the_old_one_does_not_come_back(till: Till) -> None:
    async def story(ledger: Ledger) -> list[object]:
        def credit(schedule: duly.Schedule, version: str) -> duly.aio.Job[Any]:
            return ledger.job("credit", schedule, catch_up=duly.EACH, version=version)(add_ten)

        old, new = credit(duly.daily("UTC"), "a"), credit(duly.daily("Europe/Berlin"), "b")
        await old.run("2026-09-13")
        answers: list[object] = [await new.run("2026-09-13[UTC]")]
        try:
            await old.run("2026-09-12")
        except duly.ScheduleChanged as refused:
            answers.append(str(refused))
        return answers

    duplicate, refused = till.play(story)

    assert isinstance(duplicate, duly.AlreadyCompleted)
    assert "a of credit was replaced" in str(refused)
