"""Grid: lines by time, on a true axis: each piece as long as it was, nights on which the clocks are moved marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duly.errors import Misuse, ScheduleError
from duly.evidence.axis import COMING, MOST, PAST, UNITS, Axis, axis_from, axis_until
from duly.evidence.documents.window import iso
from duly.evidence.over_time import Cell, LineOverTime, over_time
from duly.evidence.verdict import lines
from duly.ledger.ask import now
from duly.records import record
from duly.schedule.keys import parse_nominal
from duly.times import SECOND, Zone
from duly.web.drawings.grid import drawn_head, drawn_rows
from duly.web.page import Document, Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from duly.evidence.documents.window import Json
    from duly.ledger.ask import Operation
    from duly.ledger.records import Known
    from duly.web.asked import Asked
    from duly.web.showing import Showing

ROWS, ROWS_AT_MOST = 50, 200


@record
class Filters:
    """What is to be shown of the ledger, and when."""

    job: str
    scope: str
    owner: str
    retired: str
    unit: str
    zone: str
    since: str
    n: int
    rows: int
    page: int


@record
class GridSeen:
    """The lines of one page of rows over an axis. `many`: how many lines there are on all pages."""

    as_of: int
    filters: Filters
    axis: Axis
    lines: list[LineOverTime]
    many: int
    owners: list[str]
    zones: list[str]


def filters_of(asked: Asked) -> Filters:
    """The filters of the URL. Raises `Misuse`."""
    unit = asked.one_of("unit", ("day", *(unit for unit in UNITS if unit != "day")))
    return Filters(
        asked.text("job"),
        asked.text("scope"),
        asked.text("owner"),
        asked.one_of("retired", ("", "yes")),
        unit,
        asked.text("zone"),
        asked.text("from"),
        asked.count("n", PAST[unit] + COMING[unit], MOST),
        asked.count("rows", ROWS, ROWS_AT_MOST),
        asked.count("page", 1, 100_000),
    )


def see(asked: Asked) -> Callable[[], Operation[GridSeen]]:
    filters = filters_of(asked)
    _checked_zone(filters.zone)
    since = _civil(filters.since)

    async def look() -> GridSeen:
        instant = await now()
        every_line = await lines()
        wanted = [known for known in every_line if is_wanted(known, filters, instant)]
        zone = filters.zone or most_frequent_zone(wanted)
        first = (filters.page - 1) * filters.rows
        axis = (
            axis_until(filters.unit, zone, instant, filters.n, COMING[filters.unit])
            if since is None
            else axis_from(filters.unit, zone, _instant(zone, since), filters.n)
        )
        return GridSeen(
            instant,
            filters,
            axis,
            await over_time(wanted[first : first + filters.rows], axis, instant),
            len(wanted),
            sorted({known.job.owner for known in every_line if known.job.owner}),
            sorted({known.version.zone for known in every_line if known.version is not None} | {"UTC", zone}),
        )

    return look


def _checked_zone(zone: str) -> None:
    if zone:
        try:
            Zone(zone)
        except ScheduleError as e:
            raise Misuse(f"zone: {e}") from e


def _civil(text: str) -> int | None:
    """Civil seconds of what somebody wrote for a day or an hour."""
    if not text:
        return None
    try:
        return parse_nominal(text)[1] >> 1
    except Misuse as e:
        raise Misuse(f"from: {text[:40]!r} cannot be read; write a day, as 2026-10-25") from e


def _instant(zone: str, civil: int) -> int:
    return (civil - Zone(zone).offsets_of(civil)[0]) * SECOND


def is_wanted(known: Known, filters: Filters, instant: int) -> bool:
    """Whether a line is to be shown. Pure."""
    line = known.line
    assert line is not None
    if not filters.retired and (
        known.job.retired_at is not None or (line.ends is not None and line.ends <= instant and not filters.scope)
    ):
        return False
    return (
        filters.job.lower() in known.job.name.lower()
        and filters.scope in ("", line.scope)
        and filters.owner in ("", known.job.owner)
    )


def most_frequent_zone(found: list[Known]) -> str:
    """The zone of most lines, which most will be read in. Pure."""
    zones = [known.version.zone for known in found if known.version is not None]
    return max(sorted(set(zones)), key=zones.count, default="UTC")


def show(seen: GridSeen, showing: Showing) -> dict[str, Any]:
    filters, axis = seen.filters, seen.axis
    pages = max(1, -(-seen.many // filters.rows))
    # The filter is any part of a name, and what is typed in a shell a whole one.
    is_name = any(line.known.job.name == filters.job for line in seen.lines)
    twin = ["duly", "status", *([filters.job] if is_name else []), "--grid", "-n", str(filters.n)]
    return {
        "title": "Grid",
        "filters": filters,
        "axis": axis,
        "head": drawn_head(axis, seen.as_of),
        "rows": drawn_rows(seen.lines, axis, seen.as_of, showing),
        "many": seen.many,
        "first": (filters.page - 1) * filters.rows + 1,
        "shown": len(seen.lines),
        "pages": pages,
        "owners": seen.owners,
        "zones": seen.zones,
        "units": UNITS,
        "words": _words(seen),
        "earlier": _moved(seen, -1),
        "later": _moved(seen, 1),
        "clocks": [(axis.name(place), axis.clocks(place)) for place in range(len(axis.pieces)) if axis.clocks(place)],
        "twin": showing.twin(*twin, *(["--scope", filters.scope] if filters.scope else [])),
        "zone": axis.zone,
    }


def _words(seen: GridSeen) -> list[str]:
    """The states that there are, for the key to the signs."""
    from duly.evidence.over_time import WORST_FIRST

    there = {cell.word for line in seen.lines for cell in line.cells}
    return [word for word in WORST_FIRST if word in there]


def _moved(seen: GridSeen, way: int) -> str:
    """The beginning of the axis before or after this one, as the URL has it."""
    axis, count = seen.axis, len(seen.axis.pieces)
    if way < 0:
        edge = axis_until(axis.unit, axis.zone, axis.start, count, 0)
    else:
        try:
            edge = axis_from(axis.unit, axis.zone, axis.end, 1)
        except Misuse:  # the calendar has an end
            edge = axis
    return edge.name(0).partition("~")[0]


def cell_as_json(line: LineOverTime, axis: Axis, cell: Cell) -> dict[str, Json]:
    """A cell for programs."""
    known, worst = line.known, cell.worst
    assert known.line is not None
    return {
        "key": f"{known.line.scope}/{known.job.name} {axis.name(cell.place)}".removeprefix("/"),
        "job": known.job.name,
        "scope": known.line.scope,
        "from": iso(axis.pieces[cell.place].start),
        "to": iso(axis.pieces[cell.place + cell.span - 1].end),
        "state": cell.word,
        "recorded": cell.is_recorded,
        "windows": cell.total,
        "complete": cell.done,
        "coming": cell.coming,
        "exact": not cell.unseen,
        "worst": None if worst is None else str(worst.key),
        "note": "" if worst is None else worst.verdict.note,
    }


def document(seen: GridSeen) -> Document:
    axis = seen.axis
    facts: dict[str, Json] = {
        "as_of": iso(seen.as_of),
        "unit": axis.unit,
        "zone": axis.zone,
        "lines": seen.many,
        "pieces": [
            {
                "name": axis.name(place),
                "start": iso(piece.start),
                "end": iso(piece.end),
                "clocks": axis.clocks(place),
            }
            for place, piece in enumerate(axis.pieces)
        ],
    }
    cells = [cell_as_json(line, axis, cell) for line in seen.lines for cell in line.cells]
    return Document("duly.over_time.v1", facts, "cells", cells)


PAGE = Page("grid", "/grid", "Grid", see, show, {"/grid": document})
