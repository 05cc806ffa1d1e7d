"""Job: a Python function with a schedule. `run` works one window that is named, `catch_up` what is owed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Coroutine, Generator
from contextlib import suppress
from datetime import date
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar

from duly.errors import (
    ClaimLost,
    DulyError,
    Misuse,
    OutcomeUnknown,
    Refused,
    TransactionOwned,
    UnknownScope,
    raise_if_refused,
)
from duly.ledger import contracts, states
from duly.ledger.address import key_of
from duly.ledger.backfill import scope_of_backfill
from duly.ledger.backfill_claim import claim_backfill, claim_once_more
from duly.ledger.complete import Left, complete_or_raise, has_completed
from duly.ledger.contracts import Ending
from duly.ledger.group import claim_group, complete_group, members
from duly.ledger.inline import record_failure
from duly.ledger.meant import name_meant
from duly.ledger.named import Named
from duly.ledger.open import Idle, Taken, claim_again, claim_next
from duly.ledger.peek import peek
from duly.ledger.records import AlreadyCompleted as Complete
from duly.ledger.records import Claim as Held
from duly.ledger.records import Claimer, RunId
from duly.ledger.records import Job as JobRow
from duly.ledger.records import Run as Row
from duly.ledger.register import Declaration, declare, is_complete, is_declared
from duly.ledger.remembered import Untouched, claim_remembered, peek_remembered
from duly.ledger.roster import differs, enrol
from duly.ledger.scopes import scopes_to_work
from duly.ledger.windows import notice_drift
from duly.records import replace
from duly.schedule.keys import RunKey, check_scope
from duly.times import SECOND, parse_duration
from duly.work.answers import AlreadyCompleted, Attempted, Busy, Completed, NotDue, told
from duly.work.attempt import (
    AT_MOST_IN_VAIN,
    Pulse,
    elapsed_since_first,
    ending_of,
    onlooker,
    passing,
    record_ending,
    retry_delay,
)
from duly.work.declared import wanted_of
from duly.work.exception import error_place
from duly.work.identity import new_attempt_id, owner
from duly.work.memory import Memory
from duly.work.output import done_after_all, found_done, found_in_place
from duly.work.payload import payload_hash
from duly.work.raised import OfTheJob
from duly.work.run import Run, RunFacts
from duly.work.telling import COMPLETED, LOST, Telling
from duly.work.tracing import earlier_attempt
from duly.work.waiting import Patience

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.ledger.group import Group
    from duly.ledger.remembered import Recalled
    from duly.ledger.roster import Scope
    from duly.schedule.meant import Meant
    from duly.store.protocol import Store
    from duly.work.declared import Wanted
    from duly.work.destinations import Destinations
    from duly.work.keeper import LeaseKeeper
    from duly.work.payload import Json
    from duly.work.probe import Probe, Probed

T = TypeVar("T")
Tx = TypeVar("Tx")

GROUP_SECONDS = 0.05  # others wait for the ledger meanwhile
GROUPS_IN_A_TURN = 10  # of who pokes line by line: between them others have their turn at the ledger


class Job(Generic[Tx]):
    """A function registered with `@ledger.job`. It is called with a `Run`, and only through `run` and `catch_up`.

    Its effect through `run.tx` commits with the completion. An exception ends the attempt by the job's contract and is
    raised again, with a note naming run and attempt.
    """

    def __init__(
        self,
        store: Store,
        keeper: LeaseKeeper,
        declared: Declaration,
        function: Callable[[Run[Tx]], object],
        roster: tuple[Scope, ...] | None,
        *,
        inline: bool,
        group: int,
        destinations: Destinations | None = None,
        probe: Probe | None = None,
    ) -> None:
        self.name = declared.job
        self.has_probe = probe is not None
        self.function = function
        self.__doc__ = function.__doc__
        self._store = store
        self._keeper = keeper
        self._declared = declared
        self._scopes = declared.scopes
        self._roster = roster
        self._enrolled = not roster
        self._inline = inline
        self._group = group
        self._alone: Counter[str] = Counter()  # so many runs of a scope are worked alone: their group came to nothing
        self._destinations = destinations
        self._probe = probe
        self._memory = Memory()

    def __repr__(self) -> str:
        return f"<duly.Job {self.name}>"

    def run(
        self,
        window: str | date | None = None,
        *,
        scope: str = "",
        adhoc: str | None = None,
        payload: Json = None,
        wait: int | float | str | None = None,
        trigger: str = "call",
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        """Work one window, named as people write it: `2026-10-05`, `2026-10-25T02~2`; or by its date. Or, with `adhoc`, a run
        outside the schedule, under an id that a retry passes back.

        `wait` is how long to wait for another attempt to end, in seconds or as `10m`. `payload` is JSON of which a hash is
        kept: the same key with another payload is refused. `trigger` says for the record what called. Raises what the
        function raises, and `OutcomeUnknown`, `RunFailed`, `RunSkipped`, `PayloadConflict`, `BelowHorizon`, `WindowInvalid`,
        `ScheduleChanged`, `LedgerBusy`.
        """
        declared = for_scope(self._declared, scope, self._scopes)
        run = wanted_of(declared, None if window is None else str(window), adhoc)
        self._enrol()
        hashed = None if payload is None else payload_hash(payload)
        patience = None if wait is None else Patience(self._store, wait_micros(wait))
        while True:
            named = self._try(run, hashed, trigger)
            if not isinstance(named, Busy) or patience is None or not patience.pause():
                return named

    def window_meant(self, meant: Meant, *, scope: str = "") -> str:
        """The window that a scheduler elsewhere meant, as `run` takes it. Raises `WindowInvalid` for a time that is none of
        the job's schedule, and `ScheduleChanged`.
        """
        declared = for_scope(self._declared, scope, self._scopes)
        return raise_if_refused(self._store.read(name_meant(declared, meant)))

    def _try(self, run: Wanted, payload: str | None, trigger: str) -> Completed | AlreadyCompleted | Busy | NotDue:
        recalled = self._memory.recall(run.declared, run.window)
        seen, recalled = self._look(recalled, run, onlooker(trigger, payload))
        if seen is not None:
            return self._answered(seen, run, payload, trigger)
        pulse = Pulse(self._store, trigger=trigger, payload=payload)
        try:
            with self._claiming() as claiming:
                named = self._take(claiming, recalled, run, pulse.claimer)
                if isinstance(named.answer, Held):
                    assert named.row is not None
                    self._memory.looks_first = False
                    return self._work(claiming, named.known.job, named.key, named.answer, named.row, run.take)
            return self._answered(named, run, payload, trigger)  # after the commit of what was found on the way
        finally:
            pulse.stop()

    def _answered(
        self, named: Named, run: Wanted, payload: str | None, trigger: str
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        """The answer of a run that was not claimed: one whose outcome was unknown is done where its file stands, or is tried
        again where its probe has said what happened.
        """
        self._memory.looks_first = isinstance(named.answer, Complete)
        if isinstance(named.answer, OutcomeUnknown):
            if (done := done_after_all(self._store, named)) is not None:
                return done
            if self._is_known_now(named.row):
                return self._try(run, payload, trigger)
        return answered(named)

    def _is_known_now(self, row: Row | None) -> bool:
        """Whether the probe has said, and is believed, what became of a run whose outcome was unknown."""
        if self._probe is None or row is None:
            return False
        from duly.work.probe import ask_about

        probed = ask_about(self._store, row.id, self._probe)
        return probed is not None and probed.state != states.UNKNOWN

    def _look(self, recalled: Recalled | None, run: Wanted, claimer: Claimer) -> tuple[Named | None, Recalled | None]:
        """What a plain look can say of the window, and whether it may be claimed from memory."""
        if recalled is not None:
            if self._store.claim_looks and not self._inline and not self._memory.looks_first:
                return None, recalled
            seen = self._store.glance(peek_remembered(recalled, claimer))
            if seen is not None:
                return (None, recalled) if isinstance(seen, Untouched) else (seen, None)
        assert run.peek is not None  # a job names no whole key
        named = raise_if_refused(self._store.glance(run.peek(claimer)))
        if named is not None:
            self._memory.keep(named.known, run.declared)
        return named, None

    def _take(self, claiming: Claiming, recalled: Recalled | None, run: Wanted, claimer: Claimer) -> Named:
        named = None
        if recalled is not None:
            named = claiming.claim_at_once(claim_remembered(recalled, claimer))
            if named is None:
                named, _ = self._look(None, run, claimer)
        if named is None:
            named = raise_if_refused(claiming.ask(run.take(claimer)))
            self._memory.keep(named.known, run.declared)
        return named

    def catch_up(self, *, scope: str | None = None) -> list[Completed]:
        """Work what is owed, oldest first, by the job's catch-up policy: what cron, a timer or a Pod calls.

        Without a scope, each scope of the roster in turn. Goes on after a failure, or a scope that is refused, and raises
        an `ExceptionGroup` of all of them at the end. Answers what was completed now; nothing owed, or everything in other
        hands, is no error.
        """
        done: list[Completed] = []
        failures: list[Exception] = []
        try:
            self._enrol()
        except Exception as e:
            raise ExceptionGroup(f"{self.name}: not all that is owed is complete", [e]) from None
        for each in self._scopes_to_work(scope):
            try:
                self.ask_probe(scope=each)
                self._catch_up(for_scope(self._declared, each, self._scopes), done, failures, set())
            except Exception as e:
                failures.append(e)
                if not isinstance(e, (Refused, Misuse)):
                    break  # the ledger itself is in trouble: so it would be for every other scope
        if failures:
            raise ExceptionGroup(f"{self.name}: not all that is owed is complete", failures)
        return done

    def ask_probe(self, *, scope: str | None = None, is_over: Callable[[], bool] = lambda: False) -> list[Probed]:
        """Ask the job's probe about its runs whose outcome is unknown, of one scope or of all, as far as they may be asked
        about now: what `catch_up` and a daemon do. Which were, and what has come of it; nothing without a probe. `is_over`:
        whether no other one is to be begun.
        """
        if self._probe is None:
            return []
        from duly.work.probe import ask_about_all

        return ask_about_all(self._store, self.name, scope, self._probe, is_over=is_over)

    def _catch_up(
        self,
        declared: Declaration,
        done: list[Completed],
        failures: list[Exception],
        tried: set[RunId],
        *,
        only_one: bool = False,
    ) -> None:
        """Each run that was owed when this began and was not tried yet, at most once. Those that are go into `tried`.

        Raises what the ledger refuses before there is a claim.
        """
        as_of = self._store.now()
        begun, more = len(tried), False
        while not only_one or len(tried) == begun:
            attempt = self._attempt_owed if more else self._attempt_next
            attempted = attempt(declared, "catch-up", as_of=as_of, tried=tried)
            if isinstance(attempted, Idle):
                if attempted.standing is not None and found_done(self._store, attempted.standing):
                    done.append(
                        Completed(str(self._store.read(key_of(attempted.standing.id))), attempted.standing.fence)
                    )
                    continue
                break
            for each in attempted:
                noted(each, done, failures)
            tried.update(each.run for each in attempted)
            more = attempted[-1].more

    def _attempt_next(
        self, declared: Declaration, trigger: str, *, as_of: int | None, tried: Container[RunId]
    ) -> list[Attempted] | Idle:
        """Attempt the oldest run of a line that is owed and can be worked, or a group of them, after a look whether there is
        any. Raises what the ledger refuses before a claim.
        """
        seen = raise_if_refused(self._store.read(peek(declared, as_of=as_of, tried=tried)))
        if not seen.writes:
            return seen
        if self._inline and not is_complete(seen.known, declared):
            # What failed is claimed again by its series: that must not go with the transaction.
            raise_if_refused(self._store.write(declare(declared)))
        return self._attempt_owed(declared, trigger, as_of=as_of, tried=tried)

    def _attempt_owed(
        self, declared: Declaration, trigger: str, *, as_of: int | None, tried: Container[RunId]
    ) -> list[Attempted] | Idle:
        """As `_attempt_next`, without a look before."""
        if self._group > 1 and self._alone[declared.scope] <= 0:
            return self._attempt_group(declared, trigger, as_of=as_of, tried=tried)
        self._alone[declared.scope] -= 1
        pulse = Pulse(self._store, trigger=trigger)
        try:
            with self._claiming() as claiming:
                taken = claiming.ask(claim_next(declared, pulse.claimer, as_of=as_of, tried=tried))
                if isinstance(taken, (Refused, Misuse)):
                    raise taken
                if isinstance(taken, Idle):
                    return taken
                return [self._attempted(claiming, taken, partial(claim_again, declared, taken.run.id))]
        finally:
            pulse.stop()

    def _attempt_group(
        self, declared: Declaration, trigger: str, *, as_of: int | None, tried: Container[RunId]
    ) -> list[Attempted] | Idle:
        """Attempt runs of a line that are owed one after the other in one transaction, as long as it may last.

        Where anything fails, nobody can tell whose doing it is: the transaction was theirs together. Nothing of it is kept, and
        each of them is worked alone.
        """
        pid = os.getpid()
        with self._claiming() as claiming:
            claimer = Claimer(new_attempt_id(), owner(), trigger)
            asked = claim_group(declared, claimer, as_of=as_of, tried=tried, most=self._group)
            group = claiming.ask(asked)
            if isinstance(group, (Refused, Misuse)):
                raise group
            if isinstance(group, Idle):
                return group
            worked: list[Run[Tx]] = []
            ends: list[tuple[Held, Left]] = []
            tellings: list[Telling] = []
            try:
                self._work_group(claiming, group, worked, ends, tellings)
                worked[-1]._complete(complete_group(group.first, ends))
                is_done = True
            except BaseException as e:
                if os.getpid() != pid:  # a forked child leaves by here: the attempts are its parent's
                    raise
                worked[-1]._abandon()
                if not isinstance(e, Exception):
                    tellings.pop().ended(self._record_interrupted(worked[-1], declared, group, e), e)
                    drop_all(tellings)
                    raise
                is_done = self._store.read(has_completed(group.first.claim))  # it came after the commit
        if is_done:
            more = group.has_more_than(len(worked))
            for telling, (_, left) in zip(tellings, ends, strict=True):
                telling.completed(left)
            return [completed_by(run, more=more) for run in worked]
        drop_all(tellings)
        self._alone[declared.scope] = len(worked)
        return self._attempt_owed(declared, trigger, as_of=as_of, tried=tried)

    def _work_group(
        self,
        claiming: Claiming,
        group: Group,
        worked: list[Run[Tx]],
        ends: list[tuple[Held, Left]],
        tellings: list[Telling],
    ) -> None:
        """Call the function for one run after the other, as long as their transaction may last; `worked` and `tellings`
        are told of each that is begun, `ends` of what each that has returned leaves."""
        pid, began = os.getpid(), monotonic()
        job, within = group.first.known.job, claiming.transaction
        for key, claim, row in members(group, new_attempt_id, passing(self._store)):
            if worked:
                worked[-1]._leave()
                if row.zone_facts is not None:
                    claiming.ask(notice_drift(group.first.known, row, claim.owner))
            run: Run[Tx] = Run(self._store, key, claim, row, within, job.timeout, job.first_name, self._destinations)
            worked.append(run)
            tellings.append(Telling(key, claim, row))
            refuse_unfinished(self.function(run))
            ends.append((claim, run._left()))
            tellings[-1].leave()
            if os.getpid() != pid:
                raise TransactionOwned("this run belongs to the process that forked this one, which completes it")
            if monotonic() - began > GROUP_SECONDS:
                break

    def _record_interrupted(self, run: Run[Tx], declared: Declaration, group: Group, error: BaseException) -> Ending:
        """Write down how a run of a group ended that wanted to end the process."""
        claim, job = run._claim, group.first.known.job
        ending = self._record(run, job, claim, run._row.payload, error, partial(claim_again, declared, claim.run))
        error.add_note(f"duly: in {run.key}, attempt {run.attempt}")
        return ending

    def _attempted(self, claiming: Claiming, taken: Taken, again: Callable[[Claimer], Operation[Any]]) -> Attempted:
        outcome: Completed | Exception
        try:
            outcome = self._work(claiming, taken.known.job, taken.key, taken.claim, taken.run, again)
        except Exception as e:
            outcome = e
        return Attempted(taken.run.id, str(taken.key), taken.claim.number, outcome, taken.more)

    def work_backfill(self, number: int | None = None, *, scope: str | None = None) -> list[Completed]:
        """Work the windows of a backfill, the oldest or the one of this number, until none is left to take.

        Several processes may share one. What is owed is worked first, as by `catch_up`. Goes on after a failure, and raises
        an `ExceptionGroup` of all of them at the end; answers what was completed now, of the backfill and of what was owed.
        Raises `UnknownBackfill`, and `Misuse` for a number that is none of this job's.
        """
        done: list[Completed] = []
        failures: list[Exception] = []
        if number is not None:
            scope = self._store.read(scope_of_backfill(number, self.name, scope))
        for each in self._scopes_to_work(scope):
            try:
                self._work_backfill(for_scope(self._declared, each, self._scopes), number, done, failures)
            except Exception as e:
                failures.append(e)
                if not isinstance(e, (Refused, Misuse)):
                    break
        if failures:
            raise ExceptionGroup(f"{self.name}: not all of the backfill is complete", failures)
        return done

    def _work_backfill(
        self, declared: Declaration, number: int | None, done: list[Completed], failures: list[Exception]
    ) -> None:
        """Each window that can be taken, at most once; before each of them what is owed, unless that is in other hands."""
        tried: set[RunId] = set()
        in_vain = 0
        while in_vain < AT_MOST_IN_VAIN:
            attempted = self._attempt_backfill(declared, "backfill", number=number, tried=tried)
            if isinstance(attempted, Attempted):
                in_vain = 0
                tried.add(attempted.run)
                noted(attempted, done, failures)
            elif attempted.live:
                in_vain += 1
                before = len(tried)
                self._catch_up(declared, done, failures, tried, only_one=True)
                in_vain = 0 if len(tried) > before else in_vain
            elif not attempted.writes:
                return

    def _attempt_backfill(
        self, declared: Declaration, trigger: str, *, number: int | None, tried: Container[RunId]
    ) -> Attempted | Idle:
        """Attempt the next window of a backfill that has a slot free. Raises what the ledger refuses before a claim."""
        pulse = Pulse(self._store, trigger=trigger)
        try:
            with self._claiming() as claiming:
                taken = claiming.ask(claim_backfill(declared, pulse.claimer, backfill=number, tried=tried))
                if isinstance(taken, (Refused, Misuse)):
                    raise taken
                if isinstance(taken, Idle):
                    return taken
                again = partial(claim_once_more, declared, taken.run.id, backfill=taken.backfill)
                return self._attempted(claiming, taken, again)
        finally:
            pulse.stop()

    # -- for whoever pokes line by line, as a daemon does ----------------------------------------------------------------

    def lines(self) -> list[str]:
        """The scopes of the job of which anything may be owed. Those that code declares are put on the roster first, and
        each is made known to the ledger. Raises what it refuses.
        """
        self._enrol()
        scopes = self._scopes_to_work(None)
        for scope in scopes:
            declared = for_scope(self._declared, scope, self._scopes)
            if not raise_if_refused(self._store.read(is_declared(declared))):
                raise_if_refused(self._store.write(declare(declared)))
        return scopes

    def has(self, scope: str) -> bool:
        """Whether a line of that scope is the job's, as it is declared here."""
        return self._scopes is None or scope in self._scopes

    def attempt(self, scope: str, trigger: str, *, of_backfill: bool = False) -> list[Attempted] | Idle:
        """Attempt the oldest run of a line that is owed and can be worked, or a group of them, or the next window of its
        backfill, once.
        """
        declared = for_scope(self._declared, scope, self._scopes)
        if of_backfill:
            attempted = self._attempt_backfill(declared, trigger, number=None, tried=())
            return attempted if isinstance(attempted, Idle) else [attempted]
        worked = self._attempt_next(declared, trigger, as_of=None, tried=())
        for _ in range(GROUPS_IN_A_TURN - 1 if self._group > 1 else 0):
            if not goes_on(worked):
                break
            following = self._attempt_owed(declared, trigger, as_of=None, tried=())
            if isinstance(following, Idle):
                break
            worked = [*worked, *following]
        return worked

    def _claiming(self) -> Claiming:
        # Losing a transactional claim loses nothing, its effect goes with it: its commit need not be flushed.
        durable = self._declared.policies.get("contract") != contracts.TRANSACTIONAL
        return Claiming(self._store, inline=self._inline, durable=durable)

    def _work(
        self,
        claiming: Claiming,
        job: JobRow,
        key: RunKey,
        claim: Held,
        row: Row,
        again: Callable[[Claimer], Operation[Any]],
    ) -> Completed:
        """Call the function, and complete the run or record how its attempt ended. `again` claims the run once more."""
        pid = os.getpid()
        within = claiming.transaction
        run: Run[Tx] = Run(self._store, key, claim, row, within, job.timeout, job.first_name, self._destinations)
        telling = Telling(key, claim, row)
        if not self._inline:
            self._keeper.keep(claim, run._supersede, run._cancel, run._progress_now)
        try:
            if telling.looks_back:
                with suppress(DulyError):  # a link is not worth an attempt
                    telling.follows(self._store.read(earlier_attempt(claim)))
            if self._inline or claim.number == 1 or (left := self._found_in_place(claim)) is None:
                with OfTheJob(run):
                    refuse_unfinished(self.function(run))
                left = run._left()
            run._complete(complete_or_raise(claim, left), left)
        except BaseException as e:
            if os.getpid() != pid:  # a forked child leaves by here: the attempt is its parent's
                raise
            run._abandon()
            telling.ended(self._record(run, job, claim, row.payload, e, again), e)
            e.add_note(f"duly: in {run.key}, attempt {run.attempt}")
            raise
        finally:
            self._keeper.drop(claim)
        telling.completed(left)
        return Completed(run.key, run.attempt)

    def _found_in_place(self, claim: Held) -> Left | None:
        """What an earlier attempt left that was killed before it could complete: its file, which stands in its place."""
        found = found_in_place(self._store, claim)
        return None if found is None else Left(found.path)

    def _record(
        self,
        run: Run[Tx],
        job: JobRow,
        claim: Held,
        payload: str | None,
        error: BaseException,
        again: Callable[[Claimer], Operation[Any]],
    ) -> Ending:
        """Write down how the attempt ended; that is answered. A claim that was lost is recorded by whoever took it over."""
        if isinstance(error, ClaimLost):
            return LOST
        try:
            elapsed = elapsed_since_first(self._store, claim)
            ending = ending_of(job, claim, type(error).__qualname__, elapsed=elapsed, cancelled=run.cancelled)
            if not self._inline:
                record_ending(self._store, job, claim, ending, error=error_place(error), progress=run._progress_now())
                return ending
            retry_in = retry_delay(job, claim, counted=True) if ending.retry else None
            claimer = Claimer(new_attempt_id(), owner(), claim.trigger, payload)
            failure = record_failure(
                again(claimer), ending, began_at=claim.started_at, retry_in=retry_in, error=error_place(error)
            )
            self._store.write(failure)
            return ending
        except DulyError as e:
            if isinstance(e, ClaimLost) and self._store.read(has_completed(claim)):
                error.add_note("duly: it came after the commit: the run is complete")
                return COMPLETED
            error.add_note(f"duly: how this attempt ended could not be recorded: {e}")
            return not_recorded(error)

    def _scopes_to_work(self, scope: str | None) -> list[str]:
        if scope is not None:
            return [scope]
        if self._scopes is not None:
            return list(self._scopes)
        return self._store.read(scopes_to_work(self.name))

    def _enrol(self) -> None:
        """Put the scopes that are declared on the roster, once: one that is never run is missing, and not invisible."""
        if self._enrolled or self._roster is None:
            return
        missing = self._store.read(differs(self._declared, self._roster))
        self._enrolled = not missing or has_enrolled(self._store.write(enrol(self._declared, self._roster)))


