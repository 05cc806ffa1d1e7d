"""No secret is in any byte that duly writes. The story is told once for each database; a leak in each place is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import duly
from tests.secrets.story import SECRETS, Told, tell, traces
from tests.servers import Server

SOURCE = Path(duly.__file__).parents[1]  # that which is tested: a mutant, where one was planted


@pytest.fixture(scope="module")
def in_a_file(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return tell(tmp_path_factory.mktemp("secrets"), None, SOURCE)


@pytest.fixture(scope="module")
def on_a_server(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Told]:
    with server.ledger() as url:
        yield tell(tmp_path_factory.mktemp("secrets"), url, SOURCE)


def test_no_secret_is_written_with_a_ledger_in_a_file(in_a_file: Told) -> None:
    assert {what: traces(in_a_file, secret) for what, secret in SECRETS.items() if traces(in_a_file, secret)} == {}


def test_no_secret_is_written_with_a_ledger_on_a_server(on_a_server: Told) -> None:
    assert {what: traces(on_a_server, secret) for what, secret in SECRETS.items() if traces(on_a_server, secret)} == {}


def test_what_was_hidden_was_there_to_be_found(in_a_file: Told) -> None:
    """The story has the lines in which a secret would stand."""
    shown = in_a_file.bytes["views: stdout"]

    assert b"pin *** and *** and ***" in shown
    assert b"password=***" in shown
    assert b"ValueError" in in_a_file.bytes["the ledger"]
    assert b"SQLITE_CONSTRAINT_UNIQUE" in in_a_file.bytes["the ledger"]
    assert b"422" in in_a_file.bytes["the ledger"]
    assert shown.count(b">>>") == 19
    assert b"Traceback" not in in_a_file.bytes["views: stderr"]


def test_each_place_is_looked_at() -> None:
    for secret in SECRETS.values():
        told = Told()
        told.add("somewhere", f"a log of {secret}!")

        assert set(traces(told, secret)) == {"somewhere"}
