"""Own transactions: a run's, in which its effect is written and which commits with its completion."""

from __future__ import annotations

from contextlib import closing, suppress

import pytest

from duly.errors import ClaimLost, DulyError, TransactionOwned
from duly.ledger.complete import complete_or_raise
from duly.ledger.records import Claim
from duly.testing.conformance.desk import Desk, answer_of
from duly.testing.conformance.guards import lost
from duly.testing.conformance.stories import Stories
from duly.testing.conformance.turns import PATIENCE


class OwnTransactions(Stories):
    """I1: effect and completion commit together, by duly's hand alone."""

    def test_it_begins_late(self, desk: Desk) -> None:
        """Whoever has it and has not begun it keeps nobody waiting."""
        owned = desk.store.owned()
        assert not owned.is_open()

        assert desk.others.write(desk.touch(), busy_seconds=PATIENCE) == 1

        owned.begin()
        assert owned.is_open()
        owned.abandon()

    def test_effect_and_completion_are_seen_together(self, desk: Desk) -> None:
        """I1: neither before the commit, both after it."""
        claim = desk.take()

        with desk.working() as owned:
            owned.execute(desk.effect("done"))
            assert (desk.notes(), desk.state(claim.run)) == ([], "running")
            owned.complete(complete_or_raise(claim))

            assert not owned.is_open()
        assert (desk.notes(), desk.state(claim.run)) == (["done"], "completed")

    def test_a_lost_claim_takes_the_effect_with_it(self, desk: Desk) -> None:
        """I1: no completion, no effect."""
        claim = lost(desk)

        with desk.working() as owned:
            owned.execute(desk.effect("of a zombie"))
            with pytest.raises(ClaimLost):
                owned.complete(complete_or_raise(claim))

            assert not owned.is_open()
        assert desk.notes() == []

    def test_what_is_driven_in_it_commits_with_it(self, desk: Desk) -> None:
        """Claim, effect and completion in one transaction, for jobs that ask for it."""
        with desk.working() as owned:
            claim = answer_of(owned.drive(desk.asking()))
            assert isinstance(claim, Claim)
            owned.execute(desk.effect("inline"))
            owned.drive(complete_or_raise(claim))
            assert desk.notes() == []
            owned.commit()

        assert (desk.notes(), desk.state(claim.run)) == (["inline"], "completed")

    def test_an_operation_that_raises_in_it_leaves_it_open(self, desk: Desk) -> None:
        """The run may go on, and complete."""
        claim = desk.take()

        async def breaks() -> None:
            raise ZeroDivisionError

        with desk.working() as owned:
            with pytest.raises(ZeroDivisionError):
                owned.drive(breaks())
            owned.execute(desk.effect("done"))
            owned.complete(complete_or_raise(claim))

        assert desk.notes() == ["done"]

    def test_a_completion_that_raises_ends_it_and_keeps_nothing(self, desk: Desk) -> None:
        """I1, I11: whatever it raised."""
        claim = desk.take()

        async def breaks() -> None:
            await complete_or_raise(claim)
            raise ZeroDivisionError

        with desk.working() as owned:
            owned.execute(desk.effect("half"))
            with pytest.raises(ZeroDivisionError):
                owned.complete(breaks())
            assert not owned.is_open()

        assert (desk.notes(), desk.state(claim.run)) == ([], "running")

    @pytest.mark.parametrize("method", ["commit", "rollback", "close"])
    def test_it_refuses_to_be_ended(self, desk: Desk, method: str) -> None:
        """The connection is a real one of the driver's; what would end its transaction is duly's, and the run goes on."""
        claim = desk.take()

        with desk.working() as owned:
            owned.execute(desk.effect("done"))
            with pytest.raises(TransactionOwned):
                owned.end_by(method)
            assert desk.notes() == []
            owned.complete(complete_or_raise(claim))

        assert desk.notes() == ["done"]

    @pytest.mark.parametrize("statement", ["commit", "rollback", "end", "begin"])
    def test_it_refuses_the_words_that_would_end_it(self, desk: Desk, statement: str) -> None:
        """And whatever the refusal did to the run, an effect without its completion is not kept."""
        with desk.working() as owned:
            owned.execute(desk.effect("half"))
            with pytest.raises(Exception):  # noqa: B017, PT011  # of duly's, or of the driver's
                owned.execute(statement)
            assert desk.notes() == []

        assert desk.notes() == []

    def test_savepoints_are_allowed_in_it(self, desk: Desk) -> None:
        """They are the run's own business."""
        claim = desk.take()

        with desk.working() as owned:
            owned.execute(desk.effect("kept"))
            owned.execute("savepoint half_way")
            owned.execute(desk.effect("taken back"))
            owned.execute("rollback to savepoint half_way")
            owned.complete(complete_or_raise(claim))

        assert desk.notes() == ["kept"]

    def test_once_it_is_over_nothing_is_written_through_it(self, desk: Desk) -> None:
        """A run that was kept by mistake writes nothing behind its completion."""
        claim = desk.take()

        with desk.working() as owned:
            owned.complete(complete_or_raise(claim))
            with pytest.raises(Exception):  # noqa: B017, PT011  # of duly's, or of the driver's
                owned.execute(desk.effect("too late"))

        assert desk.notes() == []

    def test_once_it_is_over_it_says_so(self, desk: Desk) -> None:
        """In words of duly's: whoever reads them knows that the run is over, and that the database is well."""
        claim = desk.take()
        too_late = desk.note("too late")

        with desk.working() as owned:
            owned.complete(complete_or_raise(claim))
            with closing(too_late), pytest.raises(TransactionOwned):
                owned.drive(too_late)

        assert desk.notes() == []

    def test_abandoned_it_keeps_nothing_and_again_is_nothing(self, desk: Desk) -> None:
        """I11: a failed attempt leaves no effect."""
        with desk.working() as owned:
            owned.execute(desk.effect("half"))
            owned.abandon()
            assert not owned.is_open()
            owned.abandon()

        assert desk.notes() == []
        assert desk.others.write(desk.touch(), busy_seconds=PATIENCE) == 1

    def test_abandoned_before_it_began_it_is_nothing(self, desk: Desk) -> None:
        """Whoever gives up before the first statement gives nothing up."""
        owned = desk.store.owned()

        owned.abandon()

        assert not owned.is_open()

    @pytest.mark.parametrize("end", ["complete", "abandon", "claim lost"])
    def test_the_next_run_has_one_too(self, desk: Desk, end: str) -> None:
        """However the one before it ended."""
        claim = lost(desk) if end == "claim lost" else desk.take()
        with desk.working() as owned:
            if end == "abandon":
                owned.abandon()
            else:
                with suppress(ClaimLost):
                    owned.complete(complete_or_raise(claim))
        desk.lapse()
        if end == "complete":
            desk.set_clock("2026-10-07T03:00:00Z")
        following = desk.take("2026-10-06" if end == "complete" else "2026-10-05")

        with desk.working() as owned:
            owned.execute(desk.effect("next"))
            owned.complete(complete_or_raise(following))

        assert (desk.notes(), desk.state(following.run)) == (["next"], "completed")

    def test_a_commit_without_effect_is_whole(self, desk: Desk) -> None:
        """A completion alone: an effect is not asked for."""
        claim = desk.take()

        with desk.working() as owned:
            owned.complete(complete_or_raise(claim))
            with suppress(DulyError):
                owned.abandon()

        assert desk.state(claim.run) == "completed"
