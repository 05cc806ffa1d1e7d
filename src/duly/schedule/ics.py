"""Days off from an .ics file (RFC 5545): whole days, once or each year.

What could change which days are meant is read or refused, with its line; names, alarms and the like are passed over.
"""

from __future__ import annotations

from duly.errors import ScheduleError
from duly.records import record, replace
from duly.schedule.calendar import Calendar, Yearly, calendar_of
from duly.times import civil_date, civil_days

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ISO_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_PASSED_OVER = ("VTIMEZONE", "VALARM")
_HELD = ("VCALENDAR", "VEVENT")
_CHANGES_DAYS = ("RDATE", "EXRULE", "RECURRENCE-ID", "DURATION")
_LONGEST = 400  # days of one event


@record
class _Line:
    """A content line, unfolded, with the number of its first line in the file."""

    number: int
    name: str
    parameters: str
    value: str

    def refused(self, why: str) -> ScheduleError:
        written = f"{self.name}{self.parameters}:{self.value}"
        return ScheduleError(
            f"calendar: line {self.number}: {written}: {why}", code="bad_value", field="calendar", token=written
        )


def read_ics(name: str, text: str) -> Calendar:
    """The calendar of a file's text. Raises `ScheduleError` with the number of the line that cannot be read."""
    dates: set[int] = set()
    yearly: set[Yearly] = set()
    open_parts: list[str] = []
    event: dict[str, _Line] = {}
    exceptions: set[int] = set()
    line = _Line(1, "", "", "")
    for line in _lines(text):
        inside = open_parts[-1] if open_parts else ""
        if line.name == "BEGIN":
            part = line.value.upper()
            if part not in _HELD + _PASSED_OVER and inside not in _PASSED_OVER:
                raise line.refused("only events of whole days can be read")
            open_parts.append(part)
            if part == "VEVENT":
                event, exceptions = {}, set()
        elif line.name == "END":
            if line.value.upper() != inside:
                raise line.refused(f"it ends nothing that is open{f', which is {inside}' if inside else ''}")
            open_parts.pop()
            if inside == "VEVENT":
                _add_event(line, event, exceptions, dates, yearly)
        elif inside == "VEVENT":
            if line.name in _CHANGES_DAYS:
                raise line.refused("this cannot be read; write the event as dates, or as one rule of each year")
            if line.name == "EXDATE":
                exceptions.update(_day(line, value) for value in line.value.split(","))
            elif line.name in ("DTSTART", "DTEND", "RRULE", "STATUS"):
                if line.name in event:
                    raise line.refused(f"the event has a {line.name} already")
                event[line.name] = line
    if open_parts:
        raise line.refused(f"the file ends inside {open_parts[-1]}")
    return calendar_of(name, set(), dates, yearly)


def _lines(text: str) -> Iterator[_Line]:
    """Content lines; one that begins with a blank goes on with the line before."""
    number, whole = 0, ""
    for place, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        if line[:1] in (" ", "\t") and whole:
            whole += line[1:]
            continue
        if whole:
            yield _content(number, whole)
        number, whole = place, line.strip()
    if whole:
        yield _content(number, whole)


def _content(number: int, whole: str) -> _Line:
    """Name, parameters and value: the first colon outside quotes parts them."""
    head, quoted = 0, False
    while head < len(whole) and (quoted or whole[head] != ":"):
        quoted ^= whole[head] == '"'
        head += 1
    name, semicolon, parameters = whole[:head].partition(";")
    line = _Line(number, name.upper(), semicolon + parameters, whole[head + 1 :])
    if head == len(whole) or not name:
        raise ScheduleError(
            f"calendar: line {number}: {whole}: it is no line of an .ics file", field="calendar", token=whole
        )
    return line


