"""One line of cron, evaluated over civil seconds.

Debian's dialect, with Quartz's `L`, `L-n`, `LW`, `nW` and `d#k` (see tests/cases/README.md). A line is sets: the days
that a month of some shape has, and the seconds of such a day. No zone is looked at here and no time is stepped through:
a shape of month is its length and the weekday of its first day, there are 28, and all that a month may have come up
within the calendar's cycle of 400 years, so that whether a line ever fires is decided by looking at each once.
"""

from __future__ import annotations

from duly.errors import ScheduleError
from duly.records import record
from duly.times import civil_date, civil_days

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# What keeps a civil second and all its readings within the years 1 to 9999, which is all that datetime can hold.
FIRST_DAY = civil_days(1, 1, 8)
LAST_DAY = civil_days(9999, 12, 24)

_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_DIGITS = "0123456789"
_BLANKS = " \t"

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@record
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    example: str = "*"

    def number(self, token: str) -> int | None:
        """The value of a number or name, None if it is neither; its range is not looked at."""
        if token and not token.strip(_DIGITS):
            return int(token) if len(token) < 10 else self.high + 1
        upper = token.upper() if token.isascii() else ""
        return self.names.index(upper) + (self.name == "month") if upper in self.names else None


_SECOND = _Field("second", 0, 59, example="0, */10 or 5,35")
_MINUTE = _Field("minute", 0, 59, example="0, */15 or 5,35")
_HOUR = _Field("hour", 0, 23, example="2, */6 or 8-17")
_DOM = _Field("day-of-month", 1, 31, example="1, 1,15, L or 15W")
_MONTH = _Field("month", 1, 12, _MONTH_NAMES, "1, 1-6 or JAN,JUL")
_DOW = _Field("day-of-week", 0, 7, _DAY_NAMES, "1-5, MON, 5L or MON#2")


