"""Our cron against cronsim, which has Debian's behaviour as its stated truth, at every change of clocks from 2015 to 2027.

Where the two differ over a wildcard line, a clock is read each minute and decides: such a line fires whenever the clock shows
it. cronsim 2.8 loses fires after changes that are no whole hour, or that come at midnight. Of fixed lines none may differ.

    python -m campaigns.cronsim [ZONE …]
"""

from __future__ import annotations

import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim

from campaigns.progress import Progress
from duly.schedule import spec
from duly.schedule.cron import parse_cron
from duly.schedule.facts import changes
from duly.times import SECOND, Zone, instant_text, parse_instant

SINCE, UNTIL = (parse_instant(f"{year}-01-01T00:00:00Z") // SECOND for year in (2015, 2028))
AROUND = 2 * 86_400

LINES = (
    "30 2 * * *",
    "0 0 * * *",
    "45 23 * * *",
    "15 * * * *",
    "*/20 * * * *",
    "0 */2 * * *",
    "0 0-23 * * *",
    "*/15 1-3 * * SUN",
    "0 6 * * 1",
)


def zones() -> list[str]:
    """All names, aliases too."""
    return sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})


def differences(zone: str) -> tuple[list[str], int]:
    """Where ours has other fires than cronsim and than the clock, each in a line; and how often cronsim alone was wrong."""
    found = [each for change, _ in changes(Zone(zone), SINCE, UNTIL) for each in _at(zone, change)]
    return [each for each in found if each], found.count("")


def _at(zone: str, change: int) -> Iterator[str]:
    """Each difference within two days of a change; empty where the clock agrees with ours."""
    begin, end = change - AROUND, change + AROUND
    info = ZoneInfo(zone)
    start = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=begin)).astimezone(info)
    for line in LINES:
        ours = list(spec.cron(line, zone=zone).instants(begin * SECOND, end * SECOND))
        theirs = [
            int(moment.timestamp()) * SECOND
            for moment in takewhile(lambda m: m.timestamp() <= end, CronSim(line, start))
        ]
        if ours != theirs and ours == _shown(zone, line, begin, end):
            yield ""
        elif ours != theirs:
            odd = sorted(set(ours) ^ set(theirs))
            yield f"{zone} {line}: {', '.join(map(instant_text, odd[:4]))}"


def _shown(zone: str, text: str, begin: int, end: int) -> list[int]:
    """When the clock shows a wildcard line, minute by minute; nothing for another."""
    line, known = parse_cron(text), Zone(zone)
    if not line.wildcard:
        return []
    minutes = range(begin - begin % 60 + 60, end + 1, 60)
    return [minute * SECOND for minute in minutes if line.fires_at(minute + known.offset_at(minute))]


def main(wanted: list[str]) -> int:
    """Run the zones that are left, and say where the two differ."""
    progress = Progress("cronsim")
    for zone in wanted or zones():
        if not progress.has(zone):
            found, lost = differences(zone)
            progress.note(zone, "; ".join([str(lost), *found]))
            for difference in found:
                print(difference, flush=True)
    results = [result.split("; ") for result in progress.done.values()]
    different, lost = sum(len(result) > 1 for result in results), sum(int(result[0]) for result in results)
    print(
        f"{len(results)} zones compared at every change from 2015 to 2027: {different} with a difference; "
        f"in {lost} places cronsim alone did not fire when the clock showed it"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(list(islice(sys.argv, 1, None))))
