"""A reply to COMMIT that never comes, where a library commits for duly: the same proxy swallows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import duly
from tests.borrowed.shop import Shop, on_postgres
from tests.proxy import Proxy
from tests.servers import Server
from tests.typed.desks import KINDS, Desk, Kind

KEY = "export:2026-10-05[UTC]"
BY_THE_DRIVER = (b"COMMIT\x00", b"COMMIT;\x00")  # duly's own are written small

pytestmark = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.database == "postgresql"], ids=lambda kind: kind.name
)


@pytest.fixture
def shop(server: Server) -> Iterator[Shop]:
    url = server.new_database()
    shop = on_postgres(url)
    yield shop
    shop.close()
    server.drop(url)


@pytest.fixture
def proxy(shop: Shop) -> Iterator[Proxy]:
    if urlsplit(shop.book.path).hostname is None:
        pytest.skip("the server listens on a socket only: there is no network between to cut")
    proxy = Proxy(shop.book.path, *BY_THE_DRIVER)
    yield proxy
    proxy.close()


@pytest.fixture
def desk(kind: Kind, proxy: Proxy) -> Iterator[Desk]:
    desk = kind.open(proxy.url)
    yield desk
    desk.close()


def export_of(desk: Desk) -> Any:
    def export(run: Any) -> None:
        desk.put(run.tx, f"{run.label} by attempt {run.attempt}")

    return desk.ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(export)


def test_a_commit_whose_reply_is_lost_is_looked_up_and_answered_as_what_it_was(
    kind: Kind, desk: Desk, shop: Shop, proxy: Proxy
) -> None:
    proxy.swallow_the_reply_of(1)

    assert export_of(desk).run("2026-10-05") == duly.Completed(KEY, 1)
    assert proxy.commits == 1
    assert (shop.effects, shop.state) == (["2026-10-05 by attempt 1"], "completed")
    assert export_of(desk).run("2026-10-04")  # the thread works on


def test_a_commit_that_never_came_is_a_conflict_and_nothing_is_kept(
    kind: Kind, desk: Desk, shop: Shop, proxy: Proxy
) -> None:
    proxy.swallow(1)

    with pytest.raises(duly.Conflict, match="rolled back; try the whole"):
        export_of(desk).run("2026-10-05")

    assert (shop.effects, shop.state) == ([], "failed")
    assert export_of(desk).run("2026-10-05") == duly.Completed(KEY, 2)
    assert shop.effects == ["2026-10-05 by attempt 2"]


def test_a_forked_child_cannot_write_in_its_parents_transaction(kind: Kind, desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[object]) -> None:
        desk.put(run.tx, "by the parent")
        desk.execute(run.tx, "select 1")  # what was not flushed is
        if (child := os.fork()) == 0:
            try:
                desk.execute(run.tx, "insert into effect values ('by the child')")
            except duly.TransactionOwned:
                os._exit(7)
            finally:
                os._exit(8)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7

    desk.ledger.job("export", duly.daily("UTC"), catch_up=duly.EACH)(work).run("2026-10-05")

    assert shop.effects == ["by the parent"]
