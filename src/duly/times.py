"""Instants, durations and zones. Nothing here reads a clock.

An *instant* is an integer: microseconds since 1970-01-01T00:00:00Z. A *civil second* is an integer too: what a wall
clock shows, counted as if it stood in UTC. All comparison is between instants; Python compares two datetimes of one
zone by wall clock, ignoring which pass of a repeated hour they belong to.

Datetimes are imported where they are used: a wrapper in UTC never needs one.
"""

from __future__ import annotations

from duly.errors import ScheduleError, TimeInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, tzinfo

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}


# -- civil time ---------------------------------------------------------------------------------------------------------


def civil_days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any integer year (H. Hinnant, days_from_civil)."""
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number: the inverse of `civil_days` (H. Hinnant, civil_from_days)."""
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def civil_text(civil: int) -> str:
    """A civil second as ISO text, `2026-10-25T02:30:00`."""
    days, second = divmod(civil, 86_400)
    year, month, day = civil_date(days)
    return f"{year:04d}-{month:02d}-{day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def clock_seconds(text: str) -> int:
    """The second of the day of a wall clock, `02:30` or `02:30:15`. Raises `ValueError`."""
    parts = text.split(":")
    if not text.isascii() or not 2 <= len(parts) <= 3 or any(len(part) != 2 or not part.isdigit() for part in parts):
        raise ValueError(text)
    hour, minute, second = int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) == 3 else 0
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    return hour * 3600 + minute * 60 + second


# -- zones --------------------------------------------------------------------------------------------------------------


class Zone:
    """A time zone of the IANA database, spelled as it was written. Raises `ScheduleError` (bad_zone) for an unknown name.

    `Zone("UTC")` answers without loading the database, or a datetime: most of a wrapper's start would go there.
    """

    __slots__ = ("_info", "_local", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._info: tzinfo | None = None if name == "UTC" else _zone_info(name)
        if self._info is not None:
            from datetime import datetime

            self._local = datetime.fromtimestamp

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Zone) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def offset_at(self, second: int) -> int:
        """Seconds east of UTC at an instant given in whole seconds since the epoch."""
        if self._info is None:
            return 0
        # The direct way is three times faster, and Windows does not have it before 1970.
        local = self._local(second, self._info) if second >= 0 else self.local(second * SECOND)
        offset = local.utcoffset()
        assert offset is not None  # a zone of the database always has one
        return offset.days * 86_400 + offset.seconds

    def offsets_of(self, civil: int) -> tuple[int, int]:
        """The offsets before and after (fold 0 and 1) that a civil second may be read with.

        Equal: it exists once. First greater: it is repeated. First smaller: it does not exist (PEP 495).
        """
        if self._info is None:
            return 0, 0
        local = as_datetime(civil * SECOND).replace(tzinfo=self._info)
        first, second = local.utcoffset(), local.replace(fold=1).utcoffset()
        assert first is not None
        assert second is not None
        return round(first.total_seconds()), round(second.total_seconds())

    def local(self, instant: int) -> datetime:
        """An instant in this zone's local time, with its offset."""
        moment = as_datetime(instant)
        return moment if self._info is None else moment.astimezone(self._info)

    def local_text(self, instant: int) -> str:
        """An instant in this zone's local time as ISO text with offset, `2026-10-25T02:00:00+01:00`."""
        if self._info is None:
            return f"{civil_text(instant // SECOND)}+00:00"
        return self.local(instant).isoformat(timespec="seconds")


