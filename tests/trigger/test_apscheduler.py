"""Jobs of a real APScheduler: each call works the window of its run time, in a thread, a process or an event loop.

Its clock is the machine's. So what it is to fire is given to it as next run times that have passed, as after a restart.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.executors.pool import ProcessPoolExecutor, ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

import duly
import duly.aio
from duly.errors import TriggerUnclear, WindowInvalid
from duly.trigger.apscheduler import read, telling
from duly.trigger.fire import fire, fire_async
from tests.trigger import aps_jobs

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = duly.cron("30 2 * * *", zone="Europe/Berlin", gap="shift_forward")
PATIENCE = 60


def at(text: str) -> datetime:
    """A time with an offset, or Berlin's wall clock."""
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=BERLIN) if time.tzinfo is None else time.astimezone(BERLIN)


class Scheduler:
    """An APScheduler, and what it said."""

    def __init__(self, executor: Any = None, **settings: Any) -> None:
        executor = executor or ThreadPoolExecutor(4)
        self.scheduler = BackgroundScheduler(executors={"default": telling(executor)}, timezone=BERLIN, **settings)
        self.events: list[JobExecutionEvent] = []
        self._told = threading.Condition()
        self.scheduler.add_listener(self._tell, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR | EVENT_JOB_MISSED)

    def _tell(self, event: JobExecutionEvent) -> None:
        with self._told:
            self.events.append(event)
            self._told.notify_all()

    def wait(self, count: int) -> list[JobExecutionEvent]:
        """Until so many calls have ended."""
        with self._told:
            assert self._told.wait_for(lambda: len(self.events) >= count, PATIENCE), self.events
        return self.events

    @contextmanager
    def running(self) -> Iterator[Scheduler]:
        self.scheduler.start()
        try:
            yield self
        finally:
            self.scheduler.shutdown()


class Shop:
    """A ledger whose clock is the machine's, and a job that says what it worked."""

    def __init__(self, path: Path, schedule: duly.Schedule = NIGHTLY, name: str = "close") -> None:
        self.path = path
        self.ledger = duly.sqlite(path)

        @self.ledger.job(name, schedule, catch_up=duly.EACH)
        def close(run: duly.Run[sqlite3.Connection]) -> None:
            run.tx.execute("create table if not exists effect (key text, pid integer)")
            run.tx.execute("insert into effect values (?, ?)", (str(run.key), os.getpid()))

        self.job = close

    def work(self) -> str:
        """A line that another holds is waited for: who is told that it is busy is not called again."""
        return type(fire(self.job, read(), wait=PATIENCE)).__name__

    @property
    def effects(self) -> list[str]:
        return [key for (key,) in self.rows("select key from effect order by rowid")]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path / "jobs.db")
    yield shop
    shop.ledger.close()


LATE: dict[str, Any] = {"misfire_grace_time": None, "coalesce": False}


def fires(
    function: Callable[[], Any], trigger: Any, since: str, *, executor: Any = None, **settings: Any
) -> tuple[Any, list[Any]]:
    """A job whose next run time passed while nothing ran: all that were missed since are called, up to the trigger's end."""
    until = trigger.end_date
    count = 0
    time: datetime | None = at(since)
    while time is not None:
        count += 1
        time = trigger.get_next_fire_time(time, until)
    scheduler = Scheduler(executor)
    scheduler.scheduler.add_job(function, trigger, id="close", next_run_time=at(since), **{**LATE, **settings})
    with scheduler.running():
        return scheduler, scheduler.wait(count)


def nightly(end: str, **cron: Any) -> CronTrigger:
    return CronTrigger(**(cron or {"hour": 2, "minute": 30}), timezone=BERLIN, end_date=at(end))


# -- the night of the clocks, by its own cron trigger --------------------------------------------------------------------


def test_each_of_the_times_that_were_missed_works_its_own_window(shop: Shop) -> None:
    _, events = fires(shop.work, nightly("2026-10-28T03:00:00"), "2026-10-26T02:30:00")

    assert [event.retval for event in events] == ["Completed"] * 3
    assert shop.effects == [f"close:2026-10-{day}T02:30:00[Europe/Berlin]" for day in (26, 27, 28)]
    assert shop.rows("select trigger from duly_run order by nominal") == [
        ("apscheduler catch-up close@2026-10-26T01:30:00Z",),
        ("apscheduler catch-up close@2026-10-27T01:30:00Z",),
        ("apscheduler catch-up close@2026-10-28T01:30:00Z",),
    ]


def test_where_the_job_coalesces_only_the_newest_is_worked(shop: Shop) -> None:
    scheduler = Scheduler()
    trigger = nightly("2026-10-28T03:00:00")
    scheduler.scheduler.add_job(
        shop.work, trigger, next_run_time=at("2026-10-26T02:30:00"), coalesce=True, misfire_grace_time=None
    )
    with scheduler.running():
        scheduler.wait(1)

    assert shop.effects == ["close:2026-10-28T02:30:00[Europe/Berlin]"]


