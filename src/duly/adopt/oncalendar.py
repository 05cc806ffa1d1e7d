"""OnCalendar= of systemd, as a line of cron where one says exactly the same.

What systemd does with a change of the clocks is neither of cron's two ways: a time that they skip does not come, one that they
repeat comes the first time. So `gap = "skip"` and `fold = "first"` go with every line, but in UTC.
"""

from __future__ import annotations

import re

from duly.adopt.found import Left, When
from duly.errors import ScheduleError
from duly.schedule.cron import parse_cron
from duly.times import Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "semi-annually": "*-01,07-01 00:00:00",
    "biannually": "*-01,07-01 00:00:00",
    "bi-annually": "*-01,07-01 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "anually": "*-01-01 00:00:00",
}
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORT = tuple(day[:3] for day in _WEEKDAYS)
# A block of days in which each weekday comes at most once, and what cron calls that one.
_BLOCKS = {
    frozenset(range(1, 8)): "#1",
    frozenset(range(8, 15)): "#2",
    frozenset(range(15, 22)): "#3",
    frozenset(range(22, 29)): "#4",
    frozenset(range(29, 32)): "#5",
}
_LAST_WEEK = frozenset(range(1, 8))


def when_of(specs: Sequence[str], zone: str) -> When:
    """The schedule of a timer with these OnCalendar= lines; `zone` is where they have none. Raises `Left`."""
    read = [_read(spec, zone) for spec in specs]
    zones = {found for _, found in read}
    if len(zones) > 1:
        raise Left("no_equal", f"its lines are in several zones ({', '.join(sorted(zones))}), and a job has one")
    (found,) = zones
    lines = tuple(dict.fromkeys(line for line, _ in read))
    return When(lines, found) if found == "UTC" else When(lines, found, "skip", "first")


def has_zone(spec: str) -> bool:
    """Whether a specification says in which zone it is meant."""
    words = spec.split()
    return len(words) > 1 and _is_zone(words[-1])


def _read(spec: str, zone: str) -> tuple[str, str]:
    """The line of cron, and its zone."""
    words = spec.split()
    if has_zone(spec):
        zone = words.pop()
    if len(words) == 1 and words[0].lower() in _WORDS:
        words = _WORDS[words[0].lower()].split()
    if not words or words[0].startswith("@"):
        raise Left("no_equal", f"{spec} is one instant, or none: no schedule")
    weekdays = frozenset(range(7))
    if words[0][0].isalpha():
        weekdays = _weekdays(words.pop(0), spec)
    date, clock = "*-*-*", "00:00:00"
    for word in words:
        if ":" in word:
            clock = word
        else:
            date = word
    if len(words) > 2 or (len(words) == 2 and ":" in words[0]):
        raise Left("no_equal", f"{spec} cannot be read")
    minute, hour = _clock(clock, spec)
    month, day, weekday = _date(date, weekdays, spec)
    line = f"{minute} {hour} {day} {month} {weekday}"
    try:
        parse_cron(line)
    except ScheduleError as e:
        raise Left("no_equal", f"{spec}: {e}") from e
    return line, zone


def _is_zone(word: str) -> bool:
    if word[:1].isdigit() or word.startswith("*") or ":" in word or word.lower() in (*_WEEKDAYS, *_SHORT):
        return False
    try:
        Zone(word)
    except ScheduleError:
        return False
    return True


def _weekdays(word: str, spec: str) -> frozenset[int]:
    found: set[int] = set()
    for part in word.rstrip(",").lower().split(","):
        first, _, last = part.replace("..", "-").partition("-")
        begin, end = _weekday(first, spec), _weekday(last or first, spec)
        days = [(day - 1) % 7 for day in (begin, end)]  # systemd's week begins on Monday
        if days[0] > days[1]:
            raise Left("no_equal", f"{spec}: {part} runs backwards; systemd refuses it")
        found.update((day + 1) % 7 for day in range(days[0], days[1] + 1))
    return frozenset(found)


def _weekday(name: str, spec: str) -> int:
    for names in (_WEEKDAYS, _SHORT):
        if name in names:
            return names.index(name)
    raise Left("no_equal", f"{spec}: {name!r} is no weekday")


