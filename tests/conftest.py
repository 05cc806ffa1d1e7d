"""Every test sees the pinned tzdata, not the system's copy: what tests know of zones is true of one release."""

import os
import signal
import zoneinfo
from pathlib import Path

import hypothesis
import pytest

from duly.testing.releases import ReleaseMissing, release

# A busy machine is no fault of a law: nothing is timed here.
hypothesis.settings.register_profile("laws", deadline=None)
hypothesis.settings.load_profile("laws")

# Under nohup, or started with & by a shell without job control, they come ignored, and so would every process of a test.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["PYTHONTZPATH"] = ""  # for the processes that a test starts
zoneinfo.reset_tzpath(())


RELEASES = [
    line
    for line in (Path(__file__).parent / "tzdata-releases.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.fixture(scope="session")
def releases() -> dict[str, Path]:
    """The zone files of each pinned release of the database of zones, oldest first: for what must hold when rules change."""
    try:
        return {version: release(version) for version in RELEASES}
    except ReleaseMissing as e:
        pytest.skip(f"RELEASES OF TZDATA ARE MISSING, so drift between them is not tested here: {e}")
