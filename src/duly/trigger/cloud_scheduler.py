"""Google Cloud Scheduler: the headers of its request.

`X-CloudScheduler-ScheduleTime` has the time that the job's unix-cron schedule says, in UTC, `X-CloudScheduler-JobName` the
job's name (cloud.google.com/scheduler/docs/reference/rest/v1/projects.locations.jobs, HttpTarget). A job in the other format,
`every 5 minutes`, sends no time. Of a run that a person forces the time is that of its execution (Firebase's reference,
scheduler.ScheduledEvent): it has seconds, which no cron has, and is for no window. One that falls on a whole minute is looked
up, and refused where the schedule has no such time.

A job of Cloud Run is started through an API and sees no headers. Whoever starts it, a workflow say, hands them over as
CLOUD_SCHEDULER_SCHEDULE_TIME and CLOUD_SCHEDULER_JOB_NAME.
"""

from __future__ import annotations

from duly.errors import TriggerUnclear
from duly.times import MINUTE
from duly.trigger import (
    MANUAL,
    RETRY,
    SCHEDULED,
    Firing,
    Meant,
    at_time,
    instant_of,
    name_of,
    number_of,
    optional_name_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE = "cloud-scheduler"

_TIME, _NAME = "X-CloudScheduler-ScheduleTime", "X-CloudScheduler-JobName"
_AS_VARIABLES = "CLOUD_SCHEDULER_SCHEDULE_TIME", "CLOUD_SCHEDULER_JOB_NAME"


def read(environment: Mapping[str, str]) -> Firing:
    """What the environment of a job of Cloud Run tells. Raises `TriggerUnclear` where whoever started it set nothing."""
    tries = environment.get("CLOUD_RUN_TASK_ATTEMPT")
    return _firing(
        environment.get(_AS_VARIABLES[0]),
        environment.get(_AS_VARIABLES[1]),
        _AS_VARIABLES,
        optional_name_of("CLOUD_RUN_EXECUTION", environment.get("CLOUD_RUN_EXECUTION")),
        number_of("CLOUD_RUN_TASK_ATTEMPT", tries),
    )


def read_headers(headers: Mapping[str, object]) -> Firing:
    """What the headers of a request tell: a mapping of any case, or the environ of WSGI, `request.META` in Django.

    Raises `TriggerUnclear` where they are none of Cloud Scheduler's. Anybody who may call can send them: let the service accept
    only the scheduler's token.
    """
    told = {_plain(str(name)): value for name, value in headers.items()}
    return _firing(told.get(_plain(_TIME)), told.get(_plain(_NAME)), (_TIME, _NAME), "", 0)


def _plain(name: str) -> str:
    """A header's name, however it is written."""
    return name.replace("_", "-").lower().removeprefix("http-")


def _firing(time: object, job: object, places: tuple[str, str], execution: str, tries: int) -> Firing:
    in_time, in_name = places
    if not time or not job:
        raise TriggerUnclear(
            f"{in_time} is not set, or {in_name} is not: this is no request of a unix-cron job of Cloud Scheduler's"
        )
    at, name = instant_of(in_time, time), name_of(in_name, name_of(in_name, job).rpartition("/")[2])
    attempt = f"{execution}/{tries}" if execution else ""
    if at % MINUTE:
        return Firing(SOURCE, MANUAL, at_time(name, at), attempt, f"{in_time}, which is no whole minute", None)
    return Firing(SOURCE, RETRY if tries else SCHEDULED, at_time(name, at), attempt, in_time, Meant(at))
