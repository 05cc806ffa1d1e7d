"""Duplicates and races: two schedulers, two Pods, eleven workers, and one run for each window."""

from __future__ import annotations

import runpy
import signal
from typing import Any

import psycopg
import pytest

import duly
from duly.work import identity
from tests.books import LEASE
from tests.exec.stage import DAILY, Stage, until
from tests.exec.test_killed import through_leases
from tests.faults.account import DAY, KEY, Account
from tests.faults.cluster import free_port
from tests.scenarios.hosts import Hosts

DAYS = ("2026-11-28", "2026-11-29", "2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03")

# -- a second Pod, a second scheduler -----------------------------------------------------------------------------------


def test_a_second_pod_learns_that_the_first_still_works_and_runs_nothing(hosts: Hosts) -> None:
    gate = hosts.gate("first")
    first = hosts.start("close", *DAILY, command=hosts.effect(gate.shell))
    gate.arrived()

    second = hosts.exec("close", *DAILY, command=hosts.effect())
    through_leases(hosts, first, 2)
    third = hosts.exec("close", command=hosts.effect())
    gate.open()
    assert first.ended().code == 0
    fourth = hosts.exec("close", command=hosts.effect())

    assert (second.code, third.code, fourth.code) == (75, 75, 0)
    assert "attempt 1" in second.talk, second
    assert len(hosts.effects()) == 1
    assert hosts.outcomes() == ["completed"]


def test_two_schedulers_that_fire_every_tick_work_each_window_once(stage: Stage) -> None:
    """Neither leads, and neither knows of the other."""
    stage.exec("close", *DAILY, command=stage.effect())

    for _ in range(5):
        stage.clock.advance("1d")
        both = [stage.start("close", command=stage.effect()) for _ in range(2)]
        codes = [each.ended().code for each in both]

        assert codes in ([0, 0], [0, 75], [75, 0])  # a duplicate, or the other still worked

    assert stage.effects() == [f"close:{day}[UTC]" for day in DAYS]
    assert stage.outcomes() == ["completed"] * len(DAYS)


RELEASE = """
@ledger.job("credit", duly.daily("UTC"), catch_up=duly.EACH, retries={retries})
def credit(run):
    run.tx.execute(f"insert into credited (day, units) values ('{{run.label}}', {retries})")

for _ in range(4):
    stop("ready")
    credit.catch_up()
ledger.close()
"""


def test_two_releases_side_by_side_in_a_rolling_deploy_work_each_day_once(account: Account) -> None:
    """Each has a scheduler of its own, and they differ in more than the work."""
    releases = [account.worker(RELEASE.format(retries=retries)) for retries in (1, 3)]

    for _ in range(4):
        for release in releases:
            release.reaches("ready")
        account.clock.advance("1d")
        for release in releases:
            release.go_on()
    for release in releases:
        release.ends()

    assert account.days == ["2026-10-06", "2026-10-07", "2026-10-08", "2026-10-09"]
    assert [outcome for _, outcome in account.history()] == ["completed"] * 4


def test_two_containers_in_each_of_which_it_is_process_1_are_two_owners() -> None:
    """Host names are copied with the image, pids begin anew, and two may start at the same tick: chance tells them apart."""
    another_start = runpy.run_path(identity.__file__)

    this, mine = identity.owner().split("+")
    that, theirs = another_start["owner"]().split("+")

    assert this == that
    assert mine != theirs


# -- the ledger is asked, or nothing is run -----------------------------------------------------------------------------


def test_while_the_ledger_cannot_be_asked_no_host_works_and_afterwards_one_does(hosts: Hosts) -> None:
    hosts.exec("close", *DAILY, command=hosts.effect())
    hosts.clock.advance("1d")
    away = {"DULY_LEDGER": f"postgresql://postgres@127.0.0.1:{free_port()}/jobs"}

    both = [hosts.start("close", *DAILY, command=hosts.effect(), environ=away) for _ in range(2)]
    said = [each.ended() for each in both]

    assert [each.code for each in said] == [75, 75]
    assert all(each.talk.endswith("  try: duly status\n") for each in said), said
    assert hosts.effects() == ["close:2026-11-28[UTC]"]
    assert [hosts.exec("close", command=hosts.effect()).code for _ in range(2)] == [0, 0]
    assert hosts.effects() == ["close:2026-11-28[UTC]", "close:2026-11-29[UTC]"]


# -- a zombie -----------------------------------------------------------------------------------------------------------