def answered(named: Named) -> AlreadyCompleted | Busy | NotDue:
    """The answer of a run that was not claimed. Raises where it is a refusal."""
    answer = named.answer
    if isinstance(answer, (Refused, Misuse)):
        raise answer
    assert not isinstance(answer, Held)
    return told(named.key, answer)


def noted(attempted: Attempted, done: list[Completed], failures: list[Exception]) -> None:
    """Put what came of an attempt where it belongs."""
    if isinstance(attempted.outcome, Completed):
        done.append(attempted.outcome)
    else:
        failures.append(attempted.outcome)


def goes_on(attempted: list[Attempted] | Idle) -> TypeGuard[list[Attempted]]:
    """Whether a line goes on to its next group at once: all of this one is complete, and there is more."""
    if isinstance(attempted, Idle):
        return False
    return attempted[-1].more and all(isinstance(each.outcome, Completed) for each in attempted)


def completed_by(run: RunFacts, *, more: bool) -> Attempted:
    """What came of a run of a group that was committed."""
    return Attempted(run._claim.run, run.key, run.attempt, Completed(run.key, run.attempt), more)


def not_recorded(error: BaseException) -> Ending:
    """What is said of an attempt whose end could not be written down: its run stays what it was, until it is judged gone."""
    return Ending(states.RUNNING, f"{type(error).__qualname__}, which could not be recorded")


