"""A run's own transaction through SQLAlchemy and Django: one set of stories, told of each kind on each database.

Those of `duly.aio` are told the same; see `beside`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import duly
from duly.errors import DulyError
from tests.books import LATE
from tests.borrowed.shop import Shop
from tests.typed.desks import KINDS, Desk, Kind, Undone

Work = Callable[[duly.Run[Any]], object]

DAY = "2026-10-05"
KEY = f"export:{DAY}[UTC]"


def job(desk: Desk, work: Work, **settings: Any) -> Any:
    """The shop's daily job, with this work."""
    stated = {"catch_up": duly.EACH, "retry_delay": 0, **settings}
    return desk.ledger.job("export", duly.daily("UTC"), **stated)(work)


def puts(desk: Desk, note: str) -> Work:
    """Work that causes one effect."""
    return lambda run: desk.put(run.tx, note)


def take_over(shop: Shop) -> None:
    """As another attempt would, had this one's lease been over."""
    shop.book.amend("update duly_run set fence = fence + 1, attempt_id = ?", bytes(range(16)))


# -- effect and completion ----------------------------------------------------------------------------------------------


def test_the_effect_is_there_exactly_when_the_completion_is(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        assert run.tx is run.tx
        assert (shop.effects, shop.state) == ([], "running")  # nobody else sees either yet

    answer = job(desk, work).run(DAY)

    assert answer == duly.Completed(KEY, 1)
    assert (shop.effects, shop.state) == (["report"], "completed")


@pytest.mark.parametrize("with_rows", [True, False], ids=["with rows", "alone"])
def test_a_file_is_there_with_the_completion_after_a_failure_too(
    desk: Desk, shop: Shop, tmp_path: Path, with_rows: bool
) -> None:
    final = tmp_path / "report.csv"

    def work(run: duly.Run[Any]) -> None:
        if with_rows:
            desk.put(run.tx, "report")
        run.publish(final).write_text("whole")
        if run.attempt == 1:
            raise RuntimeError("the printer is on fire")

    export = job(desk, work)
    with pytest.raises(RuntimeError):
        export.run(DAY)
    assert not final.exists()

    assert export.run(DAY) == duly.Completed(KEY, 2)

    assert (final.read_text(), shop.effects) == ("whole", ["report"] if with_rows else [])
    assert [path.name for path in tmp_path.iterdir() if "report.csv" in path.name] == ["report.csv"]


def test_a_duplicate_does_nothing_and_says_so(desk: Desk, shop: Shop) -> None:
    export = job(desk, puts(desk, "report"))
    export.run(DAY)

    again = export.run(DAY)

    assert isinstance(again, duly.AlreadyCompleted)
    assert shop.effects == ["report"]


def test_an_exception_leaves_neither_effect_nor_completion_and_is_on_record(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        raise RuntimeError("the printer is on fire")

    with pytest.raises(RuntimeError):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")
    assert shop.history == [(1, "failed")]
    assert job(desk, puts(desk, "report")).run(DAY) == duly.Completed(KEY, 2)
    assert shop.effects == ["report"]


def test_a_run_that_reads_no_transaction_is_completed_too(desk: Desk, shop: Shop) -> None:
    assert job(desk, lambda run: None).run(DAY)
    assert shop.state == "completed"


def test_catch_up_works_what_is_owed_each_day_in_a_transaction_of_its_own(desk: Desk, shop: Shop) -> None:
    export = job(desk, lambda run: desk.put(run.tx, run.label))
    export.run(DAY)
    shop.book.clock.advance("48h")

    done = export.catch_up()

    assert [each.key for each in done] == ["export:2026-10-06[UTC]", "export:2026-10-07[UTC]"]
    assert shop.effects == [DAY, "2026-10-06", "2026-10-07"]


def test_inline_claim_effect_and_completion_are_one_transaction(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        assert shop.state is None  # not even the claim is seen

    export = job(desk, work, inline=True)

    assert export.run(DAY) == duly.Completed(KEY, 1)
    assert isinstance(export.run(DAY), duly.AlreadyCompleted)
    assert (shop.effects, shop.state) == (["report"], "completed")


def test_inline_an_exception_is_on_record_too(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        job(desk, work, inline=True).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")


def test_a_claim_may_use_a_transaction_of_duly_too(desk: Desk, shop: Shop) -> None:
    with desk.take(KEY) as claim:
        claim.use(lambda tx: desk.put(tx, "report"))
        claim.complete()

    assert (shop.effects, shop.state) == (["report"], "completed")


# -- what it refuses ----------------------------------------------------------------------------------------------------

WHOLE = [pytest.param(kind, way, id=f"{kind.name}-{way}") for kind in KINDS for way in kind.desk.whole]
DEADLY = [pytest.param(kind, way, id=f"{kind.name}-{way}") for kind in KINDS for way in kind.desk.deadly]
OWNED = "TransactionOwned", "TransactionManagementError"  # the latter is Django's own


def tries(desk: Desk, tx: Any, way: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which, is asked next
        desk.whole[way](tx)
    assert type(caught.value).__name__ in OWNED


@pytest.mark.parametrize(("kind", "way"), WHOLE)
def test_a_way_to_end_the_transaction_is_refused_and_commits_nothing(
    kind: Kind, way: str, desk: Desk, shop: Shop
) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "before")
        tries(desk, run.tx, way)
        assert shop.effects == []
        raise Undone

    with pytest.raises(Undone):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")


@pytest.mark.parametrize(("kind", "way"), WHOLE)
def test_a_job_that_swallows_the_refusal_is_still_whole(kind: Kind, way: str, desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "before")
        tries(desk, run.tx, way)
        desk.put(run.tx, "after")

    assert job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == (["after", "before"], "completed")


@pytest.mark.parametrize(("kind", "way"), DEADLY)
def test_after_a_deadly_way_nothing_is_kept_whatever_is_swallowed(kind: Kind, way: str, desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "before")
        with suppress(Exception):
            desk.deadly[way](run.tx)
        with suppress(Exception):
            desk.put(run.tx, "after")

    with pytest.raises(DulyError):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")
    assert job(desk, puts(desk, "again")).run(DAY) == duly.Completed(KEY, 2)
    assert shop.effects == ["again"]


def test_what_the_driver_commits_behind_everyones_back_is_seen_and_not_completed(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.execute(run.tx, "insert into effect values ('before')")
        desk.driver(run.tx).commit()
        with pytest.raises(duly.TransactionOwned):
            desk.execute(run.tx, "insert into effect values ('after')")

    with pytest.raises(duly.TransactionOwned, match="nothing more of it is kept"):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == (["before"], "failed")


def test_a_failed_statement_that_is_swallowed_completes_nothing_on_postgres(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "report")
        with pytest.raises(Exception, match="nowhere"):
            desk.execute(run.tx, "insert into nowhere values (1)")

    if shop.database == "sqlite":  # where it has done nothing, and the transaction goes on
        job(desk, work).run(DAY)
        assert shop.effects == ["report"]
        return
    with pytest.raises(duly.Conflict):
        job(desk, work).run(DAY)
    assert (shop.effects, shop.state) == ([], "failed")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.database == "postgresql"], ids=lambda kind: kind.name)
def test_another_transaction_that_the_driver_began_is_not_completed_on_postgres(
    kind: Kind, desk: Desk, shop: Shop
) -> None:
    def work(run: duly.Run[Any]) -> None:
        driver = desk.driver(run.tx)
        driver.commit()
        driver.execute("insert into effect values ('after')")

    with pytest.raises(duly.TransactionOwned, match="nothing more of it is kept"):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.database == "sqlite"], ids=lambda kind: kind.name)
def test_after_sqlite_ended_the_transaction_by_itself_nothing_more_can_be_written(
    kind: Kind, desk: Desk, shop: Shop
) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.execute(run.tx, "insert into effect values ('before')")
        with pytest.raises(Exception, match="UNIQUE"):
            desk.execute(run.tx, "insert or rollback into effect values ('before')")
        with pytest.raises(duly.TransactionOwned):
            desk.execute(run.tx, "insert into effect values ('after')")

    with pytest.raises(duly.TransactionOwned, match="nothing more of it is kept"):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == ([], "failed")


# -- savepoints ---------------------------------------------------------------------------------------------------------


def test_savepoints_are_allowed(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "before")
        with suppress(Undone), desk.savepoint(run.tx):
            desk.put(run.tx, "undone")
            raise Undone
        with desk.savepoint(run.tx), desk.savepoint(run.tx):
            desk.put(run.tx, "kept")

    job(desk, work).run(DAY)

    assert shop.effects == ["before", "kept"]


# -- when the run is over -----------------------------------------------------------------------------------------------


def test_a_run_that_is_over_has_no_transaction_any_more(desk: Desk, shop: Shop) -> None:
    kept: list[duly.Run[Any]] = []

    def work(run: duly.Run[Any]) -> None:
        kept.append(run)
        desk.put(run.tx, run.label)

    job(desk, work).run(DAY)

    with pytest.raises(duly.TransactionOwned, match="over"):
        desk.put(kept[0].tx, "late")
    shop.book.amend("insert into effect values ('the database is free')")
    assert job(desk, work).run("2026-10-04")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.is_async], ids=lambda kind: kind.name)
