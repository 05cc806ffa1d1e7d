"""Every PostgreSQL that can be had, since the suite is about databases and not about one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.servers import Server, from_wheel


@pytest.fixture(scope="package", params=["named or the machine's", "wheel"])
def any_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server of the other tests, then the one from the wheel, which is newer."""
    if request.param != "wheel":
        yield request.getfixturevalue("server")
        return
    if os.environ.get("DULY_TEST_POSTGRES") == "none":
        pytest.skip("DULY_TEST_POSTGRES=none: no story on PostgreSQL is told")
    # Not below pytest's own folder: as root the server runs as another user, to whom any pytest that starts shuts that folder.
    with (
        TemporaryDirectory(prefix="duly-postgres-", ignore_cleanup_errors=True) as folder,
        from_wheel(Path(folder)) as url,
    ):
        server = Server(url)
        yield server
        server.close()
