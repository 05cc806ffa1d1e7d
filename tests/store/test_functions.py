"""The functions that PostgreSQL holds are the ledger's own statements, word for word, and answer as those do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from duly.ledger.ask import Ask, Statement, ask_together
from duly.ledger.complete import COMPLETE_IF_HELD, RECORD_END_OR_RAISE
from duly.ledger.named import Named
from duly.ledger.records import Claim, Claimer
from duly.ledger.remembered import (
    CLAIM_IF_AS_REMEMBERED,
    HOLD_LINE_IF_FREE,
    LOCK_LINE_IF_ABSENT,
    SEE_AS_REMEMBERED,
    claim_remembered,
    recall,
    remember,
)
from duly.store import SCHEMA, VERSION_LOCK
from duly.store.migrations import POSTGRES, steps
from duly.store.postgres import (
    CLAIM_AT_ONCE,
    COMPLETE_AT_ONCE,
    Begun,
    Mark,
    PostgresStore,
    as_claim,
    completion_of,
)
from duly.store.postgres_sql import spell
from duly.work.identity import new_attempt_id
from tests.books import PostgresBook
from tests.servers import Server

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

DAY, NEXT_DAY = "2026-10-04", "2026-10-05"


@pytest.fixture
def book(server: Server) -> Iterator[PostgresBook]:
    url = server.new_database()
    yield PostgresBook(url)
    server.drop(url)


def source_of(function: str) -> tuple[list[str], str]:
    """A function's parameters, and its body with each of them by its name; blanks do not count."""
    (text,) = [step.sql for step in steps(POSTGRES) if f"function duly.{function}(" in step.sql]
    made = text[text.index(f"function duly.{function}(") :]
    head, body, _ = made.split("$$", 2)
    declared = head[head.index("(") + 1 : head.index(")")]
    names = [part.split()[0] for part in declared.split(",")]
    named = re.sub(r"\$(\d+)", lambda number: f":{names[int(number[1]) - 1]}", body)
    return names, " ".join(named.split())


def words_of(statement: Statement) -> str:
    return " ".join(spell(statement, "instant").split())


@pytest.mark.parametrize(
    ("function", "statement"),
    [
        *(("claim_as_remembered", each) for each in (HOLD_LINE_IF_FREE, CLAIM_IF_AS_REMEMBERED, SEE_AS_REMEMBERED)),
        *(("complete_held", each) for each in (COMPLETE_IF_HELD, RECORD_END_OR_RAISE)),
    ],
    ids=lambda each: each.name if isinstance(each, Statement) else str(each),
)
def test_a_function_holds_a_statement_word_for_word(function: str, statement: Statement) -> None:
    _, body = source_of(function)

    assert words_of(statement) in body


def test_it_locks_the_line_first_and_throws_the_row_away() -> None:
    _, body = source_of("claim_as_remembered")

    lock = words_of(LOCK_LINE_IF_ABSENT).replace("select ", "perform ", 1)
    assert lock in body
    order = [lock, "instant := ", *map(words_of, (HOLD_LINE_IF_FREE, CLAIM_IF_AS_REMEMBERED, SEE_AS_REMEMBERED))]
    assert sorted(order, key=body.index) == order


def test_what_begins_a_transaction_takes_the_same_lock_and_looks_at_the_same(book: PostgresBook) -> None:
    with psycopg.connect(book.path) as connection:
        looked = connection.execute(
            "select value, pg_current_xact_id()::text, (select value from duly.meta where name = 'epoch'), "
            "pg_postmaster_start_time()::text from duly.meta where name = 'min_writer'"
        ).fetchall()
        begun = connection.execute("select * from duly.begun('1234')").fetchall()
        timeout = connection.execute("show lock_timeout").fetchone()
        locks = connection.execute(
            "select mode from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and objid = %s",
            (VERSION_LOCK,),
        ).fetchall()

    assert begun == looked
    assert timeout == ("1234ms",)
    assert locks == [("ShareLock",)]


@pytest.mark.parametrize("overlap", [0, 1])
def test_its_parameters_are_those_that_the_operation_asks_with(book: PostgresBook, overlap: int) -> None:
    book.job(overlap=overlap)
    asked = list(ask_together(claim_operation(book)))

    claim = as_claim(asked, store_of(book).past.mark(), 5.0, durable=True)

    assert claim is not None
    names, _ = source_of("claim_as_remembered")
    assert sorted(claim) == sorted(names)
    assert re.findall(r"%\((\w+)\)s", CLAIM_AT_ONCE) == names
    assert re.findall(r"%\((\w+)\)s", COMPLETE_AT_ONCE) == source_of("complete_held")[0]


