"""The five fields as Vixie's cron reads them (Debian's cron, cronie), and the line of duly's dialect that means the same.

The two dialects are near, and not the same: there a range that runs backwards is empty, `FRI-SUN` too, since Sunday is 0; a
step may be wider than its field; `L`, `W`, `#` and `?` are refused, and `5/2` is. So a line is read here by cron's rules, into
sets, and what duly makes of it is compared with them: the days of every shape of month, the times of day, and whether the line
is a wildcard or a fixed one, which decides what a change of the clocks does to it.
"""

from __future__ import annotations

from duly.adopt.found import Left
from duly.errors import ScheduleError
from duly.records import record, replace
from duly.schedule.cron import parse_cron

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.schedule.cron import CronLine

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day-of-month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day-of-week", 0, 7, _DAYS),
)
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FIXED, WILDCARD = ("shift_to_transition", "first"), ("skip", "both")


@record
class Fields:
    """What cron keeps of a line: the sets, and which fields begin with `*`."""

    minute: tuple[int, ...]
    hour: tuple[int, ...]
    dom: tuple[int, ...]
    month: tuple[int, ...]
    dow: tuple[int, ...]
    stars: tuple[bool, ...]  # of each field

    @property
    def wildcard(self) -> bool:
        """Whether it fires in both passes of an hour that the clocks repeat, and not at all in one that they skip."""
        return self.stars[0] or self.stars[1]

    @property
    def times(self) -> tuple[int, ...]:
        """The seconds of the day at which it fires."""
        return tuple(hour * 3600 + minute * 60 for hour in self.hour for minute in self.minute)

    def days(self, month: int, first_weekday: int, length: int) -> list[int]:
        """The days of a month of this shape on which it fires; Sunday is weekday 0."""
        if month not in self.month:
            return []
        found = []
        for day in range(1, length + 1):
            by_date, by_weekday = day in self.dom, (first_weekday + day - 1) % 7 in self.dow
            both = by_date and by_weekday
            if both if self.stars[2] or self.stars[4] else by_date or by_weekday:
                found.append(day)
        return found


def read_fields(words: Sequence[str]) -> Fields:
    """The fields of a line, or an alias but `@reboot`. Raises `Left`."""
    if words[0].startswith("@"):
        if words[0] not in ALIASES:
            raise Left("not_accepted", f"cron knows no {words[0]}")
        words = ALIASES[words[0]].split()
    sets = [_values(*field, word) for field, word in zip(_FIELDS, words, strict=True)]
    dow = tuple(sorted({day % 7 for day in sets[4]}))
    return Fields(sets[0], sets[1], sets[2], sets[3], dow, tuple(word.startswith("*") for word in words))


def _values(name: str, low: int, high: int, names: tuple[str, ...], word: str) -> tuple[int, ...]:
    found: set[int] = set()
    for token in word.split(","):
        span, slash, step = token.partition("/")
        first, dash, last = span.partition("-")
        if "~" in token:
            raise Left(
                "random", f"{name} {token}: cronie draws it anew each time it reads the file; duly cannot know it"
            )
        if slash and (span != "*" and not dash):
            raise Left("not_accepted", f"cron refuses {name} {token}: a step follows * or a range")
        if slash and (not step.isdecimal() or not step.isascii() or int(step) == 0):
            raise Left("not_accepted", f"cron refuses {name} {token}: {step!r} is no step")
        if span == "*":
            begin, end = low, high
        else:
            begin = _number(name, low, high, names, first, token)
            end = _number(name, low, high, names, last, token) if dash else begin
        if begin > end:
            raise Left(
                "backwards", f"{name} {token} runs backwards: cronie refuses it, and for Debian's cron it is empty"
            )
        found.update(range(begin, end + 1, int(step) if slash else 1))
    return tuple(sorted(found))


def _number(name: str, low: int, high: int, names: tuple[str, ...], text: str, token: str) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= high:
        raise Left("not_accepted", f"{name} {token} is nothing that crontab(5) describes")
    return int(text)


# -- in duly's words -----------------------------------------------------------------------------------------------------


def in_our_words(words: Sequence[str]) -> tuple[str, str, str]:
    """The line, `gap` and `fold` that mean in duly what the words mean to cron. Raises `Left` where none does.

    The words themselves where they can stay. `gap` and `fold` are empty where duly's defaults are cron's rules.
    """
    fields = read_fields(words)
    line = equal_line(fields, " ".join(words))
    if line.wildcard == fields.wildcard:
        return line.text, "", ""
    return line.text, *(WILDCARD if fields.wildcard else FIXED)


def equal_line(fields: Fields, text: str) -> CronLine:
    """The line of duly's that fires at the same times on the same days: the text itself, or one written anew.

    Raises `Left` where there is none.
    """
    if not any(fields.days(*shape) for shape in _shapes()):
        raise Left("never_fires", f"{text} comes in no year: it is never run")
    for candidate in (text, _written(fields)):
        try:
            line = parse_cron(candidate)
        except ScheduleError:
            continue
        if line.times == fields.times and all(
            (line.days_of_month(weekday, length) if month in line.month else []) == fields.days(month, weekday, length)
            for month, weekday, length in _shapes()
        ):
            return replace(line, text=candidate)
    raise Left("no_equal", f"{text}: no line of duly's dialect fires on the same days")


def _shapes() -> list[tuple[int, int, int]]:
    """Each month, beginning on each weekday, February with 28 days and with 29: all that the calendar has."""
    months = [*enumerate(_LENGTHS, start=1), (2, 29)]
    return [(month, weekday, length) for month, length in months for weekday in range(7)]


def _written(fields: Fields) -> str:
    """The sets written out: every field that is not all of its values."""
    sets = (fields.minute, fields.hour, fields.dom, fields.month, fields.dow)
    wholes = (60, 24, 31, 12, 7)
    return " ".join(
        "*" if len(found) == whole else ",".join(map(str, found)) for found, whole in zip(sets, wholes, strict=True)
    )
