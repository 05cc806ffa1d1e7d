"""Meant: which window a scheduler elsewhere meant, told from the time for which it fired. Pure.

It is looked up in the job's own schedule and never made of what the scheduler says: a time that is none of the schedule's
is refused, or one job would have two identities.
"""

from __future__ import annotations

from duly.errors import WindowInvalid
from duly.records import record
from duly.schedule.facts import fingerprint
from duly.schedule.spells import placed_after, placed_before, tiles_after
from duly.times import DAY, SECOND, Zone, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.spec import Schedule
    from duly.schedule.spells import Placed, Spell

_A_YEAR = 366 * DAY


@record
class Meant:
    """A time for which a scheduler elsewhere fired: instants in UTC, as microseconds.

    `at` is what its schedule says, or, where `is_exact` is not so, when it fired, some time after that. `start` is where its
    interval [start, at) begins, if it names one. `zone` is the one that it counts in, empty where it does not say.
    """

    at: int
    start: int | None = None
    zone: str = ""
    is_exact: bool = True


def window_meant(spells: list[Spell], meant: Meant) -> Placed:
    """The window that has the interval which is meant, else the one that is due at the time.

    An interval that is not the window's own has to be the time from the due before it to its own, as that of a scheduler that
    counts from one firing to the next. `spells` are those of a job, oldest first. Raises `WindowInvalid` where there is no such
    window, or more than one; and for another zone than that of the version that answers for the time.
    """
    found = None if meant.start is None else _of_interval(spells, meant.start, meant.at)
    found = found or _due_at(spells, meant)
    _refuse_zone(found.spell.schedule, meant)
    return found


def _due_at(spells: list[Spell], meant: Meant) -> Placed:
    due = placed_before(spells, meant.at)
    newest, earlier = next(due, None), next(due, None)
    if newest is None or (meant.is_exact and newest.occurrence.due != meant.at):
        raise WindowInvalid(_off_the_grid(spells, meant, newest))
    if earlier is not None and earlier.occurrence.due == newest.occurrence.due:
        raise WindowInvalid(
            f"{earlier.name} and {newest.name} are both due at {instant_text(newest.occurrence.due)}, and nothing says which"
            " of them is meant; let it be a plain poke, which works what is owed"
        )
    if meant.start not in (None, meant.at) and not _is_since(earlier, newest, meant.at - (meant.start or 0)):
        raise WindowInvalid(
            f"no window is {instant_text(meant.start or 0)}..{instant_text(meant.at)}, for which this was fired; the one due"
            f" then is {newest.name}, {instant_text(newest.occurrence.start)}..{instant_text(newest.occurrence.end)}."
            " Is the schedule there the one of this job?"
        )
    return newest


def _is_since(earlier: Placed | None, newest: Placed, length: int) -> bool:
    """Whether so long passed since the due before, by real or by wall clocks: the days of some schedulers have 24 hours."""
    if earlier is None:
        return False
    since, until = earlier.occurrence.due, newest.occurrence.due
    zone = Zone(newest.spell.schedule.zone)
    moved = (zone.offset_at(until // SECOND) - zone.offset_at(since // SECOND)) * SECOND
    return length in (until - since, until - since + moved)


def _refuse_zone(schedule: Schedule, meant: Meant) -> None:
    """Another name is well where it means the same rules, as `Etc/UTC` does, or `Europe/Kiev` beside `Europe/Kyiv`."""
    if _is_zone_of(schedule, meant):
        return
    raise WindowInvalid(
        f"zone: what fired this counts in {meant.zone}, and the job in {schedule.zone}: they part when one of them changes its"
        " clocks; give both the same"
    )


def _is_zone_of(schedule: Schedule, meant: Meant) -> bool:
    if meant.zone in ("", schedule.zone) or schedule.kind == "every":
        return True
    around = meant.at - _A_YEAR, meant.at + _A_YEAR
    return fingerprint(Zone(meant.zone), *around) == fingerprint(Zone(schedule.zone), *around)


def _of_interval(spells: list[Spell], start: int, end: int) -> Placed | None:
    """The window with these bounds. The first one of a version begins at the seam, wherever its period does."""
    placed = next(tiles_after(spells, end - 1), None)
    if placed is None or placed.occurrence.end != end:
        return None
    return placed if placed.is_seam or placed.occurrence.start == start else None


def _off_the_grid(spells: list[Spell], meant: Meant, before: Placed | None) -> str:
    after = next(placed_after(spells, meant.at), None)
    if not any(_is_zone_of(spell.schedule, meant) for spell in spells):
        _refuse_zone(spells[-1].schedule, meant)
    nearest = [f"{near.name} at {instant_text(near.occurrence.due)}" for near in (before, after) if near is not None]
    return (
        f"no window is due at {instant_text(meant.at)}, for which this was fired; near it is {' and '.join(nearest)}."
        " Is the schedule there the one of this job?"
    )
