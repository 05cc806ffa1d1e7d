"""The stories of a lent transaction, told of every kind of connection: effect and completion commit together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest

import duly
from duly.store.borrowed import is_open
from tests.borrowed.callers import KINDS, Caller, Kind
from tests.borrowed.conftest import Open
from tests.borrowed.shop import KEY, Shop


def told_of(kinds: Iterable[Kind]) -> pytest.MarkDecorator:
    """The kinds of connection that a story is told of."""
    return pytest.mark.parametrize("kind", list(kinds), ids=lambda kind: kind.name)


AWAITED = ("aiosqlite", "psycopg async", "asyncpg")
SQLITES, POSTGRESES = ("sqlite3", "aiosqlite"), ("psycopg", "psycopg async", "asyncpg")  # with nobody before them

every_kind = told_of(KINDS)
on_sqlite = told_of(kind for kind in KINDS if kind.database == "sqlite")
on_postgres = told_of(kind for kind in KINDS if kind.database == "postgresql")
with_savepoints = told_of(kind for kind in KINDS if kind.savepoints)
not_awaited = told_of(
    kind for kind in KINDS if not kind.name.startswith("Async") and kind.name not in AWAITED
)  # a block that is awaited is duly.aio's


# -- once ---------------------------------------------------------------------------------------------------------------


@every_kind
def test_effect_and_completion_commit_together(shop: Shop, caller: Caller) -> None:
    caller.begin()
    assert caller.once(KEY)
    caller.apply("mine")
    assert (shop.effects, shop.state) == ([], None)

    caller.commit()

    assert (shop.effects, shop.state) == (["mine"], "completed")
    assert shop.history == [(1, "completed")]


@every_kind
def test_rolled_back_neither_was_ever_there(shop: Shop, caller: Caller) -> None:
    caller.begin()
    assert caller.once(KEY)
    caller.apply("mine")
    caller.rollback()
    assert (shop.effects, shop.state) == ([], None)

    caller.begin()
    assert caller.once(KEY)
    caller.commit()

    assert shop.state == "completed"


@every_kind
def test_a_duplicate_is_false_and_leaves_the_transaction_to_its_caller(shop: Shop, caller: Caller) -> None:
    caller.begin()
    assert caller.once(KEY)
    assert not caller.once(KEY)
    caller.commit()
    caller.begin()
    caller.apply("before")

    assert not caller.once(KEY)

    caller.apply("after")
    caller.commit()
    assert shop.effects == ["after", "before"]
    assert shop.history == [(1, "completed")]


def busy(shop: Shop) -> None:
    shop.take()


def unknown(shop: Shop) -> None:
    shop.take().doubt("time-out at the provider")


def waiting(shop: Shop) -> None:
    shop.book.fail(shop.book.take("2026-10-05"), retry_in=None)


def skipped(shop: Shop) -> None:
    shop.book.skip("2026-10-05")


def of_other_payload(shop: Shop) -> None:
    shop.book.fail(shop.book.take("2026-10-05", payload="json1:other"))


def forgotten(shop: Shop) -> None:
    _, run, _ = shop.book.find("2026-10-05")
    shop.book.amend("update duly_series set horizon = ?", run.nominal + 1)


def by_another_zone(shop: Shop) -> str:
    return "export:2026-10-05[Europe/Berlin]"


@pytest.mark.parametrize(
    ("arrange", "refusal"),
    [
        (busy, duly.RunBusy),
        (unknown, duly.OutcomeUnknown),
        (waiting, duly.RunFailed),
        (skipped, duly.RunSkipped),
        (of_other_payload, duly.PayloadConflict),
        (forgotten, duly.BelowHorizon),
        (by_another_zone, duly.WindowInvalid),
    ],
    ids=lambda value: value.__name__,
)
@every_kind
def test_a_refusal_leaves_the_transaction_to_its_caller(
    shop: Shop, caller: Caller, arrange: Callable[[Shop], str | None], refusal: type[duly.DulyError]
) -> None:
    key = arrange(shop) or KEY
    before = shop.book.everything()
    caller.begin()
    caller.apply("before")

    with pytest.raises(refusal):
        caller.once(key, payload={"format": "csv"} if refusal is duly.PayloadConflict else None)

    caller.apply("after")
    caller.commit()
    assert shop.effects == ["after", "before"]
    assert shop.book.everything() == before


@every_kind
def test_a_run_whose_holder_vanished_is_completed_by_whoever_comes(shop: Shop, caller: Caller) -> None:
    shop.book.take("2026-10-05")
    shop.book.lapse()

    caller.begin()
    assert caller.once(KEY)
    caller.commit()

    assert shop.history == [(1, "lost"), (2, "completed")]


@on_sqlite
def test_a_holder_that_shows_a_pulse_is_busy(shop: Shop, caller: Caller) -> None:
    claim = shop.take()
    shop.book.amend("update duly_run set lease_until = 0")

    caller.begin()
    with pytest.raises(duly.RunBusy):
        caller.once(KEY)

    claim.close()


# -- a claim ------------------------------------------------------------------------------------------------------------


@every_kind
def test_a_claim_completes_with_its_effect(shop: Shop, caller: Caller) -> None:
    claim = shop.take()
    caller.begin()
    caller.apply("mine")
    caller.complete(claim)
    assert (shop.effects, shop.state) == ([], "running")

    caller.commit()

    assert (shop.effects, shop.state) == (["mine"], "completed")
    claim.close()


@every_kind
def test_whether_a_lent_transaction_is_still_to_end_can_be_seen(shop: Shop, caller: Caller) -> None:
    claim = shop.take()
    caller.begin()
    caller.complete(claim)
    assert is_open(caller.lent)

    caller.commit()

    assert not is_open(caller.lent)
    claim.close()


@not_awaited
def test_a_block_may_be_left_before_the_commit(shop: Shop, caller: Caller) -> None:
    caller.begin()
    with shop.take() as claim:
        caller.apply("mine")
        caller.complete(claim)

    caller.commit()

    assert (shop.effects, shop.history) == (["mine"], [(1, "completed")])


@not_awaited
def test_a_block_left_after_a_rollback_has_failed(shop: Shop, caller: Caller) -> None:

    with shop.take() as claim:
        caller.begin()
        caller.complete(claim)
        caller.rollback()

    assert (shop.effects, shop.history) == ([], [(1, "failed")])


@every_kind
def test_a_completion_that_is_rolled_back_can_be_made_again(shop: Shop, caller: Caller) -> None:
    claim = shop.take()
    caller.begin()
    caller.apply("mine")
    caller.complete(claim)
    caller.rollback()
    assert (shop.effects, shop.state) == ([], "running")

    caller.begin()
    caller.apply("mine")
    caller.complete(claim)
    caller.commit()

    claim.close()
    assert (shop.effects, shop.history) == (["mine"], [(1, "completed")])


@every_kind
def test_a_lost_claim_commits_nothing_whoever_swallows_it(shop: Shop, caller: Caller, open_caller: Open) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    caller.begin()
    caller.apply("stale")

    with pytest.raises(duly.ClaimLost):
        caller.complete(stale)
    with suppress(Exception):  # some say so, others commit nothing
        caller.commit()

    assert (shop.effects, shop.state) == ([], "running")
    other = open_caller()
    other.begin()
    other.apply("successor")
    other.complete(successor)
    other.commit()
    successor.close()
    assert (shop.effects, shop.history) == (["successor"], [(1, "lost"), (2, "completed")])


@told_of(kind for kind in KINDS if kind.name not in SQLITES)  # there it is a new transaction, which the caller made
def test_after_a_lost_claim_what_is_written_in_the_same_block_is_not_kept(shop: Shop, caller: Caller) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    caller.begin()

    with pytest.raises(duly.ClaimLost):
        caller.complete(stale)
    with suppress(Exception):
        caller.apply("stale")
    with suppress(Exception):
        caller.commit()

    assert shop.effects == []
    successor.release()


@told_of(kind for kind in KINDS if kind.name not in (*SQLITES, *POSTGRESES))  # nobody stands before these
def test_a_block_that_lost_its_claim_can_only_be_rolled_back(shop: Shop, caller: Caller) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    caller.begin()
    with pytest.raises(duly.ClaimLost):
        caller.complete(stale)

    with pytest.raises(duly.Conflict, match="failed already"):
        caller.once("export:2026-10-04[UTC]")
    with pytest.raises(duly.Conflict, match="failed already"):
        caller.complete(successor)

    caller.rollback()
    successor.release()


@told_of(kind for kind in KINDS if kind.name not in POSTGRESES)  # whose connection is closed for good
def test_a_caller_goes_on_after_rolling_a_lost_claim_back(shop: Shop, caller: Caller) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    caller.begin()
    with pytest.raises(duly.ClaimLost):
        caller.complete(stale)
    caller.rollback()

    caller.begin()
    caller.apply("successor")
    caller.complete(successor)
    caller.commit()

    assert (shop.effects, shop.state) == (["successor"], "completed")
    successor.close()


@every_kind
def test_a_second_completion_is_undone_with_all_that_came_with_it(shop: Shop, caller: Caller) -> None:
    claim = shop.take()
    caller.begin()
    caller.apply("first")
    caller.complete(claim)
    caller.commit()
    caller.begin()
    caller.apply("second")

    with pytest.raises(duly.ClaimLost):
        caller.complete(claim)
    with suppress(Exception):
        caller.commit()

    claim.close()
    assert (shop.effects, shop.history) == (["first"], [(1, "completed")])


# -- savepoints ---------------------------------------------------------------------------------------------------------


@with_savepoints
def test_in_a_savepoint_it_is_part_of_the_whole(shop: Shop, caller: Caller) -> None:
    caller.begin()
    caller.begin_savepoint()
    assert caller.once(KEY)
    caller.apply("mine")
    caller.release_savepoint()
    assert (shop.effects, shop.state) == ([], None)

    caller.commit()

    assert (shop.effects, shop.state) == (["mine"], "completed")


@with_savepoints
def test_a_savepoint_that_is_released_is_rolled_back_with_the_whole(shop: Shop, caller: Caller) -> None:
    caller.begin()
    caller.begin_savepoint()
    assert caller.once(KEY)
    caller.apply("mine")
    caller.release_savepoint()

    caller.rollback()

    assert (shop.effects, shop.state) == ([], None)


@with_savepoints
def test_a_savepoint_that_is_rolled_back_takes_the_completion_along(shop: Shop, caller: Caller) -> None:
    caller.begin()
    caller.apply("outside")
    caller.begin_savepoint()
    assert caller.once(KEY)
    caller.apply("inside")
    caller.rollback_savepoint()

    assert caller.once(KEY)
    caller.commit()

    assert (shop.effects, shop.history) == (["outside"], [(1, "completed")])


@pytest.mark.parametrize("end", ["rolled back", "released"])
@with_savepoints
def test_a_claim_lost_in_a_savepoint_takes_the_whole_along(shop: Shop, caller: Caller, end: str) -> None:
    stale = shop.take()
    successor = shop.lose(stale)
    caller.begin()
    caller.apply("outside")
    caller.begin_savepoint()
    caller.apply("inside")

    with pytest.raises(duly.ClaimLost):
        caller.complete(stale)
    with suppress(Exception):
        caller.rollback_savepoint() if end == "rolled back" else caller.release_savepoint()
    with suppress(Exception):
        caller.apply("after")
    with suppress(Exception):
        caller.commit()

    assert "outside" not in shop.effects
    assert "inside" not in shop.effects
    assert shop.state == "running"
    successor.release()


# -- no transaction, no ledger, another ledger --------------------------------------------------------------------------


@every_kind
def test_without_a_transaction_nothing_is_written(shop: Shop, open_caller: Open) -> None:
    claim = shop.take()
    caller = open_caller(autocommit=True)
    caller.begin()
    before = shop.book.everything()

    with pytest.raises(duly.NoTransaction):
        caller.once("export:2026-10-04[UTC]")
    with pytest.raises(duly.NoTransaction):
        caller.complete(claim)

    assert shop.book.everything() == before
    claim.release()


@every_kind
def test_a_claim_is_completed_in_its_own_ledger_only(
    kind: Kind, shop: Shop, open_caller: Open, new_shop: Callable[[str], Shop]
) -> None:
    claim = shop.take()
    other = new_shop(kind.database)
    caller = open_caller(other.book.path)
    caller.begin()
    caller.apply("mine")

    with pytest.raises(duly.WrongLedger):
        caller.complete(claim)

    caller.rollback()
    assert (other.effects, other.state, shop.state) == ([], None, "running")
    claim.release()


@every_kind
def test_a_database_without_a_ledger_is_said_to_have_none(
    kind: Kind, shop: Shop, open_caller: Open, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    claim = shop.take()
    empty = (
        str(tmp_path / "empty.db") if kind.database == "sqlite" else request.getfixturevalue("server").new_database()
    )
    caller = open_caller(empty)

    caller.begin()
    with pytest.raises(duly.NoLedger):
        caller.once(KEY)
    caller.rollback()
    caller.begin()
    with pytest.raises(duly.WrongLedger):
        caller.complete(claim)

    caller.rollback()
    claim.release()


# -- rivals -------------------------------------------------------------------------------------------------------------


IMPATIENT = {"sqlite": "pragma busy_timeout = 0", "postgresql": "set lock_timeout = 1"}
BUSY = {"sqlite": duly.LedgerBusy, "postgresql": duly.RunBusy}


@every_kind
def test_a_rival_who_has_not_committed_is_no_duplicate(kind: Kind, shop: Shop, open_caller: Open) -> None:
    first, late = open_caller(), open_caller()
    first.begin()
    assert first.once(KEY)

    late.begin()
    late.execute(IMPATIENT[kind.database])
    with pytest.raises(BUSY[kind.database]):
        late.once(KEY)

    late.rollback()
    first.commit()
    assert shop.history == [(1, "completed")]


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
@on_postgres
def test_a_duplicate_at_a_stricter_isolation_asks_for_another_try(
    shop: Shop, open_caller: Open, isolation: str
) -> None:
    late, first = open_caller(isolation=isolation), open_caller()
    late.begin()
    late.execute("select 1 from effect")  # its snapshot is older than the other's commit
    first.begin()
    assert first.once(KEY)
    first.commit()

    with pytest.raises(duly.Conflict):
        late.once(KEY)

    late.rollback()
    late.begin()
    assert not late.once(KEY)
    late.rollback()


@on_postgres
def test_a_transaction_that_failed_already_is_to_be_tried_again(shop: Shop, caller: Caller) -> None:
    caller.begin()
    with pytest.raises(Exception, match="nowhere"):
        caller.execute("select 1 from nowhere")

    with pytest.raises(duly.Conflict):
        caller.once(KEY)

    caller.rollback()
    assert shop.state is None


@told_of(kind for kind in KINDS if kind.database == "sqlite" and kind.savepoints)  # others do not begin by reading
def test_on_sqlite_whoever_has_read_and_comes_too_late_to_write_tries_again(shop: Shop, open_caller: Open) -> None:
    late, first = open_caller(), open_caller()
    late.begin()
    late.execute("select count(*) from effect")
    first.begin()
    assert first.once(KEY)
    first.commit()

    with pytest.raises(duly.Conflict, match="BEGIN IMMEDIATE"):
        late.once(KEY)

    late.rollback()
    late.begin()
    assert not late.once(KEY)
    late.rollback()


# -- messages -----------------------------------------------------------------------------------------------------------


@every_kind
def test_messages_of_a_claim_commit_in_the_callers_transaction(shop: Shop, caller: Caller) -> None:
    shop.ledger.destination("billing")
    claim = shop.take()
    claim.run.send("billing", {"units": 10}, name="a")
    claim.run.send("billing", b"\x00", name="b")
    caller.begin()
    caller.complete(claim)
    caller.rollback()
    assert shop.messages == []

    caller.begin()
    caller.complete(claim)
    caller.commit()

    assert shop.messages == [("a", "pending", b'{"units":10}'), ("b", "pending", b"\x00")]
