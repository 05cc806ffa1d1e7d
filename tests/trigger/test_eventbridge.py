"""Targets of EventBridge Scheduler: the specified time names the window, whichever attempt it is and whenever it comes."""

from __future__ import annotations

import json

import pytest

import duly
from duly.errors import TriggerUnclear, WindowInvalid
from duly.schedule.meant import window_meant
from duly.schedule.spells import Spell
from duly.trigger import Firing, read, trigger_words
from duly.trigger.eventbridge import read_event, variable_of

BERLIN = "Europe/Berlin"
NIGHTLY = duly.cron("30 2 * * *", zone=BERLIN, gap="skip")

# The input that docs/cloud.md has, with what AWS says that it makes of it.
INPUT = (
    '{"scheduled-time": "<aws.scheduler.scheduled-time>", "schedule-arn": "<aws.scheduler.schedule-arn>",'
    ' "attempt-number": "<aws.scheduler.attempt-number>", "execution-id": "<aws.scheduler.execution-id>"}'
)
ARN = "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/nightly"


def event(at: str, *, attempt: int = 1, execution: str = "d32c5kddcf5bb8c3") -> dict[str, object]:
    filled = INPUT
    for name, value in (
        ("scheduled-time", at),
        ("schedule-arn", ARN),
        ("attempt-number", str(attempt)),
        ("execution-id", execution),
    ):
        filled = filled.replace(f"<aws.scheduler.{name}>", value)
    found: dict[str, object] = json.loads(filled)
    return found


def window(firing: Firing, schedule: duly.Schedule) -> str:
    assert firing.meant is not None
    return window_meant([Spell(schedule, 1, None, None)], firing.meant).name


# Clocks in Berlin: 02:00+01:00 → 03:00+02:00 on 29 March 2026 at 01:00Z; 03:00+02:00 → 02:00+01:00 on 25 October at 01:00Z.
@pytest.mark.parametrize(
    ("at", "schedule", "name"),
    [
        ("2026-03-28T01:30:00Z", NIGHTLY, "2026-03-28T02:30:00[Europe/Berlin]"),
        ("2026-03-30T00:30:00Z", NIGHTLY, "2026-03-30T02:30:00[Europe/Berlin]"),
        ("2026-10-25T00:30:00Z", NIGHTLY, "2026-10-25T02:30:00[Europe/Berlin]"),
        ("2026-10-26T01:30:00Z", duly.daily(BERLIN, at="02:30"), "2026-10-25[Europe/Berlin]"),
        ("2026-10-25T02:00:00Z", duly.hourly(BERLIN), "2026-10-25T02~2[Europe/Berlin]"),
        ("2026-10-25T00:15:00Z", duly.every("15m"), "2026-10-25T00:15:00Z"),
    ],
)
def test_the_specified_time_names_the_window_in_an_event_and_in_an_environment(
    at: str, schedule: duly.Schedule, name: str
) -> None:
    in_lambda = read_event(event(at))
    in_ecs = read("eventbridge", {variable_of(word): str(value) for word, value in event(at).items()})

    assert window(in_lambda, schedule) == window(in_ecs, schedule) == name
    assert trigger_words(in_lambda) == f"eventbridge scheduled default/nightly@{at} d32c5kddcf5bb8c3/1"


def test_another_attempt_has_another_execution_id_and_is_for_the_same_run() -> None:
    first = read_event(event("2026-10-25T00:30:00Z"))
    second = read_event(event("2026-10-25T00:30:00Z", attempt=2, execution="0a1b2c3d4e5f6a7b"))

    assert (first.meant, first.run) == (second.meant, second.run)
    assert (first.kind, second.kind) == ("scheduled", "retry")
    assert first.attempt != second.attempt


@pytest.mark.parametrize("at", ["2026-10-25T00:31:00Z", "2026-10-25T01:30:00Z", "2026-10-25T00:30:07Z"])
def test_a_time_of_another_schedule_or_of_a_rate_from_anywhen_is_refused(at: str) -> None:
    with pytest.raises(WindowInvalid):
        window(read_event(event(at)), NIGHTLY)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"day": "2026-10-25"},
        json.loads(INPUT),  # a person's test of the function, with the input as it is written
        {**event("2026-10-25T00:30:00Z"), "schedule-arn": ""},
        event("tonight"),
        event("2026-10-25T02:30:00"),
    ],
)
def test_what_no_scheduler_has_filled_in_is_refused(sent: dict[str, object]) -> None:
    with pytest.raises(TriggerUnclear, match=r"scheduled-time|schedule-arn"):
        read_event(sent)


@pytest.mark.parametrize("name", ["scheduled-time", "schedule-arn"])
def test_a_word_that_was_not_replaced_is_told_apart_from_one_that_is_wrong(name: str) -> None:
    with pytest.raises(TriggerUnclear, match=f"{name} is not set by EventBridge Scheduler"):
        read_event({**event("2026-10-25T00:30:00Z"), name: f"<aws.scheduler.{name}>"})


def test_a_container_is_told_the_name_of_the_variable() -> None:
    with pytest.raises(TriggerUnclear, match=r"SCHEDULER_SCHEDULED_TIME = <aws.scheduler.scheduled-time>"):
        read("eventbridge", {})
