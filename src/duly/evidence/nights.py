"""Nights: what a schedule does where the clocks of its zone are moved: which of its times are skipped, moved or come twice, and
which window is longer or shorter for it. Pure.
"""

from __future__ import annotations

from itertools import islice, takewhile

from duly.evidence.next import ClockChange
from duly.ledger.spells import Spell, placed_after
from duly.records import record, replace
from duly.schedule.facts import changes
from duly.schedule.resolver import resolve
from duly.times import DAY, SECOND, Zone, civil_text, clock_seconds, duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

SKIPPED, MOVED, MERGED, TWICE, ONCE = "skipped", "moved", "merged", "twice", "once"
AT_MOST = 12  # changes of the clocks that are looked at; in Morocco there are four in some years
_TIMES_AT_MOST = 2_000  # a date that a zone leaves out has 1,440 minutes
_WINDOWS_AT_MOST = 100
_LONGEST = 8 * DAY  # of a month nobody minds an hour


@record
class Touched:
    """Times that the clocks touch, all in one way. `times`: the wall clocks, in order; `says`: what is done about them."""

    word: str
    times: list[str]
    says: str


@record
class Night:
    """A change of the clocks. `wall`: what they show as it comes, and then. `touched`: the times in the hour that is left out
    or comes twice; `holds`: the window that is longer or shorter for it.
    """

    change: ClockChange
    date: str
    wall: tuple[str, str]
    touched: list[Touched]
    holds: Occurrence | None


def nights(schedule: Schedule, instant: int, until: int) -> list[Night]:
    """The nights from an instant until another; none of a schedule that is counted in UTC."""
    if schedule.kind == "every":
        return []
    zone = Zone(schedule.zone)
    found = islice(changes(zone, instant // SECOND, until // SECOND), AT_MOST)
    return [_night(schedule, zone, when, offset) for when, offset in found]


def _night(schedule: Schedule, zone: Zone, when: int, after: int) -> Night:
    before = zone.offset_at(when - 1)
    shows, then = civil_text(when + before), civil_text(when + after)
    return Night(
        ClockChange(when * SECOND, before, after),
        shows[:10],
        (shows[11:16], then[11:16]),
        _touched(schedule, zone, when, when + min(before, after), when + max(before, after)),
        _holding(schedule, when * SECOND),
    )


def _holding(schedule: Schedule, change: int) -> Occurrence | None:
    """The window that an instant lies within, where it is no longer than a week."""
    coming = (placed.occurrence for placed in placed_after([Spell(schedule, 1, None, None)], change))
    near = takewhile(lambda found: found.start < change, islice(coming, _WINDOWS_AT_MOST))
    return next((found for found in near if change < found.end and found.end - found.start <= _LONGEST), None)


def _touched(schedule: Schedule, zone: Zone, when: int, begin: int, end: int) -> list[Touched]:
    """The schedule's times in a civil range, by what is done about them."""
    found: dict[tuple[str, str], list[int]] = {}
    plain = replace(schedule, calendar=None)
    for civil, gap, fold in islice(_times(schedule, begin, end), _TIMES_AT_MOST):
        word, says = _done(plain, zone, when, civil, gap, fold)
        if (off := _day_off(schedule, civil)) != "":
            word, says = SKIPPED, off
        found.setdefault((word, says), []).append(civil)
    if schedule.at is not None:
        for civil in _clocks(schedule.at, begin, end):
            word, says = _worked(zone, when, civil, schedule)
            found.setdefault((word, says), []).append(civil)
    return [
        Touched(word, [civil_text(civil)[11:16] for civil in sorted(set(times))], says)
        for (word, says), times in sorted(found.items(), key=lambda each: min(each[1]))
    ]


def _times(schedule: Schedule, begin: int, end: int) -> Iterator[tuple[int, str, str]]:
    """The civil seconds of a range that the schedule names, with the policies of each."""
    for rule in schedule.rules:
        for civil in takewhile(lambda civil: civil < end, rule.line.after(begin - 1)):
            yield civil, rule.gap, rule.fold


def _clocks(clock: str, begin: int, end: int) -> Iterator[int]:
    """The civil seconds of a range at which a wall clock shows a time."""
    for day in range(begin // 86_400, (end - 1) // 86_400 + 1):
        if begin <= day * 86_400 + clock_seconds(clock) < end:
            yield day * 86_400 + clock_seconds(clock)


def _day_off(schedule: Schedule, civil: int) -> str:
    on = schedule.calendar
    if on is None or on.policy != "skip" or not on.calendar.is_off(civil // 86_400):
        return ""
    return f"is a day off of calendar {on.calendar.name}"


def _done(plain: Schedule, zone: Zone, when: int, civil: int, gap: str, fold: str) -> tuple[str, str]:
    """What is done about a civil second that is left out or comes twice, in a word and in words."""
    resolved = resolve(zone, civil, gap, fold)
    if not resolved:
        return SKIPPED, "is left out that night, and nothing makes up for it"
    if len(resolved) > 1:
        return TWICE, "comes twice, and counts each time"
    second, nominal, resolution = resolved[0]
    if resolution != "gap-shifted":
        return ONCE, f"comes twice; the {'first' if resolution == 'fold-first' else 'second'} counts"
    if plain.find(nominal) is None:
        return MERGED, "is left out that night; the next one, which comes at the same instant, counts for both"
    return MOVED, f"is left out that night; it counts {_moved(zone, when, second, gap)}"


def _worked(zone: Zone, when: int, civil: int, schedule: Schedule) -> tuple[str, str]:
    """What is done about the wall clock at which a period is worked."""
    second, _, resolution = resolve(zone, civil, schedule.gap, schedule.fold)[0]
    if resolution == "gap-shifted":
        return MOVED, f"is left out that night; the period before is due {_moved(zone, when, second, schedule.gap)}"
    return ONCE, f"comes twice; the period before is due at the {'first' if resolution == 'fold-first' else 'second'}"


def _moved(zone: Zone, when: int, second: int, gap: str) -> str:
    if gap == "shift_forward":
        return f"{duration_text((zone.offset_at(when) - zone.offset_at(when - 1)) * SECOND)} later"
    return f"at {civil_text(second + zone.offset_at(second))[11:16]}"