def test_an_attempt_that_goes_on_after_it_was_declared_dead_is_refused_and_explained(hosts: Hosts) -> None:
    gate = hosts.gate("zombie")
    idempotent = ("--effect", "idempotent", "--remembers", "forever")
    zombie = hosts.start("close", *DAILY, *idempotent, command=hosts.effect(gate.shell))
    gate.arrived()
    zombie.signal(signal.SIGSTOP)  # as when its host sleeps
    hosts.clock.advance("10m")

    successor = hosts.exec("close", command=hosts.effect())
    explained = hosts.duly("explain", "close", "2026-11-28")
    zombie.signal(signal.SIGCONT)
    gate.open()

    assert successor.code == 0
    lost = "was lost after 10m: vanished. It was superseded, and may be alive: what it reports is refused."
    assert lost in explained.out
    assert zombie.ended().code == 81
    assert hosts.outcomes() == ["lost", "completed"]


@pytest.mark.parametrize(
    ("flags", "code", "state"), [((), 80, "unknown"), (("--effect", "transactional"), 143, "failed")]
)
def test_a_person_on_one_host_stops_what_runs_on_another(
    hosts: Hosts, flags: tuple[str, ...], code: int, state: str
) -> None:
    gate = hosts.gate("child")
    running = hosts.start("close", *DAILY, *flags, command=hosts.effect(gate.shell))
    gate.arrived()

    asked = hosts.duly("cancel", "close", "2026-11-28", "--reason", "it reads the wrong year")
    duplicate = hosts.exec("close", command=hosts.effect())
    hosts.clock.advance("21s")
    ended = running.ended()

    assert (asked.code, duplicate.code, ended.code) == (0, 75, code)
    assert hosts.rows("select state, cause, retry_at from duly_run") == [(state, "cancelled", None)]
    assert len(hosts.effects()) == 1


# -- a window's key is no lock ------------------------------------------------------------------------------------------


def test_a_job_as_often_as_its_lease_is_long_and_much_shorter_works_each_minute_once(account: Account) -> None:
    """A lock that is let go with the job lets the second host in; one that is held for its minute skips the next one."""
    first, second = (minutely(account.ledger()) for _ in range(2))

    for minute in range(8):
        account.clock.set(f"2026-10-06T04:{minute:02}:00Z")
        account.clock.advance("100ms" if minute % 2 else "500ms")  # nobody comes at the full minute
        first.catch_up()
        account.clock.advance("300ms")
        second.catch_up()

        assert account.days == [f"2026-10-06T04{each:02}00Z" for each in range(minute + 1)]


def minutely(ledger: duly.Ledger[Any]) -> duly.Job[Any]:
    @ledger.job("credit", duly.cron("* * * * *", zone="UTC"), catch_up=duly.EACH, lease="1m")
    def credit(run: duly.Run[Any]) -> None:
        run.tx.execute(f"insert into credited (day, units) values ('{run.label}', 1)")

    return credit


# -- one at a time, finished once ---------------------------------------------------------------------------------------


def test_of_eleven_at_once_on_one_line_one_works(stage: Stage) -> None:
    stage.exec("close", *DAILY)
    gate = stage.gate("working")
    command = stage.effect(gate.shell)

    crowd = [stage.start("close", "--window", f"2026-11-{day}", command=command) for day in range(10, 21)]
    until(lambda: sum(each.is_over() for each in crowd) == 10, "ten have gone home")
    gate.open()
    codes = sorted(each.ended().code for each in crowd)

    assert codes == [0] + [75] * 10
    assert len(stage.effects()) == 1
    assert stage.outcomes() == ["completed"] * 2


@pytest.mark.parametrize("isolation", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_a_heartbeat_meanwhile_costs_an_effect_no_conflict_at_any_isolation(
    on_postgres: Account, isolation: psycopg.IsolationLevel
) -> None:
    """Else the completion would be lost to the lease that protects it, and the work be done again."""
    on_postgres.book.job("credit")
    claim = on_postgres.ledger().take("credit", DAY)
    assert isinstance(claim, duly.Claim)

    with claim, psycopg.connect(on_postgres.url) as connection:
        connection.isolation_level = isolation
        connection.execute("select * from credited")  # its snapshot is from before the heartbeats
        for _ in range(3):
            on_postgres.clock.advance(LEASE // 2)
            now = on_postgres.clock.now()
            until(lambda: on_postgres.book.rows("select 1 from duly_renewal where until > ?", now), "a heartbeat")  # noqa: B023
        connection.execute("insert into credited (day, units) values (%s, 10)", (DAY,))
        assert claim.complete(connection) == duly.Completed(KEY, 1)

    assert on_postgres.days == [DAY]
    assert on_postgres.history() == [(1, "completed")]
