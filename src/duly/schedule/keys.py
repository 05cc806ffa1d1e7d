"""Run keys: the one name of a run, the same in every log, table, URL and message.

`scope/job:middle[zone]#revision`. The form of the middle names the grain, so that two kinds of schedule never share a
key. Printing is canonical and parsing is forgiving only where nothing is ambiguous: `parse_key(str(key)) == key`.
Nothing here asks the database of zones: a key survives its updates.
"""

from __future__ import annotations

from duly.errors import KeyInvalid, NameInvalid
from duly.records import record, replace
from duly.times import civil_date, civil_days, civil_text

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# Days from a week's ISO Monday to its first day. A week from Saturday or Sunday has most of its days in the ISO week
# that follows, so it takes that one's number.
WEEK_STARTS = {"mon": 0, "tue": 1, "wed": 2, "thu": 3, "fri": 4, "sat": -2, "sun": -1}

_DIGITS = "0123456789"
_NAME_FIRST = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_NAME_REST = _NAME_FIRST + "._-"
_ZONE = _NAME_FIRST + "_+-/"
_ENCODED = "/:[]#%~@ "  # what would be read as another part of the key


# -- names -----------------------------------------------------------------------------------------------------------


def check_job_name(name: str) -> str:
    """The name, if it may name a job: a letter or digit, then up to 99 letters, digits, dots, dashes, underscores.

    Case is kept and significant. Raises `NameInvalid`.
    """
    if not 1 <= len(name) <= 100 or name[0] not in _NAME_FIRST or name.strip(_NAME_REST):
        raise NameInvalid(
            f"job: {name!r} is not a job name; start with a letter or digit, then up to 99 of A-Z a-z 0-9 . _ -"
        )
    return name


def check_scope(scope: str) -> str:
    """The scope, if it may name one: 1 to 200 printable characters in NFC, no blank at either end.

    Raises `NameInvalid`. No scope is the empty text, which is not a name and is refused here.
    """
    if not scope:
        raise NameInvalid("scope: it is empty; name the tenant, or leave the scope out")
    if len(scope) > 200:
        raise NameInvalid(f"scope: {scope[:20]!r}… has {len(scope)} characters; 200 are allowed")
    if not scope.isprintable():
        raise NameInvalid(f"scope: {scope!r} has characters that cannot be printed; leave them out")
    if scope[0] == " " or scope[-1] == " ":
        raise NameInvalid(f"scope: {scope!r} begins or ends with a blank; leave it out")
    if not scope.isascii():
        from unicodedata import is_normalized, normalize

        if not is_normalized("NFC", scope):
            raise NameInvalid(f"scope: {scope!r} is not in Unicode's form NFC; write {normalize('NFC', scope)!r}")
    return scope


def check_adhoc(name: str) -> str:
    """The id, if it may name a run outside the schedule: up to 100 letters, digits, dots, dashes, underscores.

    Raises `NameInvalid`.
    """
    if not 1 <= len(name) <= 100 or name.strip(_NAME_REST):
        raise NameInvalid(f"adhoc: {name!r} is not an id; write up to 100 of A-Z a-z 0-9 . _ -")
    return name


def check_label(version: str) -> str:
    """The label, if it may be one of a version: up to 100 letters, digits, dots, dashes, underscores.

    Raises `NameInvalid`.
    """
    if not 1 <= len(version) <= 100 or version.strip(_NAME_REST):
        raise NameInvalid(f"version: {version!r} is no label; write up to 100 of A-Z a-z 0-9 . _ -, as '2026-11-a'")
    return version


def _encode(scope: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ENCODED else char for char in scope)


def _decode(text: str, scope: str) -> str:
    for char in scope:
        if char in _ENCODED and char != "%":
            raise _refused(text, "scope", f"{char!r} must be written %{ord(char):02X}")
    if "%" not in scope:
        return check_scope(scope)
    head, *escapes = scope.encode("utf-8", "surrogatepass").split(b"%")
    try:
        # fromhex alone would let a blank through: "% A" has two characters as well
        decoded = head + b"".join(bytes.fromhex(e[:2].strip().decode().rjust(2, "x")) + e[2:] for e in escapes)
        return check_scope(decoded.decode())
    except NameInvalid:
        raise
    except ValueError as e:
        raise _refused(text, "scope", "% must be followed by two hexadecimal digits of UTF-8, as in %2F") from e


