"""Real releases of the database of zones, for what must hold when rules change."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.testing.releases import ReleaseMissing, release

RELEASES = [
    line
    for line in (Path(__file__).parent / "tzdata-releases.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.fixture(scope="session")
def releases() -> dict[str, Path]:
    """The zone files of each pinned release, oldest first."""
    try:
        return {version: release(version) for version in RELEASES}
    except ReleaseMissing as e:
        pytest.skip(f"RELEASES OF TZDATA ARE MISSING, so drift between them is not tested here: {e}")
