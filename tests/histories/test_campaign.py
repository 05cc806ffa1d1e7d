"""The campaign of races: it goes on where it stopped, and stops where an invariant is broken."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from campaigns import histories
from campaigns.progress import Progress

from duly.ledger.records import Claim
from duly.testing.histories import Hand, HistoryFailed, Race, Stage
from tests.histories import races


def test_a_campaign_goes_on_where_it_stopped(
    sqlite_stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stages = {"sqlite": sqlite_stage}
    pieces = [*islice(histories.pieces(), 3), ("sqlite", "three-workers", "0")]

    first = histories.tell(stages, Progress("histories"), pieces[:3])
    rest = histories.tell(stages, Progress("histories"), pieces)

    assert first > 3
    assert rest == histories.SEEDS


async def has_an_effect_alone(hand: Hand, claim: Claim) -> None:
    async with hand.transaction():
        await hand.effect(claim.attempt_id)


def test_a_campaign_stops_at_the_first_history_that_breaks_something(
    sqlite_stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = Race("broken", lambda stage: races.held(races.book_of(stage)), (has_an_effect_alone,))
    monkeypatch.setitem(races.RACES, "broken", broken)

    with pytest.raises(HistoryFailed, match=r"again: python -m campaigns\.histories sqlite broken 3a"):
        histories.tell({"sqlite": sqlite_stage}, Progress("histories"), [("sqlite", "broken", "all")])

    assert not Progress("histories").done
