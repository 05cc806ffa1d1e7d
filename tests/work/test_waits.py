"""How often a run waits for PostgreSQL, counted on the network, and what a transaction that begins late must not let through.

A wait is what a distant database costs. `run.tx` says BEGIN together with the first statement, whichever way that comes.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import psycopg
import pytest

import duly
import duly.aio
from duly.ledger.ask import Statement, one
from duly.store import VERSION_LOCK
from duly.store.postgres import PostgresStore
from tests.proxy import Proxy
from tests.servers import Server

ADD = "update balance set units = units + 10"
LOOK_FOREVER = Statement("look_forever", "select pg_sleep(600)::text")

LOOK, CLAIM, EFFECT, COMPLETION = 1, 1, 1, 1  # of a line that is known; the effect is one statement
RUN_WAITS, DUPLICATE_WAITS = CLAIM + EFFECT + COMPLETION, 1

Tx: TypeAlias = "psycopg.Connection[Any]"
AsyncTx: TypeAlias = "psycopg.AsyncConnection[Any]"


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    with server.ledger(clock="system") as url:
        with psycopg.connect(url) as connection:
            connection.execute("create table balance (units integer)")
            connection.execute("insert into balance values (0)")
        yield url


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    if urlsplit(url).hostname is None:
        pytest.skip("the server listens on a socket only: there is no network between to count on")
    proxy = Proxy(url)
    yield proxy
    proxy.close()


def units(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select units from balance").fetchone()
    assert row is not None
    return int(row[0])


def outcomes(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("select outcome from duly.attempt order by started_at").fetchall()]


# -- counted ------------------------------------------------------------------------------------------------------------


def days() -> Iterator[str]:
    """So many that connections are made, the line is known, and psycopg has prepared its statements."""
    return (f"2026-09-{day}" for day in range(10, 30))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_how_often_a_run_and_a_duplicate_wait_for_the_server(proxy: Proxy, zone: str) -> None:
    """In a zone whose rules may change too, once these are on record. After a duplicate another one is looked for first."""
    job = duly.postgres(proxy.url).job("credit", duly.daily(zone), catch_up=duly.EACH)(
        lambda run: [run.tx.execute(ADD)]
    )
    for day in days():
        job.run(day)
        job.run(day)
    job.run("2026-10-02")

    counted = []
    for day in ("2026-10-03", "2026-10-03", "2026-10-02", "2026-10-04", "2026-10-05"):
        before = proxy.waits
        job.run(day)
        counted.append(proxy.waits - before)

    assert counted == [RUN_WAITS, DUPLICATE_WAITS, DUPLICATE_WAITS, LOOK + RUN_WAITS, RUN_WAITS]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_the_claim_of_an_inline_run_is_planned_once_and_not_each_time(url: str, zone: str) -> None:
    """PostgreSQL goes on to plan anew what looks dearer without its values, as a question does that only some zones ask."""
    plans: list[tuple[int, int]] = []

    def look(run: duly.Run[Tx]) -> None:
        claims = (
            "select custom_plans, generic_plans from pg_prepared_statements where statement ~ '^\\s*(insert|update) '"
        )
        plans[:] = run.tx.execute(claims).fetchall()

    job = duly.postgres(url).job("credit", duly.daily(zone), catch_up=duly.EACH, inline=True)(look)
    for day in days():
        job.run(day)

    assert len(plans) == 2
    assert all(custom == 5 and generic > 5 for custom, generic in plans), plans


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_the_same_in_an_event_loop(proxy: Proxy, zone: str) -> None:
    counted = []

    async def story() -> None:
        async with duly.aio.postgres(proxy.url) as ledger:

            @ledger.job("credit", duly.daily(zone), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                tx = await run.tx
                await tx.execute(ADD)

            for day in days():
                await credit.run(day)
                await credit.run(day)
            await credit.run("2026-10-02")
            for day in ("2026-10-03", "2026-10-03", "2026-10-02", "2026-10-04", "2026-10-05"):
                before = proxy.waits
                await credit.run(day)
                counted.append(proxy.waits - before)

    asyncio.run(story())

    assert counted == [RUN_WAITS, DUPLICATE_WAITS, DUPLICATE_WAITS, LOOK + RUN_WAITS, RUN_WAITS]


def test_inline_a_run_waits_once_more_and_a_duplicate_begins_no_transaction(proxy: Proxy) -> None:
    """The look comes first: a claim inline is made in the transaction of the effect, which a duplicate would have to end."""
    job = duly.postgres(proxy.url).job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True)(
        lambda run: [run.tx.execute(ADD)]
    )
    for day in days():
        job.run(day)
        job.run(day)

    counted = []
    for _ in range(2):
        before = proxy.waits
        job.run("2026-10-03")
        counted.append(proxy.waits - before)

    assert counted == [LOOK + CLAIM + EFFECT + COMPLETION, LOOK]


def test_inline_in_an_event_loop_it_is_the_same(proxy: Proxy) -> None:
    counted = []

    async def story() -> None:
        async with duly.aio.postgres(proxy.url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, inline=True)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                tx = await run.tx
                await tx.execute(ADD)

            for day in days():
                await credit.run(day)
                await credit.run(day)
            for _ in range(2):
                before = proxy.waits
                await credit.run("2026-10-03")
                counted.append(proxy.waits - before)

    asyncio.run(story())

    assert counted == [LOOK + CLAIM + EFFECT + COMPLETION, LOOK]


def test_a_claim_that_is_completed_in_a_transaction_of_dulys_own_waits_twice(proxy: Proxy) -> None:
    """Besides its caller's statements: the claim, and the completion with its COMMIT."""
    ledger = duly.postgres(proxy.url)
    ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, effect="external")(lambda run: None).run("2026-09-09")

    def work(day: str) -> None:
        claim = ledger.take("credit", day)
        assert isinstance(claim, duly.Claim)
        with claim:
            claim.run.tx.execute(ADD)
            claim.complete()

    for day in days():
        work(day)

    before = proxy.waits
    work("2026-10-03")

    assert proxy.waits - before == CLAIM + EFFECT + COMPLETION


