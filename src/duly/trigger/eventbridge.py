"""Amazon EventBridge Scheduler: the time that a schedule specified, which it puts into its target's input.

It replaces words in the input (docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html). A
Lambda function gets the input as its event:

    {"scheduled-time": "<aws.scheduler.scheduled-time>", "schedule-arn": "<aws.scheduler.schedule-arn>",
     "attempt-number": "<aws.scheduler.attempt-number>", "execution-id": "<aws.scheduler.execution-id>"}

and a task of ECS as overrides of its container's environment: SCHEDULER_SCHEDULED_TIME, SCHEDULER_SCHEDULE_ARN,
SCHEDULER_ATTEMPT_NUMBER and SCHEDULER_EXECUTION_ID.

The target is called within a minute of that time, later where the schedule has a flexible window, and again after an error: the
time is the same then. The execution id is another one at each attempt, so it is on record and names nothing.
"""

from __future__ import annotations

from duly.errors import TriggerUnclear
from duly.trigger import (
    RETRY,
    SCHEDULED,
    Firing,
    Meant,
    at_time,
    instant_of,
    name_of,
    number_of,
    optional_name_of,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SOURCE = "eventbridge"

_NAMES = ("scheduled-time", "schedule-arn", "attempt-number", "execution-id")


def read(environment: Mapping[str, str]) -> Firing:
    """What the environment of a container tells. Raises `TriggerUnclear` where the input does not set it."""
    return _firing({name: environment.get(variable_of(name)) for name in _NAMES}, variable_of)


def read_event(event: Mapping[str, object]) -> Firing:
    """What the event of a Lambda function tells. Raises `TriggerUnclear` where the input does not have it."""
    given: object = event
    if not isinstance(given, dict):
        raise TriggerUnclear(f"the event: {shown(given)} is no object of JSON; docs/cloud.md has the target's input")
    return _firing({name: event.get(name) for name in _NAMES}, lambda name: name)


def variable_of(name: str) -> str:
    """The environment variable that holds an attribute, as SCHEDULER_SCHEDULED_TIME."""
    return f"SCHEDULER_{name.replace('-', '_').upper()}"


def _firing(told: Mapping[str, object], called: Callable[[str], str]) -> Firing:
    for name in ("scheduled-time", "schedule-arn"):
        if not told[name] or str(told[name]).startswith("<aws."):
            raise TriggerUnclear(
                f"{called(name)} is not set by EventBridge Scheduler: give the target's input"
                f" {called(name)} = <aws.scheduler.{name}>; whoever calls it by hand names a run with adhoc"
            )
    at = instant_of(called("scheduled-time"), told["scheduled-time"])
    arn = name_of(called("schedule-arn"), told["schedule-arn"])
    tries = number_of(called("attempt-number"), told["attempt-number"])
    execution = optional_name_of(called("execution-id"), told["execution-id"])
    schedule = arn.partition(":schedule/")[2] or arn  # the account is nobody's business
    return Firing(
        SOURCE,
        RETRY if tries > 1 else SCHEDULED,
        at_time(schedule, at),
        "/".join(filter(None, (execution, str(tries or "")))),
        called("scheduled-time"),
        Meant(at),
    )
