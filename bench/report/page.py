"""The page `docs/benchmarks.md`: what people wrote stays, what was measured is put between its markers.

<!-- measured: NAME -->
… made anew each time …
<!-- end -->
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.figure import Figure, as_json, put
from bench.report import tables
from bench.report.bars import picture
from bench.report.medians import standings

PAGE, PICTURES, FIGURES = "benchmarks.md", "benchmarks", "figures.json"


def make(document: dict[str, Any], docs: Path) -> None:
    """Put what was measured into the page of a folder, with its pictures and its figures beside it.

    All of it is made before anything is written. Raises `ValueError` for a document that says nothing, or not what it should,
    and for a page without the places that it is put into.
    """
    page, pictures = docs / PAGE, docs / PICTURES
    try:
        text, drawn = filled(page.read_text(), document), _drawn(document)
    except (KeyError, TypeError) as e:
        raise ValueError(f"it is none that `python -m bench` wrote: {type(e).__name__}: {e}") from e
    for name, picture_ in drawn.items():
        put(pictures / name, picture_)
    for old in set(pictures.glob("*.svg")) - {pictures / name for name in drawn}:
        old.unlink()
    put(pictures / FIGURES, as_json(document))
    put(page, text)


def _drawn(document: dict[str, Any]) -> dict[str, str]:
    """Pictures, by the names of their files."""
    measured = document["side_by_side"]
    places = [(place, standings(measured, place["name"])) for place in measured["places"]]
    return {f"{place['name']}.svg": picture(place["title"], there) for place, there in places if there}


def filled(page: str, document: dict[str, Any]) -> str:
    """A page with what was measured between its markers. Raises `ValueError`, `KeyError`."""
    if not document["figures"] and not document["side_by_side"]["contestants"]:
        raise ValueError("nothing was measured")
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
    at = f" at commit {machine['commit']}" if machine.get("commit") else ""
    of = f"{machine['cores']} cores ({machine['processor']}), Python {machine['python']}"
    said = [f"Measured on {document['date']}{at}: {', '.join(filter(None, (of, versions)))}."]
    if measured["contestants"]:
        said.append(f"{measured['rounds']} rounds of {measured['runs']:,} runs.")
    if document.get("quick"):
        said.append("**A quick look, with small counts: no measurement.**")
    return " ".join(said)


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
