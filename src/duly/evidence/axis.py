"""Axis: time in pieces that a calendar on the wall of a zone would show: hours, days or weeks, each as long as it really is.

The pieces are windows of the plainest schedule of that grain, so that midnights which do not exist, hours that come twice and
days of 23 and 25 hours are resolved by the one resolver that there is. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice

from duly.errors import Misuse
from duly.records import record
from duly.schedule.keys import nominal_text
from duly.schedule.spec import Schedule, daily, hourly, weekly
from duly.times import DAY, HOUR, SECOND, Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

UNITS = ("hour", "day", "week")
PAST = {"hour": 48, "day": 28, "week": 24}  # pieces that are shown where nobody says how many
COMING = {"hour": 3, "day": 2, "week": 1}
MOST = 200  # pieces of one axis
_LENGTH = {"hour": HOUR, "day": DAY, "week": 7 * DAY}


def schedule_of_unit(unit: str, zone: str) -> Schedule:
    """The schedule whose windows are the pieces."""
    match unit:
        case "hour":
            return hourly(zone)
        case "day":
            return daily(zone)
        case "week":
            return weekly(zone)
    raise Misuse(f"unit: {unit!r} is none of {', '.join(UNITS)}")


@record
class Axis:
    """Pieces that follow one another without a gap, in a zone."""

    unit: str
    zone: str
    pieces: list[Occurrence]

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return self.pieces[-1].end

    def name(self, place: int) -> str:
        """A piece as a key names it: `2026-10-25`, `2026-10-25T02~2`, `2026-W43`."""
        return nominal_text(self.unit, self.pieces[place].nominal, self.zone)

    def moved(self, place: int) -> int:
        """By how much a piece is longer than others of its unit, or shorter: the clocks are moved in it."""
        piece = self.pieces[place]
        return piece.end - piece.start - _LENGTH[self.unit]

    def clocks(self, place: int) -> str:
        """What the clocks do in a piece or to it, in a few words; empty in most."""
        if self.unit == "hour":
            zone, second = Zone(self.zone), self.pieces[place].start // SECOND
            if self.pieces[place].nominal & 1:
                return "this hour comes a second time: the clocks were set back"
            return "the clocks were set forward just now" if zone.offset_at(second) > zone.offset_at(second - 1) else ""
        moved = self.moved(place)
        if moved == 0:
            return ""
        hours = (self.pieces[place].end - self.pieces[place].start) / HOUR
        way = "back" if moved > 0 else "forward"
        return f"{hours:g} hours long: the clocks are set {way}"

    def starts(self) -> list[int]:
        """Where the pieces begin."""
        return [piece.start for piece in self.pieces]

    def place_of(self, instant: int) -> int:
        """The piece that an instant lies in; -1 before the first, and the number of pieces after the last."""
        return len(self.pieces) if instant >= self.end else bisect_right(self.starts(), instant) - 1


def axis_from(unit: str, zone: str, since: int, count: int) -> Axis:
    """So many pieces, the first of which an instant lies in. Raises `Misuse` and `ScheduleError`."""
    schedule = schedule_of_unit(unit, zone)
    pieces = list(islice(schedule.after(since), count))
    if not pieces:
        raise Misuse("from: the calendar ends before that")
    return Axis(unit, zone, pieces)


def axis_until(unit: str, zone: str, instant: int, count: int, coming: int) -> Axis:
    """So many pieces, of which the last few are yet to come at an instant. Raises `Misuse` and `ScheduleError`."""
    schedule = schedule_of_unit(unit, zone)
    ahead = list(islice(schedule.after(instant), coming + 1))  # the first of them is the one that goes on
    past = list(islice(schedule.before(instant), max(0, count - len(ahead))))[::-1]
    return Axis(unit, zone, [*past, *ahead][-count:])
