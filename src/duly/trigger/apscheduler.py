"""APScheduler 3: the time for which an executor calls a function, and which it does not tell it.

`run_job` in apscheduler/executors/base.py calls the function once for each of the run times that it was submitted with, one
after the other: several, where the scheduler was asleep and the job does not coalesce. `telling(executor)` hands it run times
that say which of them is being worked, in a thread, another process or an event loop alike; `work(job)` in the function works
the window of that time.

    scheduler = BackgroundScheduler(executors={"default": telling(ThreadPoolExecutor(10))})

    def close_day():
        return work(close_day_job)

A time that the trigger itself would not have given (`modify(next_run_time=…)`, a job that is added to run at once, a date) was
a person's, and is for no window. One of an interval may also be a person's of before, from which the interval counts on: which
it is cannot be told. Jitter leaves no time where the schedule has one, and is refused by the schedule.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from duly.errors import TriggerUnclear
from duly.times import from_datetime, instant_text
from duly.trigger import (
    CATCH_UP,
    MANUAL,
    SCHEDULED,
    Firing,
    Meant,
    at_time,
    is_late,
    moment_of,
    shown,
    zone_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = "apscheduler"

_A_WHILE = timedelta(hours=3)  # longer than any clocks are changed by
_STEPS = 200  # a minute's cron takes fewer in that while

E = TypeVar("E", bound=Any)

_NOW: ContextVar[Firing | TriggerUnclear | None] = ContextVar("duly_apscheduler_firing", default=None)


def telling(executor: E) -> E:
    """The same executor, of any kind, which from now on tells the functions that it calls for which time it calls them."""
    submit = executor.submit_job

    def submit_job(job: Any, run_times: list[datetime]) -> None:
        submit(job, RunTimes(run_times, _fired(job, run_times)))

    executor.submit_job = submit_job
    return executor


class RunTimes(list[datetime]):
    """The run times of a job that is submitted. Whoever goes through them is in the firing of the one that was given last."""

    def __init__(self, times: list[datetime], fired: list[Firing | TriggerUnclear]) -> None:
        super().__init__(times)
        self.fired = fired

    def __iter__(self) -> Iterator[datetime]:
        for time, fired in zip(list.__iter__(self), self.fired, strict=True):
            _NOW.set(fired)  # in the context of whoever goes through them, a generator having none of its own
            yield time
        _NOW.set(None)

    def __reduce__(self) -> tuple[Any, ...]:  # to a pool of processes
        return RunTimes, (list(list.__iter__(self)), self.fired)


def read() -> Firing:
    """The firing that this function is called for. Raises `TriggerUnclear` where the executor does not tell, or cannot."""
    fired = _NOW.get()
    if fired is None:
        raise TriggerUnclear(
            "nothing says for which time this is called: it is no job of APScheduler's, or its executor is not wrapped with"
            " duly.trigger.apscheduler.telling(executor)"
        )
    if isinstance(fired, TriggerUnclear):
        raise fired
    return fired


def _fired(job: Any, run_times: list[datetime]) -> list[Firing | TriggerUnclear]:
    """What is said of each run time. Raises nothing: APScheduler would throw away the calls."""
    now = from_datetime(datetime.now(UTC))
    found: list[Firing | TriggerUnclear] = []
    for time in run_times:
        try:
            found.append(_firing(job, time, now))
        except TriggerUnclear as e:
            found.append(e)
        except Exception as e:  # whatever a trigger that somebody wrote raises
            found.append(
                TriggerUnclear(f"{shown(job.id)}: its trigger, {type(job.trigger).__name__}: {type(e).__name__}")
            )
    return found


def _firing(job: Any, time: datetime, now: int) -> Firing:
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.date import DateTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    at, trigger = moment_of("the run time", time), job.trigger
    name = at_time(job.id, at)
    if isinstance(trigger, DateTrigger) or not _is_its_own(trigger, time):
        if isinstance(trigger, IntervalTrigger):
            raise TriggerUnclear(
                f"{job.id}: {instant_text(at)} is none of its interval's times, as it goes on from where it was moved to;"
                " give it a start_date on its grid with reschedule_job, or a cron trigger"
            )
        return Firing(SOURCE, MANUAL, name, "", "a time that the trigger would not give", None)
    zone = (
        zone_of(f"{job.id}: its trigger's timezone", str(trigger.timezone)) if isinstance(trigger, CronTrigger) else ""
    )
    kind = CATCH_UP if is_late(at, now) else SCHEDULED
    return Firing(SOURCE, kind, name, "", "the run time", Meant(at, zone=zone))


def _is_its_own(trigger: Any, time: datetime) -> bool:
    """Whether the trigger gives this time by itself. One with jitter gives any.

    Asked at a time that the clocks skip, 3.10 does not give that time again: so it is asked how it comes there, too.
    """
    if getattr(trigger, "jitter", None):
        return True
    at, own = from_datetime(time), trigger.get_next_fire_time(None, time)
    if own is not None and from_datetime(own) == at:
        return True
    own = trigger.get_next_fire_time(None, time - _A_WHILE)
    for _ in range(_STEPS):
        if own is None or from_datetime(own) >= at:
            break
        own = trigger.get_next_fire_time(own, own)
    return own is not None and from_datetime(own) == at