# -- keys ------------------------------------------------------------------------------------------------------------


@record
class RunKey:
    """The identity of a run.

    `grain` says what the schedule counts: `year`, `quarter`, `month`, `week`, `day`, `hour`, `fire`, `adhoc`; a
    period's offset is part of it, as in `year@apr`, `week@sun` or `day@06:00`. `nominal` is 2 × the civil second at
    which the period starts or the fire is named, in the schedule's zone, + 1 for the second pass of a repeated hour.
    `revision` None means the newest. A run outside the schedule has grain `adhoc`, its id in `adhoc`, nominal 0 and no
    zone.
    """

    job: str
    scope: str
    grain: str
    nominal: int
    zone: str
    revision: int | None = None
    adhoc: str = ""

    def __str__(self) -> str:
        line = f"{_encode(self.scope)}/{self.job}" if self.scope else self.job
        zone = "" if self.grain == "adhoc" or (self.grain == "fire" and self.zone == "UTC") else f"[{self.zone}]"
        revision = "" if self.revision is None else f"#{self.revision}"
        return f"{line}:{self.middle}{zone}{revision}"

    @property
    def middle(self) -> str:
        """The nominal as the key writes it, `2026-10-25T02:30:00`."""
        return f"adhoc-{self.adhoc}" if self.grain == "adhoc" else nominal_text(self.grain, self.nominal, self.zone)

    @property
    def label(self) -> str:
        """The middle without colons, fit for a file name: `2026-10-25T023000`."""
        return self.middle.replace(":", "")

    @property
    def bare(self) -> RunKey:
        """The key without its revision."""
        return self if self.revision is None else replace(self, revision=None)


def parse_key(text: str) -> RunKey:
    """A run key from its text. Raises `KeyInvalid`, or `NameInvalid` for job and scope; the message names the part."""
    line, colon, rest = text.partition(":")
    if not colon:
        raise _refused(text, "key", "write JOB:WINDOW[ZONE], as in invoice-export:2026-10-05[Europe/Berlin]")
    scope, slash, job = line.rpartition("/")
    scope, job = _decode(text, scope) if slash else "", check_job_name(job)
    rest, sharp, number = rest.partition("#")
    revision = _parse_revision(text, number) if sharp else None
    middle, bracket, zone = rest.partition("[")
    if middle.startswith("adhoc-"):
        if bracket:
            raise _refused(text, "zone", "a run outside the schedule has none; leave the brackets out")
        return RunKey(job, scope, "adhoc", 0, "", revision, _parse_adhoc(text, middle[6:]))
    grain, nominal, in_utc = parse_nominal(middle)
    return RunKey(job, scope, grain, nominal, _parse_zone(text, bracket, zone, nominal, in_utc), revision)


def _parse_revision(text: str, revision: str) -> int:
    if not 1 <= len(revision) <= 9 or revision.strip(_DIGITS) or revision[0] == "0":
        raise _refused(
            text, "revision", f"{revision!r} is not a number from 1 on; write #2, or leave it out for the newest"
        )
    return int(revision)


def _parse_adhoc(text: str, name: str) -> str:
    try:
        return check_adhoc(name)
    except NameInvalid as e:
        raise _refused(text, "id", f"{name!r} is not an id; write up to 100 of A-Z a-z 0-9 . _ - after adhoc-") from e


def _parse_zone(text: str, bracket: str, zone: str, nominal: int, in_utc: bool) -> str:
    if in_utc:
        if bracket:
            raise _refused(text, "zone", "Z names the zone already; leave one of the two out")
        return "UTC"
    if not bracket:
        raise _refused(
            text, "zone", "it is missing; write the schedule's zone in brackets, as in [Europe/Berlin] or [UTC]"
        )
    name = zone[:-1]
    if zone[-1:] != "]" or not name or name.strip(_ZONE):
        raise _refused(text, "zone", f"[{zone} is not a zone in brackets; write one as in [Europe/Berlin]")
    if name == "UTC" and nominal & 1:
        raise _refused(text, "pass", "UTC repeats no hour; leave ~2 out")
    return name