@pytest.mark.parametrize("overlap", [False, True])
def test_a_duplicate_takes_no_lock_and_has_nothing_to_commit(url: str, overlap: bool) -> None:
    """A lock on a row, or a row written, gives the transaction an id; a duplicate gets none."""
    ledger = duly.postgres(url)
    job = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, effect="external", overlap=overlap)(
        lambda run: None
    )
    for day in ("2026-10-01", "2026-10-02"):
        job.run(day)
    store = ledger._store
    assert isinstance(store, PostgresStore)
    before = store.past.mark()

    again = [job.run("2026-10-02"), job.run("2026-10-01")]

    assert [type(answer) for answer in again] == [duly.AlreadyCompleted, duly.AlreadyCompleted]
    assert store.past.mark() == before


# -- every first statement is in the run's transaction ------------------------------------------------------------------


def _cursor(tx: Tx) -> None:
    with tx.cursor() as cursor:
        cursor.execute(ADD)


def _cursor_of_psycopg(tx: Tx) -> None:
    psycopg.Cursor(tx).execute(ADD)


def _client_cursor(tx: Tx) -> None:
    psycopg.ClientCursor(tx).execute("update balance set units = units + %s", (10,))


def _server_cursor(tx: Tx) -> None:
    with tx.cursor("mine") as cursor:
        cursor.execute("select units from balance")
        assert cursor.fetchall() == [(0,)]
    tx.execute(ADD)


def _many(tx: Tx) -> None:
    tx.cursor().executemany("update balance set units = units + %s", [(4,), (6,)])


def _savepoint(tx: Tx) -> None:
    with tx.transaction():
        tx.execute(ADD)


def _savepoint_given_up(tx: Tx) -> None:
    with tx.transaction(force_rollback=True):
        tx.execute(ADD)
    tx.execute(ADD)


def _pipeline(tx: Tx) -> None:
    with tx.pipeline():
        tx.execute("update balance set units = units + 4")
        tx.execute("update balance set units = units + 6")


def _copy(tx: Tx) -> None:
    with tx.cursor().copy("copy balance from stdin") as copy:
        copy.write_row((0,))
    tx.execute("delete from balance where ctid = (select max(ctid) from balance)")
    tx.execute(ADD)


def _stream(tx: Tx) -> None:
    assert list(tx.cursor().stream("update balance set units = units + 10 returning units")) == [(10,)]


def _several_in_one(tx: Tx) -> None:
    tx.execute("update balance set units = units + 4; update balance set units = units + 6")


def _one_that_fails(tx: Tx) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable), tx.transaction():
        tx.execute("select 1 from nothing")
    tx.execute(ADD)