def test_other_groups_are_not_taken_for_it() -> None:
    some = [Ask("do", COMPLETE_IF_HELD, {}), Ask("do", RECORD_END_OR_RAISE, {})]

    assert completion_of([*some, some[0]], Begun("7", "")) == ({"xid": "7"}, [some[0]])
    with pytest.raises(TypeError):
        completion_of(some[::-1], Begun("7", ""))
    with pytest.raises(TypeError):
        as_claim(some, Mark(1, 1), 5.0, durable=True)


@pytest.mark.parametrize("overlap", [0, 1])
def test_it_leaves_what_the_statements_leave(book: PostgresBook, overlap: int) -> None:
    book.job(overlap=overlap)
    first = book.write(claim_operation(book, DAY))
    assert first is not None
    assert isinstance(first.answer, Claim)
    book.complete(first.answer)
    line = book.rows("select holder_nominal from duly_line")

    second = store_of(book).claim_at_once(claim_operation(book))

    assert second is not None
    assert isinstance(second.answer, Claim)
    assert second.row == book.run(second.answer.run)
    one, other = (_told(claim) for claim in (first.answer, second.answer))
    assert one == other
    assert (book.rows("select holder_nominal from duly_line") == line) == bool(overlap)


@pytest.mark.parametrize("durable", [False, True])
def test_what_it_sets_lasts_until_the_commit_and_no_longer(book: PostgresBook, durable: bool) -> None:
    """It plans its statements once and for all, which is a setting of the function's own."""
    book.job()
    claim = as_claim(list(ask_together(claim_operation(book))), store_of(book).past.mark(), 5.0, durable=durable)
    asked = "select current_setting('synchronous_commit'), current_setting('plan_cache_mode')"

    with psycopg.connect(book.path, autocommit=True) as connection:
        with connection.transaction():
            connection.execute(CLAIM_AT_ONCE, claim)
            within = connection.execute(asked).fetchone()
        after = connection.execute(asked).fetchone()

    assert within == ("on" if durable else "off", "auto")
    assert after == ("on", "auto")
    assert len(book.runs()) == 1


def test_at_another_isolation_it_is_not_made(book: PostgresBook) -> None:
    """Each of its statements has to see what was committed before it."""
    book.job()
    claim = as_claim(list(ask_together(claim_operation(book))), store_of(book).past.mark(), 5.0, durable=True)

    with psycopg.connect(book.path) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute(CLAIM_AT_ONCE, claim)

    assert book.runs() == []


@pytest.mark.parametrize(
    "change",
    [
        f"update duly_meta set value = '{SCHEMA + 1}' where name = 'min_writer'",
        "update duly_meta set value = '7' where name = 'epoch'",
    ],
    ids=["a newer release's", "restored"],
)
def test_of_a_ledger_that_is_not_what_it_was_nothing_is_claimed(book: PostgresBook, change: str) -> None:
    book.job()
    claim = as_claim(list(ask_together(claim_operation(book))), store_of(book).past.mark(), 5.0, durable=True)
    book.amend(change)

    with psycopg.connect(book.path) as connection, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        connection.execute(CLAIM_AT_ONCE, claim)

    assert book.runs() == []


def test_of_a_database_that_is_older_than_it_was_nothing_is_claimed(book: PostgresBook) -> None:
    book.job()
    store = store_of(book)
    claim = as_claim(list(ask_together(claim_operation(book))), store.past.mark(), 5.0, durable=True)
    assert claim is not None

    with psycopg.connect(book.path) as connection, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        connection.execute(CLAIM_AT_ONCE, {**claim, "newest_xid": 1 << 60})

    assert book.runs() == []


def store_of(book: PostgresBook) -> PostgresStore:
    assert isinstance(book.store, PostgresStore)
    return book.store


def claim_operation(book: PostgresBook, day: str = NEXT_DAY) -> Operation[Named | None]:
    known = book.declare()
    assert not isinstance(known, Exception)
    remembered = remember(known, book.declaration())
    assert remembered is not None
    place = recall(remembered, day)
    assert place is not None
    return claim_remembered(place, Claimer(new_attempt_id(), "host/1@1+a", "test"))


def _told(claim: Claim) -> tuple[object, ...]:
    return (
        claim.number,
        claim.started_at,
        claim.lease_until,
        claim.contract,
        claim.owner,
        claim.trigger,
        claim.failures,
    )
