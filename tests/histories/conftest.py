"""A stage on each database, kept for all races of a process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.testing.histories import PostgresStage, SqliteStage, Stage
from tests.servers import Server

MEMORY = Path("/dev/shm")  # Linux keeps it in memory


@pytest.fixture(scope="session")
def sqlite_stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        stage = SqliteStage(folder)
        yield stage
        stage.close()


@pytest.fixture(scope="session")
def postgres_stage(server: Server) -> Iterator[Stage]:
    url = server.new_database()
    stage = PostgresStage(url)
    yield stage
    stage.close()
    server.drop(url)
