"""Transactions: what a write keeps, and what a read sees."""

from __future__ import annotations

from contextlib import suppress

import pytest

from duly.errors import ClaimLost, OutcomeUnknown
from duly.testing.conformance.desk import Desk
from duly.testing.conformance.stories import Stories


class Transactions(Stories):
    """A write is one transaction, whole or not at all; a read is one snapshot, and leaves nothing."""

    def test_a_write_is_seen_by_others_when_it_returns(self, desk: Desk) -> None:
        """I1: what was answered was committed."""
        assert desk.store.write(desk.note("kept")) == 1

        assert desk.notes() == ["kept"]

    def test_a_write_is_not_seen_by_others_before_it_returns(self, desk: Desk) -> None:
        """I1: nothing of a transaction is seen but the whole of it."""

        async def looked_at_half_way() -> list[str]:
            await desk.note("one")
            seen = desk.elsewhere(lambda other: other.read(desk.all_notes()))
            await desk.note("two")
            return seen

        assert desk.store.write(looked_at_half_way()) == []
        assert desk.notes() == ["one", "two"]

    def test_an_operation_that_raises_leaves_nothing(self, desk: Desk) -> None:
        """I1, I11: and what it raised is what the caller gets."""

        async def breaks() -> None:
            await desk.note("half")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            desk.store.write(breaks())

        assert desk.notes() == []
        assert desk.store.write(desk.note("next")) == 1

    def test_a_refusal_that_is_raised_leaves_nothing(self, desk: Desk) -> None:
        """I2: a refusal is an error, as any."""

        async def is_refused() -> None:
            await desk.note("half")
            raise ClaimLost

        with pytest.raises(ClaimLost):
            desk.store.write(is_refused())

        assert desk.notes() == []

    def test_a_statement_that_fails_leaves_nothing_of_its_transaction(self, desk: Desk) -> None:
        """I1: also what was written before it."""

        async def fails() -> None:
            await desk.note("half")
            await desk.note("half")  # the primary key forbids it

        with pytest.raises(Exception):  # noqa: B017, PT011  # each driver has a word of its own
            desk.store.write(fails())

        assert desk.notes() == []
        assert desk.store.write(desk.note("next")) == 1

    def test_a_refusal_that_is_returned_is_committed_with_what_was_found(self, desk: Desk) -> None:
        """I10: a refusal leaves evidence. Whoever finds the holder gone writes so, and is refused."""
        desk.declare(contract="external")
        claim = desk.take()
        desk.lapse()

        answer = desk.ask()

        assert isinstance(answer, OutcomeUnknown)
        assert desk.state(claim.run) == "unknown"

    def test_a_read_keeps_nothing(self, desk: Desk) -> None:
        """Whether it is refused or undone: what only looks commits nothing."""
        with suppress(Exception):
            desk.store.read(desk.note("by a reader"))

        assert desk.notes() == []
        assert desk.store.write(desk.note("by a writer")) == 1

    def test_a_read_sees_one_snapshot(self, desk: Desk) -> None:
        """What belongs together is seen together, whoever commits meanwhile."""

        async def looks_twice() -> tuple[list[str], list[str]]:
            first = await desk.all_notes()
            desk.elsewhere(lambda other: other.write(desk.note("late")))
            return first, await desk.all_notes()

        assert desk.store.read(looks_twice()) == ([], [])
        assert desk.store.read(desk.all_notes()) == ["late"]

    def test_a_glance_sees_what_is_committed_and_no_more(self, desk: Desk) -> None:
        """What one row answers needs no snapshot; it is committed all the same."""
        desk.store.write(desk.note("kept"))

        with desk.working() as owned:
            owned.execute(desk.effect("under way"))

            assert desk.others.glance(desk.all_notes()) == ["kept"]

    def test_a_write_that_is_not_flushed_is_seen_at_once(self, desk: Desk) -> None:
        """Not durable means that a crash may lose it, not that others have to wait for it; and what follows is as ever."""
        desk.store.write(desk.note("quick"), durable=False)
        assert desk.notes() == ["quick"]

        desk.store.write(desk.note("sure"))
        assert desk.notes() == ["quick", "sure"]

    def test_an_operation_that_raises_leaves_nothing_where_it_is_not_flushed(self, desk: Desk) -> None:
        """I11: as any write."""

        async def breaks() -> None:
            await desk.note("half")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            desk.store.write(breaks(), durable=False)

        assert desk.notes() == []

    def test_only_what_the_ledger_answers_may_be_awaited(self, desk: Desk) -> None:
        """An operation knows nothing of an event loop: another await is a mistake, and nothing of it is kept."""

        async def awaits_something_else() -> None:
            await desk.note("half")
            await _Foreign()

        with pytest.raises(TypeError, match="may await only"):
            desk.store.write(awaits_something_else())

        assert desk.notes() == []


class _Foreign:
    def __await__(self):  # type: ignore[no-untyped-def]  # not what an operation may await
        yield self
