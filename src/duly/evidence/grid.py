"""Grid: periods × jobs. First form: of each line its own newest periods, in order, each with its verdict."""

from __future__ import annotations

from itertools import islice

from duly.evidence.verdict import NOT_OWED, Window, lines, windows_of_line
from duly.ledger.ask import now
from duly.ledger.records import Known
from duly.ledger.spells import placed_before, spells_of_line
from duly.records import record


@record
class GridLine:
    """A line with its newest periods that have come due, the oldest first."""

    known: Known
    windows: list[Window]


@record
class Grid:
    """Lines by name and scope, as of an instant."""

    as_of: int
    lines: list[GridLine]


async def grid(name: str | None = None, scope: str | None = None, *, columns: int) -> Grid:
    """Each line's newest `columns` periods that have come due; those before a line began are left out."""
    instant = await now()
    return Grid(
        instant,
        [GridLine(known, await newest_due(known, instant, columns)) for known in await lines(name, scope)],
    )


async def newest_due(known: Known, instant: int, count: int) -> list[Window]:
    """The newest periods of a line that have come due, the oldest first."""
    if known.version is None or known.series is None:
        return []
    newest = list(islice(placed_before(await spells_of_line(known), instant), count))[::-1]
    windows = await windows_of_line(known, newest, instant)
    while windows and windows[0].verdict.word == NOT_OWED:
        windows = windows[1:]
    return windows
