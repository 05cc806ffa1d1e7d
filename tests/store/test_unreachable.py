"""Why a server cannot be reached is said, in words that hold nothing of the address."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

import duly
from duly.store.sqlstate import why_unreachable
from tests.servers import Server


def test_a_database_and_a_role_that_are_not_there_are_told_apart(server: Server) -> None:
    at = urlsplit(server.url)
    nobody = at._replace(netloc=f"nobody_here:hunter2@{at.netloc.rpartition('@')[2]}").geturl()

    with pytest.raises(duly.LedgerUnavailable, match="there is no such database"):
        duly.postgres(at._replace(path="/no_such_database").geturl())
    with pytest.raises(duly.LedgerUnavailable) as told:
        duly.postgres(nobody)

    assert "hunter2" not in str(told.value)


def test_nobody_listens_there() -> None:
    with pytest.raises(duly.LedgerUnavailable, match="nobody listens there"):
        duly.postgres("postgresql://u:hunter2@127.0.0.1:1/x")


def test_other_words_are_not_repeated() -> None:
    assert why_unreachable("FATAL: the value hunter2 is not allowed") == ""