# Clocks in Berlin: 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
def test_a_time_that_there_is_not_is_worked_once_and_one_that_there_is_twice_once(shop: Shop) -> None:
    """APScheduler fires at 03:30 in March, and twice in October: the second time is none of the job's."""
    fires(shop.work, nightly("2026-03-30T03:00:00"), "2026-03-28T02:30:00")
    _, events = fires(shop.work, nightly("2026-10-26T03:00:00"), "2026-10-24T02:30:00")

    refused = [event for event in events if event.exception is not None]
    assert shop.effects == [
        f"close:2026-{day}T02:30:00[Europe/Berlin]" for day in ("03-28", "03-29", "03-30", "10-24", "10-25", "10-26")
    ]
    assert [str(event.scheduled_run_time) for event in refused] == ["2026-10-25 02:30:00+01:00"]
    assert isinstance(refused[0].exception, WindowInvalid)


def test_each_hour_of_the_long_night_is_worked_also_the_second_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "jobs.db", duly.cron("30 * * * *", zone="Europe/Berlin"))

    fires(shop.work, nightly("2026-10-25T04:00:00", minute=30), "2026-10-25T01:30:00")

    hours = ("01:30:00", "02:30:00", "02:30:00~2", "03:30:00")
    assert shop.effects == [f"close:2026-10-25T{hour}[Europe/Berlin]" for hour in hours]
    shop.ledger.close()


def test_a_day_that_its_trigger_leaves_out_is_missing_in_the_ledger(tmp_path: Path) -> None:
    """APScheduler 3.11.3 has no midnight after the day of 23 hours. Whatever it leaves out, the ledger has."""
    shop = Shop(tmp_path / "jobs.db", duly.daily("Europe/Berlin"))
    _, events = fires(shop.work, nightly("2026-04-01T03:00:00", hour=0, minute=0), "2026-03-28T00:00:00")

    owed = [f"2026-03-{day}" for day in range(27, 32)]
    worked = [key.removeprefix("close:").partition("[")[0] for key in shop.effects]
    assert len(worked) == len(events)
    left_out = [day for day in owed if day not in worked]
    for day in left_out:
        assert shop.job.run(day)
    assert sorted(key.removeprefix("close:").partition("[")[0] for key in shop.effects) == owed
    shop.ledger.close()


# -- executors ----------------------------------------------------------------------------------------------------------


def test_a_pool_of_processes_is_told_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(aps_jobs.PATH, str(tmp_path / "jobs.db"))
    _, events = fires(
        aps_jobs.close, nightly("2026-10-26T03:00:00"), "2026-10-25T02:30:00", executor=ProcessPoolExecutor(1)
    )

    connection = sqlite3.connect(tmp_path / "jobs.db")
    keys, pids = zip(*connection.execute("select key, pid from effect order by rowid"), strict=True)
    connection.close()
    assert [event.exception is None for event in events] == [True, False, True]
    assert keys == tuple(f"close:2026-10-{day}T02:30:00[Europe/Berlin]" for day in (25, 26))
    assert os.getpid() not in pids