def drop_all(tellings: list[Telling]) -> None:
    """Of a group that came to nothing: its runs are worked alone."""
    for telling in tellings:
        telling.dropped("its group came to nothing")


def for_scope(declared: Declaration, scope: str, roster: tuple[str, ...] | None) -> Declaration:
    """The declaration for one scope. Raises `UnknownScope` for one that the job's own roster does not have, and `NameInvalid`
    for what cannot be one.
    """
    if scope != "":
        check_scope(scope)
    if roster is not None and scope not in roster:
        raise UnknownScope(f"scope: {declared.job} has the scopes {', '.join(map(repr, roster))}, not {scope!r}")
    return declared if declared.scope == scope else replace(declared, scope=scope)


def has_enrolled(answer: list[str] | Refused | Misuse) -> bool:
    """Whether the roster is as declared. What the ledger refuses of the job, the run that follows is refused as well."""
    if isinstance(answer, Misuse):
        raise answer
    return not isinstance(answer, Refused)


def refuse_unfinished(result: object) -> None:
    """Raise for work that was only promised: a coroutine or generator that nobody ran, so that nothing was done."""
    if isinstance(result, (Awaitable, Generator, AsyncGenerator)):
        if isinstance(result, Coroutine):
            result.close()
        raise TypeError(
            f"a job's function returned a {type(result).__name__}, which nobody would run; do the work in it"
        )


