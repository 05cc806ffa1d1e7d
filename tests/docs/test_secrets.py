"""The page of secrets: its commands run, and its lists are those of the code."""

from __future__ import annotations

import subprocess
from pathlib import Path

from duly import redaction
from duly.work.kept import LARGEST, PATIENCE_SECONDS
from tests.docs.test_outbox import here
from tests.docs.test_readme import ROOT, blocks
from tests.secrets.story import HOLD_BODIES

PAGE = (ROOT / "docs" / "secrets.md").read_text(encoding="utf-8")


def test_the_commands_run_as_the_page_has_them(tmp_path: Path) -> None:
    said = subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks(PAGE, "sh"))],
        cwd=tmp_path,
        env=here(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr
    first, _, shown = said.stdout.partition("\n")
    assert first == "annabel pays by iban DE021203, pin tok-4711"
    assert "*** pays by ***, pin ***" in shown
    assert "password=***" in shown


def test_the_page_has_every_name_and_bound() -> None:
    names = (
        *redaction._SECRET_PARTS,
        *redaction._SECRET_ENDS,
        *redaction._PLACES,
        *redaction._NO_SECRETS,
        *HOLD_BODIES,
    )

    assert [name for name in names if name not in PAGE] == []
    assert f"longer than {redaction.SHORTEST - 1} characters" in PAGE
    assert f"bounded to {redaction.LONGEST_MESSAGE}\ncharacters" in PAGE
    assert f"{LARGEST >> 10}k of each at most" in PAGE
    assert PATIENCE_SECONDS == 0.5
    assert "half a second" in PAGE
