"""Time cases: one JSON object a line, what a schedule must yield (tests/cases/README.md says how to read them).

    python -m duly.testing.cases FILE.jsonl

runs every case of the files, says each failure in a line, and ends with `N passed, N failed`. Zones are read from the
installed package of the database, never the host's copy; a case about drift between two releases installs both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import Any, TypeAlias

from duly.errors import DulyError, ScheduleError
from duly.records import record
from duly.schedule import spec
from duly.schedule.cron import parse_cron
from duly.schedule.keys import nominal_text, parse_nominal
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule
from duly.testing.releases import ReleaseMissing, reading, release
from duly.times import SECOND, Zone, instant_text, parse_instant

Case: TypeAlias = dict[str, Any]
Found: TypeAlias = tuple[object, object]  # what was expected, and what was got
Release: TypeAlias = Callable[[str], Path]

CRON_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")


@record
class Outcome:
    """How a case came out. `weaker` says what could not be looked at, where something could not."""

    id: str
    expected: object
    got: object
    weaker: str = ""

    @property
    def passed(self) -> bool:
        return self.expected == self.got

    def __str__(self) -> str:
        return f"FAILED {self.id}: expected {_text(self.expected)}, got {_text(self.got)}"


def read(path: str | Path) -> list[Case]:
    """The cases of a file. A line that holds none becomes a case of the kind `unreadable`, which fails."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [_case(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _case(line: str, place: str) -> Case:
    try:
        case = json.loads(line)
    except ValueError as e:
        return {"id": place, "kind": "unreadable", "why": str(e)}
    if not isinstance(case, dict) or "kind" not in case or "expect" not in case:
        return {"id": place, "kind": "unreadable", "why": "no object with kind and expect"}
    return {"id": place, **case}


def check(case: Case, releases: Release = release) -> Outcome:
    """Run one case."""
    try:
        if is_drift(case):
            return _check_drift(case, releases)
        expected, got = _CHECKS[case["kind"]](case)
    except DulyError as e:
        return Outcome(case["id"], case["expect"], f"{type(e).__name__}: {e}")
    except KeyError as e:
        why = case.get("why", "")
        return Outcome(case["id"], "a case of the shared format", f"{case['kind']}, not understood at {e}: {why}")
    return Outcome(case["id"], expected, got)


def is_drift(case: Case) -> bool:
    """Whether a case compares two releases of the database."""
    return isinstance(case["expect"], dict) and "drift" in case["expect"] if "expect" in case else False


def schedule_of(case: Case, *, with_policy: bool = True) -> Schedule:
    """The schedule of a case; without its policy, as the defaults would have it. Raises `ScheduleError`."""
    policy = case.get("policy", {}) if with_policy else {}
    if "every" in case:
        return spec.every(case["every"], anchor=parse_instant(case["anchor"]) if "anchor" in case else 0)
    if "cron" in case:
        lines = case["cron"] if isinstance(case["cron"], list) else [case["cron"]]
        return spec.cron(*lines, zone=case.get("zone"), seconds_field=case.get("seconds_field", False), **policy)
    offset = {"offset": case["offset"]} if "offset" in case else {}
    makes = {
        "hourly": spec.hourly,
        "daily": spec.daily,
        "weekly": spec.weekly,
        "monthly": spec.monthly,
        "quarterly": spec.quarterly,
        "yearly": spec.yearly,
    }
    make: Callable[..., Schedule] = makes[case["period"]]
    return make(case["zone"], **offset, **policy)


# -- kinds ---------------------------------------------------------------------------------------------------------------


def occurrences(case: Case, schedule: Schedule) -> list[Occurrence]:
    """The occurrences that a case of instants is about. Where it expects none, the first that comes nevertheless."""
    return list(islice(schedule.after(parse_instant(case["from"])), len(case["expect"]) or 1))


def _check_instants(case: Case) -> Found:
    schedule = schedule_of(case)
    found = occurrences(case, schedule)
    expected: Case = {"instants": [_instant(text) for text in case["expect"]]}
    got: Case = {"instants": [instant_text(o.due) for o in found]}
    if "keys" in case:
        expected["keys"] = [_middle(schedule, parse_nominal(key, schedule.grain)[1]) for key in case["keys"]]
        got["keys"] = [_middle(schedule, o.nominal) for o in found]
    if "policy_is_default" in case:
        expected["policy_is_default"] = case["policy_is_default"]
        got["policy_is_default"] = schedule_of(case, with_policy=False) == schedule
    return expected, got


def _check_windows(case: Case) -> Found:
    schedule = schedule_of(case)
    found = period_windows(case, schedule) if "period" in case else _fire_windows(case, schedule)
    expected = [
        {**window, "start": _instant(window["start"]), "end": _instant(window["end"])} for window in case["expect"]
    ]
    names = {name for window in expected for name in window}
    return expected, [{name: value for name, value in window.items() if name in names} for window in found]


