"""Every test sees the pinned tzdata, not the system's copy, and a PostgreSQL server where one can be had."""

from __future__ import annotations

import os
import zoneinfo
from collections.abc import Iterator

import pytest

from tests.servers import MACHINES_OWN, Server, answers, from_wheel

# What tests know of zones is true of one release; the variable is for the processes that a test starts.
os.environ["PYTHONTZPATH"] = ""
zoneinfo.reset_tzpath(())


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A PostgreSQL server: the one that DULY_TEST_POSTGRES names, the machine's own, or one from a wheel."""
    named = os.environ.get("DULY_TEST_POSTGRES")
    if named is None and answers(MACHINES_OWN):
        named = MACHINES_OWN
    if named is not None:
        server = Server(named)
        yield server
        server.close()
        return
    with from_wheel(tmp_path_factory.mktemp("postgres")) as url:
        yield Server(url)
