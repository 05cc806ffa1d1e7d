"""One table says what may become of a run. Here every state meets every event, through the real SQL.

Each run is brought into its state by real operations. Each event is then tried with everything right but the state: the
right attempt, the right number, a lease that is over. The state that results is the table's; where the table has none,
nothing in the ledger has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from duly.errors import DulyError
from duly.ledger import states
from duly.ledger.ask import Statement, count
from duly.ledger.cancel import CANCEL_IF_HELD
from duly.ledger.complete import complete_or_raise, doubt_or_raise, fail_or_raise, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.once import once
from duly.ledger.records import Claim, Claimer
from duly.ledger.resolve import reopen, resolve, retry, skip, unskip
from duly.ledger.restore import DOUBT_RESTORED
from duly.ledger.take import (
    CLAIM_IF_FREE,
    LAPSE_IF_UNCHANGED,
    LOSE_IF_UNCHANGED,
    TAKE_OVER,
    look,
    renew,
    run_parameters,
)
from duly.ledger.windows import open_window
from duly.schedule.keys import parse_key
from duly.testing.conformance.desk import LEASE, WINDOW, WORD, Desk
from duly.testing.conformance.stories import Stories
from duly.work.identity import new_attempt_id

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

FAILED = Ending("failed", "exit 1", retry=True, counted=True)


class Situation:
    """A run in a state, with the attempt that held it last, if there was one."""

    def __init__(self, desk: Desk, state: str) -> None:
        self.desk = desk
        self.known, self.run, self.occurrence = desk.find()
        self.claim = Claim(self.run, new_attempt_id(), 0, 0, 0, LEASE, "transactional", "host/1@1+a", "test", 0, 0)
        getattr(self, f"_{state}")()

    def _absent(self) -> None: ...

    def _open(self) -> None:
        self.write(open_window(self.known, self.run, self.occurrence))

    def _running(self) -> None:
        self.claim = self.desk.take()

    def _completed(self) -> None:
        self._running()
        self.write(complete_or_raise(self.claim))

    def _failed(self) -> None:
        self._running()
        self.write(fail_or_raise(self.claim, FAILED, retry_in=0, error="exit 1"))

    def _unknown(self) -> None:
        self.desk.declare(contract="external")
        self._running()
        self.desk.lapse()
        self.desk.ask()  # whoever comes next finds the holder gone

    def _skipped(self) -> None:
        self.write(skip(self.known, self.run, self.occurrence, WORD))

    def _replaced(self) -> None:
        self._completed()
        self.write(reopen(self.run, WORD))

    def write(self, operation: Operation[Any]) -> None:
        self.desk.store.write(operation)

    def touch(self, statement: Statement, **parameters: Any) -> None:
        """One statement of the ledger in a transaction of its own."""
        self.write(count(statement, **parameters))

    @property
    def state(self) -> str:
        seen = self.desk.others.read(look(self.run))
        return states.ABSENT if seen is None else seen.state

    @property
    def as_seen(self) -> dict[str, Any]:
        """What a rival that has just looked would name in its guard."""
        if self.state == states.ABSENT:
            return {**run_parameters(self.run), "seen_fence": 0, "seen_attempt": self.claim.attempt_id}
        return self.desk.as_seen(self.run)

    @property
    def newcomer(self) -> dict[str, Any]:
        return {
            "attempt_id": new_attempt_id(),
            "owner": "host/2@2+b",
            "trigger": "test",
            "lease": LEASE,
            "contract": "transactional",
            "remembers": None,
        }


def take(it: Situation) -> None:
    if it.state == states.ABSENT:
        it.desk.ask()
    else:
        it.touch(CLAIM_IF_FREE, **it.newcomer, **it.as_seen, payload=None, named=1)


def complete_by_once(it: Situation) -> None:
    it.desk.lapse()
    key = parse_key(f"{it.desk.job}:{WINDOW}[UTC]#1")
    it.write(once(key, Claimer(new_attempt_id(), "host/2@2+b", "once")))


def restore(it: Situation) -> None:
    made_up = {"cause": "forgotten", "contract": "external", "lost": 1, "attempt_id": new_attempt_id()}
    it.touch(DOUBT_RESTORED, **it.as_seen, at=0, **made_up)


EVENTS: dict[str, Callable[[Situation], None]] = {
    "open": lambda it: it.write(open_window(it.known, it.run, it.occurrence)),
    "take": take,
    "take_over": lambda it: it.touch(TAKE_OVER, **it.newcomer, **it.as_seen),
    "renew": lambda it: it.write(renew(it.claim)),
    "release": lambda it: it.write(release_or_raise(it.claim, "released")),
    "complete": lambda it: it.write(complete_or_raise(it.claim)),
    "once": complete_by_once,
    "fail": lambda it: it.write(fail_or_raise(it.claim, FAILED, retry_in=0, error="exit 1")),
    "doubt": lambda it: it.write(doubt_or_raise(it.claim, "time-out at the provider")),
    "lapse": lambda it: it.touch(LAPSE_IF_UNCHANGED, **it.as_seen, cause="vanished"),
    "lose": lambda it: it.touch(LOSE_IF_UNCHANGED, **it.as_seen, cause="vanished"),
    "restore": restore,
    "resolve_done": lambda it: it.write(resolve(it.run, WORD, done=True)),
    "resolve_not_done": lambda it: it.write(resolve(it.run, WORD, done=False)),
    "retry": lambda it: it.write(retry(it.run, WORD)),
    "cancel": lambda it: it.touch(CANCEL_IF_HELD, **it.as_seen),
    "skip": lambda it: it.write(skip(it.known, it.run, it.occurrence, WORD)),
    "unskip": lambda it: it.write(unskip(it.known, it.run, it.occurrence, WORD)),
    "reopen": lambda it: it.write(reopen(it.run, WORD)),
}


class StateTable(Stories):
    """A transition that is not in the table does not exist (`duly.ledger.states`)."""

    @pytest.mark.parametrize("event", EVENTS)
    @pytest.mark.parametrize("state", [states.ABSENT, *states.STATES])
    def test_what_becomes_of_a_run_is_what_the_table_says(self, desk: Desk, state: str, event: str) -> None:
        """I1, I3, I5: each state met by each event."""
        it = Situation(desk, state)
        assert it.state == state
        before = desk.everything(it.run)

        try:
            EVENTS[event](it)
        except DulyError:
            assert not states.allowed(event, state)

        if states.allowed(event, state):
            after = states.TRANSITIONS[event][state]
            assert it.state == (states.OPEN if after == states.AS_BEFORE else after)
            assert desk.everything(it.run) != before
        else:
            assert desk.everything(it.run) == before

    def test_every_event_of_the_table_is_tried(self) -> None:
        """What is new in the table is new here."""
        assert set(EVENTS) == set(states.TRANSITIONS)
