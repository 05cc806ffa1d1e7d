"""What only an event loop asks of a typed ledger: cancellation, other tasks, a loop that must not stand still or that ends."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

import duly
import duly.aio
from duly.store.lock import WriterLock
from duly.store.owned.sqlalchemy_async import await_
from tests.borrowed.shop import Shop
from tests.typed.desks import KINDS, Effect, Kind, OfAsyncSession, OfAsyncSqlalchemy, ShopSession

DAY = "2026-10-05"
KEY = f"export:{DAY}[UTC]"

Run = duly.aio.Run[Any]
Work = Callable[[Run], Awaitable[object]]

ASYNC = [kind for kind in KINDS if kind.is_async]


def of(found: Callable[[Kind], bool]) -> pytest.MarkDecorator:
    """Told of those async kinds only."""
    return pytest.mark.parametrize("kind", [kind for kind in ASYNC if found(kind)], ids=lambda kind: kind.name)


EACH_ASYNC = of(lambda kind: True)
SESSIONS = of(lambda kind: kind.desk is OfAsyncSession)
ON_SQLITE = of(lambda kind: kind.database == "sqlite")
ON_POSTGRES = of(lambda kind: kind.database == "postgresql")


def job(desk: OfAsyncSqlalchemy, work: Work, **settings: Any) -> duly.aio.Job[Any]:
    """The shop's daily job, with this work."""
    stated = {"catch_up": duly.EACH, "retry_delay": 0, **settings}
    declared: duly.aio.Job[Any] = desk.ledger.told.job("export", duly.daily("UTC"), **stated)(work)
    return declared


async def put(tx: Any, note: str) -> None:
    if hasattr(tx, "add"):
        tx.add(Effect(note=note))
    else:
        await tx.execute(Effect.__table__.insert().values(note=note))  # type: ignore[attr-defined]  # it is a Table


def puts(note: str) -> Work:
    async def work(run: Run) -> None:
        await put(await run.tx, note)

    return work


