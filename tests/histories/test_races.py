"""Every history of two operations, and samples of histories with faults and with three actors, on each database.

`python -m campaigns.histories` tells many more.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet

from duly.testing.histories import HistoryFailed, Stage, check, every_history, some_histories
from tests.histories.races import CROWDS, ISOLATED, KNOWN, LONG, PAIRS, RACES

SEEDS = {"sqlite": 6, "postgres": 2}  # histories with faults for each pair; of the larger ones four times as many


def on_each_database(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Isolation is a matter of PostgreSQL's alone."""
    for name in names:
        yield "postgres", name
        if name not in ISOLATED:
            yield "sqlite", name


def is_short(database: str, name: str) -> bool:
    return database == "sqlite" or name not in LONG


def told(database: str, name: str) -> ParameterSet:
    reason = KNOWN.get((database, name))
    marks = () if reason is None else (pytest.mark.xfail(strict=True, raises=HistoryFailed, reason=reason),)
    return pytest.param(database, name, marks=marks, id=f"{database}-{name}")


def stage_of(database: str, request: pytest.FixtureRequest) -> Stage:
    stage: Stage = request.getfixturevalue(f"{database}_stage")
    return stage


@pytest.mark.parametrize(
    ("database", "name"), [told(*each) for each in on_each_database(PAIRS + ISOLATED) if is_short(*each)]
)
def test_every_history_of_two_keeps_the_invariants(database: str, name: str, request: pytest.FixtureRequest) -> None:
    stage = stage_of(database, request)
    again = f"python -m campaigns.histories {database} {name}"

    histories = [check(history, again=again) for history in every_history(RACES[name], stage)]

    assert histories


@pytest.mark.parametrize(
    ("database", "name"), [each for each in on_each_database(PAIRS + ISOLATED + CROWDS) if each not in KNOWN]
)
def test_histories_with_faults_keep_the_invariants(database: str, name: str, request: pytest.FixtureRequest) -> None:
    stage = stage_of(database, request)
    seeds = range(SEEDS[database] * (4 if name in CROWDS + LONG else 1))
    again = f"python -m campaigns.histories {database} {name}"

    for _, history in some_histories(RACES[name], stage, seeds):
        check(history, again=again)
