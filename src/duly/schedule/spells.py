"""Spells: which version of a schedule answers for which time.

A version is in force from an instant on, until the next one is. A window belongs to the version whose spell its end lies
in, after the spell's beginning and up to its end; one that straddles the beginning starts there instead, so that the
windows of a line tile time across versions (I9), whatever schedule, zone or grain follows another.
"""

from __future__ import annotations

from duly.errors import KeyInvalid, TimeInvalid, WindowInvalid
from duly.records import record, replace
from duly.schedule.keys import nominal_text
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

    @property
    def series(self) -> tuple[str, str]:
        """The zone and grain that name its windows."""
        return self.schedule.zone, self.schedule.grain

    @property
    def is_empty(self) -> bool:
        """Whether the version was replaced before it was in force."""
        return self.since is not None and self.since == self.until

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


@record
class Placed:
    """A window with the spell that answers for it, whose zone and grain name it."""

    spell: Spell
    occurrence: Occurrence

    @property
    def series(self) -> tuple[str, str]:
        """The zone and grain that name it."""
        return self.spell.series

    @property
    def is_seam(self) -> bool:
        """Whether it is the first window of a version that replaced another: it begins where the last of before ends."""
        return self.spell.since is not None and self.occurrence.start == self.spell.since

    @property
    def middle(self) -> str:
        """Its name, as a key writes it."""
        zone, grain = self.series
        return nominal_text(grain, self.occurrence.nominal, zone)

    @property
    def name(self) -> str:
        """Its name with its zone, as it stands in a key: `2026-10-05[Europe/Berlin]`."""
        zone, grain = self.series
        return self.middle if (zone, grain) == ("UTC", "fire") else f"{self.middle}[{zone}]"


def _due_at_end(schedule: Schedule) -> Schedule:
    """The schedule with the same windows, due when they end."""
    return schedule if schedule.at is None and schedule.calendar is None else replace(schedule, at=None, calendar=None)


def tiles_after(spells: list[Spell], instant: int) -> Iterator[Placed]:
    """The windows that end after an instant, in order of their bounds, whichever version answers for them."""
    for spell in spells:
        yield from _placed(spell, spell.ending_after(instant))


def windows_after(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """As `tiles_after`, the windows alone: for spells of one series."""
    return (placed.occurrence for placed in tiles_after(spells, instant))


def placed_after(spells: list[Spell], instant: int) -> Iterator[Placed]:
    """The windows due after this instant under whichever version answers for them, in order.

    The last windows of a version may come due after the first of the next, which does not wait for a wall clock.
    """
    from heapq import merge

    each = (_placed(spell, spell.after(instant)) for spell in spells)
    return merge(*each, key=lambda placed: placed.occurrence.due)


def placed_before(spells: list[Spell], instant: int) -> Iterator[Placed]:
    """The windows due by this instant under whichever version answers for them, the newest first."""
    from heapq import merge

    each = (_placed(spell, spell.before(instant)) for spell in reversed(spells))
    return merge(*each, key=lambda placed: -placed.occurrence.due)


def _placed(spell: Spell, occurrences: Iterator[Occurrence]) -> Iterator[Placed]:
    return (Placed(spell, occurrence) for occurrence in occurrences)


def due_after(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """As `placed_after`, the windows alone: for spells of one series."""
    return (placed.occurrence for placed in placed_after(spells, instant))


def due_before(spells: list[Spell], instant: int) -> Iterator[Occurrence]:
    """As `placed_before`, the windows alone: for spells of one series."""
    return (placed.occurrence for placed in placed_before(spells, instant))


def find_nominal(spells: list[Spell], nominal: int) -> Occurrence | None:
    """The window of this nominal in the version that answers for it; None: off the grid."""
    found = (spell.find(nominal) for spell in reversed(spells))
    return next((occurrence for occurrence in found if occurrence is not None), None)


def horizon_of(spell: Spell) -> int | None:
    """The lowest name of the windows that a spell begins with: what lies below is none of its. None: it has no window.

    Where clocks are set back in the hours after it begins, its first window may have a higher name than some that follow.
    """
    first = next(spell.ending_after(_since(spell)), None)
    if first is None or spell.schedule.zone == "UTC":
        return None if first is None else first.nominal
    lowest = first.nominal
    for occurrence in spell.ending_after(first.end):
        if occurrence.start >= first.end + DAY:  # clocks were never set back by more
            break
        lowest = min(lowest, occurrence.nominal)
    return lowest


def _since(spell: Spell) -> int:
    assert spell.since is not None  # what has no beginning has no first window
    return spell.since


def lookup(spells: list[Spell], text: str) -> Occurrence:
    """The window that a person named, in the version that answers for it. Raises as `Schedule.lookup`."""
    return place(spells, text).occurrence


class TwoWindows(WindowInvalid):
    """Two windows have this name, before and after the schedule changed; write it as its key does."""


def place(spells: list[Spell], text: str) -> Placed:
    """As `lookup`, with the spell that answers for the window.

    The name as a key writes it goes before one that is only understood so: `2026-11-21` is that day, where there are days,
    and not the one fire of that date. Raises as `Schedule.lookup`, and `TwoWindows`.
    """
    found: list[Placed] = []
    refused: WindowInvalid | KeyInvalid | TimeInvalid | None = None
    unanswered: WindowInvalid | None = None
    for spell in reversed(_in_zone_of(text, spells)):
        try:
            occurrence = spell.schedule.lookup(text)
        except (WindowInvalid, KeyInvalid, TimeInvalid) as e:
            refused = refused or e
            continue
        if spell.has(occurrence):
            found.append(Placed(spell, spell.clipped(occurrence)))
        else:
            unanswered = unanswered or WindowInvalid(_not_answered(spells, spell, occurrence, text))
    if len(found) > 1:
        written = text.strip()
        whole = [placed for placed in found if written in (placed.name, placed.name.partition("[")[0])]
        if len(whole) != 1:
            ways = " or ".join(placed.name for placed in reversed(found))
            raise TwoWindows(f"{text} names a window before and one after the schedule changed; write {ways}")
        found = whole
    if found:
        return found[0]
    refusal = unanswered or refused
    assert refusal is not None  # there is at least one spell
    raise refusal


def _in_zone_of(text: str, spells: list[Spell]) -> list[Spell]:
    """The spells in the zone that a name is written with; all, where it has none or one that never was the schedule's."""
    _, bracket, zone = text.strip().partition("[")
    return [spell for spell in spells if bracket and zone == f"{spell.schedule.zone}]"] or spells


def _not_answered(spells: list[Spell], spell: Spell, occurrence: Occurrence, text: str) -> str:
    said = f"{text} is a window of version {spell.version} of the schedule, which did not answer for that time"
    did = next((other for other in spells if other is not spell and other.has(occurrence)), None)
    return said if did is None else f"{said}; version {did.version} did: {did.schedule.words()}"
