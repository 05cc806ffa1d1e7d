"""Output: tables for people, documents for programs, and a state as a glyph with its word.

Data goes to stdout and talk to stderr. Colour only adds to what glyph and word say already: it is used on a terminal, never
with `NO_COLOR` or `TERM=dumb`, always with `FORCE_COLOR`.
"""

from __future__ import annotations

import os
import sys

from duly.cli.ledgers import shown
from duly.evidence import verdict
from duly.evidence.words import ago
from duly.ledger import states
from duly.records import record
from duly.times import DAY, Zone, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from duly.evidence.verdict import Window

    Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

GLYPHS = {
    verdict.COMPLETE: "✓",
    verdict.SKIPPED: "»",
    verdict.RUNNING: "▶",
    verdict.UNKNOWN: "?",
    verdict.FAILED: "✗",
    verdict.RETRYING: "↻",
    verdict.UNDELIVERED: "✉",
    verdict.DUE: "○",
    verdict.LATE: "–",
    verdict.MISSING: "–",
    verdict.COMING: "·",
    verdict.NOT_OWED: "·",
    verdict.PRUNED: "✓",
}

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

_NAMED_BEFORE = 2 * DAY  # no date of one zone is shown in another later than that

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


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


# -- time ---------------------------------------------------------------------------------------------------------------


def when(instant: int, zone: str, *, time: str, now: int) -> str:
    """An instant as `--time` asks: `Sun 25 Oct 02:30+02:00` in the schedule's zone, in UTC, or relative to now."""
    if time == "relative":
        return ago(instant, now)
    moment = Zone("UTC" if time == "utc" else zone).local(instant)
    year = f" {moment.year}" if abs(instant - now) > 300 * DAY else ""
    clock = moment.strftime("%H:%M:%S" if moment.second else "%H:%M")
    offset = moment.strftime("%z")
    shown = "Z" if time == "utc" or zone == "UTC" else f"{offset[:3]}:{offset[3:]}"
    return f"{_DAYS[moment.weekday()]} {moment.day} {_MONTHS[moment.month - 1]}{year} {clock}{shown}"


def iso(instant: int | None) -> str | None:
    """An instant for programs: ISO 8601 in UTC."""
    return None if instant is None else instant_text(instant)


# -- windows ------------------------------------------------------------------------------------------------------------


def line_name(window: Window) -> str:
    """Job and scope as people read them: `acme/invoice-export`."""
    return f"{window.key.scope}/{window.key.job}" if window.key.scope else window.key.job


def window_name(window: Window) -> str:
    """The window as a person names it; the whole key where that would find another run, or none.

    In the days after the schedule has changed with its zone, for before the change there may be a window of that name.
    """
    known = window.known
    version = known.version
    replaced = window.row is not None and window.row.state == states.REPLACED
    # Of a former series the version that is known is not the one in force.
    if version is None or version.number != known.job.version or replaced:
        return str(window.key)
    if (window.key.zone, window.key.grain) != (version.zone, version.grain):
        return str(window.key)
    since, bounds = version.effective_from, window.bounds
    is_near = bool(since) and bounds is not None and bounds[0] < since + _NAMED_BEFORE
    in_utc = (window.key.zone, window.key.grain) == ("UTC", "fire")
    return f"{window.key.middle}[{window.key.zone}]" if is_near and not in_utc else window.key.middle


def zone_of(window: Window) -> str:
    """The zone in which to show a window's times."""
    return window.key.zone or "UTC"


def typed(verb: str, window: Window, ledger: str | None) -> str:
    """The command line that does `verb` to a window, as a person would type it."""
    from shlex import join

    name = window_name(window)
    words = [name] if ":" in name and name == str(window.key) else [window.key.job, name]
    scope = ["--scope", window.key.scope] if window.key.scope and len(words) > 1 else []
    return join(["duly", *verb.split(), *words, *scope, *(["--ledger", shown(ledger)] if ledger else [])])


def as_json(window: Window) -> dict[str, Json]:
    """A window for programs."""
    bounds = window.bounds
    return {
        "key": str(window.key),
        "job": window.key.job,
        "scope": window.key.scope,
        "window": window.key.middle,
        "revision": window.run.revision,
        "state": window.verdict.word,
        "late": window.verdict.late,
        "note": window.verdict.note,
        "attempt": window.row.fence if window.row is not None and window.row.fence else None,
        "due": iso(window.due),
        "window_start": iso(bounds[0] if bounds else None),
        "window_end": iso(bounds[1] if bounds else None),
        "zone": window.key.zone,
    }


# -- documents ----------------------------------------------------------------------------------------------------------


def show(
    args: argparse.Namespace,
    schema: str,
    facts: Mapping[str, Json],
    name: str,
    records: Sequence[dict[str, Json]],
    human: Callable[[], str],
) -> None:
    """Print records as `--format` asks: for people as `human` says, for programs as `schema` says.

    `json` is one document with the facts and the records under `name`; `jsonl`, `csv` and `keys` print the records alone.
    """
    match args.format:
        case "table":
            text = human()
        case "json":
            text = document(schema, {**facts, name: list(records)})
        case "jsonl":
            text = "\n".join(_dumped({"schema": schema, **one}) for one in records)
        case "csv":
            text = _csv(records)
        case _:
            text = "\n".join(str(one["key"]) for one in records)
    if text:
        print(text)


def document(schema: str, fields: Mapping[str, Json]) -> str:
    """One JSON document with the name of its schema."""
    import json

    return json.dumps({"schema": schema, **fields}, indent=2, ensure_ascii=False)


def _dumped(fields: dict[str, Json]) -> str:
    import json

    return json.dumps(fields, ensure_ascii=False)


def _csv(records: Sequence[dict[str, Json]]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]) if records else ["key"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in one.items()} for one in records)
    return text.getvalue().rstrip("\n")


def _plain(value: Json) -> Json:
    return str(value).lower() if isinstance(value, bool) else value


def note(text: str) -> None:
    """Talk: a line on stderr."""
    print(f"duly: {text}", file=sys.stderr)
