"""Versions: what an edit of a schedule does to the windows of a line. Pure; the ledger writes it down.

The old schedule keeps every window that has begun, or that was due already; B is the end of the last of them. From B on the
new schedule answers, and its first window starts there: the *seam*. So time stays tiled, whatever follows whatever: other
lines, another zone, another grain. A name is done once: within one zone and grain, no window of the new schedule may have
the name of one that the old schedule had, which only readings of a repeated wall time could bring about.
"""

from __future__ import annotations

from duly.records import record, replace
from duly.schedule.spells import Placed, Spell, windows_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

APPEARS, VANISHES, SHIFTS, SPLIT = "appears", "vanishes", "shifts", "split"


@record
class Seam:
    """Where a new schedule takes over: `since` is B. `began` are the old windows that have begun and are not due yet."""

    since: int
    began: list[Occurrence]


def seam_of(spell: Spell, instant: int) -> Seam:
    """The seam for an edit at an instant, where this spell is the one in force, without end."""
    began = []
    for occurrence in spell.after(instant):
        if occurrence.start > instant:
            break
        began.append(occurrence)
    # A calendar may have made a window due that has not ended, nor even begun.
    newest = next(spell.before(instant), None)
    ends = [occurrence.end for occurrence in (*began[-1:], newest) if occurrence is not None]
    return Seam(max(ends, default=max(instant, instant if spell.since is None else spell.since)), began)


def edited(spells: list[Spell], schedule: Schedule, instant: int) -> list[Spell]:
    """The spells of a line after an edit at an instant: the last one ends at the seam, and the new one begins there."""
    *earlier, last = spells
    since = seam_of(last, instant).since
    return [*earlier, replace(last, until=since), Spell(schedule, last.version + 1, since, None)]


def repeated_name(spells: list[Spell]) -> Occurrence | None:
    """The first window of the newest spell that has the name of an earlier one in its zone and grain; None: as it should be.

    It can only come in the hours when clocks are set back, before the wall clock has passed all that it showed before.
    """
    *earlier, newest = spells
    same = [spell for spell in earlier if is_one_series(spell.schedule, newest.schedule)]
    lasts = [last for spell in same if (last := _last_of(spell)) is not None]
    if not lasts or newest.since is None:
        return None
    highest = max(last.nominal for last in lasts)
    for occurrence in windows_after([newest], newest.since):
        if occurrence.nominal > highest + 172_800:  # clocks were never set back by more than a day
            return None
        if any(spell.find(occurrence.nominal) is not None for spell in same):
            return occurrence
    return None


def is_one_series(one: Schedule, other: Schedule) -> bool:
    """Whether the windows of two schedules are named in one zone and grain."""
    return (one.zone, one.grain) == (other.zone, other.grain)


def _last_of(spell: Spell) -> Occurrence | None:
    """The last window of a spell that has ended; None if it has none."""
    assert spell.until is not None
    plain = replace(spell.schedule, at=None, calendar=None)
    found = next(plain.before(spell.until), None)
    return found if found is not None and spell.has(found) else None


# -- what it is ----------------------------------------------------------------------------------------------------------


def what_changes(old: Schedule, new: Schedule) -> list[str]:
    """What of a schedule is not as it was, each in a few words; the zone and the grain first, for they begin a new series."""
    changes = []
    if old.zone != new.zone:
        changes.append(f"another zone, {old.zone} → {new.zone}")
    if old.grain != new.grain:
        changes.append(f"another grain, {old.grain} → {new.grain}")
    if old.grain == new.grain == "fire" and _times(old) != _times(new):
        changes.append("other times")
    if old.at != new.at:
        changes.append(f"worked at another hour, {old.at or 'the end'} → {new.at or 'the end'}")
    if old.kind == new.kind and {(r.gap, r.fold) for r in old.rules} != {(r.gap, r.fold) for r in new.rules}:
        changes.append("another policy for times that the clocks skip or repeat")
    if old.calendar != new.calendar:
        changes.append("other days off")
    return changes or ["another schedule"]


def _times(schedule: Schedule) -> tuple[list[str], int, int]:
    return [line.text for line in schedule.lines], schedule.interval, schedule.anchor


# -- preview -------------------------------------------------------------------------------------------------------------


@record
class Change:
    """What an edit does to a window: it `appears`, `vanishes`, `shifts` (the same name has other bounds, or is due at
    another time) or is `split` (several windows, `into`, answer for its time). `before` is the old window, `after` the new
    one of its name.
    """

    kind: str
    before: Placed | None
    after: Placed | None
    into: tuple[Placed, ...] = ()


def preview(spells: list[Spell], schedule: Schedule, instant: int, since: int, until: int) -> list[Change]:
    """What an edit at an instant would do to the windows in [since, until), in order of time.

    Windows that stay as they are, are not named; those of before the seam are among them.
    """
    old = _named_between(spells, since, until)
    last = max([until, *(named.occurrence.end for named in old[-1:])])
    new = _named_between(edited(spells, schedule, instant), since, last)
    old_names, new_names = ({_identity(named): named for named in side} for side in (old, new))
    changes = [
        Change(APPEARS, None, named)
        for name, named in new_names.items()
        if name not in old_names and named.occurrence.start < until
    ]
    ends = [named.occurrence.end for named in new]
    place = 0
    for name, before in old_names.items():
        after = new_names.get(name)
        if after is not None and after.occurrence == before.occurrence:
            continue
        while place < len(new) and ends[place] <= before.occurrence.start:
            place += 1
        into = _over(new, place, before.occurrence)
        kind = SPLIT if len(into) > 1 else VANISHES if after is None else SHIFTS
        changes.append(Change(kind, before, after, into if kind == SPLIT else ()))
    return sorted(changes, key=_order)


def _named_between(spells: list[Spell], since: int, until: int) -> list[Placed]:
    found = []
    for spell in spells:
        for occurrence in windows_after([spell], since):
            if occurrence.start >= until:
                break
            found.append(Placed(spell, occurrence))
    return found


def _identity(named: Placed) -> tuple[str, str, int]:
    return *named.series, named.occurrence.nominal


def _over(new: list[Placed], place: int, old: Occurrence) -> tuple[Placed, ...]:
    """The new windows that answer for the time of an old one, from a place on."""
    found = []
    while place < len(new) and new[place].occurrence.start < old.end:
        found.append(new[place])
        place += 1
    return tuple(found)


def _order(change: Change) -> tuple[int, int]:
    named = change.after or change.before
    assert named is not None  # a change is of something
    return (change.before or named).occurrence.start, named.occurrence.start