class Claiming:
    """The transaction of a claim: one of its own that is committed at once, or inline the one of the effect."""

    def __init__(self, store: Store, *, inline: bool, durable: bool) -> None:
        self._store = store
        self._durable = durable
        self.transaction = store.owned() if inline else None

    def __enter__(self) -> Claiming:
        if self.transaction is not None:
            self.transaction.begin()
        return self

    def ask(self, operation: Operation[T]) -> T:
        """Run the claiming operation."""
        if self.transaction is None:
            return self._store.write(operation, durable=self._durable)
        return self.transaction.drive(operation)

    def claim_at_once(self, claim: Operation[T | None]) -> T | None:
        """Make a claim from memory; None where it has to be made from the beginning."""
        if self.transaction is None:
            return self._store.claim_at_once(claim, durable=self._durable)
        return self.transaction.drive(claim)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Inline, what was found without claiming is committed too; after a claim the transaction has ended already."""
        if self.transaction is None or not self.transaction.is_open:
            return
        if kind is None:
            self.transaction.commit()
        else:
            self.transaction.abandon()


def wait_micros(wait: int | float | str) -> int:
    """How long to wait, in microseconds: given in seconds, or as text like `10m`."""
    return parse_duration(wait) if isinstance(wait, str) else int(wait * SECOND)
