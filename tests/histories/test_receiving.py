"""Every history of two who receive, forget or serve, and samples with faults: a key is applied once, on each database."""

from __future__ import annotations

import pytest

from duly.testing.histories import History, HistoryFailed, Stage, every_history, some_histories
from tests.histories.receiving import ISOLATED, RECEIVING, complaints
from tests.histories.test_races import stage_of

SEEDS = 20


def held_against(stage: Stage, history: History) -> None:
    __tracebackhide__ = True
    if broken := list(complaints(stage, history)):
        raise HistoryFailed("\n".join(["", history.story(), "      --", *broken]))


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", sorted(RECEIVING))
def test_whatever_the_order_of_their_steps_a_key_is_applied_once(
    database: str, name: str, request: pytest.FixtureRequest
) -> None:
    stage = stage_of(database, request)

    told = 0
    for history in every_history(RECEIVING[name], stage):
        held_against(stage, history)
        told += 1

    assert told > (database == "postgres")  # of two that do the same, whole transactions have one order


@pytest.mark.parametrize("name", sorted(ISOLATED))
def test_at_whatever_isolation(name: str, postgres_stage: Stage) -> None:
    told = 0
    for history in every_history(ISOLATED[name], postgres_stage):
        held_against(postgres_stage, history)
        told += 1

    assert told > 1


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", sorted(RECEIVING))
def test_a_receiver_that_crashes_leaves_all_or_nothing(
    database: str, name: str, request: pytest.FixtureRequest
) -> None:
    """A crash before or after a statement or the commit, a lost reply, a cancellation, errors of the database."""
    stage = stage_of(database, request)

    for _, history in some_histories(RECEIVING[name], stage, range(SEEDS)):
        broken = [each for each in complaints(stage, history) if not of_a_fault(each)]
        if broken:
            raise HistoryFailed("\n".join(["", history.story(), "      --", *broken]))


def of_a_fault(complaint: str) -> bool:
    """What a fault brings about: nothing was applied, an answer came too late to be stored, an actor was told of an error."""
    return (
        complaint.endswith("applied 0 times")
        or "raised" in complaint
        or "conflict" in complaint
        or "answers are" in complaint
    )
