"""Cron, written a second time for the tests: what Vixie's crond does with a line, from its manual and its source.

The clock is read each minute. `virtual` is the local minute up to which all has run; where the wall clock jumps ahead by less
than three hours, fixed lines run for the minutes that were jumped over and wildcard lines do not; where it jumps back, only
wildcard lines run until it has caught up. A line of cronie under CRON_TZ looks at the clock of its own zone alone.
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def parsed(text: str, low: int, high: int, names: list[str]) -> set[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        ends = [str(low), str(high)] if span == "*" else (span.split("-") * 2)[:2]
        first, last = (names.index(end) + low if end in names else int(end) for end in ends)
        found.update(range(first, last + 1, int(step or 1)))
    return found


class CronEntry:
    """A line that cron has read."""

    def __init__(self, when: str) -> None:
        minute, hour, dom, month, dow = ALIASES.get(when, when).split()
        self.minutes, self.hours = parsed(minute, 0, 59, []), parsed(hour, 0, 23, [])
        self.doms, self.months = parsed(dom, 1, 31, []), parsed(month, 1, 12, MONTHS)
        self.dows = {day % 7 for day in parsed(dow, 0, 7, DAYS)}
        self.both = dom.startswith("*") or dow.startswith("*")
        self.wildcard = minute.startswith("*") or hour.startswith("*")

    def matches(self, local: datetime) -> bool:
        if local.minute not in self.minutes or local.hour not in self.hours or local.month not in self.months:
            return False
        dom, dow = local.day in self.doms, local.isoweekday() % 7 in self.dows
        return (dom and dow) if self.both else (dom or dow)

    def fires(self, zone: ZoneInfo, since: datetime, until: datetime) -> set[datetime]:
        """The minutes in which the host's crond starts it."""
        found = set()
        virtual: datetime | None = None
        for instant, local in ticks(zone, since, until):
            ahead = 1 if virtual is None else round((local - virtual).total_seconds() / 60)
            if ahead == 1 or ahead > 180 or ahead < -180:
                virtual = local
                if self.matches(local):
                    found.add(instant)
            elif ahead > 1:
                assert virtual is not None
                missed = [virtual + timedelta(minutes=1 + n) for n in range(ahead)]
                virtual = local
                if self.matches(local) if self.wildcard else any(map(self.matches, missed)):
                    found.add(instant)
            elif self.wildcard and self.matches(local):
                found.add(instant)
        return found

    def fires_by_clock(self, zone: ZoneInfo, since: datetime, until: datetime) -> set[datetime]:
        """The minutes in which cronie starts it for CRON_TZ, on a host in UTC."""
        return {instant for instant, local in ticks(zone, since, until) if self.matches(local)}


@cache
def ticks(zone: ZoneInfo, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """Each minute of (since, until] with what the wall clock shows then; the offset is asked for each quarter of an hour."""
    found = []
    instant = since + timedelta(minutes=1)
    offset = timedelta(0)
    while instant <= until:
        if instant.minute % 15 == 0 or instant == since + timedelta(minutes=1):
            offset = instant.astimezone(zone).utcoffset() or timedelta(0)
        found.append((instant, (instant + offset).replace(tzinfo=None)))
        instant += timedelta(minutes=1)
    return found


def as_cron_hands_it_on(command: str) -> tuple[str, str]:
    """What Debian's cron makes of a command: the text for the shell, and what it writes to its input."""
    out, place, escaped = "", 0, False
    while place < len(command):
        sign = command[place]
        if escaped:
            out = out[:-1] + sign if sign in "%\\" else out + sign
            escaped = False
        elif sign == "%":
            break
        else:
            out, escaped = out + sign, sign == "\\"
        place += 1
    if place == len(command):
        return out, ""
    stdin, escaped = "", False
    for sign in command[place + 1 :]:
        if escaped:
            stdin += sign if sign == "%" else "\\" + sign
            escaped = False
        elif sign == "\\":
            escaped = True
        else:
            stdin += "\n" if sign == "%" else sign
    stdin += "\\" if escaped else ""
    return out, stdin if not stdin or stdin.endswith("\n") else f"{stdin}\n"


def run_as_cron(command: str, home: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command of a crontab as cron would: its shell, its home, nothing of this process's environment."""
    text, stdin = as_cron_hands_it_on(command)
    environment = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", "HOME": str(home), "LOGNAME": "root", **environment}
    return subprocess.run(
        [environment["SHELL"], "-c", text],
        input=stdin.encode("utf-8", "surrogateescape"),
        cwd=home,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )


@cache
def nights(zone: ZoneInfo, since: datetime, until: datetime) -> list[datetime]:
    """The hours in (since, until] at which the offset of a zone has changed."""
    found, hour = [], since
    while hour < until:
        following = hour + timedelta(hours=1)
        if hour.astimezone(zone).utcoffset() != following.astimezone(zone).utcoffset():
            found.append(following)
        hour = following
    return found


TWO_YEARS = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
