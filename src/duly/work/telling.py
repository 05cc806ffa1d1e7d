"""Telling: an attempt of a Python job as the world outside the ledger sees it: one line in the log, one span in a trace."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from duly.ledger import states
from duly.ledger.contracts import Ending
from duly.times import SECOND
from duly.work import log, tracing
from duly.work.told import account

if TYPE_CHECKING:
    from duly.ledger.complete import Left
    from duly.ledger.records import Claim, Run
    from duly.schedule.keys import RunKey
    from duly.work.tracing import AttemptSpan

COMPLETED = Ending(states.COMPLETED, "", outcome="completed")
LOST = Ending(states.RUNNING, "another attempt took the run over", outcome="lost")


class Telling:
    """Begins with the attempt, in whose thread or task its span is the current one until it is told how that ended."""

    def __init__(self, key: RunKey, claim: Claim, row: Run) -> None:
        self._key = key
        self._claim = claim
        self._began = monotonic()
        self._span: AttemptSpan | None = None
        if tracing.is_on():
            self._span = tracing.AttemptSpan(key, claim, row)

    @property
    def looks_back(self) -> bool:
        """Whether the attempt before has to be looked up, for the link of a span."""
        return self._span is not None and self._claim.number > 1

    def follows(self, earlier: bytes | None) -> None:
        """It is a retry of another attempt."""
        if self._span is not None:
            self._span.link_to(earlier)

    def leave(self) -> None:
        """The function has returned; how its attempt ends is decided later, with others."""
        if self._span is not None:
            self._span.leave()

    def completed(self, left: Left) -> None:
        """It completed its run."""
        if self._span is not None or log.is_listened_to():
            self._tell(COMPLETED, messages=len(left.letters))

    def ended(self, ending: Ending, error: BaseException) -> None:
        """It ended otherwise."""
        self._tell(ending, error_type=type(error).__qualname__)

    def dropped(self, why: str) -> None:
        """It is none: nothing of it is on record, and its run is attempted again."""
        if self._span is not None:
            self._span.drop(why)

    def _tell(self, ending: Ending, *, error_type: str = "", messages: int = 0) -> None:
        took = int((monotonic() - self._began) * SECOND)
        told = account(self._key, self._claim, ending.state, ending.cause, took=took, messages=messages)
        if self._span is not None:
            self._span.end(told, error_type)
        log.tell(told)
