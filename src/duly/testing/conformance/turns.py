"""Turns: who wants to write what another is writing waits for it, for so long and no longer; who only looks does not."""

from __future__ import annotations

from concurrent.futures import wait
from time import monotonic

import pytest

from duly.errors import LedgerBusy
from duly.ledger.take import hold_line
from duly.testing.conformance.candidate import TriedOwned
from duly.testing.conformance.desk import Desk
from duly.testing.conformance.stories import Stories

A_MOMENT = 0.05  # in which whoever does not wait would be done
PATIENCE = 0.1
LONG = 3.0  # still below what a store waits that is not told otherwise


def _touch_in(owned: TriedOwned, desk: Desk) -> None:
    """Whose turn it is may be asked at the begin already, or at the first row that another has written."""
    owned.begin()
    owned.drive(desk.touch())


class Turns(Stories):
    """I12: a busy ledger is told by its own name, when its time is over and not before."""

    def test_a_write_waits_for_its_turn(self, desk: Desk) -> None:
        """Whoever comes second is served second, not refused."""
        with desk.held() as holder:
            second = desk.crowd.begin(lambda other: other.write(desk.touch()))
            waits = not wait([second], timeout=A_MOMENT).done
            holder.abandon()

        assert waits
        assert second.result(timeout=LONG) == 1

    def test_a_write_whose_turn_does_not_come_is_busy_when_its_time_is_over(self, desk: Desk) -> None:
        """Not at once, and not when the other has ended."""
        store = desk.another(busy_seconds=PATIENCE)

        with desk.held():
            began = monotonic()
            with pytest.raises(LedgerBusy):
                store.write(desk.touch())
            waited = monotonic() - began

        assert PATIENCE * 0.95 <= waited < LONG  # a timer may be coarse
        assert store.write(desk.touch()) == 1

    def test_how_long_a_write_waits_may_be_said_with_it(self, desk: Desk) -> None:
        """A heartbeat has less time than a person."""
        with desk.held():
            began = monotonic()
            with pytest.raises(LedgerBusy):
                desk.store.write(desk.touch(), busy_seconds=PATIENCE)
            waited = monotonic() - began

        assert PATIENCE * 0.95 <= waited < LONG

    def test_a_store_that_may_not_wait_does_not(self, desk: Desk) -> None:
        """No time is no time: not a default, and not for ever."""
        store = desk.another(busy_seconds=0)

        with desk.held() as holder:
            write = desk.crowd.begin(lambda _: store.write(desk.touch()))
            told = bool(wait([write], timeout=LONG).done)
            holder.abandon()

        assert told
        assert isinstance(write.exception(timeout=LONG), LedgerBusy)

    def test_a_write_whose_turn_does_not_come_leaves_nothing(self, desk: Desk) -> None:
        """Busy means that nothing was decided."""

        async def writes_and_waits() -> None:
            await desk.note("half")
            await desk.touch()

        with desk.held(), pytest.raises(LedgerBusy):
            desk.store.write(writes_and_waits(), busy_seconds=PATIENCE)

        assert desk.notes() == []

    def test_a_transaction_of_a_run_waits_for_its_turn_too(self, desk: Desk) -> None:
        """And is no longer open when its turn did not come."""
        owned = desk.another(busy_seconds=PATIENCE).owned()

        with desk.held():
            with pytest.raises(LedgerBusy):
                _touch_in(owned, desk)
            owned.abandon()

        assert not owned.is_open()

    def test_a_reader_waits_for_nobody(self, desk: Desk) -> None:
        """It sees what was before the writer, at once."""
        store = desk.another(busy_seconds=PATIENCE)

        with desk.held() as holder:
            holder.execute(desk.effect("under way"))
            seen = store.read(desk.all_notes()), store.glance(desk.all_notes())

        assert seen == ([], [])

    def test_whoever_holds_a_line_keeps_others_from_it(self, desk: Desk) -> None:
        """`{lock}` in a statement: overlap and bounds are judged on the line's row, by one at a time."""
        known, _, _ = desk.find()

        with desk.held() as holder:
            holder.drive(hold_line(known))
            with pytest.raises(LedgerBusy):
                desk.store.write(hold_line(known), busy_seconds=PATIENCE)
