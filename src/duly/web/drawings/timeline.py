"""A timeline: rows in the order of time, each with a lane in which what it tells of stands at its place.

Words are words beside the lane, so that they are as large on a small screen as on a wide one; the lane alone is drawn. A lane
is placed in percent and stretches; what is small is drawn three points wide, as a second in a day is no less there.
"""

from __future__ import annotations

from markupsafe import Markup

from duly.records import record
from duly.web.showing import escaped, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@record
class Mark:
    """Something at an instant, or from one to another. `lease`: up to when it may still go on. `shape`: bar, point or edge."""

    at: int
    until: int | None
    word: str
    shape: str
    lease: int | None = None


@record
class Row:
    """A row: when, what, and its mark."""

    at: int
    what: str | Markup
    says: str
    mark: Mark


@record
class Scale:
    """From where to where the lanes go."""

    begin: int
    end: int

    def percent(self, instant: int) -> str:
        """Where an instant stands."""
        length = max(1, self.end - self.begin)
        return f"{100 * min(1.0, max(0.0, (instant - self.begin) / length)):.3f}%"

    def width(self, begin: int, end: int) -> str:
        """How wide a stretch of time is."""
        begin, end = max(begin, self.begin), min(end, self.end)
        return f"{100 * max(0.0, (end - begin) / max(1, self.end - self.begin)):.3f}%"


def scale_of(rows: Sequence[Row], now: int) -> Scale:
    """A scale on which all of them stand, with a little room on both sides."""
    instants = [row.mark.at for row in rows] + [row.mark.until for row in rows if row.mark.until is not None]
    instants += [min(row.mark.lease, now) for row in rows if row.mark.lease is not None]
    begin, end = min(instants, default=now), max(instants, default=now)
    room = max(1, (end - begin) // 40)
    return Scale(begin - room, end + room)


def lane(mark: Mark, scale: Scale) -> Markup:
    """The lane of a row."""
    kind = f"s-{slug(mark.word)}" if mark.word else "plain"
    at = scale.percent(mark.at)
    if mark.shape == "bar":
        until = scale.end if mark.until is None else mark.until
        drawn = (
            f'<rect class="bar {kind}" x="{at}" y="5" width="{scale.width(mark.at, until)}" height="10" rx="2"/>'
            f'<rect class="bar {kind}" x="{at}" y="5" width="3" height="10"/>'
        )
        if mark.lease is not None:
            drawn += f'<line class="lease" x1="{at}" x2="{scale.percent(mark.lease)}" y1="18" y2="18"/>'
    elif mark.shape == "edge":
        drawn = f'<line class="edge {kind}" x1="{at}" x2="{at}" y1="1" y2="19"/>'
    else:
        drawn = f'<circle class="point {kind}" cx="{at}" cy="10" r="4"/>'
    return Markup(f'<svg class="lane" height="20" aria-hidden="true" focusable="false">{drawn}</svg>')


def bars(values: Sequence[int], titles: Sequence[str], label: str) -> Markup:
    """Values as bars, side by side: a plot for whoever has no script."""
    most, count = max(values, default=1) or 1, len(values) or 1
    drawn = "".join(
        f'<rect x="{100 * place / count:.2f}%" y="{60 - max(1, 58 * value // most)}" width="{80 / count:.2f}%" '
        f'height="{max(1, 58 * value // most)}"><title>{escaped(title)}</title></rect>'
        for place, (value, title) in enumerate(zip(values, titles, strict=True))
    )
    return Markup(f'<svg class="bars" height="60" role="img" aria-label="{escaped(label)}">{drawn}</svg>')
