"""The database's clock goes on inside a transaction (I4)."""

from __future__ import annotations

import psycopg

from duly.ledger.ask import drive
from duly.ledger.named import Named, take_window
from duly.ledger.records import Busy, Claim, Claimer
from duly.ledger.register import Declaration, declare
from duly.schedule.spec import daily
from duly.store.migrations import postgres as migration
from duly.store.postgres import Answers
from duly.times import DAY, SECOND, civil_text
from tests.servers import Server


def test_a_lease_that_lapses_during_a_long_transaction_is_seen_to_have_lapsed(server: Server) -> None:
    url = server.new_database()
    migration.create(url)
    with psycopg.connect(url, autocommit=True) as connection:
        answers = Answers(connection)
        job = Declaration("export", "", daily("UTC"), {"contract": "transactional"}, "dev@example")
        drive(declare(job), answers)
        window = civil_text((answers.now() - DAY) // SECOND)[:10]
        held = drive(take_window(job, window, Claimer(b"a" * 16, "host/a", "test")), answers)
        connection.execute("begin")
        early = drive(take_window(job, window, Claimer(b"b" * 16, "host/b", "test")), answers)

        # The lease ends a moment after the transaction began, and before it looks again.
        connection.execute("update duly.run set lease_until = %s", (answers.now() + 1_000,))
        connection.execute("select pg_sleep(0.002)")
        late = drive(take_window(job, window, Claimer(b"c" * 16, "host/c", "test")), answers)
        connection.execute("commit")

    assert isinstance(held, Named)
    assert isinstance(held.answer, Claim)
    assert isinstance(early, Named)
    assert isinstance(early.answer, Busy)
    assert isinstance(late, Named)
    assert isinstance(late.answer, Claim)
    server.drop(url)
