"""Business calendars: days on which nothing is worked, and what becomes of the windows that meet one.

A calendar is days off: weekdays, dates, and days of each year. A schedule on it keeps every window, so that time stays
tiled, and does one of three things where a day off is met:

- `skip`: a window of a day, an hour or a fire that is named after a day off says so (`Occurrence.off`), and is not worked.
- `next`: what would be due on a day off is due at the same wall clock of the next business day.
- `previous`: the same, of the business day before. Only for fires: a period is not due before it has ended.

Due times stay in order. Where a schedule has several a day, those of a day off never pass one of the business day that they
move to: under `next` they come no later than its first, under `previous` no earlier than its last. Several windows may then
be due at one instant, and are taken in the order of their names.
"""

from __future__ import annotations

from duly.errors import ScheduleError
from duly.records import record, replace
from duly.schedule.resolver import resolve
from duly.times import DAY, SECOND, Zone, civil_date, civil_days, civil_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

POLICIES = ("skip", "previous", "next")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@record
class Yearly:
    """A day of each year from `since` on: the `day` of a month, or its `nth` (1 to 5, 0 for the last) `weekday`."""

    since: int
    month: int
    day: int
    weekday: int = 0
    nth: int = 0

    def has(self, day: int) -> bool:
        """Whether it falls on this day (days since 1970)."""
        year, month, day_of_month = civil_date(day)
        if year < self.since or month != self.month:
            return False
        if self.day:
            return day_of_month == self.day
        if (day + 3) % 7 != self.weekday:
            return False
        return (day_of_month + 6) // 7 == self.nth if self.nth else civil_date(day + 7)[1] != month

    def __str__(self) -> str:
        """As written in a list: `2021/06-19`, `1942/11-thu#4`, `1971/05-mon#L`."""
        which = f"{self.day:02d}" if self.day else f"{WEEKDAYS[self.weekday]}#{self.nth or 'L'}"
        return f"{self.since:04d}/{self.month:02d}-{which}"


@record
class Calendar:
    """Days off, under a name. `weekdays` counts from Monday as 0; `dates` are days since 1970."""

    name: str
    weekdays: tuple[int, ...]
    dates: frozenset[int]
    yearly: tuple[Yearly, ...] = ()

    def is_off(self, day: int) -> bool:
        """Whether nothing is worked on a day (days since 1970)."""
        return (day + 3) % 7 in self.weekdays or day in self.dates or any(each.has(day) for each in self.yearly)

    def business_day(self, day: int, step: int) -> int:
        """This day, or the nearest after it (step 1) or before it (-1) that is no day off."""
        for near in range(day, day + 400 * step, step):
            if not self.is_off(near):
                return near
        raise _bad("calendar", self.name, f"it has no business day within 400 days of {_date_text(day)}")

    @property
    def days(self) -> str:
        """The days off as canonical text, as `parse_days` reads it: `sat sun 2021/06-19 2026-12-28`."""
        weekdays = [WEEKDAYS[weekday] for weekday in self.weekdays]
        return " ".join([*weekdays, *map(str, self.yearly), *(_date_text(day) for day in sorted(self.dates))])

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of `days`: two calendars of one name are told apart by it."""
        from duly.schedule.facts import digest

        return digest(self.days)


@record
class OnCalendar:
    """A calendar, and what it does to a schedule: one of `POLICIES`."""

    calendar: Calendar
    policy: str

    def __str__(self) -> str:
        """Policy, name and days in one text, which a column holds; `parse_on_calendar` reads it back."""
        return f"{self.policy} {self.calendar.name} {self.calendar.days}"

    def words(self) -> str:
        """As part of a schedule's words."""
        if self.policy == "skip":
            return f"; skipped on days off of calendar {self.calendar.name}"
        return f"; moved to the {self.policy} business day of calendar {self.calendar.name}"


# -- reading -------------------------------------------------------------------------------------------------------------


def make_calendar(name: str, days: str) -> Calendar:
    """A calendar from a list of days off, as `parse_days` has them, or from the text of an .ics file.

    Raises `ScheduleError` with the line at fault.
    """
    if not name or name.strip(_NAME):
        raise _bad("calendar", name, "a calendar's name is letters, digits, dots, dashes and underscores")
    if days.lstrip("\ufeff").lstrip()[:15].upper() == "BEGIN:VCALENDAR":
        from duly.schedule.ics import read_ics

        return read_ics(name, days)
    return parse_days(name, days)


