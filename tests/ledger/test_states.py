"""One table says what may become of a run. Here every state meets every event, through the real SQL.

Each run is brought into its state by real operations. Each event is then tried with everything right but the state: the
right attempt, the right number, a lease that is over. The state that results is the table's; where the table has none,
nothing in the ledger has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from duly.errors import DulyError
from duly.ledger import states
from duly.ledger.once import once
from duly.ledger.records import Claim, Claimer, RunId
from duly.ledger.resolve import skip, unskip
from duly.ledger.restore import DOUBT_RESTORED
from duly.ledger.take import CLAIM_IF_FREE, LAPSE_IF_UNCHANGED, LOSE_IF_UNCHANGED, TAKE_OVER, run_parameters
from duly.ledger.windows import open_window
from duly.schedule.keys import parse_key
from duly.work.identity import new_attempt_id
from tests.books import LEASE, WORD, Book

KEY = "export:2026-10-05[UTC]#1"


class Story:
    """A run in a state, with the attempt that held it last, if there was one."""

    def __init__(self, book: Book, state: str) -> None:
        self.book = book
        book.job()
        self.known, self.run, self.occurrence = book.find()
        self.claim = Claim(self.run, new_attempt_id(), 0, 0, 0, LEASE, "transactional", "host/1@1+a", "test", 0, 0)
        getattr(self, f"_{state}")()

    def _absent(self) -> None: ...

    def _open(self) -> None:
        self.book.write(open_window(self.known, self.run, self.occurrence))

    def _running(self) -> None:
        self.claim = self.book.take()

    def _completed(self) -> None:
        self._running()
        self.book.complete(self.claim)

    def _failed(self) -> None:
        self._running()
        self.book.fail(self.claim)

    def _unknown(self) -> None:
        self.book.job(contract="external")
        self._running()
        self.book.lapse()
        self.book.ask()  # whoever comes next finds the holder gone

    def _skipped(self) -> None:
        self.book.skip()

    def _replaced(self) -> None:
        self._completed()
        self.book.reopen(self.run)

    @property
    def state(self) -> str:
        seen = self.book.rows(
            "select state from duly_run where series = ? and nominal = ? and revision = 1",
            self.run.series,
            self.run.nominal,
        )
        return str(seen[0][0]) if seen else states.ABSENT

    @property
    def as_seen(self) -> dict[str, object]:
        """What a rival that has just looked would name in its guard."""
        if self.state == states.ABSENT:
            return {**run_parameters(self.run), "seen_fence": 0, "seen_attempt": self.claim.attempt_id}
        row = self.book.run(self.run)
        return {**run_parameters(self.run), "seen_fence": row.fence, "seen_attempt": row.attempt_id}

    @property
    def newcomer(self) -> dict[str, object]:
        return {
            "attempt_id": new_attempt_id(),
            "owner": "host/2@2+b",
            "trigger": "test",
            "lease": LEASE,
            "contract": "transactional",
            "remembers": None,
        }


def take(story: Story) -> None:
    if story.state == states.ABSENT:
        story.book.ask()
    else:
        story.book.touch(CLAIM_IF_FREE, **story.newcomer, **story.as_seen, payload=None, named=1)


def take_over(story: Story) -> None:
    story.book.touch(TAKE_OVER, **story.newcomer, **story.as_seen)


def complete_by_once(story: Story) -> None:
    story.book.lapse()
    claimer = Claimer(new_attempt_id(), "host/2@2+b", "once")
    story.book.write(once(parse_key(KEY), claimer))


def open_its_window(story: Story) -> None:
    story.book.write(open_window(story.known, story.run, story.occurrence))


EVENTS: dict[str, Callable[[Story], object]] = {
    "open": open_its_window,
    "take": take,
    "take_over": take_over,
    "renew": lambda story: story.book.renew(story.claim),
    "release": lambda story: story.book.release(story.claim),
    "complete": lambda story: story.book.complete(story.claim),
    "once": complete_by_once,
    "fail": lambda story: story.book.fail(story.claim),
    "doubt": lambda story: story.book.doubt(story.claim),
    "lapse": lambda story: story.book.touch(LAPSE_IF_UNCHANGED, **story.as_seen, cause="vanished"),
    "lose": lambda story: story.book.touch(LOSE_IF_UNCHANGED, **story.as_seen, cause="vanished"),
    "restore": lambda story: story.book.touch(
        DOUBT_RESTORED,
        **story.as_seen,
        at=0,
        cause="forgotten",
        contract="external",
        lost=1,
        attempt_id=new_attempt_id(),
    ),
    "resolve_done": lambda story: story.book.resolve(story.run, done=True),
    "resolve_not_done": lambda story: story.book.resolve(story.run, done=False),
    "retry": lambda story: story.book.retry(story.run),
    "skip": lambda story: story.book.write(skip(story.known, story.run, story.occurrence, WORD)),
    "unskip": lambda story: story.book.write(unskip(story.known, story.run, story.occurrence, WORD)),
    "reopen": lambda story: story.book.reopen(story.run),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", [states.ABSENT, *states.STATES])
def test_what_becomes_of_a_run_is_what_the_table_says(tmp_path: Path, state: str, event: str) -> None:
    story = Story(Book(tmp_path / "jobs.db"), state)
    assert story.state == state
    before = story.book.everything()

    try:
        EVENTS[event](story)
    except DulyError:
        assert not states.allowed(event, state)

    if states.allowed(event, state):
        after = states.TRANSITIONS[event][state]
        assert story.state == (states.OPEN if after == states.AS_BEFORE else after)
        assert story.book.everything() != before
    else:
        assert story.book.everything() == before


def test_every_event_of_the_table_is_tried() -> None:
    assert set(EVENTS) == set(states.TRANSITIONS)


def test_a_failed_run_that_was_skipped_is_failed_again_and_due_at_once(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    claim = book.take()
    book.fail(claim, retry_in=None)
    book.skip()

    run = book.unskip()

    assert (run.state, run.retry_at) == (states.FAILED, book.clock.now())


def test_reopening_opens_the_next_revision_beside_the_one_that_is_replaced(tmp_path: Path) -> None:
    book = Book(tmp_path / "jobs.db")
    book.job()
    claim = book.take()
    book.complete(claim)

    again = book.reopen(claim.run)

    assert again.id == RunId(claim.run.series, claim.run.nominal, 2)
    assert [state for _, state in book.runs()] == [states.REPLACED, states.OPEN]


def test_the_picture_in_the_documentation_is_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "states.md"

    assert page.read_text(encoding="utf-8") == states.page()