def _add_event(end: _Line, event: dict[str, _Line], exceptions: set[int], dates: set[int], yearly: set[Yearly]) -> None:
    """The days of one event."""
    if "STATUS" in event and event["STATUS"].value.upper() == "CANCELLED":
        return
    if "DTSTART" not in event:
        raise end.refused("the event has no DTSTART")
    first = _day(event["DTSTART"], event["DTSTART"].value)
    beyond = _day(event["DTEND"], event["DTEND"].value) if "DTEND" in event else first + 1
    if not first < beyond <= first + _LONGEST:
        raise event["DTEND"].refused("the event ends before it begins, or lasts longer than a year")
    if "RRULE" not in event:
        dates.update(day for day in range(first, beyond) if day not in exceptions)
        return
    line = event["RRULE"]
    if beyond != first + 1:
        raise line.refused("an event of several days each year cannot be read; write one event for each day")
    _add_rule(line, first, exceptions, dates, yearly)


def _add_rule(line: _Line, first: int, exceptions: set[int], dates: set[int], yearly: set[Yearly]) -> None:
    rule = _rule(line)
    each = _each_year(line, rule, first)
    last = _day(line, rule["UNTIL"][:8], typed=True) if "UNTIL" in rule else None
    many = _number(line, rule["COUNT"], 1, 1000) if "COUNT" in rule else None
    if last is None and many is None:
        if exceptions:
            raise line.refused("a rule without end that has exceptions cannot be read; add UNTIL")
        begins_late = (_in_year(each, each.since) or first) < first
        yearly.add(replace(each, since=each.since + begins_late))
        if not each.has(first):
            dates.add(first)  # where an event starts counts, whatever its rule says
        return
    left = 1000 if many is None else many
    days = [first] if not each.has(first) else []
    year = each.since
    while len(days) < left and year <= 9990:
        found = _in_year(each, year)
        if found is not None and last is not None and found > last:
            break
        if found is not None and found >= first:
            days.append(found)
        year += 1
    dates.update(day for day in days if day not in exceptions)


def _rule(line: _Line) -> dict[str, str]:
    parts = [part.partition("=") for part in line.value.upper().split(";") if part]
    rule = {name: value for name, _, value in parts}
    known = {"FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "BYDAY", "UNTIL", "COUNT", "WKST"}
    if rule.get("FREQ") != "YEARLY" or rule.get("INTERVAL", "1") != "1" or set(rule) - known or len(rule) < len(parts):
        raise line.refused("only FREQ=YEARLY can be read, on one day of one month; name a weekday off itself, as sat")
    return rule


def _each_year(line: _Line, rule: dict[str, str], first: int) -> Yearly:
    year, month, day = civil_date(first)
    if "BYMONTH" in rule:
        month = _number(line, rule["BYMONTH"], 1, 12)
    if "BYDAY" not in rule:
        if "BYMONTHDAY" in rule:
            day = _number(line, rule["BYMONTHDAY"], 1, 31)
        return Yearly(year, month, day)
    which, weekday = rule["BYDAY"][:-2], rule["BYDAY"][-2:]
    if weekday not in _ISO_WEEKDAYS or "BYMONTH" not in rule or "BYMONTHDAY" in rule:
        raise line.refused("a weekday of the year is read as BYMONTH=11;BYDAY=4TH, and in no other way")
    nth = 0 if which == "-1" else _number(line, which.removeprefix("+"), 1, 5)
    return Yearly(year, month, 0, _ISO_WEEKDAYS.index(weekday), nth)


def _in_year(each: Yearly, year: int) -> int | None:
    begin = civil_days(year, each.month, 1)
    return next((day for day in range(begin, begin + 31) if each.has(day) and civil_date(day)[0] == year), None)


def _day(line: _Line, value: str, *, typed: bool = False) -> int:
    """A whole day. A time is refused: when it falls on a day depends on a zone."""
    if len(value) != 8 or not (value.isascii() and value.isdigit()) or (line.name == "DTSTART" and not _is_whole(line)):
        raise line.refused("only whole days can be read, as DTSTART;VALUE=DATE:20261228")
    day = civil_days(int(value[:4]), int(value[4:6]), int(value[6:])) if "01" <= value[4:6] <= "12" else 0
    if civil_date(day) != (int(value[:4]), int(value[4:6]), int(value[6:])):
        raise line.refused(f"there is no {value}")
    return day


def _is_whole(line: _Line) -> bool:
    return "VALUE=DATE" in line.parameters.upper().split(";") or not line.parameters


def _number(line: _Line, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5 and low <= int(text) <= high):
        raise line.refused(f"{text!r} is not one number from {low} to {high}")
    return int(text)
