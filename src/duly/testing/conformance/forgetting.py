"""Forgetting and restoring: what is pruned is never worked again, what a restored ledger forgot is in doubt."""

from __future__ import annotations

import pytest

from duly.errors import BelowHorizon, LedgerBusy, OutcomeUnknown
from duly.ledger.complete import complete_or_raise, doubt_or_raise
from duly.ledger.forget import Forgettable, forget_batch, forgettable, raise_horizon
from duly.ledger.records import AlreadyCompleted, Claim
from duly.ledger.register import find
from duly.ledger.resolve import reopen
from duly.ledger.restore import doubt_since
from duly.testing.conformance.desk import WORD, Desk
from duly.testing.conformance.stories import Stories
from duly.testing.conformance.turns import PATIENCE
from duly.times import DAY

DAYS = tuple(f"2026-10-{day:02}" for day in range(5, 11))


def work(desk: Desk, days: int) -> None:
    """Work what is owed on each of so many mornings, the first of which is this one."""
    for _ in range(days):
        while claim := desk.poke():
            desk.store.write(complete_or_raise(claim))
        desk.advance(DAY)


def found(desk: Desk, *, retain: int = 2 * DAY) -> Forgettable | None:
    """What may be forgotten now."""
    known = desk.store.read(find(desk.job, ""))
    assert known is not None
    assert known.series is not None
    return desk.store.read(forgettable(known, known.series, settled_by=desk.store.now() - retain))


def forget(desk: Desk, *, retain: int = 2 * DAY) -> int:
    """Raise the horizon as far as it may, then delete what lies below it in small batches; how many runs went."""
    what = found(desk, retain=retain)
    return 0 if what is None else carry_out(desk, what)


def carry_out(desk: Desk, what: Forgettable) -> int:
    desk.store.write(raise_horizon(what, by=WORD.by, reason=WORD.reason))
    gone = 0
    while not (batch := desk.store.write(forget_batch(what.series, 2, settled_by=what.settled_by))).is_last:
        gone += batch.gone.runs
    return gone


class Forgetting(Stories):
    """I7: nothing below the horizon is ever executed, and the horizon never passes a run that is not settled."""

    def test_what_was_forgotten_is_refused_for_ever(self, desk: Desk) -> None:
        """I7: and what is younger is as it was."""
        work(desk, len(DAYS))

        gone = forget(desk)

        assert gone == 5
        assert all(isinstance(desk.ask(day), BelowHorizon) for day in DAYS[:5])
        assert all(isinstance(desk.ask(day), AlreadyCompleted) for day in DAYS[5:])

    def test_what_is_not_settled_holds_the_horizon(self, desk: Desk) -> None:
        """I7: an outcome that nobody knows is kept until somebody does."""
        desk.declare(contract="external")
        work(desk, 1)
        claim = desk.poke()
        assert claim is not None
        desk.store.write(doubt_or_raise(claim, "time-out at the provider"))
        desk.advance(DAY)
        work(desk, len(DAYS) - 2)

        assert forget(desk) == 1
        assert isinstance(desk.ask(DAYS[1]), OutcomeUnknown)

    def test_the_horizon_only_rises(self, desk: Desk) -> None:
        """I7: whoever computed a lower one meanwhile changes nothing."""
        work(desk, len(DAYS))
        low = found(desk, retain=4 * DAY)
        assert low is not None
        forget(desk)

        where = desk.store.write(raise_horizon(low, by=WORD.by, reason=WORD.reason))

        assert where > low.horizon
        assert isinstance(desk.ask(DAYS[3]), BelowHorizon)

    def test_whoever_makes_a_run_is_waited_for(self, desk: Desk) -> None:
        """I7: `{share}` against `{alone}`. Prune and claim cannot pass each other: the horizon waits, and then sees the run."""
        work(desk, len(DAYS))
        what = found(desk)
        assert what is not None
        _, run, _ = desk.find(DAYS[2])

        with desk.held() as holder:
            holder.drive(reopen(run, WORD))
            with pytest.raises(LedgerBusy):
                desk.store.write(raise_horizon(what, by=WORD.by, reason=WORD.reason), busy_seconds=PATIENCE)
            holder.commit()
        carry_out(desk, what)

        assert isinstance(desk.ask(DAYS[1]), BelowHorizon)
        assert isinstance(desk.ask(DAYS[2]), Claim)

    def test_what_a_restored_ledger_forgot_is_in_doubt(self, desk: Desk) -> None:
        """I5: it may have been done in the time that is lost; its number rises beyond those that were given out then (I3)."""
        desk.declare(contract="external")
        work(desk, 1)
        copied = desk.store.now()
        desk.advance(DAY)

        doubted = desk.store.write(doubt_since(copied, WORD))

        _, run, _ = desk.find(DAYS[1])
        assert run in [each.id for each in doubted]
        assert isinstance(desk.ask(DAYS[1]), OutcomeUnknown)
        assert desk.run(run).fence > 100

    def test_what_would_have_committed_here_is_done_again(self, desk: Desk) -> None:
        """I1: a transactional effect is forgotten with its completion. And a store that was open before goes on."""
        work(desk, 1)
        copied = desk.store.now()
        desk.advance(DAY)
        desk.elsewhere(lambda other: other.write(doubt_since(copied, WORD)))

        claim = desk.take(DAYS[1])
        desk.store.write(complete_or_raise(claim))

        assert desk.state(claim.run) == "completed"
