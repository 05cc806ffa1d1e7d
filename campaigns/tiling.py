"""The tiling law over all zones of zone.tab, 1970 to 2037: days, weeks, months and hours.

Whatever clocks did, each window ends where the next begins, and begins when the clock first shows its beginning or later; each
date has a window, but for the five that never were.

    python -m campaigns.tiling [ZONE …]
"""

from __future__ import annotations

import importlib.resources
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

from campaigns.progress import Progress
from duly.schedule import spec
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule
from duly.times import HOUR, SECOND, civil_date, civil_days, parse_instant

SINCE, UNTIL = parse_instant("1970-01-01T00:00:00Z"), parse_instant("2038-01-01T00:00:00Z")
FIRST, LAST = civil_days(1970, 1, 2), civil_days(2037, 12, 31)

# Dates that were crossed out when a place moved over the date line.
NEVER_WERE = {
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Fakaofo", "2011-12-30"),
    ("Pacific/Kanton", "1994-12-31"),
    ("Pacific/Kiritimati", "1994-12-31"),
    ("Pacific/Kwajalein", "1993-08-21"),
}


def zones() -> list[str]:
    """The zones of zone.tab."""
    table = importlib.resources.files("tzdata.zoneinfo").joinpath("zone.tab").read_text(encoding="utf-8")
    return sorted(line.split("\t")[2] for line in table.splitlines() if not line.startswith("#"))


def empty_dates(zone: str) -> list[str]:
    """The dates of a zone that have no window. Raises `AssertionError` where windows do not tile, or begin elsewhere."""
    seen = set()
    for day in _windows(spec.daily(zone)):
        _check_beginning(zone, day)
        seen.add(day.nominal // 172_800)
    return [date(*civil_date(day)).isoformat() for day in range(FIRST, LAST + 1) if day not in seen]


def check_longer(zone: str) -> None:
    """Weeks, months and hours tile too."""
    for schedule in (spec.weekly(zone), spec.monthly(zone)):
        for period in _windows(schedule):
            _check_beginning(zone, period)
    hours = list(spec.hourly(zone).instants(SINCE, UNTIL))
    assert all(0 < later - earlier <= 25 * HOUR for earlier, later in pairwise(hours)), zone
    assert sum(later - earlier > 2 * HOUR for earlier, later in pairwise(hours)) <= 1, zone


def _windows(schedule: Schedule) -> Iterator[Occurrence]:
    before = None
    for found in takewhile(lambda o: o.start < UNTIL, schedule.after(SINCE)):
        assert found.start < found.end, found
        assert before is None or before.end == found.start, (before, found)
        before = found
        yield found


def _check_beginning(zone: str, found: Occurrence) -> None:
    """At its start the clock shows its beginning or later, and a second before it does not."""
    named = datetime(1970, 1, 1) + timedelta(seconds=found.nominal >> 1)
    start = found.start // SECOND
    assert _shown(zone, start) >= named > _shown(zone, start - 1), (zone, found)


def _shown(zone: str, second: int) -> datetime:
    utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return utc.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def main(wanted: list[str]) -> int:
    """Run the zones that are left, say what they had, and whether the dates that never were are the known ones."""
    progress = Progress("tiling")
    for zone in wanted or zones():
        if not progress.has(zone):
            found = empty_dates(zone)
            check_longer(zone)
            progress.note(zone, " ".join(found))
            print(f"{zone}: windows tile{', without ' + ' '.join(found) if found else ''}", flush=True)
    found_all = {(zone, day) for zone, days in progress.done.items() for day in days.split()}
    expected = {(zone, day) for zone, day in NEVER_WERE if progress.has(zone)}
    print(f"{len(progress.done)} zones tile; dates that never were: {sorted(found_all)}")
    return 0 if found_all == expected else 1


if __name__ == "__main__":
    sys.exit(main(list(islice(sys.argv, 1, None))))
