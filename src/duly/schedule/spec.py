"""Schedules: which windows are owed, as values.

Two families. *Periods* (a year … an hour) are named after themselves and due at their end, or at a wall clock `at`
after it. *Fires* (cron lines, intervals) are named after the wall clock at which they fire, are due then, and answer
for the time since the fire before. Both are boundaries in time, and the windows between boundaries tile it: whatever a
zone does, no instant belongs to two windows and none to no window.

A schedule holds every policy as it is in force, defaults included, so that equal schedules have equal `spec()`.
"""

from __future__ import annotations

from duly.errors import ScheduleError, TimeInvalid, WindowInvalid
from duly.records import record, replace
from duly.schedule.cron import FIRST_DAY, LAST_DAY, CronLine, parse_cron
from duly.schedule.keys import MONTHS, WEEK_STARTS, nominal_text, parse_nominal
from duly.schedule.occurrence import Occurrence
from duly.schedule.resolver import FOLDS, GAPS, Rule, boundaries_after, boundaries_before, resolve
from duly.times import (
    DAY,
    SECOND,
    Zone,
    clock_seconds,
    duration_text,
    instant_text,
    parse_duration,
    parse_instant,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.calendar import Calendar, OnCalendar
    from duly.schedule.resolver import Boundary

_UNITS = {
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
}


@record
class Schedule:
    """A schedule with all that is in force.

    `kind`: `hourly`, `daily`, `weekly`, `monthly`, `quarterly`, `yearly`, `cron` or `every`. `zone` is spelled as it
    was written. `gap` and `fold` are the policies for a wall clock that does not exist or exists twice; `by line`
    where several cron lines differ, and empty for intervals, which need none. `at` is a period's wall clock of work
    after its end, `HH:MM` or `HH:MM:SS`, None for the end itself. `offset` moves the beginning: `06:00` of a day,
    `sun` of a week, `apr` of a quarter or year. `rules` are the lines with the policies of each. `interval` and
    `anchor` (an instant) are in microseconds, 0 but for `every`. `calendar` says what becomes of days off.
    """

    kind: str
    zone: str
    gap: str
    fold: str
    at: str | None
    offset: str | None
    rules: tuple[Rule, ...]
    interval: int = 0
    anchor: int = 0
    calendar: OnCalendar | None = None

    def on(self, calendar: Calendar, policy: str) -> Schedule:
        """The schedule on a business calendar (`duly.schedule.calendar` says what the policies do).

        `policy` is `skip`, `next`, or for fires `previous`. Raises `ScheduleError` for one that does not fit.
        """
        from duly.schedule.calendar import OnCalendar, check_policy, refuse_misfit

        refuse_misfit(self, check_policy(policy))
        return replace(self, calendar=OnCalendar(calendar, policy))

    @property
    def grain(self) -> str:
        """What a run key counts: `day`, `day@06:00`, `week@sun`, `hour`, `fire` …"""
        unit = _UNITS.get(self.kind, "fire")
        return f"{unit}@{self.offset}" if self.offset else unit

    @property
    def lines(self) -> tuple[CronLine, ...]:
        """The cron lines; none for other kinds."""
        return tuple(rule.line for rule in self.rules) if self.kind == "cron" else ()

    # -- occurrences -------------------------------------------------------------------------------------------------

    def after(self, instant: int) -> Iterator[Occurrence]:
        """The occurrences due after this instant (exclusive), in order."""
        if self.calendar is not None:
            from duly.schedule.calendar import after

            return after(self, instant)
        if self.kind == "every":
            return self._ticks(self._tick_after(instant), 1)
        if self.kind == "cron":
            return self._fires_after(instant)
        return self._periods_after(instant)

    def before(self, instant: int) -> Iterator[Occurrence]:
        """The occurrences due by this instant (inclusive), the newest first."""
        if self.calendar is not None:
            from duly.schedule.calendar import before

            return before(self, instant)
        if self.kind == "every":
            return self._ticks(self._tick_after(instant) - self.interval, -1)
        if self.kind == "cron":
            return self._fires_before(instant)
        return self._periods_before(instant)

    def instants(self, after: int, until: int) -> Iterator[int]:
        """The due instants after one (exclusive) until another (inclusive), in order: ten times as fast as occurrences."""
        from duly.schedule.expansion import instants

        return instants(self, after, until)

    def count(self, after: int, until: int) -> int:
        """How many occurrences are due after one instant (exclusive) until another (inclusive). None is looked at."""
        from duly.schedule.expansion import count

        return count(self, after, until)

    def find(self, nominal: int) -> Occurrence | None:
        """The occurrence of this nominal; None if the schedule has none: it is off the grid."""
        if self.calendar is not None:
            found = replace(self, calendar=None).find(nominal)
            return None if found is None else self._on_calendar(found)
        if self.kind == "every":
            return self._find_tick(nominal)
        zone = Zone(self.zone)
        for second in self._seconds_of(zone, nominal):
            boundary = next(boundaries_after(zone, self.rules, second - 1), None)
            if boundary is not None and boundary[:2] == (second, nominal):
                return self._occurrence_at(zone, boundary)
        return None

    def lookup(self, text: str) -> Occurrence:
        """The occurrence that a person named: its nominal as in a key or shorter, or an instant with `Z` or an offset.

        A bare `T02` of a repeated hour is the first pass; a bare date on which there is one fire is that fire. An
        instant is when a fire is due or a period begins. Raises `KeyInvalid` or `TimeInvalid` for what cannot be read,
        and `WindowInvalid`, naming the windows before and after, for what the schedule does not have.
        """
        if self.calendar is not None:
            return self._on_calendar(replace(self, calendar=None).lookup(text))
        wanted = self._without_zone(text.strip())
        if _is_instant(wanted):
            return self._lookup_instant(text, parse_instant(wanted))
        grain, nominal, _ = parse_nominal(wanted, self.grain)
        found = self.find(nominal) if grain == self.grain else None
        if found is None and (grain, self.grain) == ("day", "fire"):
            found = self._only_fire_on(nominal)
        if found is None:
            raise self._no_such_window(text, self._edge(nominal))
        return found

    def nominal_of(self, text: str) -> int | None:
        """The nominal that a name stands for, whether the schedule has it or not; None for an instant or another grain.

        Raises `KeyInvalid` for what cannot be read.
        """
        wanted = self._without_zone(text.strip())
        if _is_instant(wanted):
            return None
        grain, nominal, _ = parse_nominal(wanted, self.grain)
        return nominal if grain == self.grain else None

    def _on_calendar(self, found: Occurrence) -> Occurrence:
        from duly.schedule.calendar import on_calendar

        return on_calendar(self, found)

    def _without_zone(self, text: str) -> str:
        nominal, bracket, zone = text.partition("[")
        if bracket and zone != f"{self.zone}]":
            raise WindowInvalid(f"zone: {text} is not in {self.zone}, the schedule's zone")
        return nominal

    def _lookup_instant(self, text: str, instant: int) -> Occurrence:
        second, fraction = divmod(instant, SECOND)
        if self.kind == "every":
            found = self._find_tick(2 * second)
        else:
            zone = Zone(self.zone)
            boundary = next(boundaries_after(zone, self.rules, second - 1), None)
            found = self._occurrence_at(zone, boundary) if boundary is not None and boundary[0] == second else None
        if found is None or fraction:
            raise self._no_such_window(text, second + 1)
        return found

    def _only_fire_on(self, midnight: int) -> Occurrence | None:
        """The fire of a date, if there is just one."""
        civil = midnight >> 1
        reach = 0 if self.zone == "UTC" else 86_400  # clocks have been moved by a whole day
        begin = civil - Zone(self.zone).offset_at(civil) - reach
        found = None
        for occurrence in self.after(begin * SECOND - 1):
            if occurrence.nominal >= midnight + 172_800:
                return found
            if occurrence.nominal >= midnight:
                if found is not None:
                    return None
                found = occurrence
        return found

    def _edge(self, nominal: int) -> int:
        """The second that parts the windows before a nominal that is not on the grid from those after it."""
        civil = min(max(nominal >> 1, EARLIEST // SECOND), LATEST // SECOND)
        first, second = Zone(self.zone).offsets_of(civil)
        if first < second:  # skipped by the clocks: what begins at the change comes after it
            return civil - first
        return civil - (second if nominal & 1 else first) + 1

    def _no_such_window(self, text: str, edge: int) -> WindowInvalid:
        from duly.schedule.words import what_of

        around: list[int] = []
        if self.kind == "every":
            ticks = next(self.before(edge * SECOND - 1), None), next(self.after(edge * SECOND - 1), None)
            around = [tick.nominal for tick in ticks if tick]
        else:
            zone = Zone(self.zone)
            before, after = boundaries_before(zone, self.rules, edge), boundaries_after(zone, self.rules, edge - 1)
            around = [boundary[1] for boundary in (next(before, None), next(after, None)) if boundary]
        names = " and ".join(nominal_text(self.grain, nominal, self.zone) for nominal in around)
        return WindowInvalid(f"{text} is no window of a schedule that is {what_of(self)}; the nearest are {names}")

    def _find_tick(self, nominal: int) -> Occurrence | None:
        instant = (nominal >> 1) * SECOND
        if nominal & 1 or (instant - self.anchor) % self.interval:
            return None
        return next(self._ticks(instant, 1), None)

    def _tick_after(self, instant: int) -> int:
        return instant + self.interval - (instant - self.anchor) % self.interval

    def _ticks(self, instant: int, step: int) -> Iterator[Occurrence]:
        if step > 0 and instant < EARLIEST:
            instant = self._tick_after(EARLIEST - 1)
        elif step < 0 and instant > LATEST:
            instant = self._tick_after(LATEST) - self.interval
        while EARLIEST <= instant <= LATEST:
            yield Occurrence(2 * (instant // SECOND), instant - self.interval, instant, instant, "exact")
            instant += step * self.interval

    def _fires_after(self, instant: int) -> Iterator[Occurrence]:
        zone, second = Zone(self.zone), instant // SECOND
        earlier = next(boundaries_before(zone, self.rules, second + 1), None)
        for boundary in boundaries_after(zone, self.rules, second):
            if earlier is not None:
                yield _fire(earlier, boundary)
            earlier = boundary

    def _fires_before(self, instant: int) -> Iterator[Occurrence]:
        later = None
        for boundary in boundaries_before(Zone(self.zone), self.rules, instant // SECOND + 1):
            if later is not None:
                yield _fire(boundary, later)
            later = boundary

    def _periods_after(self, instant: int) -> Iterator[Occurrence]:
        zone, second = Zone(self.zone), instant // SECOND
        # work at a wall clock comes up to a day after the end, and later by what the clocks are moved
        second -= 3 * 86_400 if self.at else 0
        begin = next(boundaries_before(zone, self.rules, second + 1), None)
        for end in boundaries_after(zone, self.rules, second):
            if begin is not None:
                period = self._period(zone, begin, end)
                if period.due > instant:
                    yield period
            begin = end

    def _periods_before(self, instant: int) -> Iterator[Occurrence]:
        zone = Zone(self.zone)
        end = None
        for begin in boundaries_before(zone, self.rules, instant // SECOND + 1):
            if end is not None:
                period = self._period(zone, begin, end)
                if period.due <= instant:
                    yield period
            end = begin

    def _seconds_of(self, zone: Zone, nominal: int) -> list[int]:
        """Where a nominal's boundary may be, by each rule."""
        civil = nominal >> 1
        if not EARLIEST <= civil * SECOND <= LATEST:
            return []
        resolved = [boundary for rule in self.rules for boundary in resolve(zone, civil, rule.gap, rule.fold)]
        return [boundary[0] for boundary in resolved if boundary[1] == nominal]

    def _occurrence_at(self, zone: Zone, boundary: Boundary) -> Occurrence | None:
        if self.kind == "cron":
            earlier = next(boundaries_before(zone, self.rules, boundary[0]), None)
            return None if earlier is None else _fire(earlier, boundary)
        end = next(boundaries_after(zone, self.rules, boundary[0]), None)
        return None if end is None else self._period(zone, boundary, end)

    def _period(self, zone: Zone, begin: Boundary, end: Boundary) -> Occurrence:
        return Occurrence(begin[1], begin[0] * SECOND, end[0] * SECOND, self.due_of(zone, end) * SECOND, begin[2])

    def due_of(self, zone: Zone, end: Boundary) -> int:
        """The first second, at or after a period's end, at which the wall clock shows `at`."""
        if self.at is None:
            return end[0]
        civil = end[1] >> 1
        wait = (clock_seconds(self.at) - civil) % 86_400
        if wait == 0:
            return end[0]
        return max(end[0], resolve(zone, civil + wait, self.gap, self.fold)[0][0])

    # -- text --------------------------------------------------------------------------------------------------------

    def words(self) -> str:
        """The schedule in words, as `daily in Europe/Berlin, worked at 02:30 the next morning; …`."""
        from duly.schedule.words import words_of

        return words_of(self)

    def spec(self) -> dict[str, object]:
        """The schedule as JSON values, every policy spelled out. `from_spec(s.spec()) == s`."""
        if self.calendar is None:
            return self._spec()
        calendar = self.calendar.calendar
        named = {"policy": self.calendar.policy, "name": calendar.name, "digest": calendar.digest}
        return {**self._spec(), "calendar": {**named, "days": calendar.days}}

    def _spec(self) -> dict[str, object]:
        if self.kind == "every":
            return {
                "kind": "every",
                "interval": duration_text(self.interval),
                "anchor": instant_text(self.anchor),
            }
        if self.kind == "cron":
            lines = [{"cron": rule.line.text, "gap": rule.gap, "fold": rule.fold} for rule in self.rules]
            return {"kind": "cron", "zone": self.zone, "lines": lines}
        return {
            "kind": self.kind,
            "zone": self.zone,
            "gap": self.gap,
            "fold": self.fold,
            "at": self.at,
            "offset": self.offset,
        }


EARLIEST = FIRST_DAY * DAY
LATEST = LAST_DAY * DAY
_LONGEST = 36_500 * DAY  # of an interval: its next occurrence must still be an instant


def _fire(earlier: Boundary, boundary: Boundary) -> Occurrence:
    due = boundary[0] * SECOND
    return Occurrence(boundary[1], earlier[0] * SECOND, due, due, boundary[2])


def _is_instant(text: str) -> bool:
    _, t, clock = text.partition("T")
    return bool(t) and (clock[-1:] in ("Z", "z") or "+" in clock or "-" in clock)


# -- constructors ----------------------------------------------------------------------------------------------------


def hourly(zone: str, *, gap: str | None = None, fold: str | None = None) -> Schedule:
    """Every hour of the wall clock. A repeated hour is two windows, unless `fold` says otherwise.

    `gap` is `shift_to_transition` (the default), `shift_forward` or `skip`; `fold` is `both` (the default), `first` or
    `second`. Raises `ScheduleError`, as all constructors do.
    """
    return _period("hourly", zone, "0 * * * *", gap, fold or "both")


def daily(
    zone: str, *, at: str | None = None, offset: str | None = None, gap: str | None = None, fold: str | None = None
) -> Schedule:
    """Every day from midnight, or from `offset` (`06:00`), due at its end, or at the wall clock `at` that follows.

    `gap` is `shift_to_transition` (the default), `shift_forward` or `skip`, `fold` is `first` (the default) or
    `second`: they decide where a day begins and when it is due if the clocks skip or repeat that time.
    """
    offset = None if offset is None or _clock("offset", offset) == "00:00" else _clock("offset", offset)
    if offset and len(offset) > 5:
        raise _bad("offset", offset, "a day begins on a minute; write it as 06:00")
    hour, minute = (offset or "00:00").split(":")
    return _period("daily", zone, f"{minute} {hour} * * *", gap, fold, at, offset)


def weekly(
    zone: str, *, at: str | None = None, offset: str | None = None, gap: str | None = None, fold: str | None = None
) -> Schedule:
    """Every ISO week, or week from another day (`offset="sun"`), due as a day is."""
    offset = _named("offset", offset, tuple(WEEK_STARTS), "mon")
    return _period("weekly", zone, f"0 0 * * {offset or 'mon'}", gap, fold, at, offset)


def monthly(zone: str, *, at: str | None = None, gap: str | None = None, fold: str | None = None) -> Schedule:
    """Every month, due as a day is."""
    return _period("monthly", zone, "0 0 1 * *", gap, fold, at)


def quarterly(
    zone: str, *, at: str | None = None, offset: str | None = None, gap: str | None = None, fold: str | None = None
) -> Schedule:
    """Every quarter of the year, or of a year from another month (`offset="apr"`), due as a day is."""
    offset = _named("offset", offset, MONTHS, "jan")
    first = MONTHS.index(offset or "jan")
    months = ",".join(str((first + quarter) % 12 + 1) for quarter in (0, 3, 6, 9))
    return _period("quarterly", zone, f"0 0 1 {months} *", gap, fold, at, offset)


def yearly(
    zone: str, *, at: str | None = None, offset: str | None = None, gap: str | None = None, fold: str | None = None
) -> Schedule:
    """Every year, or year from another month (`offset="apr"`), due as a day is."""
    offset = _named("offset", offset, MONTHS, "jan")
    return _period("yearly", zone, f"0 0 1 {offset or 'jan'} *", gap, fold, at, offset)


def cron(
    *lines: str, zone: str | None = None, gap: str | None = None, fold: str | None = None, seconds_field: bool = False
) -> Schedule:
    """The fires of one or more cron lines, as one sequence. `zone` may come from a line's `CRON_TZ=` instead.

    By default a line whose minute and hour do not start with `*` has `shift_to_transition` and `first`, another `skip`
    and `both` (Debian's rule); `gap` and `fold` are for all lines. `seconds_field` asks for six fields, seconds first.
    """
    if not lines:
        raise ScheduleError(
            "there is no cron line; give at least one, as cron('30 2 * * *', zone='UTC')", code="field_count"
        )
    parsed = [parse_cron(text, seconds_field=seconds_field) for text in lines]
    return _cron_of([(line, gap, fold) for line in parsed], _zone_of(parsed, zone))


def every(interval: str | int, *, anchor: str | int = 0) -> Schedule:
    """A fire each `interval` (`15m`, `PT90M`, or microseconds), counted both ways from `anchor`, an instant.

    `anchor` is microseconds, or ISO text with an offset or `Z`. Whole seconds only: the nominal of a fire is a second.
    """
    try:
        micros = parse_duration(interval) if isinstance(interval, str) else interval
    except TimeInvalid as e:
        raise _bad("interval", str(interval), str(e)) from e
    if micros <= 0 or micros % SECOND:
        raise _bad("interval", str(interval), "an interval is one or more whole seconds; write it as 15m")
    if micros > _LONGEST:
        raise _bad("interval", str(interval), "an interval is at most a hundred years")
    if isinstance(anchor, str):
        try:
            anchor = parse_instant(anchor)
        except TimeInvalid as e:
            raise _bad("anchor", str(anchor), str(e)) from e
    if anchor % SECOND:
        raise _bad("anchor", instant_text(anchor), "an anchor is a whole second")
    return Schedule("every", "UTC", "", "", None, None, (), micros, anchor)


def from_spec(spec: dict[str, object]) -> Schedule:
    """The schedule of a `spec()`. Raises `ScheduleError` for anything else, and for what a newer release has added."""
    schedule = _of_kind(spec)
    match spec.get("calendar"):
        case {"policy": str(policy), "name": str(name), "days": str(days)} if schedule is not None:
            from duly.schedule.calendar import make_calendar

            schedule = schedule.on(make_calendar(name, days), policy)
    if schedule is None or schedule.spec() != spec:
        raise ScheduleError(f"{spec!r} is not the spec of a schedule; has a newer release written it?")
    return schedule


def _of_kind(spec: dict[str, object]) -> Schedule | None:
    match spec:
        case {"kind": "every", "interval": str(interval), "anchor": str(anchor)}:
            return every(interval, anchor=parse_instant(anchor))
        case {"kind": "cron", "zone": str(zone), "lines": [_, *_] as lines}:
            return _cron_of([_line_of(line) for line in lines], zone)
        case {"kind": "hourly", "zone": str(zone), "gap": str(gap), "fold": str(fold)}:
            return hourly(zone, gap=gap, fold=fold)
        case {"kind": "monthly", "zone": str(zone), "gap": str(gap), "fold": str(fold), "at": None | str() as at}:
            return monthly(zone, at=at, gap=gap, fold=fold)
        case {
            "kind": "daily" | "weekly" | "quarterly" | "yearly" as kind,
            "zone": str(zone),
            "gap": str(gap),
            "fold": str(fold),
            "at": None | str() as at,
            "offset": None | str() as offset,
        }:
            make = {"daily": daily, "weekly": weekly, "quarterly": quarterly, "yearly": yearly}[kind]
            return make(zone, at=at, offset=offset, gap=gap, fold=fold)
    return None


def _line_of(line: object) -> tuple[CronLine, str | None, str | None]:
    match line:
        case {"cron": str(text), "gap": str(gap), "fold": str(fold)}:
            return parse_cron(text, seconds_field=text.count(" ") == 5), gap, fold
    raise ScheduleError(f"{line!r} is not the spec of a cron line; has a newer release written it?")


def _cron_of(lines: list[tuple[CronLine, str | None, str | None]], zone: str) -> Schedule:
    rules = tuple(
        Rule(
            replace(line, zone=None),  # a prefix has given the schedule its zone, and is not part of it any more
            _one_of("gap", gap or ("skip" if line.wildcard else "shift_to_transition"), GAPS),
            _one_of("fold", fold or ("both" if line.wildcard else "first"), FOLDS),
        )
        for line, gap, fold in lines
    )
    gaps, folds = {rule.gap for rule in rules}, {rule.fold for rule in rules}
    if len(gaps - {"skip"}) > 1 or (len(folds) > 1 and "second" in folds):
        # one wall time would be two boundaries of one name
        raise ScheduleError(f"the lines' policies contradict each other: gap {sorted(gaps)}, fold {sorted(folds)}")
    gap, fold = (found.pop() if len(found) == 1 else "by line" for found in (gaps, folds))
    return Schedule("cron", Zone(zone).name, gap, fold, None, None, rules)


def _zone_of(lines: list[CronLine], zone: str | None) -> str:
    for line in lines:
        if line.zone is not None:
            Zone(line.zone)  # a name that does not exist is the better news
            if zone is not None and zone != line.zone:
                raise ScheduleError(
                    f"{line.text!r} says {line.zone}, but the schedule's zone is {zone}; leave one of the two out",
                    code="zone_conflict",
                    token=line.zone,
                )
            zone = line.zone
    if zone is None:
        raise ScheduleError(
            "zone: a cron schedule needs one, or it changes with the host; write zone='Europe/Berlin' or 'UTC'",
            code="bad_zone",
        )
    return zone


def _period(
    kind: str,
    zone: str,
    line: str,
    gap: str | None,
    fold: str | None,
    at: str | None = None,
    offset: str | None = None,
) -> Schedule:
    gap = _one_of("gap", gap or "shift_to_transition", GAPS)
    fold = _one_of("fold", fold or "first", FOLDS if kind == "hourly" else FOLDS[:2])
    at = None if at is None else _clock("at", at)
    if at is not None and gap == "skip":
        raise _bad(
            "gap", gap, f"work at {at} would never be due where the clocks skip it; use another policy, or no at"
        )
    return Schedule(kind, Zone(zone).name, gap, fold, at, offset, (Rule(parse_cron(line), gap, fold),))


def _one_of(field: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise _bad(field, value, f"write one of {', '.join(allowed)}")
    return value


def _named(field: str, value: str | None, allowed: tuple[str, ...], standard: str) -> str | None:
    """A name in lower case, None for the standard one: the same schedule has one spelling."""
    name = standard if value is None else _one_of(field, value.lower(), allowed)
    return None if name == standard else name


def _clock(field: str, text: str) -> str:
    """A wall clock of a day, without seconds where they are none."""
    try:
        clock_seconds(text)
    except ValueError as e:
        raise _bad(field, text, "it is not a time of day; write it as 02:30") from e
    return text.removesuffix(":00") if len(text) == 8 else text


def _bad(field: str, token: str, why: str) -> ScheduleError:
    return ScheduleError(f"{field}: {token!r}: {why}", code="bad_value", field=field, token=token)
