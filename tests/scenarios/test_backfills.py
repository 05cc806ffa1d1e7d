"""Backfills: what they did to live work, and live work to them; who worked a window twice, and who waited for a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from tests.books import LATE
from tests.exec.stage import DAILY, PATIENCE, Stage, environment, until
from tests.scenarios.hosts import Hosts

WHY = ("--reason", "the feed was wrong")
NIGHTLY = (*DAILY, "--catch-up", "each", "--effect", "idempotent", "--remembers", "forever")


def started(stage: Stage, *flags: str, days: str = "2026-11-01..2026-11-11", job: tuple[str, ...] = NIGHTLY) -> None:
    """A job whose line begins on 28 November and owes nothing, and a backfill of days before it."""
    assert stage.exec("close", *job, command=("true",)).code == 0
    stage.clock.advance("1m")
    said = stage.duly("backfill", "start", "close", days, *flags, *WHY)
    assert said.code == 0, said


def worked(stage: Stage) -> list[str]:
    return [key.removeprefix("close:").removesuffix("[UTC]") for key in stage.effects()]


# -- live work and backfills ---------------------------------------------------------------------------------------------


def test_a_backfill_starves_no_live_work(stage: Stage) -> None:
    """Scenario 52. Cron found the line held; what it came for is worked next, by whoever held it."""
    started(stage)
    gate = stage.gate("first")
    backfill = stage.start(
        "close", "--backfill", command=stage.effect(f"[ $DULY_DATE != 2026-11-01 ] || {{ {gate.shell}; }}")
    )
    gate.arrived()
    stage.clock.advance("1d")
    assert stage.exec("close", command=stage.effect()).code == 75

    gate.open()

    assert backfill.ended().code == 0
    assert worked(stage)[:3] == ["2026-11-01", "2026-11-29", "2026-11-02"]
    assert len(worked(stage)) == 11


def test_live_work_that_does_not_end_starves_no_backfill(stage: Stage) -> None:
    """Scenario 53. Twenty days are owed, and more may come: every fourth run is the backfill's all the same."""
    started(stage)
    stage.clock.advance("20d")

    assert stage.exec("close", "--backfill", command=stage.effect()).code == 0

    is_backfills = [day < "2026-11-28" for day in worked(stage)]
    assert [sum(is_backfills[place : place + 4]) for place in range(0, 20, 4)] == [1] * 5
    assert sorted(worked(stage)) == sorted({*worked(stage)})
    assert len(worked(stage)) == 30


def test_a_slot_that_is_free_takes_the_next_window_whatever_the_others_do(stage: Stage) -> None:
    """Scenario 54: no batch has to finish before the next begins, nor is it opened before."""
    started(stage, "--concurrency", "2", job=(*NIGHTLY, "--overlap", "yes"))
    gate = stage.gate("first")
    slow = stage.start(
        "close", "--backfill", command=stage.effect(f"[ $DULY_DATE != 2026-11-01 ] || {{ {gate.shell}; }}")
    )
    gate.arrived()
    by_state = "select state, count(*) from duly_run group by state order by state"
    assert stage.rows(by_state) == [("completed", 1), ("running", 1)]

    others = stage.exec("close", "--backfill", command=stage.effect())

    assert others.code == 0
    assert worked(stage) == [f"2026-11-{day:02}" for day in range(1, 11)]
    gate.open()
    assert slow.ended().code == 0


def test_what_is_complete_is_not_done_again_unless_that_is_said_with_its_number(stage: Stage) -> None:
    """Scenario 55."""
    started(stage)
    stage.exec("close", "--backfill", command=stage.effect())
    assert len(worked(stage)) == 10
    stage.clock.advance("1m")
    again = ("backfill", "start", "close", "2026-11-01..2026-11-11", *WHY)

    missing = stage.duly(*again)
    unsaid = stage.duly(*again, "--what", "all")
    wrong = stage.duly(*again, "--what", "all", "--expect", "9")

    assert [said.code for said in (missing, unsaid, wrong)] == [64, 64, 64]
    assert "10 completed" in missing.talk
    assert "--expect 10" in unsaid.talk
    assert stage.exec("close", "--backfill", command=stage.effect()).code == 0
    assert len(worked(stage)) == 10
    assert stage.duly(*again, "--what", "all", "--expect", "10").code == 0
    assert stage.exec("close", "--backfill", command=stage.effect()).code == 0
    assert stage.effects()[10:] == [f"close:2026-11-{day:02}[UTC]#2" for day in range(1, 11)]
    assert stage.rows("select count(*) from duly_run where revision = 2 and state = 'completed'") == [(10,)]


