"""Guards: what refuses a write, and how a refusal differs from an error."""

from __future__ import annotations

from contextlib import suppress

import pytest

from duly.errors import ClaimLost, Conflict, DulyError, LedgerBusy, Refused
from duly.ledger.ask import Statement, count
from duly.ledger.complete import complete_or_raise, fail_or_raise, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.records import AlreadyCompleted, Busy, Claim
from duly.ledger.take import renew, run_parameters
from duly.records import replace
from duly.testing.conformance.desk import NOTE, Desk
from duly.testing.conformance.stories import Stories
from duly.testing.conformance.turns import PATIENCE
from duly.work.identity import new_attempt_id

GUARDED_NOTE = Statement("guarded_note", NOTE.sql, refuses=ClaimLost)
NO_SUCH_TABLE = Statement("no_such_table", "insert into conformance_nothing (job) values (:job)", refuses=ClaimLost)
TOUCH_RUN = Statement(
    "touch_run",
    "update duly_run set cause = cause where series = :series and nominal = :nominal and revision = :revision",
)


def lost(desk: Desk) -> Claim:
    """A claim that another attempt has taken over."""
    claim = desk.take()
    desk.lapse()
    desk.take()
    return claim


class Guards(Stories):
    """I2: every write of an attempt is guarded, and the guard of its end ends the transaction. I12: a duplicate is no error."""

    def test_a_lost_claim_that_is_swallowed_leaves_nothing_to_commit(self, desk: Desk) -> None:
        """I2, in a transaction of a run: whatever the caller catches, and then commits."""
        claim = lost(desk)

        with desk.working() as owned:
            owned.execute(desk.effect("of a zombie"))
            with pytest.raises(ClaimLost):
                owned.drive(complete_or_raise(claim))
            with suppress(DulyError):
                owned.commit()

        assert desk.notes() == []
        assert desk.state(claim.run) == "running"

    def test_after_a_lost_claim_nothing_is_written_through_its_transaction(self, desk: Desk) -> None:
        """I2: the transaction has ended, and no other begins by itself."""
        claim = lost(desk)

        with desk.working() as owned:
            with pytest.raises(ClaimLost):
                owned.drive(complete_or_raise(claim))
            with pytest.raises(Exception):  # noqa: B017, PT011  # of duly's, or of the driver's
                owned.execute(desk.effect("of a zombie"))
            with suppress(DulyError):
                owned.commit()

        assert desk.notes() == []

    def test_an_operation_that_swallows_a_lost_claim_keeps_nothing(self, desk: Desk) -> None:
        """I2, in a transaction of duly's own: neither what it wrote before, nor what it would write after it."""
        claim = lost(desk)

        async def swallows() -> None:
            await desk.note("before")
            with suppress(ClaimLost):
                await complete_or_raise(claim)
            await desk.note("after")

        with suppress(DulyError):
            desk.store.write(swallows())

        assert desk.notes() == []

    def test_a_second_completion_is_refused_and_the_first_stays(self, desk: Desk) -> None:
        """I1: at most one completion, with one effect."""
        claim = desk.take()
        desk.store.write(complete_or_raise(claim))
        before = desk.everything(claim.run)

        async def again() -> None:
            await desk.note("twice")
            await complete_or_raise(claim)

        with pytest.raises(ClaimLost):
            desk.store.write(again())

        assert desk.notes() == []
        assert desk.everything(claim.run) == before

    @pytest.mark.parametrize("wrong", ["number", "attempt_id"])
    def test_an_end_has_to_name_attempt_and_number(self, desk: Desk, wrong: str) -> None:
        """I2: one of the two is not enough."""
        claim = desk.take()
        before = desk.everything(claim.run)
        forged = replace(claim, number=2) if wrong == "number" else replace(claim, attempt_id=new_attempt_id())
        ending = Ending("failed", "exit 1", retry=True, counted=True)

        for end in (
            complete_or_raise(forged),
            fail_or_raise(forged, ending, retry_in=0, error="exit 1"),
            release_or_raise(forged, "released"),
        ):
            with pytest.raises(ClaimLost):
                desk.store.write(end)
        assert desk.store.write(renew(forged)) is False

        assert desk.everything(claim.run) == before

    def test_the_number_of_an_attempt_only_rises(self, desk: Desk) -> None:
        """I3: through take-over, failure and release."""
        first = desk.take()
        desk.lapse()
        second = desk.take()
        desk.store.write(release_or_raise(second, "released"))
        third = desk.take()

        assert (first.number, second.number, third.number) == (1, 2, 3)

    def test_a_duplicate_is_a_value(self, desk: Desk) -> None:
        """I12: never an error; and while another works, busy is a value as well."""
        claim = desk.take()
        assert isinstance(desk.ask(), Busy)

        desk.store.write(complete_or_raise(claim))

        assert isinstance(desk.ask(), AlreadyCompleted)

    def test_a_violated_constraint_means_what_its_statement_says(self, desk: Desk) -> None:
        """I2, I12: that of a guard is a refusal, that of any other statement an error, and neither is a busy ledger."""
        desk.store.write(desk.note("taken"))

        with pytest.raises(ClaimLost):
            desk.store.write(count(GUARDED_NOTE, job=desk.job, body="taken"))
        with pytest.raises(Exception) as raised:  # noqa: PT011  # each driver has a word of its own
            desk.store.write(desk.note("taken"))

        assert not isinstance(raised.value, (Refused, Conflict))
        assert desk.notes() == ["taken"]

    def test_an_error_of_the_database_is_no_refusal(self, desk: Desk) -> None:
        """I12: also where it meets the very statement that refuses."""
        with pytest.raises(Exception) as raised:  # noqa: PT011
            desk.store.write(count(NO_SUCH_TABLE, job=desk.job))

        assert not isinstance(raised.value, (Refused, Conflict))

    def test_a_busy_ledger_is_no_lost_claim(self, desk: Desk) -> None:
        """I12: whoever may not complete now may complete later."""
        claim = desk.take()

        with desk.held() as holder:
            holder.drive(count(TOUCH_RUN, **run_parameters(claim.run)))
            with pytest.raises(LedgerBusy):
                desk.store.write(complete_or_raise(claim), busy_seconds=PATIENCE)

        assert desk.state(claim.run) == "running"
        desk.store.write(complete_or_raise(claim))
        assert desk.state(claim.run) == "completed"
