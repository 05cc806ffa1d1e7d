"""Spells: which version of a schedule answers for which time.

A version is in force from an instant on, until the next one is. A window belongs to the version whose spell its end lies
in, after the spell's beginning and up to its end; one that straddles the beginning starts there instead, so that the
windows of a line tile time across versions (I9), whatever schedule, zone or grain follows another.
"""

from __future__ import annotations

from duly.errors import WindowInvalid
from duly.records import record, replace
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

# How long after its end a window is due at most: at a wall clock that follows, which clocks may delay by a day; or on a
# business day, which a calendar has within 400 days.
_WALL_CLOCK = 3 * DAY
_MOVED = 410 * DAY


@record
class Spell:
    """A schedule and the time that it answers for: windows with an end in (since, until]. None: without limit."""

    schedule: Schedule
    version: int
    since: int | None
    until: int | None

    def has(self, occurrence: Occurrence) -> bool:
        """Whether the window is this version's."""
        return (self.since is None or occurrence.end > self.since) and (
            self.until is None or occurrence.end <= self.until
        )

    def clipped(self, occurrence: Occurrence) -> Occurrence:
        """The window, starting no earlier than the spell."""
        if self.since is None or occurrence.start >= self.since:
            return occurrence
        return replace(occurrence, start=self.since)

    def after(self, instant: int) -> Iterator[Occurrence]:
        """The spell's windows due after this instant, in order."""
        if self.since is not None:  # a window is due before its end only where a calendar makes it so
            instant = max(instant, self.since - (_MOVED if self.schedule.calendar is not None else 0))
        for occurrence in self.schedule.after(instant):
            if self.until is not None and occurrence.end > self.until:
                return
            if self.has(occurrence):
                yield self.clipped(occurrence)

    def before(self, instant: int) -> Iterator[Occurrence]:
        """The spell's windows due by this instant, the newest first."""
        if self.until is not None:
            instant = min(instant, self.until + (_MOVED if self.schedule.calendar is not None else _WALL_CLOCK))
        for occurrence in self.schedule.before(instant):
            if self.since is not None and occurrence.end <= self.since:
                return
            if self.has(occurrence):
                yield self.clipped(occurrence)

    def ending_after(self, instant: int) -> Iterator[Occurrence]:
        """The spell's windows that end after this instant, in order of their bounds: they tile time.

        In this order they also come due. Whether they are due by then is another question, which `after` answers.
        """
        if self.since is not None:
            instant = max(instant, self.since)
        for occurrence in self._in_order_from(instant):
            if self.until is not None and occurrence.end > self.until:
                return
            if occurrence.end > instant:
                yield self.clipped(occurrence)

    def _in_order_from(self, instant: int) -> Iterator[Occurrence]:
        """The schedule's windows from the first that ends after the instant on, perhaps after some that are due with it."""
        schedule = self.schedule
        plain = _due_at_end(schedule)
        if plain is schedule:
            return schedule.after(instant)
        first = next(plain.after(instant), None)
        if first is None:
            return iter(())
        found = schedule.find(first.nominal)
        assert found is not None  # neither a calendar nor a wall clock of work takes a window away
        return schedule.after(found.due - 1)

    def find(self, nominal: int) -> Occurrence | None:
        """The spell's window of this nominal, or None."""
        found = self.schedule.find(nominal)
        return self.clipped(found) if found is not None and self.has(found) else None


def _due_at_end(schedule: Schedule) -> Schedule:
    """The schedule with the same windows, due when they end."""
    return schedule if schedule.at is None and schedule.calendar is None else replace(schedule, at=None, calendar=None)


def windows_after(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """The windows that end after an instant, in order of their bounds, whichever version answers for them."""
    for spell in spells:
        yield from spell.ending_after(instant)


def due_after(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """The windows due after this instant under whichever version answers for them, in order.

    The last windows of a version may come due after the first of the next, which does not wait for a wall clock.
    """
    from heapq import merge

    return merge(*(spell.after(instant) for spell in spells), key=lambda occurrence: occurrence.due)


def due_before(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """The windows due by this instant under whichever version answers for them, the newest first."""
    from heapq import merge

    return merge(*(spell.before(instant) for spell in reversed(spells)), key=lambda occurrence: -occurrence.due)


def find_nominal(spells: list[Spell], nominal: int) -> Occurrence | None:
    """The window of this nominal in the version that answers for it; None: off the grid."""
    found = (spell.find(nominal) for spell in reversed(spells))
    return next((occurrence for occurrence in found if occurrence is not None), None)


def lookup(spells: list[Spell], text: str) -> Occurrence:
    """The window that a person named, in the version that answers for it. Raises as `Schedule.lookup`."""
    found: list[Occurrence] = []
    refused: WindowInvalid | None = None
    for spell in reversed(spells):
        try:
            occurrence = spell.schedule.lookup(text)
        except WindowInvalid as e:
            refused = refused or e
            continue
        if spell.has(occurrence):
            found.append(spell.clipped(occurrence))
        else:
            refused = refused or WindowInvalid(
                f"{text} is a window of version {spell.version} of the schedule, which did not answer for that time"
            )
    if len(found) > 1:
        raise WindowInvalid(f"{text} names a window before and one after the schedule changed; write its time too")
    if found:
        return found[0]
    assert refused is not None  # there is at least one spell
    raise refused