# -- a year, four at a time, two hosts -----------------------------------------------------------------------------------

AT_ONCE = 4
A_YEAR = "2025-11-01..2026-11-01"  # 365 days

# Who works at a place is there as long as it takes; how many are there is what each of them sees.
WORK = """
: > "{folder}/at-work/$DULY_ATTEMPT_ID"
ls "{folder}/at-work" | wc -l >> "{folder}/seen"
mkdir "{folder}/done/$DULY_DATE" 2> /dev/null
rm "{folder}/at-work/$DULY_ATTEMPT_ID"
"""

# A host tries again as long as there is something left: cron would.
HOST = """
for worker in 1 2 3; do
    ( until "{python}" -m duly exec close --backfill -q -- sh "{folder}/work.sh"; do sleep 0.2; done ) &
done
wait
"""


class Cluster:
    """Two hosts that share a ledger, and all their processes."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._folder = hosts.folder
        for name in ("at-work", "done"):
            (self._folder / name).mkdir()
        (self._folder / "work.sh").write_text(WORK.format(folder=self._folder))
        (self._folder / "host.sh").write_text(HOST.format(folder=self._folder, python=sys.executable))

    def start(self) -> None:
        self._shells = [
            subprocess.Popen(
                ["sh", str(self._folder / "host.sh")],
                env=environment(DULY_LEDGER=self._hosts.path),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for _ in range(2)
        ]

    def done(self) -> int:
        return len(list((self._folder / "done").iterdir()))

    def cut_the_power(self) -> None:
        """SIGKILL to each process of both hosts, whatever it does; again, for those that were just being made."""

        def none_left() -> bool:
            left = list(self._hosts._left_behind())
            for pid in left:
                with suppress(ProcessLookupError):  # it ended by itself
                    os.kill(pid, signal.SIGKILL)
            return not left

        until(none_left, "every process is gone")
        for shell in self._shells:
            shell.wait(timeout=PATIENCE)
        for place in (self._folder / "at-work").iterdir():
            place.unlink()

    def ended(self) -> None:
        for shell in self._shells:
            assert shell.wait(timeout=300) == 0

    def seen(self) -> list[int]:
        return [int(line) for line in (self._folder / "seen").read_text().split()]


@contextmanager
def watched(url: str) -> Iterator[Callable[[], int]]:
    """Look at the ledger all the while; the most runs that it had running at once."""
    most, over = [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.wait(0.002):
                ((running,),) = connection.execute("select count(*) from duly.run where state = 'running'").fetchall()
                most[0] = max(most[0], running)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: most[0]
    finally:
        over.set()
        watcher.join()


@pytest.mark.timeout(600)
def test_a_year_at_four_at_a_time_over_two_hosts_that_are_killed_twice_is_done_once(hosts: Hosts) -> None:
    started(hosts, "--concurrency", str(AT_ONCE), days=A_YEAR, job=(*NIGHTLY, "--overlap", "yes"))
    cluster = Cluster(hosts)

    with watched(hosts.path) as most:
        for done in (60, 180):
            cluster.start()
            until(lambda done=done: cluster.done() >= done, f"{done} windows are done", seconds=200)  # type: ignore[misc]
            cluster.cut_the_power()
            hosts.clock.advance(LATE)  # until then the dead hold their slots
        cluster.start()
        cluster.ended()

    assert 2 <= most() <= AT_ONCE
    assert 2 <= max(cluster.seen()) <= AT_ONCE
    assert cluster.done() == 365
    assert hosts.rows(
        "select r.state, count(*) from duly_run r join duly_backfill_run b on b.series = r.series "
        "and b.nominal = r.nominal and b.revision = r.revision group by 1"
    ) == [("completed", 365)]
    assert hosts.rows(
        "select max(times), count(*) from (select count(*) as times from duly_attempt a join duly_backfill_run b "
        "on b.series = a.series and b.nominal = a.nominal where a.outcome = 'completed' group by a.series, a.nominal) each_"
    ) == [(1, 365)]
    assert hosts.rows("select state from duly_backfill") == [("done",)]
