"""Releases of tzdata replayed over what an earlier one stored: no name moves, no gap, no overlap, each disagreement on record.

The ledger's part is played by a dict; the rules are those that it follows (DESIGN §4.6).
"""

from __future__ import annotations

from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from duly.records import record, replace
from duly.schedule import spec
from duly.schedule.facts import disagreement, fingerprint
from duly.schedule.occurrence import Occurrence
from duly.schedule.spec import Schedule
from duly.testing.releases import reading
from duly.times import Zone, parse_instant

# Until when a host that is three weeks late reads each release.
READ_UNTIL = {
    "2020a": "2021-01-18",
    "2020e": "2021-11-12",
    "2021e": "2022-09-01",
    "2022b": "2022-10-22",
    "2022d": "2022-11-01",
    "2022e": "2022-11-19",
    "2022f": "2022-12-20",
    "2022g": "2023-04-12",
    "2023a": "2023-04-14",
    "2023b": "2023-04-18",
    "2023c": "2024-01-12",
    "2023d": "2024-02-22",
    "2024a": "2025-02-05",
    "2025a": "2026-03-22",
    "2026a": "2026-11-01",
    "2026f": "2026-11-20",
}

# Zones whose past these releases have changed for such a host, and others.
SCHEDULES = [
    spec.daily("Asia/Beirut"),
    spec.daily("Asia/Amman", at="02:30"),
    spec.weekly("Asia/Amman"),
    spec.daily("America/Mexico_City"),
    spec.daily("Africa/Casablanca"),
    spec.hourly("Asia/Beirut"),
    spec.cron("30 0 * * *", zone="Asia/Beirut"),
    spec.daily("Europe/Berlin"),
]
DRIFT = ("Asia/Beirut", "Asia/Amman", "Africa/Casablanca")


@record
class Book:
    """What a ledger holds of one line: windows by nominal, and what was told."""

    windows: dict[int, Occurrence]
    told: list[str]

    def open_until(self, schedule: Schedule, since: int, now: int) -> None:
        """What a host does at a poke: look again at what is stored, resolve what is not sealed, open what has begun."""
        for nominal, stored in self.windows.items():
            found = schedule.find(nominal)
            said = disagreement(stored.start, stored.end, found)
            if said:
                self.told.append(said)
        newest = max(self.windows.values(), key=lambda o: o.end, default=None)
        begin = since if newest is None else newest.end
        for found in takewhile(lambda o: o.start <= now, schedule.after(begin)):
            if found.nominal in self.windows:
                continue
            start = max((o.end for o in self.windows.values()), default=found.start)
            self.windows[found.nominal] = replace(found, start=start)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.words()[:40])
def test_windows_of_six_years_of_releases_tile_and_keep_their_names(
    schedule: Schedule, releases: dict[str, Path]
) -> None:
    book = Book({}, [])
    since = (
        parse_instant("2022-09-01T00:00:00Z") if schedule.kind == "hourly" else parse_instant("2020-04-01T00:00:00Z")
    )
    names: list[int] = []
    for version, date in READ_UNTIL.items():
        now = parse_instant(f"{date}T12:00:00Z")
        if now < since or (schedule.kind == "hourly" and date > "2024-02"):
            continue
        with reading(releases[version]):
            book.open_until(schedule, since, now)
        assert list(book.windows)[: len(names)] == names, "no name moves"
        names = list(book.windows)

    windows = list(book.windows.values())
    assert len(windows) > 100
    assert all(one.end == other.start for one, other in pairwise(windows))
    assert all(one.start < one.end <= one.due for one in windows)
    assert bool(book.told) == (schedule.zone in DRIFT)


def test_two_hosts_with_two_releases_agree_through_what_is_stored(releases: dict[str, Path]) -> None:
    """26 March 2023 in Beirut: one host has 2023b, the other 2023a. The one that opens first decides."""
    days = spec.daily("Asia/Beirut")
    with reading(releases["2023b"]):
        stored = days.lookup("2023-03-26")
        one = fingerprint(Zone("Asia/Beirut"), stored.start, stored.end)
    with reading(releases["2023a"]):
        here = days.find(stored.nominal)
        assert here is not None
        other = fingerprint(Zone("Asia/Beirut"), here.start, here.end)
        following = days.lookup("2023-03-27")

    assert one != other, "so that the two are looked at"
    assert disagreement(stored.start, stored.end, here)
    assert following.start != stored.end, "so that the stored end has to be adopted"
