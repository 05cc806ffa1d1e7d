"""Next: the occurrences of a schedule around now, and what the clocks do to each.

A range is half-open and meant in the schedule's own wall clock: `2026-11-01..2026-12-01` is November as the zone has it.
"""

from __future__ import annotations

from itertools import islice, takewhile

from duly.errors import WindowInvalid
from duly.ledger.spells import Placed, Spell, placed_after, placed_before
from duly.records import record, replace
from duly.schedule.facts import changes, changes_back
from duly.schedule.keys import parse_nominal
from duly.schedule.spec import EARLIEST, LATEST
from duly.times import DAY, SECOND, Zone, duration_text, instant_text, parse_duration, parse_instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

_TEN_YEARS = 3653 * 86_400


@record
class Range:
    """Half-open in civil seconds of the schedule's zone. None: open at that side."""

    begin: int | None
    end: int | None


def parse_range(text: str, zone: str, instant: int) -> Range:
    """A range as people write it: `2026-11-01..2026-12-01`, `2026-11..`, `-3d..`, `..2026-12-01`. Raises `WindowInvalid`.

    An end is a period or wall clock, which means its beginning, an instant with `Z` or an offset, or a time before or
    after now, as `-3d` or `+12h`.
    """
    first, dots, last = text.partition("..")
    if not dots:
        raise WindowInvalid(f"{text!r} is no range; write it half-open, as 2026-11-01..2026-12-01 or -3d..")
    begin, end = _end(first, zone, instant), _end(last, zone, instant)
    if begin is not None and end is not None and begin >= end:
        raise WindowInvalid(f"{text!r} ends before it begins; a range is half-open, as 2026-11-01..2026-12-01")
    return Range(begin, end)


def _end(text: str, zone: str, instant: int) -> int | None:
    text = text.strip()
    if not text:
        return None
    if text[0] in "+-":
        moved = parse_duration(text[1:])
        return _civil(zone, instant + moved if text[0] == "+" else instant - moved)
    clock = text.partition("T")[2]
    if clock[-1:] in ("Z", "z") or "+" in clock or "-" in clock:
        return _civil(zone, parse_instant(text))
    return parse_nominal(text)[1] >> 1


def _civil(zone: str, instant: int) -> int:
    if not EARLIEST <= instant <= LATEST:
        raise WindowInvalid(
            "a range has its ends in the years 1 to 9999; write it half-open, as 2026-11-01..2026-12-01"
        )
    second = instant // SECOND
    return second + Zone(zone).offset_at(second)


def within(spells: list[Spell], wanted: Range, instant: int) -> Iterator[Placed]:
    """The windows with a nominal in the range, in order of their due times; from now on where it has no beginning.

    Where the zone has changed, each is meant in the wall clock that names it.
    """
    begin = None if wanted.begin is None else 2 * wanted.begin
    end = None if wanted.end is None else 2 * wanted.end
    # No zone is further than a day from UTC, and a repeated hour goes back by less: two days are enough either way.
    since = instant if wanted.begin is None else wanted.begin * SECOND - 2 * DAY
    for placed in placed_after(spells, since):
        nominal = placed.occurrence.nominal
        if end is not None and nominal >= end + 4 * 86_400:
            return
        if (begin is None or nominal >= begin) and (end is None or nominal < end):
            yield placed


def around(spells: list[Spell], instant: int, *, past: int, coming: int) -> list[Placed]:
    """The newest past windows and the coming ones, in order."""
    newest = list(islice(placed_before(spells, instant), past))[::-1]
    return [*newest, *islice(placed_after(spells, instant), coming)]


@record
class ClockChange:
    """The clocks of a zone are moved at an instant, from one offset to another (seconds east of UTC)."""

    at: int
    before: int
    after: int

    @property
    def words(self) -> str:
        """As `clocks go back by 1h`."""
        moved = (self.after - self.before) * SECOND
        return f"clocks go {'forward' if moved > 0 else 'back'} by {duration_text(abs(moved))}"


