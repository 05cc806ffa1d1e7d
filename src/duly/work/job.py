"""Job: a Python function with a schedule. `run` works one window that is named, `catch_up` what is owed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from duly.errors import ClaimLost, DulyError, Misuse, Refused, UnknownScope
from duly.ledger import contracts
from duly.ledger.address import scopes_of
from duly.ledger.complete import complete_or_raise
from duly.ledger.named import peek_window, take_window
from duly.ledger.open import Taken, claim_next, peek
from duly.ledger.records import Claim as Held
from duly.ledger.records import Job as JobRow
from duly.ledger.records import Run as Row
from duly.ledger.records import RunId
from duly.ledger.register import Declaration
from duly.records import replace
from duly.schedule.keys import RunKey
from duly.times import SECOND, parse_duration
from duly.work.answers import AlreadyCompleted, Busy, Completed, NotDue, told
from duly.work.attempt import (
    Pulse,
    elapsed_since_first,
    error_place,
    raise_if_refused,
    record_ending,
    terms_of,
)
from duly.work.payload import payload_hash
from duly.work.run import Run
from duly.work.waiting import Patience

if TYPE_CHECKING:
    from duly.store.sqlite import SqliteStore
    from duly.work.keeper import LeaseKeeper
    from duly.work.payload import Json

Tx = TypeVar("Tx")


class Job(Generic[Tx]):
    """A function registered with `@ledger.job`. It is called with a `Run`, and only through `run` and `catch_up`.

    Its effect through `run.tx` commits with the completion. An exception ends the attempt by the job's contract and is
    raised again, with a note naming run and attempt.
    """

    def __init__(
        self,
        store: SqliteStore,
        keeper: LeaseKeeper,
        declared: Declaration,
        function: Callable[[Run[Tx]], object],
        scopes: tuple[str, ...] | None,
    ) -> None:
        self.name = declared.job
        self.function = function
        self.__doc__ = function.__doc__
        self._store = store
        self._keeper = keeper
        self._declared = declared
        self._scopes = scopes

    def __repr__(self) -> str:
        return f"<duly.Job {self.name}>"

    def run(
        self, window: str, *, scope: str = "", payload: Json = None, wait: int | float | str | None = None
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        """Work one window, named as people write it: `2026-10-05`, `2026-10-25T02~2`.

        `wait` is how long to wait for another attempt to end, in seconds or as `10m`. `payload` is JSON of which a hash is
        kept: the same key with another payload is refused. Raises what the function raises, and `OutcomeUnknown`,
        `RunFailed`, `RunSkipped`, `PayloadConflict`, `BelowHorizon`, `WindowInvalid`, `ScheduleChanged`, `LedgerBusy`.
        """
        declared = self._for(scope)
        hashed = None if payload is None else payload_hash(payload)
        patience = None if wait is None else Patience(self._store, wait_micros(wait))
        while True:
            named = self._try(declared, window, hashed)
            if not isinstance(named, Busy) or patience is None or not patience.pause():
                return named

    def _try(
        self, declared: Declaration, window: str, payload: str | None
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        pulse = Pulse(self._store, trigger="call", payload=payload)
        try:
            named = raise_if_refused(self._store.read(peek_window(declared, window, pulse.claimer)))
            if named is None:
                named = raise_if_refused(
                    self._store.write(take_window(declared, window, pulse.claimer), durable=self._claim_survives)
                )
            answer = named.answer
            if isinstance(answer, (Refused, Misuse)):
                raise answer
            if not isinstance(answer, Held):
                return told(named.key, answer)
            assert named.row is not None
            return self._work(named.known.job, named.key, answer, named.row)
        finally:
            pulse.stop()

    def catch_up(self, *, scope: str | None = None) -> list[Completed]:
        """Work what is owed, oldest first, by the job's catch-up policy: what cron, a timer or a Pod calls.

        Without a scope, each scope of the roster in turn. Goes on after a failure, or a scope that is refused, and raises
        an `ExceptionGroup` of all of them at the end. Answers what was completed now; nothing owed, or everything in other
        hands, is no error.
        """
        done: list[Completed] = []
        failures: list[Exception] = []
        for each in self._roster(scope):
            try:
                self._catch_up(self._for(each), done, failures)
            except Exception as e:
                failures.append(e)
                if not isinstance(e, (Refused, Misuse)):
                    break  # the ledger itself is in trouble: so it would be for every other scope
        if failures:
            raise ExceptionGroup(f"{self.name}: not all that is owed is complete", failures)
        return done

    def _catch_up(self, declared: Declaration, done: list[Completed], failures: list[Exception]) -> None:
        """Each run that was owed when this began, at most once. Raises what the ledger refuses before there is a claim."""
        as_of = self._store.now()
        tried: frozenset[RunId] = frozenset()
        while True:
            pulse = Pulse(self._store, trigger="catch-up")
            try:
                taken = self._claim_next(declared, pulse, as_of, tried)
                if taken is None:
                    return
                tried |= {taken.run.id}
                try:
                    done.append(self._work(taken.known.job, taken.key, taken.claim, taken.run))
                except Exception as e:
                    failures.append(e)
            finally:
                pulse.stop()

    def _claim_next(self, declared: Declaration, pulse: Pulse, as_of: int, tried: frozenset[RunId]) -> Taken | None:
        seen = raise_if_refused(self._store.read(peek(declared, as_of=as_of, tried=tried)))
        if not seen.writes:
            return None
        answer = raise_if_refused(
            self._store.write(
                claim_next(declared, pulse.claimer, as_of=as_of, tried=tried), durable=self._claim_survives
            )
        )
        return answer if isinstance(answer, Taken) else None

    @property
    def _claim_survives(self) -> bool:
        """Whether the claim's commit is flushed: losing a transactional claim loses nothing, its effect goes with it."""
        return self._declared.policies.get("contract") != contracts.TRANSACTIONAL

    def _work(self, job: JobRow, key: RunKey, claim: Held, row: Row) -> Completed:
        """Call the function, and complete the run or record how its attempt ended."""
        run: Run[Tx] = Run(self._store, key, claim, row)
        self._keeper.keep(claim, run._supersede)
        try:
            self.function(run)
            run._complete(complete_or_raise(claim))
            return Completed(run.key, run.attempt)
        except BaseException as e:
            run._abandon()
            self._record(job, claim, e)
            e.add_note(f"duly: in {run.key}, attempt {run.attempt}")
            raise
        finally:
            self._keeper.drop(claim)

    def _record(self, job: JobRow, claim: Held, error: BaseException) -> None:
        """Write down how the attempt ended. A claim that was lost is recorded already, by whoever took it over."""
        if isinstance(error, ClaimLost):
            return
        ending = contracts.after_failure(
            terms_of(job, claim),
            type(error).__qualname__,
            elapsed=elapsed_since_first(self._store, claim),
            failures=claim.failures,
        )
        try:
            record_ending(self._store, job, claim, ending, error=error_place(error))
        except DulyError as e:
            error.add_note(f"duly: how this attempt ended could not be recorded: {e}")

    def _for(self, scope: str) -> Declaration:
        if self._scopes is not None and scope not in self._scopes:
            raise UnknownScope(f"scope: {self.name} has the scopes {', '.join(map(repr, self._scopes))}, not {scope!r}")
        return replace(self._declared, scope=scope)

    def _roster(self, scope: str | None) -> list[str]:
        if scope is not None:
            return [scope]
        if self._scopes is not None:
            return list(self._scopes)
        return self._store.read(scopes_of(self.name)) or [""]


def wait_micros(wait: int | float | str) -> int:
    """How long to wait, in microseconds: given in seconds, or as text like `10m`."""
    return parse_duration(wait) if isinstance(wait, str) else int(wait * SECOND)
