"""Lints: what a schedule says that its author may not have meant. Each has a code, a sentence, and what to write instead.

Nothing here is an error. The clocks are asked for the two years after an instant: a zone's usual nights, not its history.
"""

from __future__ import annotations

from duly.records import record
from duly.schedule.cron import CronLine
from duly.schedule.facts import changes
from duly.times import SECOND, Zone, civil_text, clock_seconds, duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.resolver import Rule
    from duly.schedule.spec import Schedule

_YEARS = 2 * 366 * 86_400

_PERIODS = {
    "0 * * * *": "--period hourly",
    "0 0 * * *": "--period daily",
    "0 0 * * 0": "--period weekly --offset sun",
    "0 0 * * 1": "--period weekly",
    "0 0 1 * *": "--period monthly",
    "0 0 1 1,4,7,10 *": "--period quarterly",
    "0 0 1 1 *": "--period yearly",
}


@record
class Lint:
    """`line` is the cron line at fault, empty for a period. `says` is a sentence, `instead` what to write.

    `night` is the date of the change of clocks that it is about, empty where it is about none.
    """

    code: str
    line: str
    says: str
    instead: str
    night: str = ""


@record
class _Night:
    """A change of the clocks as a civil range that is skipped or repeated, in civil seconds."""

    begin: int
    end: int
    repeated: bool

    @property
    def date(self) -> str:
        return civil_text(self.begin)[:10]

    @property
    def words(self) -> str:
        return f"{_clock(self.begin)} to {_clock(self.end)}"


