"""Foreseen: what a schedule comes to, that of a job or one that is only thought of: its windows around now, in a range or at a
change of the clocks, and the document of them. Pure but for a job, whose windows are judged.
"""

from __future__ import annotations

from itertools import islice

from duly.errors import Misuse
from duly.evidence.documents.window import as_json, iso
from duly.evidence.next import (
    around,
    around_change,
    next_change,
    night_note,
    parse_range,
    previous_change,
    within,
)
from duly.evidence.verdict import Window, windows_of_line
from duly.ledger.ask import now as ledger_now
from duly.ledger.spells import Placed, Spell, spells_of_line
from duly.records import record
from duly.schedule.facts import release_in_use
from duly.schedule.keys import nominal_text
from duly.schedule.lints import Lint, lints_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.documents.window import Json
    from duly.evidence.next import ClockChange
    from duly.ledger.records import Known
    from duly.schedule.spec import Schedule

SCHEMA = "duly.next.v1"
PAST, COMING, IN_RANGE = 3, 5, 20


@record
class Wanted:
    """Which windows are wanted. `text` is a range, as people write it, `around_dst` empty, `next` or `previous`.

    `n`: how many; None for what goes without saying, which is all of a range that has an end, and never more than `at_most`.
    """

    text: str | None
    n: int | None
    around_dst: str
    at_most: int


@record
class Foreseen:
    """Windows that were wanted of a schedule. `windows` are those of a job, judged; none where it is only thought of.

    `change`: of the clocks, that was asked for; `more`: the range that was asked for has more.
    """

    schedule: Schedule
    as_of: int
    placed: list[Placed]
    windows: list[Window]
    change: ClockChange | None
    lints: list[Lint]
    more: bool

    @property
    def has_other_series(self) -> bool:
        """Whether a window is named in another zone or grain than the schedule's: then each is written with its zone."""
        return any(each.series != (self.schedule.zone, self.schedule.grain) for each in self.placed)

    def name(self, place: int) -> str:
        """The name of a window."""
        placed = self.placed[place]
        return placed.name if self.has_other_series else _nominal(placed)

    def note(self, place: int) -> str:
        """What is to be said of a window: that it is a seam, and what the clocks do to it."""
        placed = self.placed[place]
        return "; ".join(
            filter(None, ("seam" if placed.is_seam else "", night_note(placed.spell.schedule, placed.occurrence)))
        )


def foreseen(schedule: Schedule, wanted: Wanted, instant: int) -> Foreseen:
    """What a schedule comes to that is only thought of. Raises `Misuse` for a range that is none."""
    change, placed, more = _chosen([Spell(schedule, 1, None, None)], wanted, instant)
    return Foreseen(schedule, instant, placed, [], change, lints_of(schedule, instant), more)


async def foreseen_of(known: Known, wanted: Wanted) -> Foreseen:
    """What the schedules of a line come to, and what the ledger says of each window. Raises as `foreseen`."""
    instant = await ledger_now()
    spells = await spells_of_line(known)
    change, placed, more = _chosen(spells, wanted, instant)
    schedule = spells[-1].schedule
    windows = await windows_of_line(known, placed, instant)
    return Foreseen(schedule, instant, placed, windows, change, lints_of(schedule, instant), more)


def _chosen(spells: list[Spell], wanted: Wanted, instant: int) -> tuple[ClockChange | None, list[Placed], bool]:
    zone, n, most = spells[-1].schedule.zone, wanted.n, wanted.at_most
    if wanted.around_dst:
        change = _change(spells[-1].schedule, wanted.around_dst, instant)
        if wanted.text is not None or change is None:
            why = "it has a range of its own; leave RANGE out" if wanted.text else f"the clocks of {zone} are not moved"
            raise Misuse(f"--around-dst: {why}")
        return change, around_change(spells, change), False
    if wanted.text is None:
        past = PAST if n is None else 0
        return None, around(spells, instant, past=past, coming=min(n or COMING, most)), False
    asked = parse_range(wanted.text, zone, instant)
    at_most = most if n is None and asked.end is not None else min(n or IN_RANGE, most)
    found = list(islice(within(spells, asked, instant), at_most + 1))
    return None, found[:at_most], len(found) > at_most


def _change(schedule: Schedule, which: str, instant: int) -> ClockChange | None:
    if schedule.kind == "every":
        return None
    return (next_change if which == "next" else previous_change)(schedule.zone, instant)


# -- for programs -------------------------------------------------------------------------------------------------------


def facts_of(seen: Foreseen) -> dict[str, Json]:
    """What is said beside the windows."""
    change = seen.change
    return {
        "as_of": iso(seen.as_of),
        "schedule": seen.schedule.words(),
        "tzdata": release_in_use(seen.schedule.zone).version,
        "change": None if change is None else {"at": iso(change.at), "says": change.words},
        "lints": [
            {"code": lint.code, "line": lint.line, "says": lint.says, "instead": lint.instead} for lint in seen.lints
        ],
    }


def window_as_json(seen: Foreseen, place: int) -> dict[str, Json]:
    """A window, with what the ledger says of it where it is a job's."""
    placed = seen.placed[place]
    occurrence, schedule = placed.occurrence, placed.spell.schedule
    if seen.windows:
        base = as_json(seen.windows[place])
    else:
        middle = _nominal(placed)
        base = {
            "key": middle,
            "window": middle,
            "due": iso(occurrence.due),
            "window_start": iso(occurrence.start),
            "window_end": iso(occurrence.end),
            "zone": schedule.zone,
        }
    return {
        **base,
        "resolution": occurrence.resolution,
        "off": occurrence.off,
        "clocks": night_note(schedule, occurrence),
        "seam": placed.is_seam,
    }


def _nominal(placed: Placed) -> str:
    schedule = placed.spell.schedule
    return nominal_text(schedule.grain, placed.occurrence.nominal, schedule.zone)
