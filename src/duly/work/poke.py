"""Poke: what `duly exec` does. The ledger says what is owed; each run of it is given to a command, oldest first.

A poke works what was owed when it began, each run at most once, and goes on after a failure. How an attempt ended is told as a
`Report`; making it is `wrapping`. Most pokes find nothing to do, on some hosts every minute: what only a claim and its command
need is imported where one is near.
"""

from __future__ import annotations

from duly.errors import JobRenamed, Misuse, OutcomeUnknown, Refused, raise_if_refused
from duly.ledger import states
from duly.ledger.peek import Idle, peek
from duly.ledger.records import AlreadyCompleted, Busy, Claim, NotDue
from duly.ledger.register import schedule_of
from duly.records import record
from duly.times import MINUTE
from duly.work.waiting import wait_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias, TypeVar

    from duly.ledger.ask import Operation
    from duly.ledger.named import Named
    from duly.ledger.open import Taken
    from duly.ledger.records import Claimer, Job, Pause, Run, RunId
    from duly.ledger.register import Declaration
    from duly.redaction import Redaction
    from duly.schedule.keys import RunKey
    from duly.store.protocol import Store
    from duly.work.attempt import Pulse
    from duly.work.child import Ears
    from duly.work.command import Briefing
    from duly.work.output import Output

    T = TypeVar("T")
    Ask: TypeAlias = Callable[[Claimer], Operation[T]]

EARLY = MINUTE  # a poke this much before a due time is taken for it: clocks differ


@record
class Order:
    """What to run and how. `settle_seconds`: how long to try to write down how a child ended. `keep_output`: how many bytes are
    kept of each of its streams, without what `redaction` finds.
    """

    argv: list[str]
    environment: Mapping[str, str]
    trigger: str
    settle_seconds: float = 600.0
    retry_in_place: bool = True
    only_one: bool = False
    chronic: bool = False
    output: Output | None = None
    keep_output: int = 0
    redaction: Redaction | None = None


@record
class Report:
    """How one attempt ended: exec's code for it, the run's state after it, and why, in a few words."""

    key: RunKey
    claim: Claim
    code: int
    state: str
    cause: str
    took: int
    retry_in: int | None = None
    sent: int = 0  # messages that were committed with its completion

    @property
    def number(self) -> int:
        return self.claim.number


@record
class Work:
    """A run that was claimed, with all that its attempt needs. `next_due`: of its line; `said`: what is kept of its command's
    output.
    """

    job: Job
    key: RunKey
    claim: Claim
    row: Run
    pulse: Pulse
    next_due: int | None
    said: Sequence[tuple[str, str]] = ()


