"""Output: tables for people, documents for programs, and a state as a glyph with its word.

Data goes to stdout and talk to stderr. Colour only adds to what glyph and word say already: it is used on a terminal, never
with `NO_COLOR` or `TERM=dumb`, always with `FORCE_COLOR`.
"""

from __future__ import annotations

import os
import sys

from duly.evidence import verdict

# What is the same at every door is passed on, so that a command finds all that it prints with in one place.
from duly.evidence.documents.window import as_json as as_json
from duly.evidence.documents.window import complete_as_json as complete_as_json
from duly.evidence.documents.window import csv_text, dumped
from duly.evidence.documents.window import document as document
from duly.evidence.documents.window import iso as iso
from duly.evidence.documents.window import line_complete_as_json as line_complete_as_json
from duly.evidence.shown import GLYPHS as GLYPHS
from duly.evidence.shown import line_name as line_name
from duly.evidence.shown import typed as typed
from duly.evidence.shown import when as when
from duly.evidence.shown import window_name as window_name
from duly.evidence.shown import zone_of as zone_of
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from duly.evidence.documents.window import Json as Json

# SGR codes (ECMA-48): red what is wrong, magenta what nobody knows, yellow what waits, green what is done, faint the rest.
_COLOURS = {
    verdict.COMPLETE: "32",
    verdict.SKIPPED: "2",
    verdict.RUNNING: "36",
    verdict.UNKNOWN: "35",
    verdict.FAILED: "31",
    verdict.RETRYING: "33",
    verdict.UNDELIVERED: "33",
    verdict.DUE: "33",
    verdict.LATE: "31",
    verdict.MISSING: "31",
    verdict.COMING: "2",
    verdict.NOT_OWED: "2",
    verdict.PRUNED: "2",
}


def colour_wanted(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to colour (no-color.org, force-color.org). Pure."""
    if environ.get("NO_COLOR"):
        return False
    if forced := environ.get("FORCE_COLOR"):
        return forced != "0"
    return terminal and environ.get("TERM") != "dumb"


@record
class Cell:
    """A text of a table, painted as a state where it has one."""

    text: str
    word: str = ""


def glyph(word: str) -> Cell:
    """A state's glyph alone: its word stands elsewhere in the line."""
    return Cell(GLYPHS[word], word)


def glyph_and_word(word: str) -> Cell:
    """A state as a glyph and a word."""
    return Cell(f"{GLYPHS[word]} {word}".strip(), word)


def table(rows: Sequence[Sequence[str | Cell]], *, gap: int = 3) -> str:
    """Rows with their columns aligned; columns that are empty in every row are left out."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    count = max((len(row) for row in cells), default=0)
    cells = [row + [Cell("")] * (count - len(row)) for row in cells]
    widths = [max(len(row[column].text) for row in cells) for column in range(count)]
    shown = [column for column in range(count) if widths[column]]
    lines = []
    for row in cells:
        # A glyph is followed by one blank: it belongs to what it stands before.
        parts = [paint(row[c].text.ljust(widths[c]), row[c].word) + " " * (1 if widths[c] == 1 else gap) for c in shown]
        lines.append("".join(parts).rstrip())
    return "\n".join(lines)


def paint(text: str, word: str) -> str:
    """A text in the colour of a state, where colour is wanted."""
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{text}\x1b[0m" if code and colour_wanted(os.environ, terminal=sys.stdout.isatty()) else text


# -- documents ----------------------------------------------------------------------------------------------------------


def show(
    args: argparse.Namespace,
    schema: str,
    facts: Mapping[str, Json],
    name: str,
    records: Sequence[dict[str, Json]],
    human: Callable[[], str],
) -> None:
    """Print records as `--format` asks, as `rendered` has them."""
    text = rendered(args, schema, facts, name, records, human)
    if text:
        print(text)


def rendered(
    args: argparse.Namespace,
    schema: str,
    facts: Mapping[str, Json],
    name: str,
    records: Sequence[dict[str, Json]],
    human: Callable[[], str],
) -> str:
    """Records as `--format` asks: for people as `human` says, for programs as `schema` says.

    `json` is one document with the facts and the records under `name`; `jsonl`, `csv` and `keys` print the records alone.
    """
    match args.format:
        case "table":
            return human()
        case "json":
            return document(schema, {**facts, name: list(records)})
        case "jsonl":
            return "\n".join(dumped({"schema": schema, **one}) for one in records)
        case "csv":
            return csv_text(records)
    return "\n".join(str(one["key"]) for one in records)


def note(text: str) -> None:
    """Talk: a line on stderr."""
    print(f"duly: {text}", file=sys.stderr)