def _clock(text: str, spec: str) -> tuple[str, str]:
    parts = text.split(":")
    if len(parts) == 2:
        parts.append("00")
    if len(parts) != 3:
        raise Left("no_equal", f"{spec}: {text} is no time of day")
    hours, minutes, seconds = parts
    if re.fullmatch(r"0+(?:\.0*)?", seconds) is None:
        raise Left("no_equal", f"{spec}: cron counts minutes, and this says seconds")
    return _written(_set(minutes, 0, 59, spec), 0, 59), _written(_set(hours, 0, 23, spec), 0, 23)


def _date(text: str, weekdays: frozenset[int], spec: str) -> tuple[str, str, str]:
    """Month, day of the month and day of the week, as cron has them."""
    match = re.fullmatch(r"(?:(?P<year>[^-~]+)-)?(?P<month>[^-~]+)(?P<from_end>[-~])(?P<day>[^-~]+)", text)
    if match is None:
        raise Left("no_equal", f"{spec}: {text} is no date")
    if match["year"] not in (None, "*"):
        raise Left(
            "no_equal",
            f"{spec}: cron knows no years; a job that ends, or comes every other year, is not one line of it",
        )
    month = _written(_set(match["month"], 1, 12, spec), 1, 12)
    if match["from_end"] == "~":
        return month, *_from_end(match["day"], weekdays, spec)
    days = _set(match["day"], 1, 31, spec)
    if len(weekdays) == 7:
        return month, _written(days, 1, 31), "*"
    names = _written(weekdays, 0, 6)
    if len(days) == 31:
        return month, "*", names
    if days in _BLOCKS:
        return month, "*", ",".join(f"{_SHORT[day].upper()}{_BLOCKS[days]}" for day in sorted(weekdays))
    step = _step_from(days, 1, 31)
    if step:
        return month, f"*/{step}", names  # a field that begins with * has both to fit
    raise Left("no_equal", f"{spec}: days that are both of these dates and of these weekdays are no line of cron")


def _from_end(text: str, weekdays: frozenset[int], spec: str) -> tuple[str, str]:
    """Day of the month and of the week, for days that are counted from the month's end."""
    if match := re.fullmatch(r"0*(\d+)/0*1", text):  # from that day to the end
        back = frozenset(range(1, int(match[1]) + 1))
    elif "/" in text or "*" in text:
        raise Left("no_equal", f"{spec}: steps from a month's end are no line of cron")
    else:
        back = _set(text, 1, 31, spec)
    if len(weekdays) == 7:
        return ",".join("L" if day == 1 else f"L-{day - 1}" for day in sorted(back)), "*"
    if back == _LAST_WEEK:
        return "*", ",".join(f"{_SHORT[day].upper()}L" for day in sorted(weekdays))
    raise Left("no_equal", f"{spec}: days that are both of these dates and of these weekdays are no line of cron")


def _set(text: str, low: int, high: int, spec: str) -> frozenset[int]:
    if text == "*":
        return frozenset(range(low, high + 1))
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?(?:/(\d+))?", part, re.ASCII)
        if match is None:
            raise Left("no_equal", f"{spec}: {part} cannot be read")
        begin, step = int(match[1]), int(match[3] or 1)
        end = int(match[2]) if match[2] else high if match[3] else begin
        if not low <= begin <= end <= high or not step:
            raise Left("no_equal", f"{spec}: {part} is not between {low} and {high}")
        found.update(range(begin, end + 1, step))
    return frozenset(found)


def _written(values: frozenset[int], low: int, high: int) -> str:
    """The values as a field of cron: all, each so many, ranges, or a list. A day field is never a step: it begins with `*`."""
    if len(values) == high - low + 1:
        return "*"
    step = _step_from(values, low, high)
    if step and low == 0 and high > 6:
        return f"*/{step}"
    parts: list[list[int]] = []
    for value in sorted(values):
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ",".join(map(str, part)) for part in parts)


def _step_from(values: frozenset[int], low: int, high: int) -> int:
    """The step with which the values go from the lowest to the highest possible; 0 where they do not."""
    found = sorted(values)
    if len(found) < 3 or found[0] != low:
        return 0
    step = found[1] - found[0]
    return step if found == list(range(low, high + 1, step)) else 0
