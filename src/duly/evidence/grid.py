"""Grid: periods × jobs. Of each line its own newest periods, in order, each with its verdict, and what the clocks did in it."""

from __future__ import annotations

from itertools import islice

from duly.evidence.next import night_note
from duly.evidence.verdict import NOT_OWED, Window, lines, windows_of_line
from duly.ledger.ask import now
from duly.ledger.records import Known
from duly.ledger.spells import Placed, placed_before, spells_of_line
from duly.records import record


@record
class GridLine:
    """A line with its newest periods that have come due, the oldest first.

    `clocks`: for each what the clocks did to it or within it, in words; empty on most nights.
    """

    known: Known
    windows: list[Window]
    clocks: list[str]


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
        [await _newest_due(known, instant, columns) for known in await lines(name, scope)],
    )


async def _newest_due(known: Known, instant: int, count: int) -> GridLine:
    """The newest periods of a line that have come due, the oldest first."""
    if known.version is None or known.series is None:
        return GridLine(known, [], [])
    newest = list(islice(placed_before(await spells_of_line(known), instant), count))[::-1]
    windows = await windows_of_line(known, newest, instant)
    before = next((place for place, w in enumerate(windows) if w.verdict.word != NOT_OWED), len(windows))
    return GridLine(known, windows[before:], [clocks_of(placed) for placed in newest[before:]])


def clocks_of(placed: Placed) -> str:
    """What the clocks did to a window or within it, in words; empty on most nights."""
    return "" if placed.occurrence.off else night_note(placed.spell.schedule, placed.occurrence)
