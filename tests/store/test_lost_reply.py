"""A reply to COMMIT that never comes: a proxy between duly and PostgreSQL swallows it, or the COMMIT itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import duly
import duly.aio
from duly.errors import Conflict
from tests.books import PostgresBook
from tests.proxy import Proxy
from tests.servers import Server

KEY = "credit:2026-10-05[UTC]"


@pytest.fixture
def book(server: Server) -> Iterator[PostgresBook]:
    url = server.new_database()
    book = PostgresBook(url)
    book.amend("create table balance (units integer not null)")
    book.amend("insert into balance values (0)")
    yield book
    server.drop(url)


@pytest.fixture
def proxy(book: PostgresBook) -> Iterator[Proxy]:
    if urlsplit(book.path).hostname is None:
        pytest.skip("the server listens on a socket only: there is no network between to cut")
    proxy = Proxy(book.path)
    yield proxy
    proxy.close()


def units(book: PostgresBook) -> int:
    ((units,),) = book.rows("select units from balance")
    return int(units)


def credit_of(ledger: duly.Ledger[Any]) -> duly.Job[Any]:
    @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)
    def credit(run: duly.Run[Any]) -> None:
        run.tx.execute("update balance set units = units + 10")

    return credit


# A run of a job that is known costs two commits: of its claim, and of its effect with its completion.
CLAIM, COMPLETION = 1, 2


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("nth", [CLAIM, COMPLETION])
def test_a_commit_whose_reply_is_lost_is_looked_up_and_answered_as_what_it_was(
    book: PostgresBook, proxy: Proxy, nth: int, remembered: bool
) -> None:
    credit = credit_of(duly.postgres(proxy.url))
    (credit if remembered else credit_of(duly.postgres(proxy.url))).run("2026-10-04")
    proxy.swallow_the_reply_of(nth)

    answer = credit.run("2026-10-05")

    assert answer == duly.Completed(KEY, 1)
    assert units(book) == 20
    assert book.rows("select outcome from duly_attempt") == [("completed",), ("completed",)]


def test_a_claim_that_never_came_is_made_again(book: PostgresBook, proxy: Proxy) -> None:
    """Nobody can tell it from one whose reply was lost; the same attempt asks once more."""
    credit = credit_of(duly.postgres(proxy.url))
    credit.run("2026-10-04")
    proxy.swallow(CLAIM)

    assert credit.run("2026-10-05") == duly.Completed(KEY, 1)
    assert units(book) == 20


def test_a_commit_that_never_came_is_a_conflict_and_nothing_is_kept(book: PostgresBook, proxy: Proxy) -> None:
    credit = credit_of(duly.postgres(proxy.url))
    credit.run("2026-10-04")
    proxy.swallow(COMPLETION)

    with pytest.raises(Conflict, match="rolled back; try the whole"):
        credit.run("2026-10-05")

    assert units(book) == 10
    assert credit.run("2026-10-05") == duly.Completed(KEY, 2)
    assert units(book) == 20


@pytest.mark.parametrize("nth", [CLAIM, COMPLETION])
def test_the_same_in_an_event_loop(book: PostgresBook, proxy: Proxy, nth: int) -> None:
    async def story() -> object:
        async with duly.aio.postgres(proxy.url) as ledger:

            @ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH)
            async def credit(run: duly.aio.Run[Any]) -> None:
                tx = await run.tx
                await tx.execute("update balance set units = units + 10")

            await credit.run("2026-10-04")
            proxy.swallow_the_reply_of(nth)
            return await credit.run("2026-10-05")

    assert asyncio.run(story()) == duly.Completed(KEY, 1)
    assert units(book) == 20


def test_a_backend_that_is_terminated_in_the_middle_of_an_effect_leaves_none(
    book: PostgresBook, server: Server
) -> None:
    def cut(run: duly.Run[Any]) -> None:
        run.tx.execute("update balance set units = units + 10")
        book.rows("select pg_terminate_backend(?)", run.tx.info.backend_pid)
        run.tx.execute("select 1")

    ledger = duly.postgres(book.path)
    credit = ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(cut)

    with pytest.raises(psycopg.OperationalError):
        credit.run("2026-10-05")

    assert units(book) == 0
    assert book.rows("select outcome from duly_attempt") == [("failed",)]
    assert credit_of(ledger).run("2026-10-05") == duly.Completed(KEY, 2)