WAYS = (
    *(_cursor, _cursor_of_psycopg, _client_cursor, _server_cursor, _many, _savepoint, _savepoint_given_up),
    *(_pipeline, _copy, _stream, _several_in_one, _one_that_fails),
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_whichever_way_the_first_statement_comes_it_commits_with_the_completion(
    url: str, way: Callable[[Tx], None]
) -> None:
    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: way(run.tx))

    job.run("2026-10-01")

    assert (units(url), outcomes(url)) == (10, ["completed"])


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_and_where_the_function_fails_nothing_of_it_is_kept(url: str, way: Callable[[Tx], None]) -> None:
    def fail(run: duly.Run[Tx]) -> None:
        way(run.tx)
        raise LookupError("after the effect")

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(fail)

    with pytest.raises(LookupError):
        job.run("2026-10-01")

    assert (units(url), outcomes(url)) == (0, ["failed"])


def test_the_error_of_the_first_statement_is_the_drivers_own(url: str) -> None:
    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(
        lambda run: [run.tx.execute("select 1 from nothing")]
    )

    with pytest.raises(psycopg.errors.UndefinedTable):
        job.run("2026-10-01")

    assert outcomes(url) == ["failed"]


def test_a_ledger_that_is_being_migrated_is_busy_to_the_first_statement(url: str) -> None:
    ledger = duly.postgres(url, busy_seconds=0.2)
    job = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: [run.tx.execute(ADD)])
    job.run("2026-10-01")
    raised: list[Exception] = []

    @ledger.job("late", duly.daily("UTC"), catch_up=duly.EACH)
    def late(run: duly.Run[Tx]) -> None:
        with psycopg.connect(url) as migration:
            migration.execute("select pg_advisory_xact_lock(%s)", (VERSION_LOCK,))
            try:
                run.tx.execute(ADD)
            except Exception as e:
                raised.append(e)

    with pytest.raises(duly.DulyError):
        late.run("2026-10-01")

    assert [type(e) for e in raised] == [duly.LedgerBusy]
    assert units(url) == 10


