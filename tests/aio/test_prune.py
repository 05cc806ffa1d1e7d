"""ledger.prune in an event loop."""

from __future__ import annotations

from typing import Any

import pytest

import duly
import duly.aio
from duly.times import DAY
from tests.aio.till import Till, add_ten, job


def test_what_was_settled_long_ago_is_forgotten_and_refused(till: Till) -> None:
    async def story(ledger: duly.aio.Ledger[Any]) -> int:
        credit = job(ledger, add_ten, retain="2d")
        for _ in range(5):
            await credit.catch_up()
            till.book.clock.advance(DAY)
        gone = await ledger.prune()
        with pytest.raises(duly.BelowHorizon):
            await ledger.take("credit", "2026-09-01")
        return gone

    assert till.play(story) == 4
    assert len(till.book.runs("credit")) == 1
