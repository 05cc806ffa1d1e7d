"""Lent transactions: the caller's own, which the caller began and will end."""

from __future__ import annotations

from contextlib import suppress

import pytest

from duly.errors import ClaimLost, WrongLedger
from duly.ledger.complete import complete_or_raise
from duly.ledger.once import once
from duly.ledger.records import Claimer
from duly.schedule.keys import parse_key
from duly.testing.conformance.desk import WINDOW, Desk
from duly.testing.conformance.guards import lost
from duly.testing.conformance.stories import Stories
from duly.work.identity import new_attempt_id


class LentTransactions(Stories):
    """I1, I2 in a transaction of somebody else's: what duly writes there commits, or not, with the rest of it."""

    def test_a_completion_is_committed_by_the_caller(self, desk: Desk) -> None:
        """I1: with the caller's effect, and when the caller says so."""
        claim = desk.take()

        with desk.lent() as tx:
            desk.store.run_in(tx, complete_or_raise(claim))
            tx.execute(desk.effect("done"))
            assert (desk.notes(), desk.state(claim.run)) == ([], "running")
            tx.commit()

        assert (desk.notes(), desk.state(claim.run)) == (["done"], "completed")

    def test_a_completion_that_the_caller_takes_back_never_was(self, desk: Desk) -> None:
        """I1: the attempt holds its run as before, and may complete it."""
        claim = desk.take()

        with desk.lent() as tx:
            desk.store.run_in(tx, complete_or_raise(claim))
            tx.execute(desk.effect("half"))
            tx.rollback()

        assert (desk.notes(), desk.state(claim.run)) == ([], "running")
        desk.store.write(complete_or_raise(claim))
        assert desk.state(claim.run) == "completed"

    def test_after_a_lost_claim_the_caller_has_nothing_to_commit(self, desk: Desk) -> None:
        """I2: the refusal ends the transaction, whatever the caller catches."""
        claim = lost(desk)

        with desk.lent() as tx:
            tx.execute(desk.effect("of a zombie"))
            with pytest.raises(ClaimLost):
                desk.store.run_in(tx, complete_or_raise(claim))
            with suppress(Exception):  # of a connection that was closed
                tx.commit()

        assert desk.notes() == []
        assert desk.state(claim.run) == "running"

    def test_a_duplicate_leaves_the_transaction_as_it_was(self, desk: Desk) -> None:
        """I12: claim and completion at once, twice in one transaction; the second is told as a duplicate."""
        key = parse_key(f"{desk.job}:{WINDOW}[UTC]")

        with desk.lent() as tx:
            first = desk.store.run_in(tx, once(key, Claimer(new_attempt_id(), "host/1@1+a", "once")))
            tx.execute(desk.effect("done"))
            again = desk.store.run_in(tx, once(key, Claimer(new_attempt_id(), "host/1@1+a", "once")))
            tx.commit()

        assert (first, again, desk.notes()) == (True, False, ["done"])

    def test_another_ledger_is_refused_before_anything_is_done(self, desk: Desk) -> None:
        """A claim of one ledger is not completed in another, not even where that knows such a run."""
        began: list[str] = []

        async def begins() -> None:
            began.append("it")

        with desk.lent(desk.candidate.another) as tx, pytest.raises(WrongLedger):
            desk.store.run_in(tx, begins())

        assert began == []
