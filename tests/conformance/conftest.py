"""Every PostgreSQL that can be had, since the suite is about databases and not about one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers import Server, from_wheel


@pytest.fixture(scope="package", params=["named or the machine's", "wheel"])
def any_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of the other tests, then the one from the wheel, which is newer."""
    if request.param != "wheel":
        yield request.getfixturevalue("server")
        return
    if os.environ.get("DULY_TEST_POSTGRES") == "none":
        pytest.skip("DULY_TEST_POSTGRES=none: no story on PostgreSQL is told")
    with from_wheel(tmp_path_factory.mktemp("postgres")) as url:
        server = Server(url)
        yield server
        server.close()
