"""Groups on PostgreSQL: a few waits for all of a group, and what other transactions may do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import duly
import duly.aio
from duly.testing.clock import HandClock
from duly.work import job as job_of_work
from tests.proxy import Proxy
from tests.servers import Server
from tests.work.test_waits import ADD, AsyncTx, Tx, outcomes, units

GROUP: dict[str, Any] = {"catch_up": duly.EACH, "inline": True, "group": 100, "retry_delay": "1h"}


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    with server.ledger() as url:
        HandClock(url, at="2026-09-15T03:00:00Z")
        with psycopg.connect(url) as connection:
            connection.execute("create table balance (units integer)")
            connection.execute("insert into balance values (0)")
        yield url


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy ends no group."""
    monkeypatch.setattr(job_of_work, "GROUP_SECONDS", 60.0)


def behind(url: str, effect: Callable[[duly.Run[Tx]], object], *, days: int = 10) -> duly.Job[Tx]:
    """A job that has run, and is so many days behind since."""
    credit = duly.postgres(url).job("credit", duly.daily("UTC"), **GROUP)(effect)
    credit.catch_up()
    HandClock(url).advance(f"{days}d")
    return credit


def ten(run: duly.Run[Tx]) -> None:
    run.tx.execute(ADD)


def states(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("select state from duly.run order by nominal").fetchall()]


def test_a_group_waits_once_for_each_effect_and_a_few_times_for_all(url: str) -> None:
    if urlsplit(url).hostname is None:
        pytest.skip("the server listens on a socket only: there is no network between to count on")
    proxy = Proxy(url)
    try:
        credit = behind(proxy.url, ten, days=30)  # psycopg prepares what comes often
        credit.catch_up()
        counted = []
        for days in (5, 25):
            HandClock(url).advance(f"{days}d")
            before = proxy.waits
            assert len(credit.catch_up()) == days
            counted.append(proxy.waits - before)
    finally:
        proxy.close()

    opened_and_worked = counted[1] - counted[0]
    assert opened_and_worked <= 20 * 3  # to open a window, to look at it, its effect


def test_where_a_commit_fails_they_are_worked_one_by_one_and_the_guilty_one_is_found(url: str) -> None:
    """A constraint that is judged at the COMMIT names nobody."""
    with psycopg.connect(url) as connection:
        connection.execute("create table day (day text primary key)")
        connection.execute("create table credit_of (day text references day (day) deferrable initially deferred)")

    def effect(run: duly.Run[Tx]) -> None:
        run.tx.execute(ADD)
        if str(run.date) != "2026-09-18":
            run.tx.execute("insert into day values (%s)", (str(run.date),))
        run.tx.execute("insert into credit_of values (%s)", (str(run.date),))

    credit = behind(url, effect)
    with pytest.raises(ExceptionGroup) as caught:
        credit.catch_up()

    assert [type(error) for error in caught.value.exceptions] == [psycopg.errors.ForeignKeyViolation]
    assert units(url) == 100
    assert sorted(outcomes(url)) == ["completed"] * 10 + ["failed"]


def test_the_first_run_of_a_line_fails_once_and_is_on_record(url: str) -> None:
    """The line's series was made in the transaction that was rolled back, and its number is never given again."""
    for group in (1, 9):
        settings = {**GROUP, "group": group}

        def effect(run: duly.Run[Tx]) -> None:
            raise ZeroDivisionError

        credit = duly.postgres(url).job(f"credit-{group}", duly.daily("UTC"), **settings)(effect)
        with pytest.raises(ExceptionGroup) as caught:
            credit.catch_up()
        assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]

    assert outcomes(url) == ["failed", "failed"]


def test_what_one_run_has_broken_is_not_put_on_record_against_the_next(url: str) -> None:
    """Its transaction is aborted, and whoever comes next is told of that."""

    def effect(run: duly.Run[Tx]) -> None:
        run.tx.execute(ADD)
        if str(run.date) == "2026-09-18":
            with suppress(psycopg.Error):
                run.tx.execute("select 1 / 0")

    credit = behind(url, effect)
    with pytest.raises(ExceptionGroup) as caught:
        credit.catch_up()

    assert len(caught.value.exceptions) == 1
    assert states(url) == [*["completed"] * 4, "failed", *["completed"] * 6]
    assert units(url) == 100


def test_a_run_that_another_transaction_settles_meanwhile_is_not_completed_over_it(url: str) -> None:
    """Whoever writes a run need not hold its line: the number and the state decide."""
    settled: list[str] = []

    def effect(run: duly.Run[Tx]) -> None:
        run.tx.execute(ADD)
        if len(settled) == 1:
            with psycopg.connect(url) as other:  # the second of those that are owed, in the midst of their group
                other.execute("set local lock_timeout = '2s'")
                found = other.execute(
                    "update duly.run set state = 'skipped', settled_at = 1, cause = 'a holiday' where state = 'open'"
                    " and nominal = (select nominal from duly.run where state = 'open' order by nominal offset 1 limit 1)"
                    " returning 'skipped'"
                ).fetchall()
            settled.extend(state for (state,) in found)

    credit = behind(url, effect)
    one_by_one = duly.postgres(url).job("credit", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    one_by_one.attempt("", "test")  # the first of them; the others have their rows now
    settled.append("from now on")
    credit.catch_up()

    assert settled == ["from now on", "skipped"]
    assert states(url) == [*["completed"] * 3, "skipped", *["completed"] * 7]
    assert units(url) == 10 + 10 * 8  # not that of the first, which was worked by a job that adds nothing


def test_the_same_in_an_event_loop(url: str) -> None:
    done = []

    async def story() -> None:
        async with duly.aio.postgres(url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), **GROUP)
            async def credit(run: duly.aio.Run[AsyncTx]) -> None:
                tx = await run.tx
                await tx.execute(ADD)
                if str(run.date) == "2026-09-18" and run.attempt == 1:
                    raise ZeroDivisionError

            await credit.catch_up()
            HandClock(url).advance("10d")
            with pytest.raises(ExceptionGroup):
                await credit.catch_up()
            HandClock(url).advance("1h")
            done.extend(await credit.catch_up())

    asyncio.run(story())

    assert [each.attempt for each in done] == [2]
    assert units(url) == 110
    assert sorted(outcomes(url)) == ["completed"] * 11 + ["failed"]
