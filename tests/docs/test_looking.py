"""The page about looking: its commands run, and its table has every fact that there is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from duly.schedule.spec import daily
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks
from tests.story import Story

PAGE = (ROOT / "docs" / "looking.md").read_text(encoding="utf-8")


def test_the_commands_run_as_the_page_has_them(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("UTC"))
    story.fail("close-day")

    said = subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks(PAGE, "sh"))],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr
    assert said.stdout.count("duly retry close-day 2026-11-19") == 4
    assert (tmp_path / "duly.bash").read_text() == (ROOT / "share/bash-completion/completions/duly").read_text()


def test_every_fact_of_an_explanation_has_its_place_in_the_table(tmp_path: Path) -> None:
    story = Story(tmp_path, at="2026-11-20T08:00:00Z")
    story.job("close-day", daily("UTC"))
    story.fail("close-day")
    (table,) = re.findall(r"^\| what \| fields \|\n(?:\|.*\n)+", PAGE, re.MULTILINE)

    document = story.duly("explain", "close-day", "2026-11-19", "--json").document

    named = set(re.findall(r"`(\w+)`", table)) - {"sendings"}
    assert named == document.keys() - {"schema", "as_of", "sentences"}
