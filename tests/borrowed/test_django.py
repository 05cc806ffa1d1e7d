"""What only Django can do right or wrong: its models, its hooks, and blocks that are marked for rollback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connections, models, transaction
from django.utils.connection import ConnectionProxy

import duly
from tests.borrowed.callers import django_database
from tests.borrowed.shop import KEY, Shop


class Effect(models.Model):  # type: ignore[misc]  # Django comes without types
    note = models.CharField(max_length=40, primary_key=True)

    class Meta:
        app_label = "shop"
        db_table = "effect"
        managed = False


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest, new_shop: Callable[[str], Shop]) -> Shop:
    return new_shop(request.param)


@pytest.fixture
def named() -> Iterator[Callable[..., str]]:
    """Names a shop's database to Django; the answer is its alias."""
    named: list[str] = []

    def name(shop: Shop, **options: Any) -> str:
        named.append(django_database(shop.book.path, **options))
        return named[-1]

    yield name
    for alias in named:
        connections[alias].close()
        del connections[alias], connections.settings[alias]


@pytest.fixture
def database(named: Callable[..., str], shop: Shop) -> str:
    return named(shop)


def test_what_a_model_saved_commits_with_the_completion(shop: Shop, database: str) -> None:
    with shop.take() as claim, transaction.atomic(using=database):
        Effect.objects.using(database).create(note="mine")
        claim.complete(connections[database])

    assert (shop.effects, shop.state) == (["mine"], "completed")


def test_the_connection_of_a_module_is_as_good_as_the_one_behind_it(shop: Shop, database: str) -> None:
    connection = ConnectionProxy(connections, database)  # what django.db.connection is

    with transaction.atomic(using=database):
        assert duly.once(connection, KEY)

    assert shop.state == "completed"


def test_a_model_that_cannot_be_saved_leaves_the_run_unsettled(shop: Shop, database: str) -> None:
    shop.book.amend("insert into effect values ('there')")
    claim = shop.take()

    with transaction.atomic(using=database):
        with pytest.raises(IntegrityError):
            Effect.objects.using(database).create(note="there")
        with pytest.raises(duly.Conflict):  # whoever catches it in the block has a block that Django rolls back
            claim.complete(connections[database])

    assert shop.state == "running"
    claim.release()


def test_hooks_of_a_lost_claim_are_not_called(shop: Shop, database: str) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    called: list[str] = []

    with transaction.atomic(using=database):
        transaction.on_commit(lambda: called.append("stale"), using=database)
        with pytest.raises(duly.ClaimLost):
            stale.complete(connections[database])
    with transaction.atomic(using=database):
        transaction.on_commit(lambda: called.append("successor"), using=database)
        successor.complete(connections[database])

    successor.close()
    assert called == ["successor"]


@pytest.mark.parametrize("nested", [False, True])
def test_taking_the_mark_away_keeps_nothing_of_a_lost_claim(shop: Shop, database: str, nested: bool) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    connection = connections[database]

    with transaction.atomic(using=database):
        Effect.objects.using(database).create(note="before")
        with transaction.atomic(using=database, savepoint=nested):
            with pytest.raises(duly.ClaimLost):
                stale.complete(connection)
            connection.set_rollback(False)
            with pytest.raises(Exception, match=r"closed|broken"):
                Effect.objects.using(database).create(note="after")

    assert (shop.effects, shop.state) == ([], "running")
    successor.release()


def test_queries_that_are_logged_change_nothing(shop: Shop, database: str) -> None:
    connection = connections[database]
    connection.force_debug_cursor = True

    with shop.take() as claim, transaction.atomic(using=database):
        claim.complete(connection)
        assert not duly.once(connection, KEY)

    assert shop.state == "completed"
    assert connection.queries


def test_values_bound_on_the_server_are_understood(new_shop: Callable[[str], Shop], named: Callable[..., str]) -> None:
    shop = new_shop("postgresql")
    alias = named(shop, server_side_binding=True)

    with shop.take() as claim, transaction.atomic(using=alias):
        claim.complete(connections[alias], output="s3://exports/2026-10-05.csv")
    with transaction.atomic(using=alias):
        assert not duly.once(connections[alias], KEY)
        assert duly.once(connections[alias], "export:2026-10-04[UTC]")

    assert shop.book.rows("select state from duly_run") == [("completed",), ("completed",)]


def test_a_block_that_begins_as_a_writer_may_read_first(
    new_shop: Callable[[str], Shop], named: Callable[..., str]
) -> None:
    shop = new_shop("sqlite")
    alias = named(shop, transaction_mode="IMMEDIATE")

    with transaction.atomic(using=alias):
        assert not Effect.objects.using(alias).exists()
        assert duly.once(connections[alias], KEY)

    assert shop.state == "completed"


def test_on_sqlite_it_writes_before_it_looks(new_shop: Callable[[str], Shop], named: Callable[..., str]) -> None:
    shop = new_shop("sqlite")
    connection = connections[named(shop)]
    said: list[str] = []

    def hear(execute: Callable[..., Any], statement: str, *rest: Any) -> Any:
        said.append(statement)
        return execute(statement, *rest)

    with transaction.atomic(using=connection.alias), connection.execute_wrapper(hear):
        duly.once(connection, KEY)

    assert next(statement for statement in said if "duly_" in statement).startswith("update")