def test_a_user_who_divides_by_zero_is_told_of_that(url: str) -> None:
    """At the commit, by a trigger of theirs, and not of a transaction that is another one."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "create function divide() returns trigger language plpgsql as $$ begin perform 1 / 0; return null; end $$"
        )
        connection.execute(
            "create constraint trigger late after update on balance deferrable initially deferred "
            "for each row execute function divide()"
        )
    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: [run.tx.execute(ADD)])

    with pytest.raises(Exception) as told:  # noqa: PT011  whichever it is, not that one
        job.run("2026-10-01")

    assert not isinstance(told.value, duly.TransactionOwned)
    assert (units(url), outcomes(url)) == (0, ["failed"])


def test_a_transaction_that_a_foreign_cursor_ended_before_any_of_ours_began_is_noticed(url: str) -> None:
    """Even where duly has seen none of its statements."""

    def sneak(run: duly.Run[Tx]) -> None:
        foreign = psycopg.Cursor(run.tx)
        foreign.execute(ADD)
        foreign.execute("rollback")
        foreign.execute("select 1")

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(sneak)

    with pytest.raises(duly.TransactionOwned):
        job.run("2026-10-01")

    assert (units(url), outcomes(url)) == (0, ["failed"])


def test_a_foreign_cursor_writes_nothing_between_two_runs(url: str) -> None:
    kept: list[Tx] = []

    def keep(run: duly.Run[Tx]) -> None:
        kept.append(run.tx)
        run.tx.execute("select 1")

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(keep)
    job.run("2026-10-01")

    with pytest.raises(duly.TransactionOwned):
        psycopg.Cursor(kept[0]).execute(ADD)
    job.run("2026-10-02")

    assert (units(url), outcomes(url)) == (0, ["completed", "completed"])


def _autocommit(tx: Tx) -> None:
    tx.autocommit = True


def _isolation(tx: Tx) -> None:
    tx.isolation_level = psycopg.IsolationLevel.SERIALIZABLE


@pytest.mark.parametrize(
    "change",
    [
        _autocommit,
        _isolation,
        lambda tx: tx.set_autocommit(True),
        lambda tx: tx.set_read_only(True),
        lambda tx: tx.tpc_begin("x"),
    ],
    ids=["autocommit", "isolation", "set_autocommit", "set_read_only", "tpc_begin"],
)
def test_how_the_transaction_behaves_is_not_the_runs_to_change(url: str, change: Callable[[Tx], None]) -> None:
    def meddle(run: duly.Run[Tx]) -> None:
        with pytest.raises(duly.TransactionOwned):
            change(run.tx)
        run.tx.execute(ADD)

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(meddle)

    job.run("2026-10-01")

    assert (units(url), outcomes(url)) == (10, ["completed"])


def test_a_transaction_that_was_read_and_not_used_completes(url: str) -> None:
    def read(run: duly.Run[Tx]) -> None:
        assert run.tx.info.dbname

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(read)

    job.run("2026-10-01")

    assert outcomes(url) == ["completed"]


def test_of_two_tasks_that_use_it_at_once_first_one_begins_it(url: str) -> None:
    async def story() -> None:
        async with duly.aio.postgres(url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                tx = await run.tx
                await asyncio.gather(tx.execute(ADD), tx.execute(ADD), tx.execute(ADD))

            await credit.run("2026-10-01")

    asyncio.run(asyncio.wait_for(story(), 30))

    assert (units(url), outcomes(url)) == (30, ["completed"])


def test_a_run_that_is_cancelled_at_its_first_statement_leaves_nothing_open(url: str) -> None:
    async def story() -> None:
        async with duly.aio.postgres(url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                tx = await run.tx
                first = asyncio.ensure_future(tx.execute("select pg_sleep(600)"))
                await asyncio.sleep(0)
                first.cancel()
                await first

            with pytest.raises(asyncio.CancelledError):
                await credit.run("2026-10-01")

    asyncio.run(asyncio.wait_for(story(), 30))

    assert outcomes(url) == ["failed"]


class Late(Exception):
    """What a handler of a signal raises."""


def test_an_exception_out_of_a_signals_handler_costs_its_run_and_no_other(url: str) -> None:
    """It comes in the midst of a statement: the connection is not to be used again."""

    def alarm(*_: object) -> None:
        raise Late

    def work(run: duly.Run[Tx]) -> None:
        run.tx.execute(ADD)
        if run.label == "2026-10-01":
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            run.tx.execute("select pg_sleep(600)")

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(work)
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with pytest.raises(Late):
            job.run("2026-10-01")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert outcomes(url) == ["failed"]
    assert job.run("2026-10-02") == duly.Completed("credit:2026-10-02[UTC]", 1)
    assert units(url) == 10


def test_a_chain_of_transactions_behind_dulys_back_is_noticed_whoever_began_them(url: str) -> None:
    def sneak(run: duly.Run[Tx]) -> None:
        with run.tx.cursor().copy("copy balance from stdin") as copy:
            copy.write_row((0,))
        psycopg.Cursor(run.tx).execute("commit and chain")
        psycopg.Cursor(run.tx).execute(ADD)

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(sneak)

    with pytest.raises(duly.TransactionOwned):
        job.run("2026-10-01")

    assert outcomes(url) == ["failed"]


def test_what_a_run_makes_of_rows_is_not_what_the_next_one_gets(url: str) -> None:
    seen: list[object] = []

    def work(run: duly.Run[Tx]) -> None:
        seen.append(run.tx.execute("select 1 as one").fetchone())
        run.tx.row_factory = psycopg.rows.dict_row

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(work)
    job.run("2026-10-01")
    job.run("2026-10-02")

    assert seen == [(1,), (1,)]


def test_a_task_that_outlives_its_run_writes_into_no_other(url: str) -> None:
    refused: list[Exception] = []

    async def story() -> None:
        async with duly.aio.postgres(url) as ledger:
            kept: list[AsyncTx] = []

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                tx = await run.tx
                kept.append(tx)
                await tx.execute(ADD)
                if len(kept) > 1:
                    for late in (kept[0], psycopg.AsyncCursor(kept[0])):
                        try:
                            await late.execute(ADD)
                        except Exception as e:
                            refused.append(e)

            await credit.run("2026-10-01")
            await credit.run("2026-10-02")
            assert kept[0] is not kept[1]

    asyncio.run(story())

    assert [type(e) for e in refused] == [psycopg.OperationalError] * 2
    assert units(url) == 20


# -- in an event loop ---------------------------------------------------------------------------------------------------


async def _execute_aio(tx: AsyncTx) -> None:
    await tx.execute(ADD)


async def _cursor_of_psycopg_aio(tx: AsyncTx) -> None:
    await psycopg.AsyncCursor(tx).execute(ADD)


async def _many_aio(tx: AsyncTx) -> None:
    await tx.cursor().executemany("update balance set units = units + %s", [(4,), (6,)])


async def _savepoint_aio(tx: AsyncTx) -> None:
    async with tx.transaction():
        await tx.execute(ADD)


async def _pipeline_aio(tx: AsyncTx) -> None:
    async with tx.pipeline():
        await tx.execute(ADD)


async def _copy_aio(tx: AsyncTx) -> None:
    async with tx.cursor().copy("copy balance from stdin") as copy:
        await copy.write_row((0,))
    await tx.execute("delete from balance where ctid = (select max(ctid) from balance)")
    await tx.execute(ADD)


async def _stream_aio(tx: AsyncTx) -> None:
    found: AsyncIterator[Any] = tx.cursor().stream("update balance set units = units + 10 returning units")
    assert [row async for row in found] == [(10,)]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(
    "way",
    [_execute_aio, _cursor_of_psycopg_aio, _many_aio, _savepoint_aio, _pipeline_aio, _copy_aio, _stream_aio],
    ids=lambda way: way.__name__.strip("_"),
)
def test_in_an_event_loop_too_the_first_statement_is_in_the_runs_transaction(
    url: str, way: Callable[[AsyncTx], Coroutine[Any, Any, None]], fails: bool
) -> None:
    async def story() -> None:
        async with duly.aio.postgres(url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                await way(await run.tx)
                if fails:
                    raise LookupError("after the effect")

            await credit.run("2026-10-01")

    if fails:
        with pytest.raises(LookupError):
            asyncio.run(story())
        assert (units(url), outcomes(url)) == (0, ["failed"])
    else:
        asyncio.run(story())
        assert (units(url), outcomes(url)) == (10, ["completed"])


def test_of_two_threads_that_use_it_at_once_first_one_begins_it(url: str) -> None:
    together = threading.Barrier(4)
    failed: list[Exception] = []

    def add(tx: Tx) -> None:
        together.wait()
        try:
            tx.execute("update balance set units = units + 2")
        except Exception as e:
            failed.append(e)

    def work(run: duly.Run[Tx]) -> None:
        tx = run.tx
        threads = [threading.Thread(target=add, args=(tx,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tx.execute("update balance set units = units + 2")

    job = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(work)
    for day in range(1, 6):
        job.run(f"2026-10-0{day}" if day < 5 else "2026-09-30")

    assert failed == []
    assert units(url) == 50


# -- what is owed -------------------------------------------------------------------------------------------------------


def test_how_often_one_that_catches_up_waits_for_each_run(proxy: Proxy) -> None:
    """To open its window; to find the run, hold its line and judge both; to claim; the effect; to complete."""
    job = duly.postgres(proxy.url).job(
        "credit", duly.every("365d"), catch_up=duly.EACH
    )(  # none ends while this is told
        lambda run: [run.tx.execute(ADD)]
    )
    job.catch_up()
    counted = []
    for runs in (12, 0, 2, 12):
        back = runs * 365 * 86_400_000_000
        with psycopg.connect(proxy.url) as connection:
            connection.execute(
                "update duly.line set opened_until = opened_until - %(back)s, starts = starts - %(back)s,"
                " next_due = next_due - %(back)s",
                {"back": back},
            )
            connection.execute("delete from duly.run")
            connection.execute("delete from duly.attempt")
        before = proxy.waits
        assert len(job.catch_up()) == runs
        counted.append(proxy.waits - before)

    assert counted[1] <= 8  # nothing is owed
    assert counted[3] - counted[2] <= 10 * 12


@pytest.mark.parametrize("asked", ["glance", "stamp"])
def test_an_exception_out_of_a_signals_handler_while_it_looks_costs_that_look_and_no_other(
    url: str, asked: str
) -> None:
    """The server goes on with the statement: a connection that has not heard its answer is not asked again."""

    class Late(Exception):
        pass

    def alarm(*_: object) -> None:
        raise Late

    ledger = duly.postgres(url)
    job = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    job.run("2026-10-01")
    store = ledger._store
    assert isinstance(store, PostgresStore)
    waits: dict[str, Callable[[], object]] = {
        "glance": lambda: store.glance(one(LOOK_FOREVER, str)),
        "stamp": store.stamp,
    }
    before = signal.signal(signal.SIGALRM, alarm)
    with psycopg.connect(url) as other:
        other.execute("lock table duly.event in access exclusive mode")
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(Late):
                waits[asked]()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    assert isinstance(job.run("2026-10-01"), duly.AlreadyCompleted)
    assert isinstance(job.run("2026-10-02"), duly.Completed)
