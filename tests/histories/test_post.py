"""Every history of two that meet at a message, and samples with faults and with three, on each database."""

from __future__ import annotations

import pytest

from duly.testing.histories import check, every_history, some_histories
from tests.histories.post import CROWDS, MAIL, PAIRS
from tests.histories.test_races import SEEDS, stage_of

DATABASES = ("postgres", "sqlite")


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("database", DATABASES)
def test_every_history_of_two_keeps_the_invariants(database: str, name: str, request: pytest.FixtureRequest) -> None:
    stage = stage_of(database, request)

    histories = [check(history) for history in every_history(MAIL[name], stage)]

    assert histories


@pytest.mark.parametrize("name", PAIRS + CROWDS)
@pytest.mark.parametrize("database", DATABASES)
def test_histories_with_faults_keep_the_invariants(database: str, name: str, request: pytest.FixtureRequest) -> None:
    stage = stage_of(database, request)

    for _, history in some_histories(MAIL[name], stage, range(SEEDS[database] * (4 if name in CROWDS else 1))):
        check(history)
