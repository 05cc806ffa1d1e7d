"""At once: one store used by several threads, or by several tasks of its event loop."""

from __future__ import annotations

from typing import Any

from duly.errors import ClaimLost
from duly.ledger.complete import complete_or_raise
from duly.ledger.records import Busy, Claim
from duly.testing.conformance.desk import Desk, answer_of
from duly.testing.conformance.stories import Stories

MANY = 6


class AtOnce(Stories):
    """Whoever uses a store at the same time has a connection of his own: transactions do not flow into each other."""

    def test_what_one_has_not_committed_the_other_does_not_see(self, desk: Desk) -> None:
        """The transaction of a run is that run's alone."""
        with desk.working() as owned:
            owned.execute(desk.effect("under way"))

            assert desk.store.beside(lambda store: store.read(desk.all_notes())) == []

    def test_each_run_has_a_transaction_of_its_own(self, desk: Desk) -> None:
        """Two that could be worked at once do not share a connection."""
        with desk.working() as owned:
            mine = owned.connection

        assert desk.store.connection_beside() is not mine

    def test_of_many_that_claim_one_window_one_has_it(self, desk: Desk) -> None:
        """I1: and the others are told that it is taken, not that anything went wrong."""
        answers = desk.store.at_once([lambda store: store.write(desk.asking())] * MANY)

        told = [answer_of(answer) for answer in answers]
        assert sum(isinstance(answer, Claim) for answer in told) == 1
        assert sum(isinstance(answer, Busy) for answer in told) == MANY - 1

    def test_of_many_that_complete_one_claim_one_does(self, desk: Desk) -> None:
        """I1, I12: and the others are refused."""
        claim = desk.take()

        ends = desk.store.at_once([lambda store: store.write(complete_or_raise(claim))] * MANY)

        assert ends.count(None) == 1
        assert sum(isinstance(end, ClaimLost) for end in ends) == MANY - 1
        assert desk.state(claim.run) == "completed"

    def test_what_many_write_at_once_is_all_there(self, desk: Desk) -> None:
        """And one that breaks takes nothing of the others with it."""

        async def breaks() -> None:
            await desk.note("broken")
            raise ZeroDivisionError

        def writes(number: int) -> Any:
            return lambda store: store.write(desk.note(f"{number}"))

        answers = desk.store.at_once([*map(writes, range(MANY)), lambda store: store.write(breaks())])

        assert answers[:MANY] == [1] * MANY
        assert isinstance(answers[MANY], ZeroDivisionError)
        assert desk.notes() == sorted(f"{number}" for number in range(MANY))
