"""The desk at which a story is told: a store, a job of the story's own, and what others see meanwhile.

Attempts are made by the ledger's own operations. One that is not given a pulse has vanished as soon as its lease is over, as
after a SIGKILL. It is three in the morning of 2026-10-06, and stays so until a story moves the clock.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pytest

from duly.errors import Misuse, Refused
from duly.ledger.address import by_window
from duly.ledger.ask import Statement, count, every
from duly.ledger.named import Named, take_window
from duly.ledger.open import Idle, Taken, claim_next
from duly.ledger.records import AlreadyCompleted, Busy, Claim, Claimer, Known, NotDue, Run, RunId
from duly.ledger.register import Declaration, declare
from duly.ledger.resolve import Word
from duly.ledger.take import look, run_parameters
from duly.schedule.spec import daily
from duly.testing.clock import ADVANCE, SET
from duly.testing.conformance.candidate import BUSY_SECONDS, Candidate, Crowd, Lent, Tried, TriedOwned
from duly.times import MINUTE, parse_instant
from duly.work.identity import new_attempt_id

if TYPE_CHECKING:
    from duly.ledger.ask import Operation, Value
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule

T = TypeVar("T")
Answer: TypeAlias = Claim | AlreadyCompleted | Busy | NotDue | Refused | Misuse

AT = "2026-10-06T03:00:00Z"
WINDOW = "2026-10-05"
LEASE = MINUTE
LATE = 2 * LEASE  # by then the lease of an attempt that nobody renewed is over
WORD = Word("ops@example", "looked into it")

# What stories write besides the ledger's rows: the effect of a run, a note in a transaction.
NOTE = Statement("note", "insert into conformance_note (job, body) values (:job, :body)")
NOTES = Statement("notes", "select body from conformance_note where job = :job order by body")

TOUCH_LINE = Statement(
    "touch_line", "update duly_line set next_due = next_due where job = (select id from duly_job where name = :job)"
)
TABLES_OF_RUNS = ("duly_run", "duly_attempt", "duly_renewal", "duly_text", "duly_skipped")
ROWS_OF_SERIES = tuple(Statement(f"rows_of_{t}", f"select * from {t} where series = :series") for t in TABLES_OF_RUNS)


class Desk:
    """One story's place. `store` is the candidate; what is looked at is what another process sees."""

    def __init__(self, candidate: Candidate, ledger: str) -> None:
        self.candidate = candidate
        self.ledger = ledger
        self._open: list[Tried] = []
        self.crowd = Crowd(lambda: Tried(candidate.open_store(ledger, busy_seconds=BUSY_SECONDS)))
        self.store = self.another()
        self.others = candidate.witness(ledger)
        self.job = f"story-{uuid.uuid4().hex}"
        self._schedule: Schedule = daily("UTC")
        if self.others.clock_by_hand:
            self.set_clock(AT)
            self.declare()

    def another(self, *, busy_seconds: float = BUSY_SECONDS) -> Tried:
        """The store as another process opens it, on the same ledger."""
        store = Tried(self.candidate.open_store(self.ledger, busy_seconds=busy_seconds))
        self._open.append(store)
        return store

    def elsewhere(self, act: Callable[[Tried], T]) -> T:
        """What another process does now, also while an operation is under way here."""
        return self.crowd.begin(act).result()

    def close(self) -> None:
        self.crowd.close()
        for store in self._open:
            store.leave()

    def _prepare(self, operation: Operation[T]) -> T:
        """What only sets the scene is not flushed: that would be most of a story's time."""
        return self.others.write(operation, durable=False)

    # -- the clock ------------------------------------------------------------------------------------------------------

    def set_clock(self, at: str) -> int:
        instant = parse_instant(at)
        self._prepare(count(SET, at=instant))
        return instant

    def advance(self, by: int) -> None:
        self._prepare(count(ADVANCE, by=by))

    def lapse(self) -> None:
        """Let every lease that is not renewed run out."""
        self.advance(LATE)

    # -- the job and its attempts ---------------------------------------------------------------------------------------

    def declare(self, schedule: Schedule | None = None, *, scope: str = "", **policies: Value) -> None:
        """Register the story's job: by day in UTC, transactional, a lease of a minute, unless told otherwise."""
        if schedule is not None:  # that of a job changes by a version only: this is another job
            self.job, self._schedule = f"{self.job}-scheduled", schedule
        stated: dict[str, Value] = {"catch_up": "each", "contract": "transactional", "lease": LEASE, "retries": 3}
        declared = Declaration(self.job, scope, self._schedule, {**stated, **policies}, "dev@example")
        known = self._prepare(declare(declared))
        assert isinstance(known, Known), known

    def asking(self, window: str = WINDOW, *, scope: str = "") -> Operation[Named | Refused | Misuse]:
        """The operation that tries to take a window."""
        claimer = Claimer(new_attempt_id(), "host/1@1+a", "conformance")
        return take_window(Declaration(self.job, scope, self._schedule), window, claimer)

    def ask(self, window: str = WINDOW, *, scope: str = "") -> Answer:
        """Try to take a window; whatever the ledger answers, also a refusal, as a value."""
        return answer_of(self.store.write(self.asking(window, scope=scope)))

    def poke(self) -> Claim | None:
        """What any trigger does: open what is owed, and take the next of it; None where nothing is left to take."""
        declared = Declaration(self.job, "", self._schedule)
        claimer = Claimer(new_attempt_id(), "host/2@2+b", "poke")
        poked = self.store.write(claim_next(declared, claimer, as_of=None, tried=frozenset()))
        assert isinstance(poked, (Taken, Idle)), poked
        return poked.claim if isinstance(poked, Taken) else None

    def take(self, window: str = WINDOW, *, scope: str = "") -> Claim:
        """Take a window that can be taken."""
        answer = self.ask(window, scope=scope)
        assert isinstance(answer, Claim), answer
        return answer

    def find(self, window: str = WINDOW) -> tuple[Known, RunId, Occurrence]:
        """A window's run, addressed as a person does."""
        addressed = self.others.read(by_window(self.job, "", window))
        assert addressed.occurrence is not None
        return addressed.known, addressed.run, addressed.occurrence

    # -- what a story writes besides ------------------------------------------------------------------------------------

    def note(self, body: str) -> Operation[int]:
        """The operation that writes a note of this story."""
        return count(NOTE, job=self.job, body=body)

    def effect(self, body: str) -> str:
        """The same as a text for a driver's connection."""
        return f"insert into conformance_note (job, body) values ('{self.job}', '{body}')"

    def touch(self) -> Operation[int]:
        """The operation that writes what every other toucher of this story wants to write too."""
        return count(TOUCH_LINE, job=self.job)

    @contextmanager
    def held(self) -> Iterator[TriedOwned]:
        """In here another process is in the middle of a transaction, and has touched what `touch` wants."""
        owned = self.another().owned()
        owned.begin()
        try:
            owned.drive(self.touch())
            yield owned
        finally:
            owned.abandon()

    @contextmanager
    def working(self) -> Iterator[TriedOwned]:
        """A run's own transaction, begun in the store that is tried; what is still open is abandoned at the end."""
        owned = self.store.owned()
        owned.begin()
        try:
            yield owned
        finally:
            owned.abandon()

    @contextmanager
    def lent(self, ledger: str | None = None) -> Iterator[Lent]:
        """A caller's connection to the ledger's database, or to another's. It is closed at the end."""
        if self.candidate.connect is None:
            pytest.skip("the candidate was given without a driver's connection: no transaction is lent to it")
        lent = self.store.lend(self.candidate.connect(ledger or self.ledger))
        try:
            yield lent
        finally:
            lent.close()

    # -- what others see ------------------------------------------------------------------------------------------------

    def notes(self) -> list[str]:
        """The notes of this story that are committed."""
        return self.others.read(self.all_notes())

    def all_notes(self) -> Operation[list[str]]:
        """The operation that reads them."""
        return every(NOTES, str, job=self.job)

    def run(self, run: RunId) -> Run:
        """A run that has a row."""
        seen = self.others.read(look(run))
        assert seen is not None
        return seen

    def state(self, run: RunId) -> str:
        return self.run(run).state

    def everything(self, run: RunId) -> list[Any]:
        """All that is recorded of a run's series, to tell that nothing changed."""
        return self.others.read(_everything(run))

    def as_seen(self, run: RunId) -> dict[str, Any]:
        """What a rival that has just looked would name in its guard."""
        row = self.run(run)
        return {**run_parameters(run), "seen_fence": row.fence, "seen_attempt": row.attempt_id}


def answer_of(named: Named | Refused | Misuse) -> Answer:
    """What was answered to whoever asked for a window."""
    return named.answer if isinstance(named, Named) else named


async def _everything(run: RunId) -> list[Any]:
    return [sorted(map(repr, await every(s, _row, series=run.series))) for s in ROWS_OF_SERIES]


def _row(*values: object) -> tuple[object, ...]:
    return values
