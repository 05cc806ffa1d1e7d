"""The report says what its file says: numbers, ratios, who was not measured. The page that is here is made of its file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.figure import put
from bench.report import page
from bench.report.medians import standings

ROOT = Path(__file__).parents[2]
SMALL = Path(__file__).with_name("small.json")
SVG = "{http://www.w3.org/2000/svg}"
EMPTY = "\n".join(f"<!-- measured: {name} -->\n<!-- end -->" for name in ("machine", "side by side", "suites"))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a page that has its markers, and the report of the small file."""
    (tmp_path / "benchmarks.md").write_text(f"# Written by hand\n\n{EMPTY}\n")
    line = [sys.executable, "-m", "bench", "report", str(SMALL), "--docs", str(tmp_path)]
    subprocess.run(line, cwd=ROOT, check=True)
    return tmp_path


def rows(docs: Path) -> dict[str, list[str]]:
    """The cells of each row of the page's tables, by the first of them."""
    lines = [line for line in (docs / "benchmarks.md").read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells}


def test_a_row_has_medians_with_the_slowest_and_the_fastest_round_and_its_ratio_to_the_floor(docs: Path) -> None:
    said = rows(docs)["duly, inline"]

    assert said[:4] == ["750 (740–760)", "0.75", "2,100 (2,000–2,200)", "0.10"]  # 750 of 1,000; 2,100 of 21,000
    assert said[4:7] == ["3,460", "refused", "yes"]


def test_a_peer_that_does_its_work_twice_has_no_rate_of_duplicates_and_its_promise_stands_beside_it(docs: Path) -> None:
    said = rows(docs)["APScheduler 3 3.11.3"]

    assert said == ["85.5 (80–90)", "0.086", "–", "–", "–", "done twice", "no", "an id is free again"]


def test_who_was_not_measured_is_named_with_the_reason(docs: Path) -> None:
    said = (docs / "benchmarks.md").read_text()

    assert "- APScheduler 3 (sqlite-memory): its environment could not be made: no such version" in said
    assert "- `bench/scale.py` was not measured: the disk is full" in said


def test_what_other_scripts_measured_has_a_table_for_each(docs: Path) -> None:
    said = (docs / "benchmarks.md").read_text()

    assert "### `bench/start.py`" in said
    assert rows(docs)["on disk, UTC"] == ["a duplicate", "48.2 ms", "2.61 of python -c pass"]


def test_a_picture_is_xml_with_a_title_and_a_bar_for_each_of_its_place(docs: Path) -> None:
    drawn = ElementTree.parse(docs / "benchmarks" / "sqlite-disk.svg").getroot()
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    wide = {
        bar.get("class"): float(bar.get("width", 0)) for bar in drawn.iter(f"{SVG}rect") if bar.get("height") == "14"
    }

    assert drawn.findtext(f"{SVG}title") == "SQLite on a disk: runs a second"
    assert {"floor, two transactions", "duly, inline", "APScheduler 3", "750 (0.75)"} <= set(texts)
    assert wide["floor"] > wide["duly"] > wide["peer"]


def test_what_was_written_by_hand_stays_and_the_same_file_makes_the_same_report(docs: Path) -> None:
    first = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}

    page.make(json.loads(SMALL.read_text()), docs)

    assert (docs / "benchmarks.md").read_text().startswith("# Written by hand\n")
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == first


def test_a_page_without_a_marker_is_refused() -> None:
    with pytest.raises(ValueError, match="'suites'"):
        page.filled(EMPTY.replace("suites", "suits"), json.loads(SMALL.read_text()))


def test_without_the_floor_there_is_no_ratio() -> None:
    measured: dict[str, Any] = json.loads(SMALL.read_text())["side_by_side"]
    measured["contestants"] = [each for each in measured["contestants"] if each["kind"] != "floor"]

    assert {each.ratio for each in standings(measured, "sqlite-disk")} == {None}


def test_the_page_that_is_here_is_made_of_the_figures_beside_it(tmp_path: Path) -> None:
    there = ROOT / "docs"
    (tmp_path / "benchmarks.md").write_text((there / "benchmarks.md").read_text())

    page.make(json.loads((there / "benchmarks" / "figures.json").read_text()), tmp_path)

    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {Path("benchmarks.md"), *(path.relative_to(there) for path in (there / "benchmarks").iterdir())}
    assert all((tmp_path / path).read_text() == (there / path).read_text() for path in made)


# -- what cannot be -------------------------------------------------------------------------------------------------------


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "{",
        json.dumps({**json.loads(SMALL.read_text()), "figures": [], "side_by_side": {"contestants": [], "places": []}}),
    ],
    ids=["empty", "foreign", "broken", "nothing measured"],
)
def test_of_a_file_that_is_none_no_report_is_made_and_nothing_is_changed(docs: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}

    said = bench("report", str(file), "--docs", str(docs))

    assert said.returncode == 1
    assert said.stderr.startswith(f"no report is made of {file}, and nothing was changed: ")
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == before


def test_of_a_page_without_the_places_for_it_nothing_is_changed(docs: Path) -> None:
    (docs / "benchmarks.md").write_text("no markers")
    before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}

    said = bench("report", str(SMALL), "--docs", str(docs))

    assert (said.returncode, "has 0 places" in said.stderr) == (1, True)
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--only", "nonsense"), "there is no suite nonsense; there are side_by_side, start"),
        (("--only", "schedule,"), "there is no suite "),
        (("--runs", "0"), "0: it has to be 1 or more"),
        (("--rounds", "-1"), "-1: it has to be 1 or more"),
        (("measure", "figures.json"), "`measure` has none"),
        (("report",), "has the file that"),
        (("--json", "/proc/none/figures.json"), "cannot be written"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(words: tuple[str, ...], why: str) -> None:
    said = bench(*words)

    assert said.returncode == 2
    assert why in said.stderr


def test_a_quick_look_and_the_commit_are_told(docs: Path) -> None:
    document = json.loads(SMALL.read_text())

    told = page.filled(EMPTY, {**document, "quick": True, "machine": {**document["machine"], "commit": "abc1234"}})

    assert "at commit abc1234: " in told
    assert "no measurement" in told


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "figures.json"
    put(file, "first")

    with pytest.raises(UnicodeEncodeError):
        put(file, "half of it and \udc80")

    assert file.read_text() == "first"
    assert [path.name for path in file.parent.iterdir()] == ["figures.json"]