class Poke:
    """One call of `duly exec` for one line. `tell` is called with each attempt before its child starts, and each report."""

    def __init__(
        self,
        store: Store,
        declared: Declaration,
        order: Order,
        signals: Ears,
        tell: Callable[[Briefing | Report], None],
    ) -> None:
        self._store = store
        self._declared = declared
        self._order = order
        self._signals = signals
        self._tell = tell
        self.paused: Pause | None = None  # why nothing more is worked
        self.reports: dict[RunId, Report] = {}  # the last attempt's, of each run worked, in the order of working
        self.ended_at: int | None = None  # when the line ended, if it did before this poke
        self._more = False  # the line had more to work when the last of them was claimed

    # -- which runs ----------------------------------------------------------------------------------------------------

    def work_owed(self) -> Run | None:
        """Work what is owed. Answers the run that was not worked and is the newest due, or that blocks it."""
        as_of = began = self._store.now()
        while True:
            try:
                answer = self._next(as_of)
            except JobRenamed:
                if not self.reports:
                    raise
                return None  # while its runs were worked; the next poke is told
            self.paused = answer.paused if isinstance(answer, Idle) else None
            if isinstance(answer, Idle) and answer.known is not None and answer.known.line is not None:
                ends = answer.known.line.ends
                self.ended_at = ends if ends is not None and ends <= began else None
            if isinstance(answer, Work):
                self._work(answer)
                if self._signals.end_is_wanted() or self._order.only_one:
                    return None
            elif self._is_early(answer, began):
                assert answer.next_due is not None
                if not self._wait_until(answer.next_due):
                    return None
                as_of = answer.next_due
            elif answer.standing is None or answer.standing.id in self.reports:
                return None
            elif not self._found_done(answer.standing):
                return answer.standing

    def attempt_next(self, *, of_backfill: bool = False) -> Report | Idle:
        """Attempt the oldest run that can be worked now, once, or the next window of a backfill."""
        answer = self._next_of_backfill(None) if of_backfill else self._next(self._store.now())
        if isinstance(answer, Idle):
            return answer
        report = self.reports[answer.claim.run] = self._attempt(answer)
        return report

    def _next(self, as_of: int) -> Work | Idle:
        """Claim the oldest run that can be worked and was not tried yet."""
        if not self._more:
            seen = raise_if_refused(self._store.read(peek(self._declared, as_of=as_of, tried=self.reports)))
            if not seen.writes:
                return seen
        from duly.ledger.open import Taken, claim_next

        self._more = False
        pulse, answer = self._claiming(
            lambda claimer: claim_next(self._declared, claimer, as_of=as_of, tried=self.reports)
        )
        if not isinstance(answer, Taken):
            pulse.stop()
            return raise_if_refused(answer)
        self._more = answer.more
        return self._work_of(answer, pulse)

    @staticmethod
    def _work_of(taken: Taken, pulse: Pulse) -> Work:
        return Work(taken.known.job, taken.key, taken.claim, taken.run, pulse, taken.next_due)

    def work_backfill(self, number: int | None) -> Run | None:
        """Work a backfill's windows one after the other until none is left to take. Answers the run that it waits for.

        What the line owes by itself is worked first, here too: whoever came for it may have found the line held by us.
        """
        from duly.work.attempt import AT_MOST_IN_VAIN

        in_vain = 0  # what was owed to the line was gone when we came for it
        while in_vain < AT_MOST_IN_VAIN:
            answer = self._next_of_backfill(number)
            if isinstance(answer, Idle):
                if answer.live:
                    answer = self._next(self._store.now())
                    in_vain += 1
                elif not answer.writes:
                    self.paused = answer.paused
                    return answer.standing
            if isinstance(answer, Work):
                in_vain = 0
                self._work(answer)
                # What was given back, as a command that cannot be executed, would be so with each window of a year.
                was_given_back = self.reports[answer.claim.run].state == states.OPEN
                if self._signals.end_is_wanted() or self._order.only_one or was_given_back:
                    return None
        return None

    def _next_of_backfill(self, number: int | None) -> Work | Idle:
        """Claim the next window of a backfill that has a slot free and that was not tried yet."""
        from functools import partial

        from duly.ledger.backfill_claim import claim_backfill  # off the path of a poke
        from duly.ledger.open import Taken

        claim = partial(claim_backfill, self._declared, backfill=number, tried=self.reports)
        pulse, claimed = self._claiming(claim, trigger="backfill")
        if isinstance(claimed, Taken):
            return self._work_of(claimed, pulse)
        pulse.stop()
        return raise_if_refused(claimed)

    def _found_done(self, standing: Run) -> bool:
        """Whether an unknown run turns out to be done: its output stands in place with the digest that was recorded."""
        if standing.state != states.UNKNOWN or self._order.output is None:
            return False
        from duly.work.output import found_done

        return found_done(self._store, standing)

    def _is_early(self, answer: Idle, began: int) -> bool:
        """Whether a window comes due so soon that this poke is meant for it: within a minute, or a quarter of the period."""
        due = answer.next_due
        if due is None or not 0 < due - began <= EARLY or self._store.now() > due:
            return False
        known = answer.known
        assert known is not None  # it has a next due time
        assert known.version is not None
        following = next(schedule_of(known.version).after(due), None)
        return following is None or due - began <= (following.due - due) // 4

    def _wait_until(self, instant: int) -> bool:
        """Wait by the ledger's clock. False: a signal to end came instead."""
        while (left := wait_seconds(self._store, instant)) > 0 and not self._signals.asked_to_end:
            self._signals.wait(min(left, 60.0))
        return not self._signals.asked_to_end

    def work_named(
        self, glance: Operation[Named | Refused | Misuse | None], ask_for: Ask[Named | Refused | Misuse]
    ) -> AlreadyCompleted | Busy | NotDue | None:
        """Work one run that is named. Answers why it was not; None when it was. Raises its refusals."""
        seen = raise_if_refused(self._store.read(glance))
        if seen is not None and isinstance(seen.answer, (AlreadyCompleted, Busy)):
            return seen.answer
        pulse, named = self._claiming(ask_for)
        work = None
        try:
            found = raise_if_refused(named)
            answer = found.answer
            if isinstance(answer, OutcomeUnknown) and (done := self._named_found_done(found)) is not None:
                return done
            if isinstance(answer, (Refused, Misuse)):
                raise answer
            if not isinstance(answer, Claim):
                return answer
            assert found.row is not None
            line = found.known.line
            work = Work(found.known.job, found.key, answer, found.row, pulse, None if line is None else line.next_due)
        finally:
            if work is None:
                pulse.stop()
        self._work(work)
        return None

    def _named_found_done(self, named: Named) -> AlreadyCompleted | None:
        """The answer for an unknown run whose output turns out to stand in place."""
        from duly.ledger.take import look

        row = None if named.row is None else self._store.read(look(named.row.id))
        if row is None or not self._found_done(row):
            return None
        return AlreadyCompleted(row.id, self._store.now(), row.fence)

    def _claiming(self, ask_for: Ask[T], trigger: str = "") -> tuple[Pulse, T]:
        """Try a claim, with the file lock held from before it can be seen."""
        from duly.work.attempt import Pulse

        pulse = Pulse(self._store, trigger=trigger or self._order.trigger)
        try:
            return pulse, self._store.write(ask_for(pulse.claimer), durable=self._claim_must_survive)
        except BaseException:
            pulse.stop()
            raise

    @property
    def _claim_must_survive(self) -> bool:
        """Losing a transactional claim loses nothing; of the others the claim is the only sign that an attempt began."""
        from duly.ledger.contracts import TRANSACTIONAL

        return self._declared.policies.get("contract") != TRANSACTIONAL

    # -- one run -------------------------------------------------------------------------------------------------------

    def _work(self, work: Work) -> None:
        """Attempt a run, and again in place while its retries and its deadline allow."""
        from duly.work.wrapping import deadline_of

        deadline = deadline_of(work.job, work.claim, work.next_due)
        again: Work | None = work
        while again is not None:
            report = self._attempt(again)
            self.reports[again.claim.run] = report
            self._tell(report)
            again = self._again(again, report, deadline)

    def _again(self, work: Work, report: Report, deadline: int | None) -> Work | None:
        """Wait in place and claim the run again; None where that is not wanted, or not possible any more."""
        if report.retry_in is None or not work.job.retries or not self._order.retry_in_place:
            return None
        retry_at = self._store.now() + report.retry_in
        if deadline is not None and retry_at >= deadline:
            return None
        if self._signals.end_is_wanted() or not self._wait_until(retry_at):
            return None
        if deadline is not None and self._store.now() >= deadline:  # the host was suspended meanwhile
            return None
        from duly.ledger.open import Taken, claim_again

        pulse, answer = self._claiming(lambda claimer: claim_again(self._declared, work.claim.run, claimer))
        if not isinstance(answer, Taken):
            pulse.stop()
            return None
        return self._work_of(answer, pulse)

    def _attempt(self, work: Work) -> Report:
        """Give one run to the command, and write down how that ended."""
        from duly.work.wrapping import Wrapping

        return Wrapping(self._store, self._order, self._signals, self._tell).attempt(work)
