"""The page of scenarios names tests that exist, and leaves no number out."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.docs.test_readme import ROOT

PAGE = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[^`]+)`")
ROW = re.compile(r"^\| (\d+) \|(.*)\|$", re.MULTILINE)
NUMBERS = (*range(1, 8), *range(11, 56), 8, 57, *range(61, 65), *range(56, 61))  # as the sections of the page have them


def test_every_test_that_the_page_names_exists() -> None:
    named = sorted(set(NAMED.findall(PAGE)))

    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.returncode == 0, [line for line in found.stderr.splitlines() if "not found" in line] or found.stdout
    assert len(named) >= len(NUMBERS)


def test_each_scenario_has_a_row_and_each_row_a_story() -> None:
    rows = ROW.findall(PAGE)

    assert [int(number) for number, _ in rows] == list(NUMBERS)
    assert [number for number, row in rows if not NAMED.search(row)] == []
