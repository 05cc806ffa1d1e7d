"""Looking for alerts from an event loop."""

from __future__ import annotations

from typing import Any

import duly
import duly.aio
from tests.aio.till import Till
from tests.alerts.test_python import Shelf


def test_what_is_open_is_answered_and_put_into_the_outbox(till: Till) -> None:
    shelf = Shelf()

    async def story(ledger: duly.aio.Ledger[Any]) -> list[str]:
        ledger.destination("shelf", lambda: shelf)
        ledger.alerts("shelf")
        assert await ledger.look() == []

        @ledger.job("export", duly.daily("UTC"), catch_up=duly.LATEST)
        async def export(run: duly.aio.Run[Any]) -> None: ...

        await export.catch_up()
        till.book.clock.advance("1d")
        found = [alert.about for alert in await ledger.look()]
        await ledger.deliver()
        return found

    assert till.play(story) == ["export"]
    assert shelf.kept == ["export: late"]
