"""A shop on the database of the kind that a story is told of, and a desk of that kind in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.borrowed.conftest import new_shop as new_shop
from tests.borrowed.shop import Shop
from tests.typed.desks import KINDS, Desk, Kind


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    """What `run.tx` is, and on which database."""
    found: Kind = request.param
    return found


@pytest.fixture
def shop(kind: Kind, new_shop: Callable[[str], Shop]) -> Shop:
    """A shop on the database of this kind, on the morning of 2026-10-06."""
    return new_shop(kind.database)


@pytest.fixture
def desk(kind: Kind, shop: Shop) -> Iterator[Desk]:
    """A typed ledger in the shop's database, and effects by its library."""
    desk = kind.open(shop.book.path)
    yield desk
    desk.close()
