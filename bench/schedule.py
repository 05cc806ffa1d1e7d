"""What schedules cost: occurrences a second over ten years in Berlin, beside cronsim and croniter where they are installed.

All are taken in turn, so that a machine that grows slower or faster meanwhile slows or speeds them alike; the best of the
turns counts. The two others are given a slice of the range, as they step at one speed. Then single questions: the next
occurrence, a range counted, a schedule that hardly ever fires.

    python -m bench.schedule [--turns N]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from zoneinfo import ZoneInfo

from bench.figure import Figure, arguments, positive, write
from duly.schedule import spec
from duly.schedule.spec import Schedule
from duly.times import as_datetime, parse_instant

ZONE = "Europe/Berlin"
SINCE, UNTIL = parse_instant("2020-01-01T00:00:00Z"), parse_instant("2030-01-01T00:00:00Z")
LINES = ("*/5 * * * *", "30 2 * * *", "0 0 1 * *")
SLICE = {
    "*/5 * * * *": "2020-03-01T00:00:00Z",
    "30 2 * * *": "2022-01-01T00:00:00Z",
    "0 0 1 * *": "2030-01-01T00:00:00Z",
}


def measured(turns: int) -> list[Figure]:
    """Occurrences a second, then single questions."""
    ways = {"instants": instants, "occurrences": occurrences, **others()}
    print(f"occurrences a second in {ZONE}, thousands; in brackets how many times cronsim's")
    print(f"{'':16}" + "".join(f"{way:>24}" for way in ways))
    figures = []
    for line in LINES:
        best = dict.fromkeys(ways, 0.0)
        for _ in range(turns):
            for name, way in ways.items():
                best[name] = max(best[name], rate(partial(way, line)))
        base = best.get("cronsim", 0.0)
        cells = [f"{best[way] / 1000:,.0f}" + (f" ({best[way] / base:,.1f})" if base else "") for way in ways]
        print(f"{line:16}" + "".join(f"{cell:>24}" for cell in cells))
        for name, found in best.items():
            ratio = (found / base, "cronsim") if base and name != "cronsim" else (None, None)
            figures.append(Figure("schedule", f"`{line}`", name, found, "occurrences/s", *ratio))
    print("\nmicroseconds a question")
    for name, question in questions().items():
        microseconds = min(took(question) for _ in range(turns))
        print(f"{name:52}{microseconds:>12,.1f}")
        figures.append(Figure("schedule", "one question", name, microseconds, "us"))
    return figures


def instants(line: str) -> int:
    """Every due instant of ten years."""
    return sum(1 for _ in spec.cron(line, zone=ZONE).instants(SINCE, UNTIL))


def occurrences(line: str) -> int:
    """Every occurrence of ten years: nominal, window, due, resolution."""
    found = 0
    for occurrence in spec.cron(line, zone=ZONE).after(SINCE):
        if occurrence.due > UNTIL:
            return found
        found += 1
    return found


def others() -> dict[str, Callable[[str], int]]:
    """cronsim and croniter, as their documentation has it: aware datetimes in, aware datetimes out."""
    found: dict[str, Callable[[str], int]] = {}
    first = as_datetime(SINCE).astimezone(ZoneInfo(ZONE))
    try:
        cronsim = import_module("cronsim").CronSim
        found["cronsim"] = lambda line: counted(iter(cronsim(line, first)).__next__, line)
    except ImportError:
        print("cronsim is not installed: pip install cronsim")
    try:
        croniter = import_module("croniter").croniter
        found["croniter"] = lambda line: counted(partial(croniter(line, first).get_next, datetime), line)
    except ImportError:
        print("croniter is not installed: pip install croniter")
    return found


def counted(following: Callable[[], datetime], line: str) -> int:
    """How many come until the end of the line's slice."""
    end = datetime.fromisoformat(SLICE[line]).astimezone(UTC)
    found = 0
    while following().astimezone(UTC) <= end:
        found += 1
    return found


def rate(work: Callable[[], int]) -> float:
    """How many a second."""
    began = time.perf_counter()
    found = work()
    return found / (time.perf_counter() - began)


def took(question: Callable[[], object]) -> float:
    """Microseconds, the mean of enough calls to be seen."""
    began = time.perf_counter()
    calls = 0
    while time.perf_counter() - began < 0.05:
        question()
        calls += 1
    return (time.perf_counter() - began) / calls * 1e6


def questions() -> dict[str, Callable[[], object]]:
    """What is asked of schedules one at a time."""
    day, cron, often = spec.daily(ZONE), spec.cron("30 2 * * *", zone=ZONE), spec.cron("*/5 * * * *", zone=ZONE)
    two = spec.cron("0 8 * * MON-THU", "30 17 * * FRI", zone=ZONE)
    leap = spec.cron("0 0 * 2 MON#5", zone=ZONE)
    night = parse_instant("2026-10-25T00:45:00Z")
    year = parse_instant("2021-01-01T00:00:00Z")

    def first(schedule: Schedule, instant: int) -> Callable[[], object]:
        return lambda: next(schedule.after(instant))

    return {
        "the next day": first(day, SINCE),
        "the next fire": first(cron, SINCE),
        "the next fire of two lines": first(two, SINCE),
        "the next fire in the night of a change": first(often, night),
        "the fire before": lambda: next(cron.before(SINCE)),
        "the next 29 February on a Monday": first(leap, SINCE),
        "a year of five-minute windows, counted": lambda: often.count(SINCE, year),
        "ten years of days, counted": lambda: day.count(SINCE, UNTIL),
        "29 Februaries on Mondays of 400 years, counted": lambda: leap.count(SINCE, SINCE + 146_097 * 86_400_000_000),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=positive, help="how many, of which the best counts (5; quick: 1)")
    args = parser.parse_args()
    write(args.json, measured(args.turns or (1 if args.quick else 5)))


if __name__ == "__main__":
    main()
