"""The page `docs/benchmarks.md`: what people wrote stays, what was measured is put between its markers.

<!-- measured: NAME -->
… made anew each time …
<!-- end -->
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.report import tables
from bench.report.bars import picture
from bench.report.medians import standings

PAGE, PICTURES, FIGURES = "benchmarks.md", "benchmarks", "figures.json"


def make(document: dict[str, Any], docs: Path) -> None:
    """Put what was measured into the page of a folder, with its pictures and its figures beside it."""
    pictures = docs / PICTURES
    pictures.mkdir(exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    measured = document["side_by_side"]
    for place in measured["places"]:
        there = standings(measured, place["name"])
        if there:
            (pictures / f"{place['name']}.svg").write_text(picture(place["title"], there))
    (pictures / FIGURES).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    page = docs / PAGE
    page.write_text(filled(page.read_text(), document))


def filled(page: str, document: dict[str, Any]) -> str:
    """A page with what was measured between its markers."""
    made = {"machine": _machine(document), "side by side": _side_by_side(document), "suites": _suites(document)}
    for name, text in made.items():
        between = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = between.subn(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the page has {count} places for what was measured of {name!r}, and not one")
    return page


def _machine(document: dict[str, Any]) -> str:
    machine, measured = document["machine"], document["side_by_side"]
    databases = {tables.DATABASES[place["database"]]: place["version"] for place in measured["places"]}
    versions = ", ".join(f"{name} {version}" for name, version in databases.items())
    return (
        f"Measured on {document['date']} at {machine['commit']}: {machine['cores']} cores ({machine['processor']}), Python {machine['python']}, "
        f"{versions}. {measured['rounds']} rounds of {measured['runs']:,} runs."
    )


def _side_by_side(document: dict[str, Any]) -> str:
    measured, parts = document["side_by_side"], []
    for database, title in tables.DATABASES.items():
        places = [place for place in measured["places"] if place["database"] == database]
        if any(standings(measured, place["name"]) for place in places):
            pictures = [f"![{place['title']}]({PICTURES}/{place['name']}.svg)" for place in places]
            parts += [f"### {title}", *pictures, tables.of_database(measured, places)]
    if measured["not_measured"]:
        parts += ["### Not measured", tables.of_not_measured(measured)]
    return "\n\n".join(parts)


def _suites(document: dict[str, Any]) -> str:
    figures, parts = [Figure(**each) for each in document["figures"]], []
    for suite, of_suite in groupby(figures, key=lambda each: each.suite):
        parts += [f"### `bench/{suite}.py`", tables.of_suite(of_suite)]
    if document["not_measured"]:
        parts.append(
            "\n".join(
                f"- `bench/{each['suite']}.py` was not measured: {each['why']}" for each in document["not_measured"]
            )
        )
    return "\n\n".join(parts)