def next_change(zone: str, instant: int) -> ClockChange | None:
    """The first change of the clocks after an instant; None if there is none within ten years. Pure."""
    known, second = Zone(zone), instant // SECOND
    found = next(changes(known, second, second + _TEN_YEARS), None)
    return None if found is None else ClockChange(found[0] * SECOND, known.offset_at(found[0] - 1), found[1])


def previous_change(zone: str, instant: int) -> ClockChange | None:
    """The last change of the clocks up to an instant; None if there is none within ten years. Pure."""
    known, second = Zone(zone), instant // SECOND
    found = next(changes_back(known, second, second - _TEN_YEARS), None)
    return None if found is None else ClockChange(found[0] * SECOND, found[1], known.offset_at(found[0]))


def around_change(spells: list[Spell], change: ClockChange) -> list[Placed]:
    """The windows due while the clocks are moved, up to a day's worth of hours, and three before and after. Pure."""
    moved = abs(change.after - change.before) * SECOND
    begin, end = change.at - moved - 1, change.at + moved
    before = list(islice(placed_before(spells, begin), 3))[::-1]
    within = list(islice(takewhile(lambda p: p.occurrence.due <= end, placed_after(spells, begin)), 50))
    return [*before, *within, *islice(placed_after(spells, end), 3)]


def night_note(schedule: Schedule, occurrence: Occurrence) -> str:
    """What the clocks do to an occurrence, or else within its window, where that is no longer than a week. Pure."""
    note = occurrence.off or clock_note(schedule, occurrence)
    if note or schedule.zone == "UTC" or occurrence.end - occurrence.start > 8 * DAY:
        return note
    zone, start, end = Zone(schedule.zone), occurrence.start // SECOND, occurrence.end // SECOND
    found = next(changes(zone, start, end - 1), None)
    return "" if found is None else ClockChange(found[0] * SECOND, zone.offset_at(start), found[1]).words


def clock_note(schedule: Schedule, occurrence: Occurrence) -> str:
    """What the clocks do to this occurrence, in words; empty on most nights. Pure."""
    if schedule.at is not None:
        return _note_of_due(schedule, occurrence)
    zone = Zone(schedule.zone)
    clock = instant_text((occurrence.nominal >> 1) * SECOND)[11:16]
    shown = zone.local(occurrence.start if schedule.kind not in ("cron", "every") else occurrence.due).strftime("%H:%M")
    match occurrence.resolution:
        case "gap-shifted":
            return f"{clock} does not exist that day; it counts at {shown}"
        case "fold-first":
            passes = (
                " and is counted each time; this is the first" if occurrence_is_repeated(schedule, occurrence) else ""
            )
            return f"{clock} happens twice that day{passes or '; the first counts'}"
        case "fold-second":
            repeated = occurrence.nominal & 1
            return f"{clock} happens twice that day; {'this is the second' if repeated else 'the second counts'}"
    return ""


def occurrence_is_repeated(schedule: Schedule, occurrence: Occurrence) -> bool:
    """Whether the second pass of this wall time is an occurrence too, whatever day off it may be."""
    return bool(occurrence.nominal & 1) or replace(schedule, calendar=None).find(occurrence.nominal | 1) is not None


def _note_of_due(schedule: Schedule, occurrence: Occurrence) -> str:
    """A period worked at a wall clock that the clocks skip or repeat that night."""
    assert schedule.at is not None
    zone, due = Zone(schedule.zone), occurrence.due // SECOND
    local = due + zone.offset_at(due)
    wanted = local - local % 86_400 + clock_seconds(schedule.at)
    before, after = zone.offsets_of(wanted)
    if before < after:
        return f"{schedule.at} does not exist that night; this period is due at {instant_text(local * SECOND)[11:16]}"
    if before > after and wanted == local:
        which = "first" if local - before == due else "second"
        return f"{schedule.at} happens twice that night; this period is due at the {which}"
    return ""


def clock_seconds(clock: str) -> int:
    """The second of the day that a wall clock shows, `02:30` or `02:30:15`."""
    hour, minute, *second = (int(part) for part in clock.split(":"))
    return hour * 3600 + minute * 60 + sum(second)
