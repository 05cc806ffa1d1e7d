"""Catch-up policies are read from text and tables and written back."""

from __future__ import annotations

import pytest

from duly.errors import ScheduleError
from duly.schedule.catch_up import EACH, FRESH, LATEST, CatchUp, parse_catch_up
from duly.times import DAY


@pytest.mark.parametrize(
    ("value", "policy"),
    [
        ("each", EACH),
        ("latest", LATEST),
        ("fresh", FRESH),
        ("each max=24 max_age=2d", CatchUp("each", 24, 2 * DAY)),
        ("latest max_age=2d", CatchUp("latest", None, 2 * DAY)),
        ({"policy": "each"}, EACH),
        ({"policy": "each", "max": 24, "max_age": "2d"}, CatchUp("each", 24, 2 * DAY)),
        ({"policy": "each", "max": None, "max_age": 2 * DAY}, CatchUp("each", None, 2 * DAY)),
        (CatchUp("each", 3), CatchUp("each", 3)),
    ],
)
def test_a_policy_is_read(value: str | dict[str, object] | CatchUp, policy: CatchUp) -> None:
    assert parse_catch_up(value) == policy
    assert parse_catch_up(str(policy)) == policy


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("", "policy"),
        ("all", "policy"),
        ("each max=0", "max"),
        ("each max=", "max"),
        ("each max_age=soon", "max_age"),
        ("each often", "often"),
        ("latest max=3", "max"),
        ({"max": 3}, "policy"),
        ({"policy": "each", "max": True}, "max"),
        ({"policy": "each", "max": 1.5}, "max"),
        ({"policy": "each", "max_age": -1}, "max_age"),
        ({"policy": ["each"]}, "policy"),
        ({"policy": "each", "grace": "1h"}, "grace"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(value: str | dict[str, object], field: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_catch_up(value)

    assert refused.value.field == f"catch_up.{field}"
