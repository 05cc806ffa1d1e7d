"""Facts of a zone: which release of the database is read, and what its rules say around a window.

Releases come late, reach hosts at different times, and are withdrawn. So what a window was computed from is kept beside it:
the release, for people, and a fingerprint of the rules, which decides. The fingerprint is of what the rules mean there, not
of a file: the same rules are files of different length on Debian and on PyPI, and a new release changes nothing for most
windows.
"""

from __future__ import annotations

from duly.records import record
from duly.schedule.resolver import bisect_change
from duly.times import HOUR, SECOND, Zone, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.occurrence import Occurrence

UNKNOWN = "unknown"
PACKAGE = "tzdata package"

# How far around a window a change still matters: a wall time is looked for on the days next to it.
REACH = 48 * HOUR

# No zone changes its offset twice within six days (a test looks), so two equal offsets three days apart hide no change.
_STRIDE = 3 * 86_400


@record
class Release:
    """A release of the database, as `2026f`, and where it is read: a folder of the system, or `tzdata package`.

    `unknown` where the files do not say; `none` for UTC, which needs none.
    """

    version: str
    source: str


@record
class ZoneFacts:
    """What a window in a zone was computed from."""

    zone: str
    release: Release
    fingerprint: str


def facts_of(zone: str, start: int, end: int) -> ZoneFacts:
    """The facts of a zone for the window [start, end)."""
    return ZoneFacts(zone, release_in_use(zone), fingerprint(Zone(zone), start, end))


def release_in_use(zone: str) -> Release:
    """Where this zone's rules are read: the first folder that has its file, as `zoneinfo` looks, else the package."""
    if zone == "UTC":
        return Release("none", "none")
    from zoneinfo import TZPATH

    for folder in TZPATH:
        if _first_line(f"{folder}/{zone}") is not None:
            return Release(_version_in(folder), folder)
    try:
        from tzdata import IANA_VERSION  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        return Release(UNKNOWN, UNKNOWN)
    return Release(str(IANA_VERSION), PACKAGE)


def _version_in(folder: str) -> str:
    """Debian and others install tzdata.zi, whose first line is `# version 2026f`; macOS and the BSDs a file +VERSION."""
    for name, mark in (("tzdata.zi", "# version "), ("+VERSION", "")):
        first = _first_line(f"{folder}/{name}")
        if first and first.startswith(mark):
            return first.removeprefix(mark)
    return UNKNOWN


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.readline(100).strip()
    except OSError:
        return None


# -- rules ---------------------------------------------------------------------------------------------------------------


def changes(zone: Zone, after: int, until: int) -> Iterator[tuple[int, int]]:
    """The changes of a zone's offset in (after, until], all in seconds: when, and the offset from then on."""
    offset = zone.offset_at(after)
    while after < until:
        beyond = min(after + _STRIDE, until)
        then = zone.offset_at(beyond)
        if then != offset:
            yield bisect_change(zone, after, beyond), then
            offset = then
        after = beyond


def changes_back(zone: Zone, before: int, since: int) -> Iterator[tuple[int, int]]:
    """The changes of a zone's offset in (since, before], the newest first: when, and the offset until then."""
    offset = zone.offset_at(before)
    while since < before:
        earlier = max(before - _STRIDE, since)
        then = zone.offset_at(earlier)
        if then != offset:
            yield bisect_change(zone, earlier, before), then
            offset = then
        before = earlier


def fingerprint(zone: Zone, start: int, end: int) -> str:
    """A digest of the rules around a window: the offset two days before it, then each change until two days after it with
    the offset from then on. Equal where the rules mean the same, whatever files say it.
    """
    first, last = (start - REACH) // SECOND, -((-end - REACH) // SECOND)
    words = [str(zone.offset_at(first)), *(f"{when}:{offset}" for when, offset in changes(zone, first, last))]
    return digest(" ".join(words))


def digest(text: str) -> str:
    """Sixteen hexadecimal digits. FNV-1a of 64 bits: it costs no import, and every language has it in five lines."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


# -- drift ---------------------------------------------------------------------------------------------------------------


def disagreement(start: int, end: int, found: Occurrence | None) -> str:
    """What the rules in use say of a window whose bounds are stored, in words; empty where they agree. The stored bounds
    win (I8, I9); this is for the event that records it. `found` is the occurrence of its nominal today, None for no such.
    """
    if found is None:
        return "no such time under the rules in use"
    said = [
        f"{name} {instant_text(stored)} is stored, {instant_text(here)} under the rules in use"
        for name, stored, here in (("start", start, found.start), ("end", end, found.end))
        if stored != here
    ]
    return "; ".join(said)