def period_windows(case: Case, schedule: Schedule) -> list[Case]:
    """The windows from the first period that begins on the case's date or after it."""
    grain_of_date, first, _ = parse_nominal(case["from"])
    assert grain_of_date == "day"
    coming = schedule.after((first >> 1) * SECOND - 3 * 86_400 * SECOND)
    from_date = (o for o in coming if o.nominal >= first)
    chosen = (
        takewhile(lambda o: o.nominal < first + 2 * 86_400, from_date)
        if case["count"] == "one local day"
        else islice(from_date, case["count"])
    )
    zone = Zone(schedule.zone)
    return [
        _window(zone.local_text(o.start) if schedule.kind == "hourly" else _middle(schedule, o.nominal), o.start, o.end)
        for o in chosen
    ]


def _fire_windows(case: Case, schedule: Schedule) -> list[Case]:
    """The intervals between fires. They are named after the fire at their beginning; a run is named after the other."""
    fires = list(islice(schedule.after(parse_instant(case["from"])), case.get("count", len(case["expect"])) + 1))
    return [_window(_middle(schedule, one.nominal), other.start, other.end) for one, other in pairwise(fires)]


def _window(label: str, start: int, end: int) -> Case:
    seconds = (end - start) // SECOND
    return {"label": label, "start": instant_text(start), "end": instant_text(end), "seconds": seconds}


def _check_refusal(case: Case) -> Found:
    wanted = case["expect"]
    try:
        schedule = schedule_of(case)
    except ScheduleError as e:
        # The format names the fields of a cron line, and no other.
        named = e.field in CRON_FIELDS or wanted.get("field") not in (None, *CRON_FIELDS)
        got = {"error": e.code, "field": e.field if named else None}
        return wanted, {name: got.get(name) for name in wanted}
    return wanted, f"accepted: {schedule.words()}"


def _check_acceptance(case: Case) -> Found:
    schedule = schedule_of(case)
    wanted = case["expect"] if isinstance(case["expect"], dict) else {}
    if "cron" not in case or isinstance(case["cron"], list):
        return {}, {name: schedule.words() for name in wanted}
    line = parse_cron(case["cron"], seconds_field=case.get("seconds_field", False))
    means = {
        "second": list(line.second),
        "minute": list(line.minute),
        "hour": list(line.hour),
        "dom": list(line.dom),
        "month": list(line.month),
        "dow": list(line.dow),
        "day_rule": line.day_rule,
        "class": "wildcard" if line.wildcard else "fixed",
    }
    return wanted, {name: means.get(name, "not known here") for name in wanted}


_CHECKS: dict[str, Callable[[Case], Found]] = {
    "next": _check_instants,
    "sequence": _check_instants,
    "window": _check_windows,
    "parse_error": _check_refusal,
    "parse_ok": _check_acceptance,
}


# -- drift ---------------------------------------------------------------------------------------------------------------


def _check_drift(case: Case, releases: Release) -> Outcome:
    wanted = case["expect"]
    expected = {which: _reading(wanted[which]) for which in ("old", "new")}
    try:
        places = {which: releases(wanted[which]["tzdata"]) for which in ("old", "new")}
    except ReleaseMissing as e:
        return _check_against_installed(case, list(expected.values()), str(e))
    got = {}
    for which, place in places.items():
        with reading(place):
            got[which] = _bounds(case)
    drifts = got["old"] != got["new"]
    return Outcome(case["id"], {**expected, "drift": wanted["drift"]}, {**got, "drift": drifts})


def _check_against_installed(case: Case, readings: list[Case | None], why: str) -> Outcome:
    """The releases are out of reach: the one that is installed must agree with one of the two."""
    got = _bounds(case)
    expected = got if got in readings else readings
    return Outcome(case["id"], expected, got, f"{case['id']}: looked at with the installed release only: {why}")


def _bounds(case: Case) -> Case | None:
    """The window that the key names under the release being read; None where it is no occurrence."""
    schedule = schedule_of(case)
    found = schedule.find(parse_nominal(case["expect"]["key"], schedule.grain)[1])
    return None if found is None else {"start": instant_text(found.start), "end": instant_text(found.end)}


def _reading(bounds: Case | None) -> Case | None:
    if bounds is None or bounds.get("start") is None:
        return None
    return {"start": _instant(bounds["start"]), "end": _instant(bounds["end"])}


# -- text ----------------------------------------------------------------------------------------------------------------


def _instant(text: str) -> str:
    """An instant in the one spelling that is compared."""
    return instant_text(parse_instant(text))


def _middle(schedule: Schedule, nominal: int) -> str:
    return nominal_text(schedule.grain, nominal, schedule.zone)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def main(words: list[str]) -> int:
    """Run files of cases; 1 if any failed, 2 if there is nothing to run."""
    files = [word for word in words if not word.startswith("-")]
    if not files or len(files) < len(words):
        print("usage: python -m duly.testing.cases FILE.jsonl …", file=sys.stderr)
        return 2
    passed = failed = 0
    with reading(None):
        for file in files:
            try:
                cases = read(file)
            except (OSError, UnicodeDecodeError) as e:
                print(f"{file}: {e}", file=sys.stderr)
                return 2
            for case in cases:
                outcome = check(case)
                passed, failed = passed + outcome.passed, failed + (not outcome.passed)
                if outcome.weaker:
                    print(outcome.weaker, file=sys.stderr)
                if not outcome.passed:
                    print(outcome)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
