"""A shop on the database of the kind that a story is told of, and a caller of that kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.borrowed.callers import Caller, Kind
from tests.borrowed.shop import Shop, on_postgres, on_sqlite
from tests.servers import Server

Open = Callable[..., Caller]


@pytest.fixture
def new_shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Shop]]:
    """Opens shops on either database, each with a ledger of its own."""
    with ExitStack() as stack:
        folders = count()

        def new(database: str) -> Shop:
            if database == "sqlite":
                folder = tmp_path / str(next(folders))
                folder.mkdir()
                shop = on_sqlite(folder)
            else:
                server: Server = request.getfixturevalue("server")
                shop = on_postgres(stack.enter_context(server.ledger()))
            stack.callback(shop.close)
            return shop

        yield new


@pytest.fixture
def shop(kind: Kind, new_shop: Callable[[str], Shop]) -> Shop:
    """A shop on the database of this kind of connection, on the morning of 2026-10-06."""
    return new_shop(kind.database)


@pytest.fixture
def open_caller(kind: Kind, shop: Shop) -> Iterator[Open]:
    """Opens callers of this kind, on the shop's database unless told another place."""
    opened: list[Caller] = []

    def new(place: str | None = None, **settings: Any) -> Caller:
        opened.append(kind.lend(place or shop.book.path, **settings))
        return opened[-1]

    yield new
    for caller in opened:
        caller.close()


@pytest.fixture
def caller(open_caller: Open) -> Caller:
    """Someone who works on the shop's database, in transactions of its own."""
    return open_caller()