# -- nominals --------------------------------------------------------------------------------------------------------


def nominal_text(grain: str, nominal: int, zone: str) -> str:
    """The nominal as a key's middle: `2026-W41`, `2026-10-05@06:00`, `2026-10-25T02~2`; a fire in UTC ends in `Z`."""
    second_pass = "~2" if nominal & 1 else ""
    if grain == "fire":
        return f"{civil_text(nominal >> 1)}{second_pass}{'Z' if zone == 'UTC' else ''}"
    if grain == "hour":
        return f"{civil_text(nominal >> 1)[:13]}{second_pass}"
    unit, at, offset = grain.partition("@")
    day = (nominal >> 1) // 86_400
    year, month, day_of_month = civil_date(day)
    if unit == "day":
        return f"{year:04d}-{month:02d}-{day_of_month:02d}{at}{offset}"
    if unit == "month":
        return f"{year:04d}-{month:02d}"
    if unit == "week":
        return f"{_week_text(day - WEEK_STARTS[offset or 'mon'])}{at}{offset}"
    if unit == "year":
        return f"{year:04d}{at}{offset}"
    if unit == "quarter":
        months = year * 12 + month - 1 - MONTHS.index(offset or "jan")
        return f"{months // 12:04d}-Q{months % 12 // 3 + 1}{at}{offset}"
    raise KeyInvalid(f"grain: there is no grain {grain!r}")


def _week_text(monday: int) -> str:
    year = civil_date(monday + 3)[0]  # an ISO week belongs to the year of its Thursday
    return f"{year:04d}-W{(monday + 3 - civil_days(year, 1, 1)) // 7 + 1:02d}"


def parse_nominal(text: str, grain: str | None = None) -> tuple[str, int, bool]:
    """Grain, nominal and whether `Z` says UTC, from a key's middle or from what a person wrote. Raises `KeyInvalid`.

    With the `grain` of a schedule, what may be left out is taken from it: a bare `2026-10-05` is `day@06:00` where days
    begin at six, `2026-11-28T14` is a fire where there are fires, `2026-11-28T14:00` an hour where there are hours.
    """
    found, nominal, in_utc = _parse_middle(text)
    if grain is None or found == grain:
        return found, nominal, in_utc
    unit, _, offset = grain.partition("@")
    if found == unit:
        return _parse_middle(f"{text}@{offset}")
    if (found, grain) == ("hour", "fire") or ((found, grain) == ("fire", "hour") and (nominal >> 1) % 3600 == 0):
        return grain, nominal, in_utc
    return found, nominal, in_utc


def _parse_middle(text: str) -> tuple[str, int, bool]:
    if not text:
        raise _refused(text, "window", "it is missing; write one as 2026-10-05")
    date, at, offset = text.partition("@")
    if at:
        return _parse_offset(text, date, offset)
    date, t, clock = text.partition("T")
    if t:
        return _parse_clock(text, _parse_date(text, date), clock)
    if len(text) == 4:
        return "year", _nominal(civil_days(_year(text, text), 1, 1)), False
    year, rest = _year(text, text[:4]), text[5:]
    if text[4] == "-" and rest[:1] == "Q":
        return "quarter", _nominal(civil_days(year, _quarter(text, rest[1:]) * 3 - 2, 1)), False
    if text[4] == "-" and rest[:1] == "W":
        return "week", _nominal(_monday(text, year, rest[1:])), False
    if len(text) == 7:
        return "month", _nominal(_parse_date(text, text + "-01")), False
    return "day", _nominal(_parse_date(text, text)), False