@record
class CronLine:
    """A parsed line.

    `text` is the line as written, blanks made single, without prefix and comment; two lines are equal when their text,
    their zone and their reading of six fields are. `times` are seconds of the day, ascending. `dom` and `dow` (Sunday
    is 0) hold plain days; the rest of the two fields: `last_days` counts back from the month's last day (0 is `L`),
    `near_days` are days moved to the nearest weekday of their month (0 is `LW`), `nth_days` pairs of weekday and which
    one in the month (0 is the last). `day_rule`: `and` when one of the two fields starts with `*`, else `or`.
    `wildcard`: minute or hour start with `*`, so that the line fires in both passes of a repeated hour.
    """

    text: str
    zone: str | None
    seconds_field: bool
    second: tuple[int, ...]
    minute: tuple[int, ...]
    hour: tuple[int, ...]
    dom: tuple[int, ...]
    month: tuple[int, ...]
    dow: tuple[int, ...]
    last_days: tuple[int, ...]
    near_days: tuple[int, ...]
    nth_days: tuple[tuple[int, int], ...]
    day_rule: str
    wildcard: bool
    times: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CronLine) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"CronLine({self.text!r}, zone={self.zone!r})"

    def _identity(self) -> tuple[str, str | None, bool]:
        return self.text, self.zone, self.seconds_field

    def after(self, civil: int) -> Iterator[int]:
        """The civil seconds after this one, ascending, to the end of the year 9999."""
        for day in self.days(civil // 86_400, 1):
            base = day * 86_400
            yield from (base + time for time in self.times if base + time > civil)

    def before(self, civil: int) -> Iterator[int]:
        """The civil seconds before this one, descending, to the beginning of the year 1."""
        for day in self.days(civil // 86_400, -1):
            base = day * 86_400
            yield from (base + time for time in reversed(self.times) if base + time < civil)

    def fires_at(self, civil: int) -> bool:
        """Whether this civil second is one of the line's."""
        day, time = divmod(civil, 86_400)
        return time in self.times and next(self.days(day, 1), None) == day

    def days(self, day: int, step: int) -> Iterator[int]:
        """The line's days from this one on (included), step 1 forward or -1 back, within the years 1 to 9999."""
        day = min(max(day, FIRST_DAY), LAST_DAY)
        year, month, _ = civil_date(day)
        while 1 <= year <= 9999:
            if month in self.month:
                first = civil_days(year, month, 1)
                length = 29 if month == 2 and _is_leap(year) else _LENGTHS[month - 1]
                for day_of_month in self.days_of_month((first + 4) % 7, length)[::step]:
                    found = first + day_of_month - 1
                    if (found - day) * step >= 0 and FIRST_DAY <= found <= LAST_DAY:
                        yield found
            month += step
            if not 1 <= month <= 12:
                year, month = year + step, 1 if step > 0 else 12

    def days_of_month(self, first_weekday: int, length: int) -> list[int]:
        """The days that the line has in a month of this shape, ascending. Sunday is weekday 0."""
        if len(self.dom) == 31 and len(self.dow) == 7 and self.day_rule == "and":
            return list(range(1, length + 1))
        by_date = {day for day in self.dom if day <= length}
        by_date.update(length - back for back in self.last_days if back < length)
        by_date.update(
            _nearest_weekday(day or length, first_weekday, length) for day in self.near_days if day <= length
        )
        by_weekday = {day for day in range(1, length + 1) if (first_weekday + day - 1) % 7 in self.dow}
        by_weekday.update(_nth(weekday, which, first_weekday, length) for weekday, which in self.nth_days)
        by_weekday.discard(0)
        return sorted(by_date & by_weekday if self.day_rule == "and" else by_date | by_weekday)

    def ever_fires(self) -> bool:
        """Whether any month has a day of the line. Exact: in 400 years each month begins on each weekday, in leap years
        and others.
        """
        shapes = [(month, _LENGTHS[month - 1]) for month in self.month]
        if 2 in self.month:
            shapes.append((2, 29))
        return any(self.days_of_month(weekday, length) for _, length in shapes for weekday in range(7))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The weekday (Monday to Friday) nearest to a day, without leaving the month: Quartz's rule for `nW`."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _nth(weekday: int, which: int, first_weekday: int, length: int) -> int:
    """The day of the nth such weekday of a month, of the last for 0; 0 where the month has none."""
    first = 1 + (weekday - first_weekday) % 7
    day = first + 7 * (which - 1) if which else first + (length - first) // 7 * 7
    return day if day <= length else 0


# -- parsing ---------------------------------------------------------------------------------------------------------


def parse_cron(text: str, *, seconds_field: bool = False) -> CronLine:
    """A line of five fields, six with `seconds_field`, or an alias as `@daily`; `CRON_TZ=` and a comment are allowed.

    Raises `ScheduleError`, whose `code` is one of those in tests/cases/README.md, with the field and token at fault.
    The zone of a prefix is not looked up here.
    """
    words, zone = _words(text)
    if words and words[0].startswith("@"):
        words = _expand_alias(words)
        seconds_field = False
    expected = 6 if seconds_field else 5
    if len(words) != expected:
        raise _field_count(text, len(words), expected)
    second = _numbers(_SECOND, words[0]) if seconds_field else (0,)
    minute_word, hour_word, dom_word, month_word, dow_word = words[-5:]
    minute, hour = _numbers(_MINUTE, minute_word), _numbers(_HOUR, hour_word)
    dom, last_days, near_days = _days_of_month(dom_word)
    month = _numbers(_MONTH, month_word)
    dow, nth_days = _days_of_week(dow_word)
    line = CronLine(
        " ".join(words),
        zone,
        seconds_field,
        second,
        minute,
        hour,
        dom,
        month,
        dow,
        last_days,
        near_days,
        nth_days,
        "and" if dom_word[0] in "*?" or dow_word[0] in "*?" else "or",
        minute_word[0] == "*" or hour_word[0] == "*",
        tuple(h * 3600 + m * 60 + s for h in hour for m in minute for s in second),
    )
    if not line.ever_fires():
        raise ScheduleError(
            f"day-of-month: {dom_word!r} with month {month_word!r} and day-of-week {dow_word!r} comes in no year; "
            "name a day that exists, or L for the month's last",
            code="never_fires",
            field="day-of-month",
            token=dom_word,
        )
    return line


def _words(text: str) -> tuple[list[str], str | None]:
    """The line's words without comment, and the zone of its prefix. Only blank and tab separate."""
    words = [word for word in text.replace("\t", " ").split(" ") if word]
    for place, word in enumerate(words):
        if word.startswith("#"):
            words = words[:place]
            break
    for prefix in ("CRON_TZ=", "TZ="):
        if words and words[0].startswith(prefix):
            return words[1:], words[0][len(prefix) :]
    return words, None


def _expand_alias(words: list[str]) -> list[str]:
    alias = words[0].lower()
    if alias == "@every":
        raise ScheduleError(
            f'{" ".join(words)!r} is an interval, not a time of day; write every("{" ".join(words[1:]) or "15m"}")',
            code="use_interval",
            token=words[0],
        )
    if alias not in _ALIASES:
        raise ScheduleError(
            f"there is no alias {words[0]!r}; write one of {', '.join(_ALIASES)}", code="unknown_alias", token=words[0]
        )
    if len(words) > 1:
        raise _field_count(" ".join(words), len(words), 1)
    return _ALIASES[alias].split(" ")


def _field_count(text: str, found: int, expected: int) -> ScheduleError:
    if expected == 1:
        advice = "an alias stands alone"
    elif found == 6:
        advice = (
            "write minute hour day-of-month month day-of-week, or opt in to leading seconds with seconds_field=True"
        )
    else:
        advice = f"write {'second ' if expected == 6 else ''}minute hour day-of-month month day-of-week"
    return ScheduleError(f"{text!r} has {found} fields, not {expected}; {advice}", code="field_count", token=text)


def _days_of_month(word: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    plain, last, near = [], [], []
    for token in word.split(","):
        upper = token.upper()
        if upper == "L":
            last.append(0)
        elif upper in ("LW", "WL"):
            near.append(0)
        elif upper.startswith("L-") and upper[2:] and not upper[2:].strip(_DIGITS):
            last.append(_last_but(token))
        elif upper.endswith("W") and upper[:-1] and not upper[:-1].strip(_DIGITS):
            near.append(_in_range(_DOM, token[:-1], token))
        elif upper.startswith("L") and "/" in upper:
            raise _bad(_DOM, token, "bad_step", "a last day takes no step")
        else:
            plain.append(token)
    return _union(_DOM, plain), tuple(last), tuple(near)


def _last_but(token: str) -> int:
    back = int(token[2:]) if len(token) < 6 else 31
    if not 1 <= back <= 30:
        raise _bad(_DOM, token, "out_of_range", "count back 1 to 30 days from the month's last")
    return back


def _days_of_week(word: str) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    plain, nth = [], []
    for token in word.split(","):
        day, sharp, which = token.partition("#")
        if sharp:
            nth.append((_in_range(_DOW, day, token) % 7, _which(token, which)))
        elif token[-1:] in ("L", "l") and _DOW.number(token[:-1]) is not None:
            nth.append((_in_range(_DOW, token[:-1], token) % 7, 0))
        else:
            plain.append(token)
    return tuple(sorted({day % 7 for day in _union(_DOW, plain)})), tuple(nth)


def _which(token: str, which: str) -> int:
    if which not in ("1", "2", "3", "4", "5"):
        raise _bad(_DOW, token, "bad_nth", "write which one in the month, 1 to 5, as in MON#2")
    return int(which)


def _numbers(field: _Field, word: str) -> tuple[int, ...]:
    return _union(field, word.split(","))


def _union(field: _Field, tokens: list[str]) -> tuple[int, ...]:
    if len(tokens) == 1:
        return tuple(_values(field, tokens[0]))
    return tuple(sorted({value for token in tokens for value in _values(field, token)}))


def _values(field: _Field, token: str) -> range:
    """The values of one element of a list: `*`, a number or name, a range, each with or without a step."""
    span, slash, step_text = token.partition("/")
    if slash and (step_text.strip(_DIGITS) or not step_text.strip("0")):
        raise _bad(field, token, "bad_step", f"{step_text!r} is not a step; write a number from 1 on")
    width = field.high - field.low + 1
    step = 1 if not slash else int(step_text) if len(step_text) < 10 else width
    if slash and step >= width:
        raise _bad(field, token, "step_too_large", f"a step of {step_text} is as wide as the field, so it never steps")
    low, high = _span(field, span, token, open_ended=bool(slash))
    return range(low, high + 1, step)


def _span(field: _Field, span: str, token: str, *, open_ended: bool) -> tuple[int, int]:
    if span == "*" or (span == "?" and field in (_DOM, _DOW) and not open_ended):
        return field.low, field.high
    first, dash, last = span.partition("-")
    low = _in_range(field, first, token)
    if not dash:
        return low, field.high if open_ended else low
    high = _in_range(field, last, token)
    if field is _DOW and last.upper() == "SUN" and low != 0:
        high = 7  # FRI-SUN runs to Sunday; a number must be 7 itself
    if low > high:
        raise _bad(
            field,
            token,
            "range_reversed",
            f"{span} runs backwards; write two ranges, {_two_ranges(field, first, last)}",
        )
    return low, high


def _two_ranges(field: _Field, first: str, last: str) -> str:
    return f"{first}-{6 if field is _DOW else field.high},{field.low}-{last}"


def _in_range(field: _Field, text: str, token: str) -> int:
    value = field.number(text)
    if value is None:
        raise _bad(field, token, "bad_value", f"{text!r} is not a value; write for example {field.example}")
    if not field.low <= value <= field.high:
        raise _bad(field, token, "out_of_range", f"{text} is not from {field.low} to {field.high}")
    return value


def _bad(field: _Field, token: str, code: str, why: str) -> ScheduleError:
    return ScheduleError(f"{field.name}: {token!r}: {why}", code=code, field=field.name, token=token)
