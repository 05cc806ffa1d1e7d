"""The grid for programs: a cell is a window, with what the clocks did to it."""

from __future__ import annotations

from duly.evidence.documents.window import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.evidence.documents.window import Json
    from duly.evidence.grid import Grid


def cells_as_json(seen: Grid) -> list[dict[str, Json]]:
    """The cells of `duly.grid.v1`, line by line, the oldest of each first."""
    return [
        {**as_json(window), "clocks": clocks}
        for line in seen.lines
        for window, clocks in zip(line.windows, line.clocks, strict=True)
    ]
