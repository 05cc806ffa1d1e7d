"""Stage: a ledger in a real database, put back to what a race was given before each of its histories.

A stage has a seat for each actor: a connection of its own. What is seen here is what any reader of the database sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from duly.ledger.ask import Ask, Statement
from duly.ledger.messages import MESSAGE_COLUMNS, Message
from duly.ledger.records import BACKFILL_OF, LEASES, RUN_COLUMNS, EndedAttempt, Run, RunId
from duly.ledger.register import Declaration, declare
from duly.records import record
from duly.testing.histories.hand import EFFECTS
from duly.testing.histories.points import Point

if TYPE_CHECKING:
    from duly.ledger.ask import Operation, Value
    from duly.schedule.spec import Schedule

T = TypeVar("T")

START = "2026-10-06T03:00:00Z"

MAKE_EFFECTS = f"create table {EFFECTS} (attempt_id {{bytes}} not null)"

SIGHT = Statement(
    "sight",
    f"""
select {{now}}, l.id, l.ends, j.overlap, s.horizon, (select concurrency from duly_backfill where id = {BACKFILL_OF}),
       {RUN_COLUMNS}
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  {LEASES}
 order by r.series, r.nominal, r.revision
""",
)

ATTEMPTS = Statement(
    "attempts",
    """
select series, nominal, revision, number, attempt_id, started_at, ended_at, outcome, contract, owner, trigger, error
  from duly_attempt
 order by series, nominal, revision, number
""",
)

MAIL = Statement(
    "mail",
    f"""
select {{now}}, r.state, s.horizon, {MESSAGE_COLUMNS}
  from duly_message m
  join duly_series s on s.id = m.series
  left join duly_run r on r.series = m.series and r.nominal = m.nominal and r.revision = m.revision
 order by m.series, m.nominal, m.revision, m.number
""",
)

EFFECTS_OF = Statement("effects", f"select attempt_id from {EFFECTS} order by attempt_id")

ADVANCE = Statement("advance_clock", "update duly_clock set at = at + :by")


@record
class Seen:
    """A run as any reader saw it at an instant, with what of its line matters beside it."""

    at: int
    line: int
    ends: int | None
    overlap: int
    horizon: int
    bound: int | None  # how many runs of its backfill go on at once, where one owes it
    run: Run

    @property
    def is_held(self) -> bool:
        """Whether an attempt works it under a lease that lasts."""
        return self.run.state == "running" and (self.run.lease_until or 0) > self.at


@record
class SeenMessage:
    """A message as any reader saw it at an instant. `run_state` is None where its run has no row any more."""

    at: int
    run_state: str | None
    horizon: int
    message: Message


@record
class Ended:
    """An attempt that ended, with the run that it was of."""

    run: RunId
    attempt: EndedAttempt


class Seat(Protocol):
    """One actor's connection."""

    @property
    def in_transaction(self) -> bool: ...

    def start(self, point: Point, *, alone: bool) -> None:
        """Do what a point asks for. Unless it is `alone` with its tables, it may have to wait for another actor."""

    def is_over(self) -> bool:
        """Whether it is done; False: it waits for a lock that another actor holds."""

    def outcome(self) -> tuple[object, Exception | None]:
        """What came of it: an answer or an error. The seat is free again."""

    def crash(self) -> None:
        """The connection is lost; what was not committed never was. Also while a statement waits."""

    def cancel(self) -> None:
        """Cancel the statement that waits."""

    def fail(self, sqlstate: str) -> Exception:
        """Let the database fail the open transaction with an error; that error, as the ledger's caller gets it."""

    def rollback(self) -> None:
        """Give up what is open."""


class Stage(Protocol):
    """A ledger with a clock set by hand, in a database that nobody else uses."""

    name: str
    ledger: str  # as `HandClock` takes it: a path, or the URL of a database
    one_writer: bool  # a transaction excludes every other: whoever has begun goes on until it ends
    sqlstates: tuple[str, ...]  # with which its transactions may fail

    def prepare(self, given: Callable[[Stage], T]) -> T:
        """Empty the ledger, make what a race is given, and keep a copy of it."""

    def restore(self) -> None:
        """Put everything back to the copy, seats too."""

    def seat(self, name: str) -> Seat:
        """The seat of an actor."""

    def answer(self, ask: Ask) -> object:
        """Answer as any reader would be answered, outside of every actor's transaction."""

    def write(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction of its own, in one go."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What any reader finds in the database, with a query of the caller's own."""

    def close(self) -> None: ...


def register(stage: Stage, job: str, schedule: Schedule, *, scope: str = "", **policies: Value) -> None:
    """Register a job, with policies by their columns; durations are in microseconds. For what a race is given."""
    known = stage.write(declare(Declaration(job, scope, schedule, policies, "histories")))
    if isinstance(known, Exception):
        raise known


def look_at(stage: Stage) -> list[Seen]:
    """All runs, as they are committed now."""
    return [
        Seen(at, line, ends, overlap, horizon, bound, Run(*run))
        for at, line, ends, overlap, horizon, bound, *run in _rows(stage, SIGHT)
    ]


def mail_of(stage: Stage) -> list[SeenMessage]:
    """All messages, as they are committed now."""
    return [SeenMessage(at, run_state, horizon, Message(*row)) for at, run_state, horizon, *row in _rows(stage, MAIL)]


def attempts_of(stage: Stage) -> list[Ended]:
    """All attempts that have ended."""
    return [Ended(RunId(*row[:3]), EndedAttempt(*row[3:])) for row in _rows(stage, ATTEMPTS)]


def effects_of(stage: Stage) -> list[bytes]:
    """The attempts whose effects are committed, one for each effect."""
    return [row[0] for row in _rows(stage, EFFECTS_OF)]


def advance(stage: Stage, by: int) -> None:
    """Let the ledger's clock jump forward by so many microseconds."""
    stage.answer(Ask("count", ADVANCE, {"by": by}))


def _rows(stage: Stage, statement: Statement) -> list[tuple[Any, ...]]:
    found = stage.answer(Ask("every", statement, {}))
    assert isinstance(found, list)
    return found