def _parse_offset(text: str, date: str, offset: str) -> tuple[str, int, bool]:
    """A period that does not begin where the calendar's does. That one's beginning is no offset: one name each."""
    unit, nominal, in_utc = _parse_middle(date)
    year, _, _ = civil_date(nominal // 172_800)
    if unit == "day" and offset != "00:00" and len(offset) == 5 and offset[2] == ":":
        return f"day@{offset}", nominal + 2 * _clock(text, offset), in_utc
    if unit == "week" and offset in WEEK_STARTS and offset != "mon":
        return f"week@{offset}", nominal + _nominal(WEEK_STARTS[offset]), in_utc
    if unit in ("year", "quarter") and offset in MONTHS[1:]:
        months = civil_date(nominal // 172_800)[1] - 1 + MONTHS.index(offset)
        start = civil_days(year + months // 12, months % 12 + 1, 1)
        return f"{unit}@{offset}", _nominal(start), in_utc
    raise _refused(
        text,
        "offset",
        f"@{offset} does not fit; write a day with @06:00, a week with @sun, a year or quarter with @apr",
    )


def _parse_clock(text: str, day: int, clock: str) -> tuple[str, int, bool]:
    in_utc = clock.endswith(("Z", "+00:00"))
    clock = clock.removesuffix("Z") if clock.endswith("Z") else clock.removesuffix("+00:00")
    second_pass = clock.endswith("~2")
    clock = clock.removesuffix("~2")
    if second_pass and in_utc:
        raise _refused(text, "pass", "UTC repeats no hour; leave ~2 out")
    if "~" in clock:
        raise _refused(text, "pass", "only the second pass of a repeated hour is written, as ~2")
    if "+" in clock or "-" in clock:
        raise _refused(text, "time", "a key has no offset from UTC; write the wall clock of the schedule's zone")
    if len(clock) == 2:
        if in_utc:
            raise _refused(text, "time", "an hour has no Z; write minutes, or the hour with [UTC]")
        return "hour", _nominal(day) + 2 * _clock(text, clock + ":00") + second_pass, False
    return "fire", _nominal(day) + 2 * _clock(text, clock) + second_pass, in_utc


def _nominal(day: int) -> int:
    return day * 172_800


def _clock(text: str, clock: str) -> int:
    parts = clock.split(":")
    if not 2 <= len(parts) <= 3 or any(len(part) != 2 or part.strip(_DIGITS) for part in parts):
        raise _refused(text, "time", f"{clock!r} is not a time of day; write 02:30 or 02:30:00")
    hour, minute, second = int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) == 3 else 0
    if hour > 23 or minute > 59 or second > 59:
        raise _refused(text, "time", f"{clock} is past the end of the day, hour or minute")
    return hour * 3600 + minute * 60 + second


def _year(text: str, year: str) -> int:
    if len(year) != 4 or year.strip(_DIGITS) or year == "0000":
        raise _refused(text, "year", f"{year!r} is not a year of four digits")
    return int(year)


def _quarter(text: str, quarter: str) -> int:
    if quarter not in ("1", "2", "3", "4"):
        raise _refused(text, "quarter", f"Q{quarter} is not a quarter; write Q1 to Q4")
    return int(quarter)


def _monday(text: str, year: int, week: str) -> int:
    fourth = civil_days(year, 1, 4)  # the 4th of January is always in the first ISO week
    first = fourth - (fourth + 3) % 7
    if len(week) != 2 or week.strip(_DIGITS) or week == "00":
        raise _refused(text, "week", f"W{week} is not a week; write W01 to W53")
    monday = first + 7 * (int(week) - 1)
    if civil_date(monday + 3)[0] != year:
        raise _refused(text, "week", f"{year} has no week {week}")
    return monday


def _parse_date(text: str, date: str) -> int:
    year = _year(text, date[:4])
    if len(date) != 10 or date[4] != "-" or date[7] != "-" or (date[5:7] + date[8:]).strip(_DIGITS):
        raise _refused(text, "date", f"{date!r} is not a date; write 2026-10-05")
    month, day = int(date[5:7]), int(date[8:])
    days = civil_days(year, month, day) if 1 <= month <= 12 else 0
    if civil_date(days) != (year, month, day):
        raise _refused(text, "date", f"there is no {date}")
    return days


def _refused(text: str, part: str, why: str) -> KeyInvalid:
    return KeyInvalid(f"{part}: {why} (in {text!r})")
