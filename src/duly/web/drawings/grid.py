"""The grid as a table: a row a line, a column a piece of time; a period that is longer than a piece spans several.

A cell in which all is well holds its sign alone. Any other is a link to what is wrong, with words for whoever cannot see signs.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

from duly.evidence.over_time import NOT_RECORDED
from duly.evidence.verdict import COMING, COMPLETE, SKIPPED
from duly.times import HOUR, SECOND, Zone, instant_text
from duly.web.showing import SIGNS, escaped, slug

if TYPE_CHECKING:
    from datetime import datetime

    from duly.evidence.axis import Axis
    from duly.evidence.over_time import Cell, LineOverTime
    from duly.web.showing import Showing

_DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
_LONG_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_QUIET = (COMPLETE, SKIPPED, COMING, *NOT_RECORDED)


def drawn_head(axis: Axis, now: int) -> Markup:
    """The two rows above: months over days and weeks, days over hours; and each piece, those marked that the clocks touch."""
    zone = Zone(axis.zone)
    locals_ = [zone.local(piece.start) for piece in axis.pieces]
    if axis.unit == "hour":
        groups: list[tuple[str, object]] = [
            (f"{_LONG_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}", day.date()) for day in locals_
        ]
    else:
        groups = [(f"{_MONTHS[day.month - 1]} {day.year}", (day.year, day.month)) for day in locals_]
    above = "".join(
        f'<th scope="colgroup" colspan="{len(list(same))}" class="over"><span>{name}</span></th>'
        for (name, _), same in groupby(groups)
    )
    below = "".join(_column(axis, place, day, now) for place, day in enumerate(locals_))
    return Markup(f'<tr><th class="corner" scope="col" rowspan="2">line</th>{above}</tr>\n<tr>{below}</tr>')


def _column(axis: Axis, place: int, day: datetime, now: int) -> str:
    piece = axis.pieces[place]
    clocks = axis.clocks(place)
    names = []
    if clocks:
        names.append("moved")
    if piece.start <= now < piece.end:
        names.append("present")
    if axis.unit == "day" and day.weekday() >= 5:
        names.append("weekend")
    if axis.unit == "hour" and day.hour == 0:
        names.append("midnight")
    if axis.unit == "day":
        label = f'<span class="wd">{_DAYS[day.weekday()]}</span>{day.day}'
    elif axis.unit == "week":
        label = f'<span class="wd">wk</span>{day.isocalendar().week}'
    else:
        label = f"{day.hour:02}"
    mark = ""
    if clocks:
        hours = (piece.end - piece.start) / HOUR
        said = f"{hours:g}h" if axis.unit != "hour" else "2nd" if piece.nominal & 1 else "→"
        mark = f'<span class="clock">{said}</span>'
    kind = f' class="{" ".join(names)}"' if names else ""
    title = axis.name(place) + (f": {clocks}" if clocks else "")
    ends = f'data-from="{instant_text(piece.start)}" data-to="{instant_text(piece.end)}"'
    return f'<th scope="col"{kind} title="{title}" {ends}>{label}{mark}</th>'


def drawn_rows(lines: list[LineOverTime], axis: Axis, now: int, showing: Showing) -> Markup:
    """A row for each line."""
    count = len(axis.pieces)
    present = next((place for place, piece in enumerate(axis.pieces) if piece.start <= now < piece.end), -1)
    moved = {place for place in range(count) if axis.clocks(place)}
    return Markup("\n".join(_row(line, axis, count, present, moved, showing) for line in lines))


def _row(line: LineOverTime, axis: Axis, count: int, present: int, moved: set[int], showing: Showing) -> str:
    known = line.known
    assert known.line is not None
    scope, job = known.line.scope, known.job.name
    href = escaped(showing.job(job, scope))
    name = f'<span class="scope">{escaped(scope)}/</span>{escaped(job)}' if scope else escaped(job)
    owner = f'<span class="owner">{escaped(known.job.owner)}</span>' if known.job.owner else ""
    # By its name a row is known again when the page is read again, and what has the focus in it keeps it.
    row = f'<tr id="of-{quote(f"{scope}/{job}", safe="")}" data-job="{escaped(job)}">'
    parts = [row, f'<th scope="row"><a href="{href}">{name}</a>{owner}</th>']
    place = 0
    for cell in line.cells:
        parts += [_empty(at, present, moved) for at in range(place, cell.place)]
        parts.append(_drawn(line, cell, axis, present, moved, showing))
        place = cell.place + cell.span
    parts += [_empty(at, present, moved) for at in range(place, count)]
    parts.append("</tr>")
    return "".join(parts)


def _marks(place: int, present: int, moved: set[int]) -> str:
    return f"{' moved' if place in moved else ''}{' present' if place == present else ''}"


def _empty(place: int, present: int, moved: set[int]) -> str:
    marks = _marks(place, present, moved).strip()
    return f'<td class="{marks}"></td>' if marks else "<td></td>"


def _drawn(line: LineOverTime, cell: Cell, axis: Axis, present: int, moved: set[int], showing: Showing) -> str:
    word = cell.word
    names = f"s-{slug(word)}{_marks(cell.place, present, moved) if cell.span == 1 else ''}"
    due = cell.total - cell.coming
    span = f' colspan="{cell.span}"' if cell.span > 1 else ""
    counts = f' data-n="{due or cell.total}" data-d="{cell.done}"' if cell.total > 1 else ""
    if word in _QUIET and not cell.unseen:
        if word == COMPLETE and cell.coming:
            names += " part"
        return f'<td class="{names}"{span}{counts}><i>{SIGNS[word]}</i></td>'
    worst = cell.worst
    href, said = _where(line, cell, axis, showing), _words(cell)
    if cell.total > 1:
        shown = f"<b>{cell.done}</b><small>{due}</small>" if not cell.unseen else "<b>…</b>"
        shown = f'<i class="of" aria-hidden="true">{shown}</i>'
    else:
        shown = f'<i aria-hidden="true">{SIGNS[word]}</i>'
    note = f": {worst.verdict.note}" if worst is not None and worst.verdict.note else ""
    title = escaped(f"{said}{note}")
    return (
        f'<td class="{names}"{span}{counts}><a href="{escaped(href)}" title="{title}">{shown}'
        f'<span class="vh">{said}</span></a></td>'
    )


def _words(cell: Cell) -> str:
    if cell.unseen:
        return "too many are not settled to look at each"
    if cell.total == 1:
        return cell.word
    coming = f", {cell.coming} to come" if cell.coming else ""
    return f"{cell.word}, {cell.done} of {cell.total - cell.coming} complete{coming}"


def _where(line: LineOverTime, cell: Cell, axis: Axis, showing: Showing) -> str:
    """What tells more of a cell: the page of its run, or of the job with all that lie in it."""
    worst = cell.worst
    if cell.total == 1 and worst is not None:
        return showing.run(worst.key)
    assert line.known.line is not None
    begin, end = axis.pieces[cell.place].start, axis.pieces[cell.place + cell.span - 1].end
    return showing.job(
        line.known.job.name,
        line.known.line.scope,
        since=instant_text(begin // SECOND * SECOND),
        until=instant_text(end // SECOND * SECOND),
    )
