"""A window for programs, as every document has it; and how a document and a table are written."""

from __future__ import annotations

from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from duly.evidence.complete_through import LineComplete
    from duly.evidence.verdict import Window

    Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"


def iso(instant: int | None) -> str | None:
    """An instant for programs: ISO 8601 in UTC."""
    return None if instant is None else instant_text(instant)


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


def complete_as_json(lines: list[LineComplete]) -> list[Json]:
    """How far lines are complete, for programs."""
    return [line_complete_as_json(line) for line in lines]


def line_complete_as_json(line: LineComplete) -> dict[str, Json]:
    """How far a line is complete: without a gap, and at all."""
    return {
        "job": line.known.job.name,
        "scope": "" if line.known.line is None else line.known.line.scope,
        "complete_through": iso(line.completeness.through),
        "last_completed": iso(None if line.completeness.last is None else line.completeness.last.window_end),
    }


def document(schema: str, fields: Mapping[str, Json]) -> str:
    """One JSON document with the name of its schema."""
    import json

    return json.dumps({"schema": schema, **fields}, indent=2, ensure_ascii=False)


def dumped(fields: dict[str, Json]) -> str:
    """One JSON object in one line."""
    import json

    return json.dumps(fields, ensure_ascii=False)


def csv_text(records: Sequence[dict[str, Json]]) -> str:
    """The records as a table; a column stays empty where a record has no such field."""
    import csv
    import io

    text = io.StringIO()
    names = dict.fromkeys(name for one in records for name in one) or ["key"]
    writer = csv.DictWriter(text, fieldnames=list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in one.items()} for one in records)
    return text.getvalue().rstrip("\n")


def _plain(value: Json) -> Json:
    """A value as a table has it. A text that a spreadsheet would take for a formula has an apostrophe before it, which that
    hides: a scope, a reason or an error is what others wrote (CWE-1236).
    """
    if isinstance(value, bool):
        return str(value).lower()
    import re

    is_formula = isinstance(value, str) and re.match(_FORMULA, value) is not None
    return f"'{value}" if is_formula else value


# What begins so and calls something, or another program; `-3d..-1d` does not.
_FORMULA = r"[=@\t\r]|[-+][\w.:+-]*[^\w.:+-]"
