"""Each test of exec gets a stage of its own, and leaves no process behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exec.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()
