"""Tables of the report, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.entries import POSTGRES, SQLITE
from bench.figure import Figure
from bench.report.medians import Standing, standings

DATABASES = {SQLITE: "SQLite", POSTGRES: "PostgreSQL"}
NONE = "–"


def of_database(measured: dict[str, Any], places: Sequence[dict[str, Any]]) -> str:
    """Everyone who was measured on a database: their figures in each of its places, and what they guarantee."""
    by_place = [{each.name: each for each in standings(measured, place["name"])} for place in places]
    names = list(dict.fromkeys(name for there in by_place for name in there))
    head = ["", *(of for place in places for of in (f"{place['title']}, runs/s", "of the floor"))]
    head += ["duplicates/s", "every key, offered again", "atomic", "what may be relied upon"]
    rows = []
    for name in names:
        there = [standing.get(name) for standing in by_place]
        known = next(each for each in there if each is not None)
        cells = [cell for each in there for cell in (_rate(each), _ratio(each))]
        duplicates = number(known.duplicates) if known.duplicates is not None else NONE
        atomic = "yes" if known.atomic else "no"
        rows.append([_named(known), *cells, duplicates, _offered(known), atomic, known.guarantees])
    return table(head, rows, left={0, len(head) - 3, len(head) - 2, len(head) - 1})


def _named(each: Standing) -> str:
    return f"{each.name} {each.version}" if each.kind == "peer" and each.version else each.name


def _rate(each: Standing | None) -> str:
    return NONE if each is None else f"{number(each.runs)} ({number(each.least)}–{number(each.most)})"


def _ratio(each: Standing | None) -> str:
    return NONE if each is None or each.ratio is None else ratio(each.ratio)


def _offered(each: Standing) -> str:
    """What became of keys that were offered again."""
    if each.refused == each.offered and not each.done_twice:
        return "refused"
    if each.refused == 0 and each.done_twice >= each.offered:
        return "done twice"
    return f"{each.refused:,} of {each.offered:,} refused, {each.done_twice:,} done twice"


def of_not_measured(measured: dict[str, Any]) -> str:
    """Who was not measured, where, and why: one line for each reason."""
    where: dict[tuple[str, str], list[str]] = {}
    for each in measured["not_measured"]:
        where.setdefault((each["name"], each["why"]), []).append(each["place"])
    return "\n".join(f"- {name} ({', '.join(places)}): {why}" for (name, why), places in where.items())


def of_suite(figures: Iterable[Figure]) -> str:
    """What one of the other scripts measured."""
    rows = [
        [
            each.case,
            each.what,
            f"{number(each.value)} {each.unit}",
            "" if each.ratio is None else f"{ratio(each.ratio)} of {each.of}",
        ]
        for each in figures
    ]
    return table(["", "", "", "beside"], rows, left={0, 1})


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: set[int]) -> str:
    """A table; the columns that are not `left` are numbers, set to the right."""
    rules = ["---" if column in left else "---:" for column in range(len(head))]
    return "\n".join(_row(cells) for cells in (head, rules, *rows))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def number(value: float) -> str:
    """Three digits that say something, and no more."""
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def ratio(value: float) -> str:
    """Two digits behind the point, or as many as say something."""
    if value >= 10:
        return number(value)
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