def play(desk: OfAsyncSqlalchemy, story: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return desk.loop.run(story())


def assert_nothing_is_left_open(desk: OfAsyncSqlalchemy, shop: Shop) -> None:
    """No connection is out, no lock is held, and no transaction is under way at the server."""
    assert desk.engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # a QueuePool has it
    if shop.database == "sqlite":
        lock = WriterLock(shop.book.path)
        assert lock.acquire(0)
        lock.close()
        shop.book.amend("update effect set note = note")  # waits for nobody: it would be busy
        return
    open_ones = (
        "select query from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"
    )
    assert shop.book.rows(open_ones) == []


# -- cancellation -------------------------------------------------------------------------------------------------------


@EACH_ASYNC
def test_a_cancelled_run_leaves_no_effect_no_lock_and_a_record(kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop) -> None:
    async def story() -> None:
        began = asyncio.Event()

        async def waits(run: Run) -> None:
            await put(await run.tx, "cancelled")
            began.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(_run(job(desk, waits)))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(desk, story)

    assert (shop.effects, shop.history) == ([], [(1, "failed")])
    assert_nothing_is_left_open(desk, shop)
    assert play(desk, lambda: _run(job(desk, puts("again")))) == duly.Completed(KEY, 2)


@EACH_ASYNC
def test_cancelled_at_any_moment_a_run_is_done_whole_or_not_at_all(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    async def story(turns: int) -> None:
        export = job(desk, puts_label)
        window = f"2026-09-{turns + 1:02}"
        task = asyncio.ensure_future(_run(export, window))
        for _ in range(turns * 4):
            await asyncio.sleep(0.0005 if turns % 2 else 0)
        task.cancel()
        await asyncio.wait([task])
        again = await export.run(window, wait=5)
        assert isinstance(again, (duly.Completed, duly.AlreadyCompleted))

    async def puts_label(run: Run) -> None:
        await put(await run.tx, run.label)

    windows = range(16)
    for turns in windows:
        play(desk, lambda turns=turns: story(turns))  # type: ignore[misc]

    assert shop.effects == [f"2026-09-{turns + 1:02}" for turns in windows]
    assert_nothing_is_left_open(desk, shop)


@EACH_ASYNC
def test_a_completion_that_has_begun_is_brought_to_its_end_by_whom_it_is_cancelled(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    async def story() -> None:
        task: asyncio.Task[object]

        async def work(run: Run) -> None:
            await put(await run.tx, "report")
            asyncio.get_running_loop().call_soon(task.cancel)  # comes when the work has returned

        task = asyncio.ensure_future(_run(job(desk, work)))
        with pytest.raises(asyncio.CancelledError):
            await task

    play(desk, story)

    assert (shop.effects, shop.state) == (["report"], "completed")
    assert_nothing_is_left_open(desk, shop)


@EACH_ASYNC
def test_a_claim_that_is_given_back_by_whom_is_cancelled_leaves_nothing_open(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    async def story() -> None:
        claim = await desk.ledger.told.take(KEY)
        await put(await claim.run.tx, "given back")
        task = asyncio.ensure_future(claim.release())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await claim.close()

    play(desk, story)

    assert shop.effects == []
    assert_nothing_is_left_open(desk, shop)


@EACH_ASYNC
def test_a_loop_that_ends_while_a_run_is_worked_keeps_nothing_of_it(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    """Then every task is cancelled, also what is shielded from one that waits for it."""

    async def story() -> None:
        began = asyncio.Event()

        async def waits(run: Run) -> None:
            await put(await run.tx, "unfinished")
            began.set()
            await asyncio.Event().wait()

        async with desk.ledger.told:
            worked = asyncio.ensure_future(_run(job(desk, waits)))
            await began.wait()
        worked.cancel()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.wait([worked])

    with suppress(asyncio.CancelledError):
        play(desk, story)

    assert shop.effects == []
    assert_nothing_is_left_open(desk, shop)


@ON_SQLITE
def test_whoever_is_cancelled_while_it_waits_for_its_turn_takes_none(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    holder = WriterLock(shop.book.path)

    async def story() -> None:
        waits = asyncio.Event()

        async def work(run: Run) -> None:
            assert holder.acquire(1)
            waits.set()
            await run.tx

        task = asyncio.ensure_future(_run(job(desk, work)))
        await waits.wait()
        await asyncio.sleep(0.05)
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        await asyncio.sleep(0.05)
        holder.release()
        await asyncio.wait([task])
        await asyncio.sleep(0.05)  # the thread that waited has the lock now, and lets it go

    play(desk, story)

    assert_nothing_is_left_open(desk, shop)
    holder.close()


# -- a loop that goes on ------------------------------------------------------------------------------------------------


@ON_SQLITE
@pytest.mark.parametrize("held", ["by the lock", "by a foreigner"])
def test_the_loop_goes_on_while_a_run_waits_for_its_turn(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop, held: str
) -> None:
    lock = WriterLock(shop.book.path)
    foreigner = sqlite3.connect(shop.book.path, isolation_level=None)

    async def story() -> None:
        async def work(run: Run) -> None:
            if held == "by the lock":
                assert lock.acquire(1)
            else:
                foreigner.execute("begin immediate")
            beats = asyncio.ensure_future(beat())
            await put(await run.tx, "report")
            assert beats.done()

        await _run(job(desk, work))

    async def beat() -> None:
        for _ in range(6):
            await asyncio.sleep(0.01)
        lock.release()
        foreigner.rollback()

    play(desk, story)

    assert shop.effects == ["report"]
    lock.close()
    foreigner.close()


@ON_SQLITE
def test_many_that_wait_for_their_turn_leave_the_threads_of_the_loop_to_the_one_that_has_it(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    many = 40  # more than a loop has threads

    async def work(run: Run) -> None:
        tx = await run.tx
        await put(tx, f"{run.label} {await asyncio.to_thread(str, 1)}")

    async def story() -> None:
        jobs = [
            desk.ledger.told.job(f"export{number}", duly.daily("UTC"), catch_up=duly.EACH)(work)
            for number in range(many)
        ]
        async with desk.ledger.told:
            answers = await asyncio.gather(*(_run(each, f"2026-08-{i % 28 + 1:02}") for i, each in enumerate(jobs)))
        assert all(isinstance(answer, duly.Completed) for answer in answers)

    shop.book.amend("drop table effect")
    shop.book.amend("create table effect (note varchar(40))")
    play(desk, story)

    assert len(shop.effects) == many


@ON_SQLITE
def test_a_run_inside_a_runs_transaction_waits_in_vain_and_the_outer_one_stays_whole(kind: Kind, shop: Shop) -> None:
    """Whose turn it is cannot be told by the thread here, which is everybody's."""
    desk = kind.open(shop.book.path)
    assert isinstance(desk, OfAsyncSqlalchemy)
    impatient = duly.aio.sqlalchemy(desk.engine, busy_seconds=0.1)
    inner = impatient.job("inner", duly.daily("UTC"), catch_up=duly.EACH)(puts("inner"))

    async def work(run: Run) -> None:
        await put(await run.tx, "outer")
        with pytest.raises(duly.LedgerBusy):
            await inner.run(DAY)

    assert play(desk, lambda: _run(job(desk, work))) == duly.Completed(KEY, 1)
    assert shop.effects == ["outer"]
    desk.loop.run(impatient.close())
    desk.close()


# -- other tasks --------------------------------------------------------------------------------------------------------


@SESSIONS
def test_while_duly_commits_another_task_is_refused_all_the_same(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    refused: list[type[BaseException]] = []

    async def meanwhile(tx: Any) -> None:
        for way in (tx.commit, tx.close, tx.begin().start, lambda: tx.execute(text("commit"))):
            try:
                await way()
            except Exception as e:
                refused.append(type(e))

    async def work(run: Run) -> None:
        tx = await run.tx
        await put(tx, "report")
        others = asyncio.Event()
        ends = asyncio.Event()

        async def other() -> None:
            await others.wait()
            await meanwhile(tx)
            ends.set()

        kept.append(asyncio.ensure_future(other()))

        def before_commit(session: Session) -> None:
            others.set()
            await_(ends.wait())

        event.listen(tx.sync_session, "before_commit", before_commit)

    kept: list[asyncio.Future[None]] = []
    assert play(desk, lambda: _run(job(desk, work))) == duly.Completed(KEY, 1)

    assert refused[:3] == [duly.TransactionOwned] * 3
    assert len(refused) == 4  # of the last one SQLAlchemy says that the session is in the midst of something
    assert shop.effects == ["report"]


SLOW = {
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000) select max(i) from n",
    "postgresql": "select pg_sleep(0.5)",
}


@EACH_ASYNC
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_a_statement_that_another_task_is_in_the_midst_of_does_not_keep_a_run_alive(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    async def story() -> None:
        others: list[asyncio.Future[Any]] = []

        async def work(run: Run) -> None:
            tx = await run.tx
            await tx.execute(text("insert into effect values ('report')"))
            others.append(asyncio.ensure_future(tx.execute(text(SLOW[shop.database]))))
            await asyncio.sleep(0.05)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await _run(job(desk, work))
        await asyncio.gather(*others, return_exceptions=True)

    play(desk, story)

    assert (shop.effects, shop.state) == ([], "failed")
    assert_nothing_is_left_open(desk, shop)
    assert play(desk, lambda: _run(job(desk, puts("again")))) == duly.Completed(KEY, 2)


@EACH_ASYNC
def test_a_task_that_outlives_its_run_writes_nothing(kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop) -> None:
    async def story() -> None:
        over = asyncio.Event()
        others: list[asyncio.Future[Any]] = []

        async def work(run: Run) -> None:
            tx = await run.tx
            await put(tx, "report")

            async def late() -> None:
                await over.wait()
                await put(tx, "late")
                if hasattr(tx, "flush"):
                    await tx.flush()

            others.append(asyncio.ensure_future(late()))

        await _run(job(desk, work))
        over.set()
        with pytest.raises(Exception, match=r"over|closed"):
            await others[0]

    play(desk, story)

    assert shop.effects == ["report"]
    assert_nothing_is_left_open(desk, shop)


@EACH_ASYNC
def test_a_savepoint_that_is_left_open_is_kept_with_the_run(kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop) -> None:
    async def work(run: Run) -> None:
        tx = await run.tx
        await tx.begin_nested()
        await tx.begin_nested()
        await put(tx, "report")

    assert play(desk, lambda: _run(job(desk, work))) == duly.Completed(KEY, 1)
    assert shop.effects == ["report"]
    assert_nothing_is_left_open(desk, shop)


# -- what a run leaves --------------------------------------------------------------------------------------------------


@EACH_ASYNC
@pytest.mark.parametrize("end", ["completed", "failed", "claim lost", "inline"])
def test_however_a_run_ends_its_connection_is_given_back(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop, end: str
) -> None:
    async def work(run: Run) -> None:
        if end == "claim lost":
            shop.book.amend("update duly_run set fence = fence + 1, attempt_id = ?", bytes(range(16)))
        await put(await run.tx, "report")
        if end == "failed":
            raise ZeroDivisionError

    with suppress(ZeroDivisionError, duly.ClaimLost):
        play(desk, lambda: _run(job(desk, work, inline=end == "inline")))

    assert shop.effects == (["report"] if end in ("completed", "inline") else [])
    assert_nothing_is_left_open(desk, shop)


@ON_POSTGRES
def test_a_connection_that_the_server_has_closed_is_not_given_to_the_next_run(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    async def work(run: Run) -> None:
        tx = await run.tx
        await put(tx, "report")
        pid = (await tx.execute(text("select pg_backend_pid()"))).scalar()
        shop.book.rows(f"select pg_terminate_backend({pid})")

    with pytest.raises(duly.LedgerUnavailable):
        play(desk, lambda: _run(job(desk, work)))

    assert (shop.effects, shop.state) == ([], "failed")
    assert play(desk, lambda: _run(job(desk, puts("again")))) == duly.Completed(KEY, 2)


@SESSIONS
def test_what_was_not_flushed_is_written_before_the_completion_or_neither_is(
    kind: Kind, desk: OfAsyncSqlalchemy, shop: Shop
) -> None:
    shop.book.amend("insert into effect values ('report')")

    with pytest.raises(IntegrityError):
        play(desk, lambda: _run(job(desk, puts("report"))))

    assert (shop.effects, shop.state) == (["report"], "failed")
    assert_nothing_is_left_open(desk, shop)


@SESSIONS
def test_sessions_have_the_settings_and_the_events_of_their_maker(kind: Kind, shop: Shop) -> None:
    desk = kind.open(shop.book.path)
    assert isinstance(desk, OfAsyncSqlalchemy)
    behind = sessionmaker(class_=ShopSession, info={"shop": 1})
    heard: list[str] = []
    event.listen(behind, "before_commit", lambda session: heard.append("before commit"))
    event.listen(behind, "after_commit", lambda session: heard.append(f"after commit, {shop.state}"))
    maker = async_sessionmaker(desk.engine, autoflush=False, sync_session_class=behind)
    ledger = duly.aio.sqlalchemy(maker)

    async def work(run: Run) -> None:
        tx = await run.tx
        assert (tx.sync_session.autoflush, tx.info) == (False, {"shop": 1})
        assert isinstance(tx.sync_session, ShopSession)
        await put(tx, "report")

    play(desk, lambda: _run(ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)(work)))

    assert heard == ["before commit", "after commit, completed"]
    assert shop.effects == ["report"]
    desk.loop.run(ledger.close())
    desk.close()


async def _run(declared: duly.aio.Job[Any], window: str = DAY) -> object:
    return await declared.run(window)