def _zone_info(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        # ZoneInfo("localtime") and an absolute path would name whatever this host has; a schedule must not.
        if not name or name[0] == "/" or name == "localtime" or ".." in name:
            raise ValueError(name)
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as e:
        raise ScheduleError(
            f"zone: there is no time zone {name!r}; write one of the IANA database, as Europe/Berlin or UTC",
            code="bad_zone",
            token=name,
        ) from e


# -- instants -----------------------------------------------------------------------------------------------------------


def as_datetime(instant: int) -> datetime:
    """An instant as an aware datetime in UTC."""
    from datetime import UTC, datetime, timedelta

    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> int:
    """An aware datetime as an instant. Raises `TimeInvalid` for a naive one: it names no instant."""
    from datetime import timedelta

    if moment.tzinfo is None:
        raise TimeInvalid(f"{moment.isoformat()} has no offset, so it names no instant; give it a zone")
    return (moment - as_datetime(0)) // timedelta(microseconds=1)


def instant_text(instant: int) -> str:
    """An instant as ISO 8601 text in UTC, `2026-10-25T01:00:00Z`; a fraction is written only where there is one."""
    text = civil_text(instant // SECOND)
    fraction = instant % SECOND
    return f"{text}.{fraction:06d}Z" if fraction else f"{text}Z"


def parse_instant(text: str) -> int:
    """An instant from ISO 8601 text with an offset or `Z`. Raises `TimeInvalid`."""
    from datetime import datetime

    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError as e:
        raise TimeInvalid(f"{text!r} is not an instant; write it like 2026-10-25T01:00:00Z") from e


def parse_moment(text: str, zone: str, instant: int) -> int:
    """An instant as a person writes it: with `Z` or an offset, as `+2h` from now, or as the wall clock or date of a zone.

    Raises `TimeInvalid`, showing both readings, for a wall clock that the zone has twice or not at all.
    """
    text = text.strip()
    if text[:1] == "+":
        return instant + parse_duration(text[1:])
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError as e:
        raise TimeInvalid(f"{text!r} is no instant; write 2026-12-24T18:00, with Z or an offset for UTC, or +2h") from e
    if moment.tzinfo is not None:
        return from_datetime(moment)
    civil = from_datetime(moment.replace(tzinfo=UTC)) // SECOND
    before, after = Zone(zone).offsets_of(civil)
    if before != after:
        readings = " or ".join(instant_text((civil - offset) * SECOND) for offset in (before, after))
        times = "comes twice" if before > after else "does not exist"
        raise TimeInvalid(f"{text} {times} in {zone}; write {readings}")
    return (civil - before) * SECOND


# -- durations ----------------------------------------------------------------------------------------------------------

# What is that far from now is still a day of the calendar, which ends with the year 9999.
LONGEST_DURATION = 1_000 * 366 * DAY
_LONGEST_DURATION_TEXT = 300  # Python reads no number of thousands of digits


def parse_duration(text: str) -> int:
    """A positive duration in microseconds, from `250ms`, `90s`, `15m`, `1h30m`, `2d`, `1w` or ISO 8601 `PT90M`, `P1DT2H`.

    Raises `TimeInvalid`. Months and years are refused: they have no fixed length; and so is what no instant can be away.
    """
    micros = _duration(text) if len(text) <= _LONGEST_DURATION_TEXT else LONGEST_DURATION + 1
    if micros > LONGEST_DURATION:
        raise TimeInvalid(f"{text[:40]!r} is longer than a thousand years; write it like 90s, 15m, 1h30m or 2d")
    return micros


def _duration(text: str) -> int:
    compact = text.strip()
    if compact[-2:].lower() == "ms" and compact[:-2].isascii() and compact[:-2].isdigit() and int(compact[:-2]):
        return int(compact[:-2]) * 1000
    if compact[:1] in ("P", "p"):
        days, _, clock = compact[1:].upper().partition("T")
        if ("M" in days) or ("Y" in days) or (compact.upper().endswith("T")):
            raise TimeInvalid(f"{text!r} has no fixed length; use days, hours, minutes or seconds")
        compact = (days + clock).lower()
    total, number = 0, ""
    rest = list(_UNITS)
    for char in compact.lower():
        if char in "0123456789":
            number += char
        elif char in _UNITS and number and char in rest:
            total += int(number) * _UNITS[char]
            rest, number = [unit for unit in rest if _UNITS[unit] < _UNITS[char]], ""
        else:
            raise TimeInvalid(f"{text!r} is not a duration; write it like 90s, 15m, 1h30m or 2d")
    if number or total == 0:
        raise TimeInvalid(f"{text!r} is not a duration longer than nothing; write it like 90s, 15m, 1h30m or 2d")
    return total


def duration_text(micros: int) -> str:
    """A duration as people write it, `1h30m`, `45s`, `250ms`: exact for whole milliseconds, no unit left out."""
    if micros < 0:
        return "-" + duration_text(-micros)
    parts = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND)):
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count}{unit}")
    if micros and not parts:
        parts.append(f"{micros / 1000:.0f}ms")
    return "".join(parts) or "0s"