def lints_of(schedule: Schedule, instant: int) -> list[Lint]:
    """The lints of a schedule, as its zone will be from an instant on."""
    found = [lint for rule in schedule.rules if schedule.kind == "cron" for lint in _of_line(rule.line)]
    if schedule.zone != "UTC" and schedule.kind not in ("every", "hourly"):
        nights = _nights(Zone(schedule.zone), instant // SECOND)
        found += _of_nights(schedule, nights)
    return found


# -- the line itself -----------------------------------------------------------------------------------------------------


def _of_line(line: CronLine) -> Iterator[Lint]:
    second, minute, hour, dom, month, dow = _words(line)
    if dom not in ("*", "?") and dow not in ("*", "?"):
        yield _both_days(line, dom, dow)
    for name, word, size, unit in (
        ("second", second, 60, "s"),
        ("minute", minute, 60, "m"),
        ("hour", hour, 24, "h"),
        ("day-of-month", dom, 31, "d"),
        ("month", month, 12, ""),
    ):
        step = _step(word)
        if step > 1 and (size % step or name == "day-of-month"):
            yield _uneven(line, name, word, step, size, unit)
    period = _as_period(line)
    if period:
        yield Lint(
            "cron_for_period",
            line.text,
            "if a run is for the time that has just ended, a period says so: its key is the period, its window all of it",
            period,
        )


def _words(line: CronLine) -> list[str]:
    words = line.text.split(" ")
    return words if line.seconds_field else ["0", *words]


def _both_days(line: CronLine, dom: str, dow: str) -> Lint:
    if line.day_rule == "or":
        says = f"both day fields are set, and a day that fits either fires: day-of-month {dom} or day-of-week {dow}"
        instead = (
            "leave one of the two as *, or write two lines so that it can be seen; MON#1 is the first Monday of a month"
        )
    else:
        says = f"both day fields are set and one starts with *, so only a day that fits both fires: {dom} and {dow}"
        instead = "leave one of the two as *, or write the days out if either was meant"
    return Lint("both_day_fields", line.text, says, instead)


def _step(word: str) -> int:
    """The step of a field that is one step over all of it; 0 for another."""
    span, slash, step = word.partition("/")
    return int(step) if slash and span == "*" and step.isdigit() else 0


def _uneven(line: CronLine, name: str, word: str, step: int, size: int, unit: str) -> Lint:
    if name == "day-of-month":
        says = f"{name} {word} starts again on each first of the month, one or a few days after the last"
    else:
        says = f"{name} {word} does not divide {size}: the last step before it starts again is {size % step} long, not {step}"
    even = max(n for n in range(1, step) if size % n == 0) if step > 1 else 1
    if name == "month":
        instead = f"*/{even}, or the months written out"
    elif unit == "d":
        instead = f"--every {step}{unit}, which counts on through the months, or the days written out"
    else:
        instead = f"--every {step}{unit}, which counts on, or */{even}"
    return Lint("uneven_steps", line.text, says, instead)


def _as_period(line: CronLine) -> str:
    if line.seconds_field:
        return ""
    plain = " ".join(_canonical(line))
    if plain in _PERIODS:
        return _PERIODS[plain]
    clock = _clock(line.times[0])
    return f"--period daily --at {clock}" if len(line.times) == 1 and plain.endswith(" * * *") else ""


def _canonical(line: CronLine) -> Iterator[str]:
    """The five fields with names, ranges and steps written out."""
    plain = not (line.last_days or line.near_days or line.nth_days)
    for values, size in ((line.minute, 60), (line.hour, 24), (line.dom, 31), (line.month, 12), (line.dow, 7)):
        yield "*" if len(values) == size else ",".join(map(str, values)) if plain else "?"


# -- nights on which the clocks change -----------------------------------------------------------------------------------


def _nights(zone: Zone, second: int) -> list[_Night]:
    found = []
    before = zone.offset_at(second)
    for when, offset in changes(zone, second, second + _YEARS):
        found.append(_Night(when + min(before, offset), when + max(before, offset), offset < before))
        before = offset
    return found


def _of_nights(schedule: Schedule, nights: list[_Night]) -> Iterator[Lint]:
    for rule in schedule.rules:
        said: set[str] = set()
        for night in nights:
            for lint in _of_night(schedule, rule, night):
                if lint.code not in said:
                    said.add(lint.code)
                    yield lint


def _of_night(schedule: Schedule, rule: Rule, night: _Night) -> Iterator[Lint]:
    line = rule.line
    if len(line.hour) == 24:
        if night.repeated and not line.wildcard and rule.fold != "both" and schedule.kind == "cron":
            yield _hidden_hour(line, rule, night)
        return
    # where a period begins is its own affair, unless it was moved there
    times = list(_civil_seconds(line, night)) if schedule.kind == "cron" or ":" in (schedule.offset or "") else []
    hours = {civil // 3600 % 24 for civil in (*range(night.begin, night.end, 3600), night.end)}
    if times and night.repeated and not line.wildcard and rule.fold != "both" and hours <= set(line.hour):
        yield _hidden_hour(line, rule, night)
    elif times:
        yield _lint_of_time(schedule, rule, night, times[0])
    if schedule.at is not None:
        clock = clock_seconds(schedule.at)
        for day in range(night.begin // 86_400, (night.end - 1) // 86_400 + 1):
            if night.begin <= day * 86_400 + clock < night.end:
                yield _lint_of_time(schedule, rule, night, day * 86_400 + clock)


def _civil_seconds(line: CronLine, night: _Night) -> Iterator[int]:
    """The line's civil seconds within the range of a night."""
    for day in range(night.begin // 86_400, (night.end - 1) // 86_400 + 1):
        if next(line.days(day, 1), None) == day:
            yield from (day * 86_400 + time for time in line.times if night.begin <= day * 86_400 + time < night.end)


def _hidden_hour(line: CronLine, rule: Rule, night: _Night) -> Lint:
    length = duration_text((night.end - night.begin) * SECOND)
    words = line.text.split(" ")
    return Lint(
        "hidden_hour",
        line.text,
        f"its hours are a list, so on {night.date}, when {night.words} comes twice, only the {rule.fold} pass fires: one "
        f"window is {length} longer",
        f"{' '.join([*words[:-4], '*', *words[-3:]])}, or --fold both" if len(line.hour) == 24 else "--fold both",
        night.date,
    )


def _lint_of_time(schedule: Schedule, rule: Rule, night: _Night, civil: int) -> Lint:
    line = rule.line.text if schedule.kind == "cron" else ""
    clock = _clock(civil)
    away = f"a time outside of {_clock(night.begin)}–{_clock(night.end)}, or --zone UTC"
    if night.repeated:
        which = {"first": "the first counts", "second": "the second counts", "both": "both count"}[rule.fold]
        return Lint("repeated_time", line, f"{clock} comes twice on {night.date}; {which}", away, night.date)
    counts = {
        "skip": "it does not count that day",
        "shift_forward": f"it counts at {_clock(civil + night.end - night.begin)}",
        "shift_to_transition": f"it counts at {_clock(night.end)}",
    }[rule.gap]
    if night.end % 86_400 == 0 and rule.gap != "skip":
        counts += " of the next date, and keeps its name"
    code = "midnight_gap" if 0 in (night.begin % 86_400, night.end % 86_400) else "skipped_time"
    says = f"{clock} does not exist on {night.date}, when clocks go from {night.words}; {counts}"
    return Lint(code, line, says, away, night.date)


def _clock(civil: int) -> str:
    return civil_text(civil % 86_400)[11:16]