def parse_days(name: str, text: str) -> Calendar:
    """Days off, parted by blanks, commas or lines: weekdays (`sat`), dates (`2026-12-28`), and days of each year from a
    year on (`2021/06-19`, `1942/11-thu#4`, `1971/05-mon#L`). What follows a blank and `#` is a comment.
    """
    weekdays: set[int] = set()
    dates: set[int] = set()
    yearly: set[Yearly] = set()
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        for token in line.replace(",", " ").split():
            if token.startswith("#"):
                break
            if token.lower() in WEEKDAYS:
                weekdays.add(WEEKDAYS.index(token.lower()))
            elif (date := _date(token)) is not None:
                dates.add(date)
            elif (each := _each_year(token.lower())) is not None:
                yearly.add(each)
            else:
                raise _bad("calendar", token, f"line {number}: it is no day off; write sat, 2026-12-28 or 2021/06-19")
    return calendar_of(name, weekdays, dates, yearly)


def calendar_of(name: str, weekdays: set[int], dates: set[int], yearly: set[Yearly]) -> Calendar:
    """A calendar of these days off. Raises `ScheduleError` where no weekday is left to work on."""
    if len(weekdays) == 7:
        raise _bad("calendar", name, "every weekday is off, so that nothing would ever be worked")
    return Calendar(name, tuple(sorted(weekdays)), frozenset(dates), tuple(sorted(yearly, key=str)))


def _date(token: str) -> int | None:
    parts = _numbers(token, (4, 2, 2))
    return civil_days(*parts) if parts and _is_date(*parts) else None


def _each_year(token: str) -> Yearly | None:
    since, slash, day = token.partition("/")
    month, _, which = day.partition("-")
    parts = _numbers(f"{since}-{month}", (4, 2))
    if not slash or not parts or parts[0] == 0 or not 1 <= parts[1] <= 12:
        return None
    name, sharp, nth = which.partition("#")
    if sharp:
        fits = name in WEEKDAYS and nth in ("1", "2", "3", "4", "5", "l")
        return Yearly(parts[0], parts[1], 0, WEEKDAYS.index(name), 0 if nth == "l" else int(nth)) if fits else None
    numbers = _numbers(which, (2,))
    fits = bool(numbers) and 1 <= numbers[0] <= _LENGTHS[parts[1] - 1]
    return Yearly(parts[0], parts[1], numbers[0]) if fits else None


def _numbers(text: str, lengths: tuple[int, ...]) -> list[int]:
    """The numbers of a text like `2026-12-28`, with so many digits each; none where it is no such text."""
    parts = text.split("-")
    fits = len(parts) == len(lengths) and all(
        len(part) == length and part.isascii() and part.isdigit() for part, length in zip(parts, lengths, strict=True)
    )
    return [int(part) for part in parts] if fits else []


def _is_date(year: int, month: int, day: int) -> bool:
    return year > 0 and 1 <= month <= 12 and civil_date(civil_days(year, month, day)) == (year, month, day)


def parse_on_calendar(text: str) -> OnCalendar:
    """The inverse of `str(OnCalendar)`. Raises `ScheduleError`."""
    policy, _, rest = text.partition(" ")
    name, _, days = rest.partition(" ")
    return OnCalendar(make_calendar(name, days), check_policy(policy))


def check_policy(policy: str) -> str:
    """The policy, if there is one of this name. Raises `ScheduleError`."""
    if policy not in POLICIES:
        raise _bad("calendar", policy, f"write one of {', '.join(POLICIES)}")
    return policy


def refuse_misfit(schedule: Schedule, policy: str) -> None:
    """Raise `ScheduleError` for a policy that this kind of schedule cannot have."""
    unit = schedule.grain.partition("@")[0]
    if schedule.kind == "every":
        raise _bad("calendar", policy, "an interval is counted in UTC and has no days; use a cron line or a period")
    if policy == "skip" and unit not in ("day", "hour", "fire"):
        raise _bad("calendar", policy, f"a {unit} has business days in it; write next, which moves when it is due")
    if policy == "previous" and unit != "fire":
        raise _bad("calendar", policy, "a period is not due before it has ended; write next, or use a cron line")


def _bad(field: str, token: str, why: str) -> ScheduleError:
    return ScheduleError(f"{field}: {token!r}: {why}", code="bad_value", field=field, token=token)


def _date_text(day: int) -> str:
    return civil_text(day * 86_400)[:10]


# -- occurrences ---------------------------------------------------------------------------------------------------------


def after(schedule: Schedule, instant: int) -> Iterator[Occurrence]:
    """The occurrences due after an instant, in order, of a schedule on a calendar."""
    plain, on = _parts(schedule)
    if on.policy == "skip":
        return (_marked(on.calendar, o) for o in plain.after(instant))
    return _beyond(_moved(plain, on, instant, 1), lambda o: o.due <= instant)


def before(schedule: Schedule, instant: int) -> Iterator[Occurrence]:
    """The occurrences due by an instant, the newest first, of a schedule on a calendar."""
    plain, on = _parts(schedule)
    if on.policy == "skip":
        return (_marked(on.calendar, o) for o in plain.before(instant))
    return _beyond(_moved(plain, on, instant, -1), lambda o: o.due > instant)


