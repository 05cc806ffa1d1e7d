"""Job in an event loop: an `async def` with a schedule. The twin of `work.job`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from datetime import date
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duly.errors import ClaimLost, DulyError, Misuse, OutcomeUnknown, Refused, RunCancelled, raise_if_refused
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
from duly.schedule.keys import RunKey
from duly.work.aio.attempt import Claiming, Patience, Working, elapsed_since_first, held_of, record_ending
from duly.work.aio.awaited import Awaited, to_the_end
from duly.work.aio.output import done_after_all, found_done, found_in_place
from duly.work.aio.run import Run
from duly.work.answers import AlreadyCompleted, Attempted, Busy, Completed, NotDue
from duly.work.attempt import AT_MOST_IN_VAIN, Pulse, ending_of, onlooker, passing, retry_delay
from duly.work.declared import wanted_of
from duly.work.exception import error_place
from duly.work.identity import new_attempt_id, owner
from duly.work.job import (
    GROUP_SECONDS,
    GROUPS_IN_A_TURN,
    answered,
    completed_by,
    drop_all,
    for_scope,
    goes_on,
    has_enrolled,
    not_recorded,
    noted,
    refuse_unfinished,
    wait_micros,
)
from duly.work.memory import Memory
from duly.work.payload import payload_hash
from duly.work.raised import OfTheJob
from duly.work.telling import COMPLETED, LOST, Telling
from duly.work.tracing import earlier_attempt

if TYPE_CHECKING:
    from duly.ledger.ask import Operation
    from duly.ledger.group import Group
    from duly.ledger.remembered import Recalled
    from duly.ledger.roster import Scope
    from duly.schedule.meant import Meant
    from duly.store.protocol import AsyncStore
    from duly.work.aio.keeper import LeaseKeeper
    from duly.work.declared import Wanted
    from duly.work.destinations import Destinations
    from duly.work.payload import Json
    from duly.work.probe import Probe, Probed

T = TypeVar("T")
Tx = TypeVar("Tx")


class Job(Generic[Tx]):
    """An async function registered with `@ledger.job`, called with a `Run` through `run` and `catch_up`: as `duly.Job`."""

    def __init__(
        self,
        store: AsyncStore,
        keeper: LeaseKeeper,
        declared: Declaration,
        function: Callable[[Run[Tx]], Awaitable[object]],
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
        return f"<duly.aio.Job {self.name}>"

    def run(
        self,
        window: str | date | None = None,
        *,
        scope: str = "",
        adhoc: str | None = None,
        payload: Json = None,
        wait: int | float | str | None = None,
        trigger: str = "call",
    ) -> Awaited[Completed | AlreadyCompleted | Busy | NotDue]:
        """Work one window, named as people write it, or by its date; or a run outside the schedule: as `duly.Job.run`.

        A cancellation ends the attempt as an exception does, and is raised when that is written down.
        """
        declared = for_scope(self._declared, scope, self._scopes)
        run = wanted_of(declared, None if window is None else str(window), adhoc)
        hashed = None if payload is None else payload_hash(payload)
        return Awaited(self._run(run, hashed, wait, trigger))

    def window_meant(self, meant: Meant, *, scope: str = "") -> Awaited[str]:
        """The window that a scheduler elsewhere meant: as `duly.Job.window_meant`."""
        return Awaited(self._window_meant(for_scope(self._declared, scope, self._scopes), meant))

    async def _window_meant(self, declared: Declaration, meant: Meant) -> str:
        await self._store.open()
        return raise_if_refused(await self._store.read(name_meant(declared, meant)))

    async def _run(
        self, run: Wanted, payload: str | None, wait: int | float | str | None, trigger: str
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        await self._store.open()
        await self._enrol()
        patience = None if wait is None else await Patience.of(self._store, wait_micros(wait))
        while True:
            named = await self._try(run, payload, trigger)
            if not isinstance(named, Busy) or patience is None or not await patience.pause():
                return named

    async def _try(
        self, run: Wanted, payload: str | None, trigger: str
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        recalled = self._memory.recall(run.declared, run.window)
        seen, recalled = await self._look(recalled, run, onlooker(trigger, payload))
        if seen is not None:
            return await self._answered(seen, run, payload, trigger)
        pulse = Pulse(self._store, trigger=trigger, payload=payload)
        try:
            async with self._claiming() as claiming:
                named = await self._take(claiming, recalled, run, pulse.claimer)
                if isinstance(named.answer, Held):
                    assert named.row is not None
                    self._memory.looks_first = False
                    return await self._work(claiming, named.known.job, named.key, named.answer, named.row, run.take)
            return await self._answered(named, run, payload, trigger)  # after the commit of what was found
        finally:
            pulse.stop()

    async def _answered(
        self, named: Named, run: Wanted, payload: str | None, trigger: str
    ) -> Completed | AlreadyCompleted | Busy | NotDue:
        """The answer of a run that was not claimed: as `duly.Job` has it."""
        self._memory.looks_first = isinstance(named.answer, Complete)
        if isinstance(named.answer, OutcomeUnknown):
            if (done := await done_after_all(self._store, named)) is not None:
                return done
            if await self._is_known_now(named.row):
                return await self._try(run, payload, trigger)
        return answered(named)

    async def _is_known_now(self, row: Row | None) -> bool:
        """Whether the probe has said, and is believed, what became of a run whose outcome was unknown."""
        if self._probe is None or row is None:
            return False
        from duly.work.aio.probe import ask_about

        probed = await ask_about(self._store, row.id, self._probe)
        return probed is not None and probed.state != states.UNKNOWN

    async def _look(
        self, recalled: Recalled | None, run: Wanted, claimer: Claimer
    ) -> tuple[Named | None, Recalled | None]:
        """What a plain look can say of the window, and whether it may be claimed from memory."""
        if recalled is not None:
            if self._store.claim_looks and not self._inline and not self._memory.looks_first:
                return None, recalled
            seen = await self._store.glance(peek_remembered(recalled, claimer))
            if seen is not None:
                return (None, recalled) if isinstance(seen, Untouched) else (seen, None)
        assert run.peek is not None  # a job names no whole key
        named = raise_if_refused(await self._store.glance(run.peek(claimer)))
        if named is not None:
            self._memory.keep(named.known, run.declared)
        return named, None

    async def _take(self, claiming: Claiming, recalled: Recalled | None, run: Wanted, claimer: Claimer) -> Named:
        named = None
        if recalled is not None:
            named = await claiming.claim_at_once(claim_remembered(recalled, claimer))
            if named is None:
                named, _ = await self._look(None, run, claimer)
        if named is None:
            named = await claiming.claim(run.take(claimer), held_of)
            self._memory.keep(named.known, run.declared)
        return named

    def catch_up(self, *, scope: str | None = None) -> Awaited[list[Completed]]:
        """Work what is owed, oldest first, by the job's catch-up policy: as `duly.Job.catch_up`."""
        return Awaited(self._catch_up_all(scope))

    async def _catch_up_all(self, scope: str | None) -> list[Completed]:
        await self._store.open()
        done: list[Completed] = []
        failures: list[Exception] = []
        try:
            await self._enrol()
        except Exception as e:
            raise ExceptionGroup(f"{self.name}: not all that is owed is complete", [e]) from None
        for each in await self._scopes_to_work(scope):
            try:
                await self._ask_probe(each)
                await self._catch_up(for_scope(self._declared, each, self._scopes), done, failures, set())
            except Exception as e:
                failures.append(e)
                if not isinstance(e, (Refused, Misuse)):
                    break  # the ledger itself is in trouble: so it would be for every other scope
        if failures:
            raise ExceptionGroup(f"{self.name}: not all that is owed is complete", failures)
        return done

    def ask_probe(
        self, *, scope: str | None = None, is_over: Callable[[], bool] = lambda: False
    ) -> Awaited[list[Probed]]:
        """Ask the job's probe about its runs whose outcome is unknown: as `duly.Job.ask_probe`."""
        return Awaited(self._ask_probe(scope, is_over))

    async def _ask_probe(self, scope: str | None, is_over: Callable[[], bool] = lambda: False) -> list[Probed]:
        if self._probe is None:
            return []
        from duly.work.aio.probe import ask_about_all

        await self._store.open()
        return await ask_about_all(self._store, self.name, scope, self._probe, is_over=is_over)

    async def _catch_up(
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
        as_of = await self._store.now()
        begun, more = len(tried), False
        while not only_one or len(tried) == begun:
            attempt = self._attempt_owed if more else self._attempt_next
            attempted = await attempt(declared, "catch-up", as_of=as_of, tried=tried)
            if isinstance(attempted, Idle):
                standing = attempted.standing
                if standing is not None and await found_done(self._store, standing):
                    done.append(Completed(str(await self._store.read(key_of(standing.id))), standing.fence))
                    continue
                break
            for each in attempted:
                noted(each, done, failures)
            tried.update(each.run for each in attempted)
            more = attempted[-1].more

    async def _attempt_next(
        self, declared: Declaration, trigger: str, *, as_of: int | None, tried: Container[RunId]
    ) -> list[Attempted] | Idle:
        """Attempt the oldest run of a line that is owed and can be worked, or a group of them: as `duly.Job` does."""
        seen = raise_if_refused(await self._store.read(peek(declared, as_of=as_of, tried=tried)))
        if not seen.writes:
            return seen
        if self._inline and not is_complete(seen.known, declared):
            raise_if_refused(await self._store.write(declare(declared)))
        return await self._attempt_owed(declared, trigger, as_of=as_of, tried=tried)

    async def _attempt_owed(
        self, declared: Declaration, trigger: str, *, as_of: int | None, tried: Container[RunId]
    ) -> list[Attempted] | Idle:
        """As `_attempt_next`, without a look before."""
        if self._group > 1 and self._alone[declared.scope] <= 0:
            return await self._attempt_group(declared, trigger, as_of=as_of, tried=tried)
        self._alone[declared.scope] -= 1
        pulse = Pulse(self._store, trigger=trigger)
        try:
            async with self._claiming() as claiming:
                asked = claim_next(declared, pulse.claimer, as_of=as_of, tried=tried)
                taken: Taken | Idle = await claiming.claim(asked, _claim_of_taken)
                if isinstance(taken, Idle):
                    return taken
                return [await self._attempted(claiming, taken, partial(claim_again, declared, taken.run.id))]
        finally:
            pulse.stop()

    async def _attempt_group(
        self, declared: Declaration, trigger: str, *, as_of: int | None, tried: Container[RunId]
    ) -> list[Attempted] | Idle:
        """Attempt runs of a line that are owed one after the other in one transaction: as `duly.Job` does."""
        async with self._claiming() as claiming:
            claimer = Claimer(new_attempt_id(), owner(), trigger)
            asked = claim_group(declared, claimer, as_of=as_of, tried=tried, most=self._group)
            group: Group | Idle = await claiming.claim(asked, no_claim)
            if isinstance(group, Idle):
                return group
            worked: list[Run[Tx]] = []
            ends: list[tuple[Held, Left]] = []
            tellings: list[Telling] = []
            cancelled: BaseException | None = None
            try:
                await self._work_group(claiming, group, worked, ends, tellings)
                completing = worked[-1]._complete(complete_group(group.first, ends))
                _, cancelled = await to_the_end(completing)
                is_done = True
            except BaseException as e:
                await to_the_end(worked[-1]._abandon())
                if not isinstance(e, Exception):
                    ending, _ = await to_the_end(self._record_interrupted(worked[-1], declared, group, e))
                    tellings.pop().ended(ending, e)
                    drop_all(tellings)
                    raise
                is_done = await self._store.read(has_completed(group.first.claim))  # it came after the commit
        if is_done:
            for telling, (_, left) in zip(tellings, ends, strict=True):
                telling.completed(left)
        else:
            drop_all(tellings)
        if cancelled is not None:
            raise cancelled
        if is_done:
            more = group.has_more_than(len(worked))
            return [completed_by(run, more=more) for run in worked]
        self._alone[declared.scope] = len(worked)
        return await self._attempt_owed(declared, trigger, as_of=as_of, tried=tried)

    async def _work_group(
        self,
        claiming: Claiming,
        group: Group,
        worked: list[Run[Tx]],
        ends: list[tuple[Held, Left]],
        tellings: list[Telling],
    ) -> None:
        """Await the function for one run after the other: as `duly.Job` does."""
        began = monotonic()
        job, within = group.first.known.job, claiming.transaction
        assert within is not None  # a group is inline
        for key, claim, row in members(group, new_attempt_id, passing(self._store)):
            if worked:
                worked[-1]._leave()
                if row.zone_facts is not None:
                    await within.drive(notice_drift(group.first.known, row, claim.owner))
            run: Run[Tx] = Run(self._store, key, claim, row, within, job.timeout, job.first_name, self._destinations)
            worked.append(run)
            tellings.append(Telling(key, claim, row))
            refuse_unfinished(await self.function(run))
            ends.append((claim, run._left()))
            tellings[-1].leave()
            if monotonic() - began > GROUP_SECONDS:
                break

    async def _record_interrupted(
        self, run: Run[Tx], declared: Declaration, group: Group, error: BaseException
    ) -> Ending:
        """Write down how a run of a group ended that was cancelled, or wanted to end the process."""
        claim, job = run._claim, group.first.known.job
        again = partial(claim_again, declared, claim.run)
        ending = await self._give_up(run, job, claim, run._row.payload, error, again)
        error.add_note(f"duly: in {run.key}, attempt {run.attempt}")
        return ending

    async def _attempted(
        self, claiming: Claiming, taken: Taken, again: Callable[[Claimer], Operation[Any]]
    ) -> Attempted:
        outcome: Completed | Exception
        try:
            outcome = await self._work(claiming, taken.known.job, taken.key, taken.claim, taken.run, again)
        except Exception as e:
            outcome = e
        return Attempted(taken.run.id, str(taken.key), taken.claim.number, outcome, taken.more)

    def work_backfill(self, number: int | None = None, *, scope: str | None = None) -> Awaited[list[Completed]]:
        """Work the windows of a backfill until none is left to take: as `duly.Job.work_backfill`."""
        return Awaited(self._work_backfills(number, scope))

    async def _work_backfills(self, number: int | None, scope: str | None) -> list[Completed]:
        await self._store.open()
        done: list[Completed] = []
        failures: list[Exception] = []
        if number is not None:
            scope = await self._store.read(scope_of_backfill(number, self.name, scope))
        for each in await self._scopes_to_work(scope):
            try:
                await self._work_backfill(for_scope(self._declared, each, self._scopes), number, done, failures)
            except Exception as e:
                failures.append(e)
                if not isinstance(e, (Refused, Misuse)):
                    break
        if failures:
            raise ExceptionGroup(f"{self.name}: not all of the backfill is complete", failures)
        return done

    async def _work_backfill(
        self, declared: Declaration, number: int | None, done: list[Completed], failures: list[Exception]
    ) -> None:
        """Each window that can be taken, at most once; before each of them what is owed, unless that is in other hands."""
        tried: set[RunId] = set()
        in_vain = 0
        while in_vain < AT_MOST_IN_VAIN:
            attempted = await self._attempt_backfill(declared, "backfill", number=number, tried=tried)
            if isinstance(attempted, Attempted):
                in_vain = 0
                tried.add(attempted.run)
                noted(attempted, done, failures)
            elif attempted.live:
                in_vain += 1
                before = len(tried)
                await self._catch_up(declared, done, failures, tried, only_one=True)
                in_vain = 0 if len(tried) > before else in_vain
            elif not attempted.writes:
                return

    async def _attempt_backfill(
        self, declared: Declaration, trigger: str, *, number: int | None, tried: Container[RunId]
    ) -> Attempted | Idle:
        """Attempt the next window of a backfill that has a slot free. Raises what the ledger refuses before a claim."""
        pulse = Pulse(self._store, trigger=trigger)
        try:
            async with self._claiming() as claiming:
                asked = claim_backfill(declared, pulse.claimer, backfill=number, tried=tried)
                taken: Taken | Idle = await claiming.claim(asked, _claim_of_taken)
                if isinstance(taken, Idle):
                    return taken
                again = partial(claim_once_more, declared, taken.run.id, backfill=taken.backfill)
                return await self._attempted(claiming, taken, again)
        finally:
            pulse.stop()

    # -- for whoever pokes line by line, as a daemon does ----------------------------------------------------------------

    async def lines(self) -> list[str]:
        """The scopes of the job of which anything may be owed. Those that code declares are put on the roster first, and
        each is made known to the ledger. Raises what it refuses.
        """
        await self._store.open()
        await self._enrol()
        scopes = await self._scopes_to_work(None)
        for scope in scopes:
            declared = for_scope(self._declared, scope, self._scopes)
            if not raise_if_refused(await self._store.read(is_declared(declared))):
                raise_if_refused(await self._store.write(declare(declared)))
        return scopes

    def has(self, scope: str) -> bool:
        """Whether a line of that scope is the job's, as it is declared here."""
        return self._scopes is None or scope in self._scopes

    async def attempt(self, scope: str, trigger: str, *, of_backfill: bool = False) -> list[Attempted] | Idle:
        """Attempt the oldest run of a line that is owed and can be worked, or a group of them, or the next window of its
        backfill, once.
        """
        await self._store.open()
        declared = for_scope(self._declared, scope, self._scopes)
        if of_backfill:
            attempted = await self._attempt_backfill(declared, trigger, number=None, tried=())
            return attempted if isinstance(attempted, Idle) else [attempted]
        worked = await self._attempt_next(declared, trigger, as_of=None, tried=())
        for _ in range(GROUPS_IN_A_TURN - 1 if self._group > 1 else 0):
            if not goes_on(worked):
                break
            following = await self._attempt_owed(declared, trigger, as_of=None, tried=())
            if isinstance(following, Idle):
                break
            worked = [*worked, *following]
        return worked

    def _claiming(self) -> Claiming:
        # Losing a transactional claim loses nothing, its effect goes with it: its commit need not be flushed.
        durable = self._declared.policies.get("contract") != contracts.TRANSACTIONAL
        return Claiming(self._store, inline=self._inline, durable=durable)

    async def _work(
        self,
        claiming: Claiming,
        job: JobRow,
        key: RunKey,
        claim: Held,
        row: Row,
        again: Callable[[Claimer], Operation[Any]],
    ) -> Completed:
        """Call the function, and complete the run or record how its attempt ended. `again` claims the run once more."""
        within = claiming.transaction
        run: Run[Tx] = Run(self._store, key, claim, row, within, job.timeout, job.first_name, self._destinations)
        working = Working(run._cancel)
        telling = Telling(key, claim, row)
        if not self._inline:
            self._keeper.keep(claim, run._supersede, working.stop, run._progress_now)
        try:
            if telling.looks_back:
                with suppress(DulyError):
                    telling.follows(await self._store.read(earlier_attempt(claim)))
            if self._inline or claim.number == 1 or (left := await self._found_in_place(claim)) is None:
                with OfTheJob(run):
                    refuse_unfinished(await self.function(run))
                left = run._left()
            _, cancelled = await to_the_end(run._complete(complete_or_raise(claim, left), left))
        except BaseException as e:
            ending, _ = await to_the_end(self._give_up(run, job, claim, row.payload, e, again))
            telling.ended(ending, e)
            e.add_note(f"duly: in {run.key}, attempt {run.attempt}")
            self._keeper.drop(claim)
            if working.was_stopped_by_us_alone() and isinstance(e, asyncio.CancelledError):
                raise RunCancelled(f"a person asked attempt {run.attempt} of {run.key} to stop, and it did") from e
            raise
        finally:
            self._keeper.drop(claim)
        telling.completed(left)
        by_us_alone = working.was_stopped_by_us_alone()
        if cancelled is not None and not by_us_alone:
            raise cancelled
        return Completed(run.key, run.attempt)

    async def _found_in_place(self, claim: Held) -> Left | None:
        """What an earlier attempt left that was killed before it could complete: its file, which stands in its place."""
        found = await found_in_place(self._store, claim)
        return None if found is None else Left(found.path)

    async def _give_up(
        self,
        run: Run[Tx],
        job: JobRow,
        claim: Held,
        payload: str | None,
        error: BaseException,
        again: Callable[[Claimer], Operation[Any]],
    ) -> Ending:
        """Keep nothing of the effect, and write down how the attempt ended, which is answered."""
        await run._abandon()
        if isinstance(error, ClaimLost):  # recorded already, by whoever took it over
            return LOST
        try:
            elapsed = await elapsed_since_first(self._store, claim)
            ending = ending_of(job, claim, type(error).__qualname__, elapsed=elapsed, cancelled=run.cancelled)
            if not self._inline:
                await record_ending(
                    self._store, job, claim, ending, error=error_place(error), progress=run._progress_now()
                )
                return ending
            retry_in = retry_delay(job, claim, counted=True) if ending.retry else None
            claimer = Claimer(new_attempt_id(), owner(), claim.trigger, payload)
            failure = record_failure(
                again(claimer), ending, began_at=claim.started_at, retry_in=retry_in, error=error_place(error)
            )
            await self._store.write(failure)
            return ending
        except DulyError as e:
            if isinstance(e, ClaimLost) and await self._store.read(has_completed(claim)):
                error.add_note("duly: it came after the commit: the run is complete")
                return COMPLETED
            error.add_note(f"duly: how this attempt ended could not be recorded: {e}")
            return not_recorded(error)

    async def _scopes_to_work(self, scope: str | None) -> list[str]:
        if scope is not None:
            return [scope]
        if self._scopes is not None:
            return list(self._scopes)
        return await self._store.read(scopes_to_work(self.name))

    async def _enrol(self) -> None:
        """Put the scopes that are declared on the roster, once: as `duly.Job` does."""
        if self._enrolled or self._roster is None:
            return
        missing = await self._store.read(differs(self._declared, self._roster))
        self._enrolled = not missing or has_enrolled(await self._store.write(enrol(self._declared, self._roster)))


def no_claim(_: object) -> None:
    """Of an inline claim there is nothing to give back: it goes with its transaction."""


def _claim_of_taken(taken: object) -> Held | None:
    return taken.claim if isinstance(taken, Taken) else None
