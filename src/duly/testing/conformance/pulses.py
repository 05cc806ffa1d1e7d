"""Pulses: whether a holder may be alive, besides its lease. A store that cannot tell says so by the descriptor -1."""

from __future__ import annotations

import os

import pytest

from duly.ledger.ask import alive
from duly.ledger.records import Busy, Claim
from duly.testing.conformance.desk import Desk
from duly.testing.conformance.stories import Stories
from duly.work.identity import new_attempt_id


def pulse_of(desk: Desk, attempt_id: bytes) -> int:
    """The descriptor that shows an attempt's pulse."""
    descriptor = desk.store.begin_pulse(attempt_id)
    if descriptor < 0:
        pytest.skip("this store shows no pulse: the lease alone says whether a holder may be alive")
    return descriptor


class Pulses(Stories):
    """A claim is taken over when its lease has lapsed and its holder looks dead."""

    def test_without_one_the_lease_decides(self, desk: Desk) -> None:
        """Nobody shows a pulse that was not begun."""
        first = desk.take()
        assert not desk.store.read(alive(first.attempt_id))
        assert isinstance(desk.ask(), Busy)

        desk.lapse()

        assert desk.take().number == first.number + 1

    def test_it_is_seen_by_everybody_until_it_ends(self, desk: Desk) -> None:
        """From this process and any other, by whichever transaction."""
        attempt, another = new_attempt_id(), new_attempt_id()
        descriptor = pulse_of(desk, attempt)

        assert desk.store.read(alive(attempt)) is True
        assert desk.others.write(alive(attempt)) is True
        assert desk.others.read(alive(another)) is False

        os.close(descriptor)
        assert desk.others.read(alive(attempt)) is False

    def test_while_it_lasts_nobody_takes_the_run_over(self, desk: Desk) -> None:
        """A healthy attempt is never killed because its lease lapsed."""
        claim = desk.take()
        descriptor = pulse_of(desk, claim.attempt_id)
        desk.lapse()
        assert isinstance(desk.ask(), Busy)

        os.close(descriptor)

        assert isinstance(desk.ask(), Claim)