def test_coroutines_in_one_event_loop_are_each_told_their_own_time(tmp_path: Path) -> None:
    async def main() -> list[str]:
        keys: list[str] = []
        async with duly.aio.sqlite(tmp_path / "jobs.db") as ledger:

            @ledger.job("close", duly.hourly("UTC"), catch_up=duly.EACH, overlap=True)
            async def close(run: duly.aio.Run[Any]) -> None:
                keys.append(str(run.key))

            async def call() -> None:
                await fire_async(close, read())

            scheduler = AsyncIOScheduler(executors={"default": telling(AsyncIOExecutor())}, timezone=UTC)
            done = asyncio.Event()
            events: list[Any] = []

            def told(event: Any) -> None:
                events.append(event)
                if len(events) == 4:
                    done.set()

            scheduler.add_listener(told, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
            for hour in (1, 3):  # two jobs, whose calls alternate
                scheduler.add_job(
                    call,
                    CronTrigger(minute=0, timezone=UTC, end_date=datetime(2026, 10, 25, hour + 1, tzinfo=UTC)),
                    next_run_time=datetime(2026, 10, 25, hour, tzinfo=UTC),
                    **LATE,
                )
            scheduler.start()
            async with asyncio.timeout(PATIENCE):
                await done.wait()
            scheduler.shutdown()
            assert [event.exception for event in events] == [None] * 4
        return keys

    assert sorted(asyncio.run(main())) == [f"close:2026-10-25T{hour:02}[UTC]" for hour in (0, 1, 2, 3)]


# -- two schedulers, and a restart ----------------------------------------------------------------------------------------


def test_two_schedulers_on_one_ledger_have_one_effect(tmp_path: Path) -> None:
    shops = [Shop(tmp_path / "jobs.db") for _ in range(2)]
    schedulers = [Scheduler() for _ in shops]
    for shop, scheduler in zip(shops, schedulers, strict=True):
        trigger = nightly("2026-10-31T03:00:00")
        scheduler.scheduler.add_job(shop.work, trigger, next_run_time=at("2026-10-26T02:30:00"), **LATE)

    with schedulers[0].running(), schedulers[1].running():
        said = [event.retval for scheduler in schedulers for event in scheduler.wait(6)]

    assert sorted(shops[0].effects) == [f"close:2026-10-{day}T02:30:00[Europe/Berlin]" for day in range(26, 32)]
    assert (said.count("Completed"), said.count("AlreadyCompleted")) == (6, 6)
    for shop in shops:
        shop.ledger.close()


def test_a_scheduler_that_was_away_works_what_its_store_remembers_as_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(aps_jobs.PATH, str(tmp_path / "jobs.db"))
    before, store = Scheduler().scheduler, SQLAlchemyJobStore(url=f"sqlite:///{tmp_path}/store.db")
    job = before.add_job(
        aps_jobs.close,
        nightly("2026-10-28T03:00:00"),
        id="close",
        max_instances=1,
        next_run_time=at("2026-10-27T02:30:00"),
        **LATE,
    )
    store.start(before, "default")  # and nothing else: it was stopped before the night
    store.add_job(job)
    store.shutdown()

    after = Scheduler(jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{tmp_path}/store.db")})
    with after.running():
        events = after.wait(2)

    assert [event.retval for event in events] == ["Completed", "Completed"]


def test_what_it_gives_up_as_missed_stays_owed(shop: Shop) -> None:
    _, events = fires(
        shop.work, nightly("2026-10-27T03:00:00"), "2026-10-26T02:30:00", misfire_grace_time=60, coalesce=False
    )

    assert [event.code for event in events] == [EVENT_JOB_MISSED] * 2
    assert shop.rows("select count(*) from duly_run") == [(0,)]


# -- by hand --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["added to run at once", "its next run time moved to now"])
def test_a_person_who_fires_it_works_no_window(how: str, shop: Shop) -> None:
    scheduler = Scheduler()
    with scheduler.running():
        if how == "added to run at once":
            scheduler.scheduler.add_job(shop.work, id="once", misfire_grace_time=None)
        else:
            job = scheduler.scheduler.add_job(shop.work, CronTrigger(month=1, day=1, timezone=BERLIN), id="close")
            job.modify(next_run_time=datetime.now(UTC))
        (event,) = scheduler.wait(1)

    (key,) = shop.effects
    assert event.retval == "Completed"
    assert key.startswith("close:adhoc-")


def test_an_interval_that_was_moved_is_refused_and_one_on_its_grid_is_not(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "jobs.db", duly.every("1h"))
    grid = IntervalTrigger(
        hours=1, start_date=datetime(2026, 10, 25, tzinfo=UTC), end_date=datetime(2026, 10, 25, 3, 30, tzinfo=UTC)
    )

    fires(shop.work, grid, "2026-10-25T03:00:00+01:00")
    _, moved = fires(shop.work, grid, "2026-10-25T03:10:00+01:00")

    assert shop.effects == ["close:2026-10-25T02:00:00Z", "close:2026-10-25T03:00:00Z"]
    assert all(isinstance(event.exception, TriggerUnclear) for event in moved)
    shop.ledger.close()


def test_jitter_leaves_no_time_on_the_grid_and_is_refused_by_the_schedule(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "jobs.db", duly.every("1h"))
    trigger = IntervalTrigger(hours=1, jitter=600, end_date=datetime(2026, 10, 25, 2, 30, tzinfo=UTC))

    _, events = fires(shop.work, trigger, "2026-10-25T02:03:07+00:00")

    assert isinstance(events[0].exception, WindowInvalid)
    assert shop.rows("select count(*) from duly_run") == [(0,)]
    shop.ledger.close()


def test_a_trigger_that_counts_in_another_zone_is_refused_before_the_clocks_part_them(shop: Shop) -> None:
    trigger = CronTrigger(hour=1, minute=30, timezone=UTC, end_date=at("2026-10-28T00:00:00"))

    _, (event,) = fires(shop.work, trigger, "2026-10-27T01:30:00+00:00")

    assert "counts in UTC, and the job in Europe/Berlin" in str(event.exception)


def test_where_the_executor_does_not_tell_nothing_is_run(shop: Shop) -> None:
    with pytest.raises(TriggerUnclear, match="telling"):
        shop.work()
