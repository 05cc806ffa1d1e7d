"""The suite is tried itself: a store that breaks one promise is found, by the story that is named for it and by few others."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from duly.errors import ClaimLost, LedgerBusy
from duly.ledger.ask import Ask, drive
from duly.store.migrations import sqlite
from duly.store.owned.sqlite import OwnedTransaction
from duly.store.sqlite import Answers, Session, SqliteStore, begin, cursor_of, render
from duly.testing import conformance

if TYPE_CHECKING:
    from duly.ledger.ask import Operation

T = TypeVar("T")


class CommitsWhatRaised(SqliteStore):
    """Its write commits although the operation raised."""

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        session = self.session
        try:
            return self._write(session, operation, busy_seconds or self.busy_seconds)
        finally:
            operation.close()

    def _write(self, session: Session, operation: Operation[T], seconds: float) -> T:
        begin(session.connection, session.lock, path=self.path, seconds=seconds)
        try:
            return drive(operation, session.answers)
        finally:
            if session.connection.in_transaction:
                session.connection.commit()
            session.lock.release()


class RefusedStatements(Answers):
    """Answers as if `{or_rollback}` were nothing, which it is on PostgreSQL."""

    __slots__ = ()

    def __call__(self, ask: Ask) -> object:
        if ask.statement is None or "{or_rollback}" not in ask.statement.sql:
            return super().__call__(ask)
        sql = render(ask.statement)[0].replace("or rollback", "")
        with closing(cursor_of(self.connection)) as cursor:
            try:
                return cursor.execute(sql, {**ask.parameters, "now": self.now()}).rowcount
            except sqlite3.IntegrityError:
                raise ClaimLost from None


class EndsOnlyTheStatement(SqliteStore):
    """The guard of its completion ends the statement and leaves the transaction open."""

    def owned(self) -> OwnedTransaction:
        owned = super().owned()
        owned._answers = RefusedStatements(owned.connection, self.path, clock_by_hand=self.clock_by_hand)
        return owned


class StandingClock(Answers):
    """Answers of one transaction, which looked at the clock once."""

    __slots__ = ("_began_at",)

    def now(self) -> int:
        if not self.connection.in_transaction:
            return super().now()
        with suppress(AttributeError):
            return self._began_at
        self._began_at: int = super().now()
        return self._began_at


class ClockStandsStill(SqliteStore):
    """Its clock is that of the beginning of a transaction, as `now()` of PostgreSQL is."""

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        answers = StandingClock(self.session.connection, self.path, clock_by_hand=self.clock_by_hand)
        self.session.answers = answers
        return super().write(operation, durable=durable, busy_seconds=busy_seconds)


class TakesBusyForLost(SqliteStore):
    """It tells a busy ledger as a lost claim (I12)."""

    def write(self, operation: Operation[T], *, durable: bool = True, busy_seconds: float | None = None) -> T:
        try:
            return super().write(operation, durable=durable, busy_seconds=busy_seconds)
        except LedgerBusy:
            raise ClaimLost from None


class ReadsWithoutSnapshot(SqliteStore):
    """Each statement of its reads sees what is committed by then."""

    def read(self, operation: Operation[T]) -> T:
        return drive(operation, self.session.answers)


class SharesOneTransaction(SqliteStore):
    """All its threads have one transaction for their runs."""

    _shared: OwnedTransaction | None = None

    def owned(self) -> OwnedTransaction:
        if self._shared is None:
            self._shared = super().owned()
        return self._shared


# Each with the stories that find it.
WRONG: dict[type[SqliteStore], set[str]] = {
    CommitsWhatRaised: {
        "test_an_operation_that_raises_leaves_nothing",
        "test_an_operation_that_raises_leaves_nothing_where_it_is_not_flushed",
        "test_a_refusal_that_is_raised_leaves_nothing",
        "test_a_statement_that_fails_leaves_nothing_of_its_transaction",
        "test_only_what_the_ledger_answers_may_be_awaited",
        "test_what_many_write_at_once_is_all_there",
    },
    EndsOnlyTheStatement: {
        "test_a_lost_claim_that_is_swallowed_leaves_nothing_to_commit",
        "test_after_a_lost_claim_nothing_is_written_through_its_transaction",
    },
    ClockStandsStill: {
        "test_it_moves_inside_a_transaction",
        "test_it_moves_in_the_statements_of_a_transaction",
    },
    TakesBusyForLost: {
        "test_a_write_whose_turn_does_not_come_is_busy_when_its_time_is_over",
        "test_how_long_a_write_waits_may_be_said_with_it",
        "test_a_store_that_may_not_wait_does_not",
        "test_a_write_whose_turn_does_not_come_leaves_nothing",
        "test_whoever_holds_a_line_keeps_others_from_it",
        "test_a_busy_ledger_is_no_lost_claim",
        "test_whoever_makes_a_run_is_waited_for",
    },
    ReadsWithoutSnapshot: {"test_a_read_sees_one_snapshot", "test_a_read_keeps_nothing"},
    SharesOneTransaction: {"test_each_run_has_a_transaction_of_its_own"},
}


def stories() -> Iterator[tuple[str, Callable[..., None], str]]:
    """Every story that is told once, with the name of the desk at which it is told."""
    for name, story in inspect.getmembers(conformance.Suite, inspect.isfunction):
        desks = list(inspect.signature(story).parameters)[1:]
        if name.startswith("test_") and desks in (["desk"], ["ticking"]):
            yield name, story, desks[0]


def failing(candidate: conformance.Candidate) -> set[str]:
    """The names of the stories that a store fails."""
    return {name for name, story, kind in stories() if not tells(candidate, story, kind)}


def tells(candidate: conformance.Candidate, story: Callable[..., None], kind: str) -> bool:
    """Whether a story comes out as it should."""
    desk = conformance.Desk(candidate, candidate.by_hand if kind == "desk" else candidate.by_system)
    try:
        story(conformance.Suite(), desk)
    except (Exception, pytest.fail.Exception):
        return False
    finally:
        desk.close()
    return True


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_store_that_breaks_a_promise_is_found_by_the_story_of_that_promise(
    wrong: type[SqliteStore], tmp_path: Path
) -> None:
    numbers = count(1)

    def new_ledger(clock: str) -> str:
        path = str(tmp_path / f"{next(numbers)}.db")
        sqlite.create(path, clock=clock)
        return path

    def opened(ledger: str, **settings: Any) -> SqliteStore:
        # The witness is honest: what it sees is there.
        honest = ledger not in witnessed
        witnessed.add(ledger)
        return SqliteStore(ledger, **settings) if honest else wrong(ledger, **settings)

    witnessed: set[str] = set()
    with conformance.Candidate(new_ledger, opened, sqlite3.connect) as candidate:
        candidate.witness(candidate.by_hand)
        candidate.witness(candidate.by_system)

        assert failing(candidate) == WRONG[wrong]