def test_a_job_inside_a_jobs_transaction_is_refused_and_the_outer_one_stays_whole(
    kind: Kind, desk: Desk, shop: Shop
) -> None:
    inner = desk.ledger.job("inner", duly.daily("UTC"), catch_up=duly.EACH, retry_delay=0)(lambda run: run.tx)

    def work(run: duly.Run[Any]) -> None:
        desk.put(run.tx, "outer")
        with pytest.raises(duly.TransactionOwned, match=r"run\.tx is open"):
            inner.run(DAY)

    job(desk, work).run(DAY)

    assert shop.effects == ["outer"]


# -- rivals -------------------------------------------------------------------------------------------------------------


def test_an_attempt_that_was_superseded_commits_nothing(desk: Desk, shop: Shop) -> None:
    def work(run: duly.Run[Any]) -> None:
        take_over(shop)
        desk.put(run.tx, "stale")

    with pytest.raises(duly.ClaimLost):
        job(desk, work).run(DAY)

    assert (shop.effects, shop.state) == ([], "running")
    shop.book.clock.advance(LATE)
    assert job(desk, puts(desk, "again")).run(DAY) == duly.Completed(KEY, 3)  # the thread works on
    assert shop.effects == ["again"]


def test_two_threads_or_tasks_at_once_cause_one_effect(desk: Desk, shop: Shop) -> None:
    export = job(desk, lambda run: desk.put(run.tx, f"by attempt {run.attempt}"))

    answers = desk.at_once(lambda: export.run(DAY, wait=60), times=2)

    assert sorted(type(answer).__name__ for answer in answers) == ["AlreadyCompleted", "Completed"]
    assert shop.effects == ["by attempt 1"]