def on_calendar(schedule: Schedule, found: Occurrence) -> Occurrence:
    """An occurrence of the schedule without its calendar, as it is with it."""
    plain, on = _parts(schedule)
    if on.policy == "skip":
        return _marked(on.calendar, found)
    zone = Zone(schedule.zone)
    if not on.calendar.is_off(_local_day(zone, found.due)):
        return found
    return next(o for o in _moved(plain, on, found.due, 1) if o.nominal == found.nominal)


def _parts(schedule: Schedule) -> tuple[Schedule, OnCalendar]:
    assert schedule.calendar is not None
    return replace(schedule, calendar=None), schedule.calendar


def _marked(calendar: Calendar, occurrence: Occurrence) -> Occurrence:
    day = (occurrence.nominal >> 1) // 86_400
    if not calendar.is_off(day):
        return occurrence
    return replace(occurrence, off=f"{_date_text(day)} is a day off of calendar {calendar.name}")


def _beyond(found: Iterator[Occurrence], is_before: Callable[[Occurrence], bool]) -> Iterator[Occurrence]:
    """What is left when those on the near side are dropped, which all come first."""
    for occurrence in found:
        if not is_before(occurrence):
            yield occurrence
            yield from found


def _local_day(zone: Zone, instant: int) -> int:
    second = instant // SECOND
    return (second + zone.offset_at(second)) // 86_400


def _moved(plain: Schedule, on: OnCalendar, instant: int, step: int) -> Iterator[Occurrence]:
    """The occurrences from well before an instant (step 1) or after it (-1), each due on a business day.

    It begins beyond the business day next to the instant's, with all days off between, so that what moves across the instant
    is seen. Each day off has a target. The window of a target that is nearest to the days off limits them: it either came
    before them in this direction, or ends their collection.
    """
    zone, calendar = Zone(plain.zone), on.calendar
    edge = _target(calendar, zone, _local_day(zone, instant) - step, -step)
    begin = (edge - 2 * step) * DAY  # and two days for what lies between a civil day and UTC
    stream = plain.after(begin) if step > 0 else plain.before(begin)
    toward = 1 if on.policy == "next" else -1
    nearest: Callable[[int, int], int] = min if toward > 0 else max
    pending: list[tuple[Occurrence, int]] = []
    limit, limit_day = 0, None
    for occurrence in stream:
        day = _local_day(zone, occurrence.due)
        target = _target(calendar, zone, day, toward)
        if pending and pending[0][1] != target:
            yield from _settled(plain, zone, pending, None, nearest)
            pending = []
        if target == day:
            yield from _settled(plain, zone, pending, occurrence.due, nearest)
            pending = []
            limit, limit_day = occurrence.due, day
            yield occurrence
        elif toward == step:
            pending.append((occurrence, target))
        else:
            due = _at(plain, zone, occurrence, target)
            limit = due if limit_day != target else nearest(limit, due)
            limit_day = target
            yield replace(occurrence, due=limit)
    yield from _settled(plain, zone, pending, None, nearest)


def _target(calendar: Calendar, zone: Zone, day: int, toward: int) -> int:
    """The business day that a day's work moves to; itself, if it is one. A day that a zone lacks (Apia, 2011-12-30) is none."""
    near = calendar.business_day(day, toward)
    while _is_lacked(zone, near):
        near = calendar.business_day(near + toward, toward)
    return near


def _is_lacked(zone: Zone, day: int) -> bool:
    """Whether clocks are set on over a whole day; over its noon alone (Casablanca, 1967-06-03) they leave the rest of it."""
    before, after = zone.offsets_of(day * 86_400 + 43_200)
    return after - before >= 86_400


def _settled(
    plain: Schedule,
    zone: Zone,
    pending: list[tuple[Occurrence, int]],
    limit: int | None,
    nearest: Callable[[int, int], int],
) -> list[Occurrence]:
    """Those of days off that move to one business day, none of them past the next one or past its limit there."""
    settled = []
    for occurrence, target in reversed(pending):
        due = _at(plain, zone, occurrence, target)
        limit = due if limit is None else nearest(limit, due)
        settled.append(replace(occurrence, due=limit))
    return settled[::-1]


def _at(plain: Schedule, zone: Zone, occurrence: Occurrence, day: int) -> int:
    """The instant of an occurrence's wall clock of work, on another day."""
    second = occurrence.due // SECOND
    clock = (second + zone.offset_at(second)) % 86_400
    gap = "shift_forward" if plain.gap == "shift_forward" else "shift_to_transition"
    fold = "second" if plain.fold == "second" else "first"
    return resolve(zone, day * 86_400 + clock, gap, fold)[0][0] * SECOND
