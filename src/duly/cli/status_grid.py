"""`duly status --grid`: a row of glyphs for each line of the ledger, the newest periods last; what the clocks did is marked."""

from __future__ import annotations

from duly.cli.output import GLYPHS, complete_as_json, iso, line_name, paint, rendered, window_name
from duly.cli.watch import Look
from duly.evidence import verdict
from duly.evidence.complete_through import complete_lines
from duly.evidence.documents.grid import cells_as_json
from duly.evidence.grid import Grid, GridLine, grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from duly.cli.output import Json
    from duly.store.protocol import Store
    from duly.store.reader import RestingLedger

MARK = "^"


def look_at_grid(args: argparse.Namespace, store: Store | RestingLedger) -> Look:
    """The grid as `--format` asks."""
    seen = store.read(grid(args.job, args.scope, columns=args.n))
    facts: dict[str, Json] = {"as_of": iso(seen.as_of)}
    if args.format == "json":
        facts["lines"] = complete_as_json(store.read(complete_lines(args.job, args.scope)))
    cells = cells_as_json(seen)
    text = rendered(args, "duly.grid.v1", facts, "periods", cells, lambda: _in_words(seen))
    return Look(text, [(cell["key"], cell["state"]) for cell in cells])


def _in_words(seen: Grid) -> str:
    """The rows, aligned at the newest period; below what the glyphs mean, and what happened in the marked nights."""
    shown = [line for line in seen.lines if line.windows]
    names = max((len(line_name(line.windows[0])) for line in shown), default=0)
    widest = max((len(line.windows) for line in shown), default=0)
    rows = []
    for line in shown:
        first, last = line.windows[0], line.windows[-1]
        before = " " * (widest - len(line.windows))
        span = f"{window_name(first)} to {window_name(last)}"
        rows.append(f"{line_name(first).ljust(names)}   {before}{_glyphs(line)}   {span}")
        if any(line.clocks):
            marks = "".join(MARK if clocks else " " for clocks in line.clocks)
            rows.append(f"{' ' * names}   {before}{marks}".rstrip())
    words = sorted({w.verdict.word for line in shown for w in line.windows}, key=verdict.WORDS.index)
    legend = "   ".join(paint(f"{GLYPHS[word]} {word}", word) for word in words)
    return "\n".join([*rows, legend, *_nights(shown)] if rows else ["no period has come due yet"])


def _glyphs(line: GridLine) -> str:
    return "".join(paint(GLYPHS[window.verdict.word], window.verdict.word) for window in line.windows)


def _nights(shown: list[GridLine]) -> list[str]:
    """What the clocks did, once for each window of that name."""
    told = {
        f"{MARK} {window_name(window)}: {clocks}": None
        for line in shown
        for window, clocks in zip(line.windows, line.clocks, strict=True)
        if clocks
    }
    return list(told)
