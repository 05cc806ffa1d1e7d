"""The page of the doctor: its commands run, and it has every examination."""

from __future__ import annotations

import json
import re
from pathlib import Path

from duly.evidence.doctor import SEVERITIES, ledger, postgres, sqlite
from tests.docs.test_outbox import run_the_page
from tests.docs.test_readme import ROOT

PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    said = run_the_page(PAGE, tmp_path)

    assert said.returncode == 0, said.stderr
    assert "✓ integrity" in said.stdout
    assert json.loads((tmp_path / "doctor.json").read_text())["schema"] == "duly.doctor.v1"


def test_the_page_has_every_examination_and_severity() -> None:
    examinations = (*ledger.EXAMINATIONS, *sqlite.EXAMINATIONS, *sqlite.OF_FILE, *postgres.EXAMINATIONS)
    named = {examine.__name__ for examine in examinations} | {"pooler", "skew"} | set(SEVERITIES)

    assert set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE)) == named
