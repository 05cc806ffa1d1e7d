"""The shared time cases: bug reports of other schedulers, and derivations. See tests/cases/README.md."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from duly.errors import ScheduleError
from duly.schedule import spec
from duly.schedule.cron import parse_cron
from duly.schedule.keys import MONTHS, nominal_text, parse_nominal
from duly.schedule.spec import Schedule
from duly.times import Zone, instant_text, parse_instant

Case = dict[str, Any]

CASES: list[Case] = [
    json.loads(line) for line in (Path(__file__).parent.parent / "cases" / "time.jsonl").read_text().splitlines()
]


def cases(*kinds: str, having: str = "id") -> pytest.MarkDecorator:
    return run([case for case in CASES if case["kind"] in kinds and having in case])


def run(chosen: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


PERIODS = [case for case in CASES if case["kind"] == "window" and "period" in case]
DRIFT = [case for case in PERIODS if "drift" in case["expect"]]


def schedule_of(case: Case, *, with_policy: bool = True) -> Schedule:
    policy = case.get("policy", {}) if with_policy else {}
    if "every" in case:
        return spec.every(case["every"], anchor=parse_instant(case["anchor"]))
    if "cron" in case:
        lines = case["cron"] if isinstance(case["cron"], list) else [case["cron"]]
        return spec.cron(*lines, zone=case["zone"], seconds_field=case.get("seconds_field", False), **policy)
    offset = {"offset": case["offset"]} if "offset" in case else {}
    make = getattr(spec, case["period"])
    return make(case["zone"], **offset, **policy)  # type: ignore[no-any-return]


def test_every_kind_of_case_is_run_here() -> None:
    assert len(CASES) == 228
    assert {c["kind"] for c in CASES} == {"next", "sequence", "window", "parse_error", "parse_ok"}


@cases("next", "sequence")
def test_occurrences_come_at_these_instants_under_these_names(case: Case) -> None:
    schedule = schedule_of(case)

    found = list(islice(schedule.after(parse_instant(case["from"])), len(case["expect"])))

    assert [instant_text(o.due) for o in found] == case["expect"]
    if "keys" in case:
        assert [o.nominal for o in found] == [parse_nominal(key, "fire")[1] for key in case["keys"]]


@cases("next", "sequence")
def test_the_same_occurrences_are_found_by_name_and_backwards(case: Case) -> None:
    schedule = schedule_of(case)
    after = parse_instant(case["from"])
    found = list(islice(schedule.after(after), len(case["expect"])))

    assert [schedule.find(o.nominal) for o in found] == found
    assert list(islice(schedule.before(found[-1].due), len(found))) == found[::-1]


@cases("next", "sequence", "window", having="policy_is_default")
def test_the_default_policy_is_the_one_of_the_class(case: Case) -> None:
    is_default = schedule_of(case, with_policy=False) == schedule_of(case)

    assert is_default == case["policy_is_default"]


@run([case for case in PERIODS if case not in DRIFT])
def test_windows_of_periods_have_these_bounds(case: Case) -> None:
    schedule = schedule_of(case)
    expected = case["expect"]

    found = windows_from(schedule, case, len(expected))

    assert [(instant_text(o.start), instant_text(o.end)) for o in found] == [(w["start"], w["end"]) for w in expected]
    assert [(o.end - o.start) // 1_000_000 for o in found] == [w["seconds"] for w in expected]
    if case["period"] == "hourly":
        zone = Zone(case["zone"])
        assert [zone.local_text(o.start) for o in found] == [w["label"] for w in expected]
    else:
        assert [nominal_text(schedule.grain, o.nominal, schedule.zone) for o in found] == [w["label"] for w in expected]


def windows_from(schedule: Schedule, case: Case, count: int) -> list[Any]:
    year, month, day = case["from"].split("-")
    offset = case.get("offset", "")
    if offset in MONTHS:
        month = f"{MONTHS.index(offset) + 1:02d}"
    clock = offset if ":" in offset else "00:00"
    first = schedule.find(parse_nominal(f"{year}-{month}-{day}T{clock}")[1])
    assert first is not None
    return list(islice(schedule.after(first.due - 1), count))


@cases("window", having="cron")
def test_a_fire_answers_for_the_time_since_the_fire_before(case: Case) -> None:
    schedule = schedule_of(case)
    expected = case["expect"]

    fires = list(islice(schedule.after(parse_instant(case["from"])), len(expected) + 1))

    assert [(instant_text(o.start), instant_text(o.end)) for o in fires[1:]] == [
        (w["start"], w["end"]) for w in expected
    ]
    assert [nominal_text("fire", o.nominal, schedule.zone) for o in fires[:-1]] == [w["label"] for w in expected]


@run(DRIFT)
def test_drift_is_between_these_two_readings(case: Case) -> None:
    """Only one release is installed here: it must read the window as one of the two that the case was verified with."""
    expected = case["expect"]
    schedule = schedule_of(case)

    window = windows_from(schedule, case, 1)[0]

    readings = [(expected[which]["start"], expected[which]["end"]) for which in ("old", "new")]
    assert nominal_text(schedule.grain, window.nominal, schedule.zone) == expected["key"]
    assert (instant_text(window.start), instant_text(window.end)) in readings
    assert (readings[0] != readings[1]) == expected["drift"]


@cases("parse_error")
def test_what_cannot_be_understood_is_refused_by_code_and_field(case: Case) -> None:
    with pytest.raises(ScheduleError) as refused:
        schedule_of(case)

    assert (refused.value.code, refused.value.field) == (case["expect"]["error"], case["expect"]["field"])
    if refused.value.field:
        assert refused.value.token is not None
        assert str(refused.value).startswith(f"{refused.value.field}: {refused.value.token!r}")


@cases("parse_ok")
def test_what_is_accepted_means_this(case: Case) -> None:
    line = parse_cron(case["cron"])

    means = {
        "minute": list(line.minute),
        "hour": list(line.hour),
        "dom": list(line.dom),
        "month": list(line.month),
        "dow": list(line.dow),
        "day_rule": line.day_rule,
        "class": "wildcard" if line.wildcard else "fixed",
    }
    assert {name: means[name] for name in case["expect"]} == case["expect"]
