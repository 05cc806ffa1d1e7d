"""What every room of stories has: a desk for each story."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duly.testing.conformance.candidate import Candidate
from duly.testing.conformance.desk import Desk


class Stories:
    """Stories about one store. A fixture `candidate` of the test's own file says which."""

    @pytest.fixture
    def desk(self, candidate: Candidate) -> Iterator[Desk]:
        """A job of the story's own, in a ledger whose clock is set by hand."""
        desk = Desk(candidate, candidate.by_hand)
        yield desk
        desk.close()

    @pytest.fixture
    def ticking(self, candidate: Candidate) -> Iterator[Desk]:
        """A ledger with the clock of its database."""
        desk = Desk(candidate, candidate.by_system)
        yield desk
        desk.close()
