"""A stage for each story: a ledger on either database, a broker of either kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import Book, PostgresBook
from tests.on_celery.brokers import BROKERS, Broker, MortalRedis
from tests.on_celery.stage import CeleryStage
from tests.servers import Server

PAIRS = (("sqlite", "redis"), ("postgres", "rabbitmq"))  # the other two are told by campaigns/carried.py


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    yield from BROKERS[request.param]()


@pytest.fixture
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """A ledger, at three in the morning of 2026-10-06 in UTC."""
    if request.param == "sqlite":
        yield Book(tmp_path / "ledger.db")
        return
    server: Server = request.getfixturevalue("server")
    with server.ledger() as url:
        yield PostgresBook(url)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A story is told on both databases and both brokers, in two pairs, unless it says which."""
    if "stage" in metafunc.fixturenames and not metafunc.definition.get_closest_marker("parametrize"):
        metafunc.parametrize(("kept", "broker"), PAIRS, ids=["-".join(pair) for pair in PAIRS], indirect=True)


@pytest.fixture
def stage(kept: Book, broker: Broker, tmp_path: Path) -> Iterator[CeleryStage]:
    stage = CeleryStage(kept, tmp_path, broker)
    yield stage
    stage.close()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[CeleryStage]:
    """A stage whose broker may die."""
    redis = MortalRedis(tmp_path)
    stage = CeleryStage(Book(tmp_path / "ledger.db"), tmp_path, redis)
    yield stage
    stage.close()
    redis.close()
