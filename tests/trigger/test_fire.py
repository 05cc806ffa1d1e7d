"""A job of this program is fired: what may not be fired is refused, and so is what may not stand on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import duly
import duly.aio
from duly.errors import Misuse
from duly.trigger import MANUAL, Firing
from duly.trigger.fire import fire

BY_HAND = Firing("test", MANUAL, "fix-1", "", "here", None)


def test_a_job_of_an_event_loop_is_not_promised_to_nobody(tmp_path: Path) -> None:
    ledger = duly.aio.sqlite(tmp_path / "l.db")

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)
    async def close(run: Any) -> None: ...

    with pytest.raises(Misuse, match=r"await fire_async with a job of duly\.aio"):
        fire(close, BY_HAND)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", ["", "two\nlines", "\x1b[31mred", "x" * 201])
def test_what_called_is_one_line_that_may_be_shown(tmp_path: Path, words: str) -> None:
    ledger = duly.sqlite(tmp_path / "l.db")
    worked = []

    @ledger.job("close", duly.daily("UTC"), catch_up=duly.EACH)
    def close(run: Any) -> None:
        worked.append(run.key)

    with pytest.raises(Misuse, match="trigger"):
        close.run("2026-10-05", trigger=words)
    assert worked == []
