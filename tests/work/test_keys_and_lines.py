"""Runs that are named by key: one place for a key, whatever door it comes through, and whatever came before."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

import duly
from duly.ledger.versions import apply
from duly.schedule.spec import cron
from duly.store.sqlite import SqliteStore
from duly.testing.clock import HandClock
from duly.times import HOUR

NIGHT = "2026-10-06T03:00:00Z"


class Shop:
    """A ledger with a hand-set clock, and a connection of the caller's to the same file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.clock = HandClock(self.path, at=NIGHT)
        self.ledger = duly.sqlite(self.path)

    def once(self, key: str) -> bool:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return duly.once(connection, key)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql).fetchall()

    def change(self, job: str, schedule: duly.Schedule) -> None:
        store = SqliteStore(self.path)
        store.write(apply(job, schedule, by="ops@example", reason="another rhythm"))
        store.close()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop.db")


def test_a_key_of_another_grain_than_the_schedules_is_refused_even_if_it_was_used_before(shop: Shop) -> None:
    assert shop.once("close:2026-10-05T00:00:00Z")
    shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None).catch_up()

    with pytest.raises(duly.WindowInvalid, match="counts by day in UTC"):
        shop.ledger.take("close:2026-10-05T03:17:00Z")
    with pytest.raises(duly.WindowInvalid, match="counts by day in UTC"):
        shop.once("close:2026-10-05T00:00:00Z")


def test_a_replay_of_a_window_of_an_earlier_version_is_a_duplicate(shop: Shop) -> None:
    job = shop.ledger.job("sync", cron("0 */2 * * *", zone="UTC"), catch_up=duly.EACH)(lambda run: None)
    job.catch_up()
    shop.change("sync", cron("30 */3 * * *", zone="UTC"))
    shop.clock.advance(6 * HOUR)

    assert not shop.once("sync:2026-10-06T02:00:00Z")
    with pytest.raises(duly.WindowInvalid):
        shop.once("sync:2026-10-06T00:30:00Z")  # before the new version was in force
    assert shop.once("sync:2026-10-06T06:30:00Z")
    bounds = shop.rows("select nominal, window_start, window_end, version from duly_run order by window_end")
    assert [row[3] for row in bounds] == [1, 1, 2]  # 02:00, 04:00 that had begun, 06:30
    assert bounds[1][2] == bounds[2][1], "windows tile across the change"


def test_a_window_off_the_grid_is_refused_in_a_scope_that_was_never_seen(shop: Shop) -> None:
    shop.ledger.job("sync", cron("0 */2 * * *", zone="UTC"), catch_up=duly.EACH)(lambda run: None).catch_up()

    with pytest.raises(duly.WindowInvalid):
        shop.once("acme/sync:2026-10-06T01:17:00Z")


def test_an_ad_hoc_run_in_a_new_scope_leaves_the_job_as_it_was(shop: Shop) -> None:
    job = shop.ledger.job("sync", cron("0 */2 * * *", zone="UTC"), catch_up=duly.EACH)(lambda run: None)
    job.catch_up()

    assert shop.once("acme/sync:adhoc-ticket-17")

    shop.change("sync", cron("0 */3 * * *", zone="UTC"))
    assert shop.rows("select detail from duly_event where kind = 'scope_added'") == [("acme",)]


def test_a_job_first_seen_by_once_has_the_contract_of_any_other(shop: Shop) -> None:
    assert shop.once("push:2026-10-05[UTC]")

    assert shop.rows("select contract from duly_job") == [("external",)]
    assert shop.rows("select contract from duly_attempt") == [("transactional",)]
    assert shop.rows("select kind from duly_event order by id") == [("job_registered",)]


def test_a_run_that_is_complete_before_it_is_due_is_complete(shop: Shop) -> None:
    job = shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    job.catch_up()
    assert shop.once("close:2026-10-06[UTC]")  # today's, ahead of time

    assert isinstance(shop.ledger.take("close", "2026-10-06"), duly.AlreadyCompleted)
    assert isinstance(job.run("2026-10-06"), duly.AlreadyCompleted)


def test_how_long_a_destination_remembers_is_sealed_with_the_attempt(shop: Shop) -> None:
    def charge(run: duly.Run[sqlite3.Connection]) -> None:
        os._exit(9)

    job = shop.ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="idempotent", remembers="1h")(charge)
    if (child := os.fork()) == 0:
        job.catch_up()
    os.waitpid(child, 0)
    shop.ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external")(charge)
    shop.clock.advance(5 * HOUR)

    with pytest.raises(duly.OutcomeUnknown):
        shop.ledger.take("charge", "2026-10-05")


def test_an_external_job_is_not_retried_unless_it_says_so(shop: Shop) -> None:
    calls = []

    @shop.ledger.job("charge", duly.daily("UTC"), catch_up=duly.EACH, effect="external")
    def charge(run: duly.Run[sqlite3.Connection]) -> None:
        calls.append(run.attempt)
        raise TimeoutError

    for _ in range(3):
        with suppress(ExceptionGroup):
            charge.catch_up()
        shop.clock.advance(2 * HOUR)

    assert calls == [1]


def test_a_named_window_of_an_ordered_job_waits_for_the_one_before(shop: Shop) -> None:
    job = shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH, effect="external", ordered=True)(
        lambda run: 1 / 0
    )
    with pytest.raises(ExceptionGroup):
        job.catch_up()
    shop.clock.advance("1d")

    assert isinstance(shop.ledger.take("close", "2026-10-06"), duly.Busy)


def test_a_forked_child_that_leaves_the_block_does_not_end_its_parents_attempt(shop: Shop) -> None:
    shop.ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)(lambda run: None)
    claim = shop.ledger.take("close:2026-10-05[UTC]")
    assert claim

    with claim:
        child = os.fork()
        if child == 0:
            try:
                claim.__exit__(SystemExit, SystemExit(), None)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert shop.rows("select state from duly_run") == [("running",)]
        claim.complete()

    assert shop.rows("select state from duly_run") == [("completed",)]


def test_a_claim_that_is_forgotten_shows_no_pulse(shop: Shop) -> None:
    def work(ticket: str) -> int:
        claim = shop.ledger.take("close", adhoc=ticket)
        assert claim
        with closing(sqlite3.connect(shop.path)) as connection, connection:
            connection.execute("begin immediate")
            claim.complete(connection)
        lock = f"{shop.path}-lock"
        return sum(os.path.realpath(f"/proc/self/fd/{fd}") == lock for fd in os.listdir("/proc/self/fd"))

    held = [work(f"ticket-{number}") for number in range(20)]

    assert held[-1] == held[1]
