"""Poke: what `duly exec` does. The ledger says what is owed; each run of it is given to a command, oldest first.

A poke works what was owed when it began, each run at most once, and goes on after a failure. What a child's end means is
the contract's word (`ledger.contracts`); here it is written down, and told as a `Report`.
"""

from __future__ import annotations

from sys import modules
from time import monotonic

from duly.codes import CANNOT_CREATE, CONFIGURATION, TAKEN_OVER, TIMED_OUT, UNKNOWN
from duly.errors import (
    ClaimLost,
    Conflict,
    DulyError,
    JobRenamed,
    LedgerUnavailable,
    Misuse,
    OutcomeUnknown,
    OutputRefused,
    Refused,
)
from duly.ledger import contracts, states
from duly.ledger.complete import Left, complete_or_raise, has_completed, has_ended, keep_said, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.open import Idle, Taken, claim_again, claim_next, peek
from duly.ledger.records import AlreadyCompleted, Busy, Claim, NotDue
from duly.ledger.register import schedule_of
from duly.ledger.take import ASKED_TO_STOP, LOST, beat, look
from duly.records import record, replace
from duly.times import MINUTE, duration_text
from duly.work.attempt import (
    AT_MOST_IN_VAIN,
    Pulse,
    elapsed_since_first,
    messages_in_words,
    raise_if_refused,
    record_ending,
    terms_of,
)
from duly.work.child import CannotExecute, Child, Ended
from duly.work.command import Briefing
from duly.work.letterbox import Mail
from duly.work.waiting import wait_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias, TypeVar

    from duly.ledger.ask import Operation
    from duly.ledger.named import Named
    from duly.ledger.records import Claimer, Job, Pause, Run, RunId
    from duly.ledger.register import Declaration
    from duly.ledger.send import Letter
    from duly.redaction import Redaction
    from duly.schedule.keys import RunKey
    from duly.store.protocol import Store
    from duly.work.child import Ears
    from duly.work.output import Output, Place

    T = TypeVar("T")
    Ask: TypeAlias = Callable[[Claimer], Operation[T]]

EARLY = MINUTE  # a poke this much before a due time is taken for it: clocks differ
STOPPED = 128 + 15  # as a shell says of SIGTERM: a command that was told to stop, and ended with 0
RENEW_SECONDS = 1.0  # how long a renewal waits for its turn before the child is looked at again


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
        tried = frozenset(self.reports)
        if not self._more:
            seen = raise_if_refused(self._store.read(peek(self._declared, as_of=as_of, tried=tried)))
            if not seen.writes:
                return seen
        self._more = False
        pulse, answer = self._claiming(lambda claimer: claim_next(self._declared, claimer, as_of=as_of, tried=tried))
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

        claim = partial(claim_backfill, self._declared, backfill=number, tried=frozenset(self.reports))
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
        row = None if named.row is None else self._store.read(look(named.row.id))
        if row is None or not self._found_done(row):
            return None
        return AlreadyCompleted(row.id, self._store.now(), row.fence)

    def _claiming(self, ask_for: Ask[T], trigger: str = "") -> tuple[Pulse, T]:
        """Try a claim, with the file lock held from before it can be seen."""
        pulse = Pulse(self._store, trigger=trigger or self._order.trigger)
        try:
            return pulse, self._store.write(ask_for(pulse.claimer), durable=self._claim_must_survive)
        except BaseException:
            pulse.stop()
            raise

    @property
    def _claim_must_survive(self) -> bool:
        """Losing a transactional claim loses nothing; of the others the claim is the only sign that an attempt began."""
        return self._declared.policies.get("contract") != contracts.TRANSACTIONAL

    # -- one run -------------------------------------------------------------------------------------------------------

    def _work(self, work: Work) -> None:
        """Attempt a run, and again in place while its retries and its deadline allow."""
        deadline = _deadline(work.job, work.claim, work.next_due)
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
        pulse, answer = self._claiming(lambda claimer: claim_again(self._declared, work.claim.run, claimer))
        if not isinstance(answer, Taken):
            pulse.stop()
            return None
        return self._work_of(answer, pulse)

    def _attempt(self, work: Work) -> Report:
        """Give one run to the command, and write down how that ended."""
        deadline = _deadline(work.job, work.claim, work.next_due)
        briefing = Briefing(work.key, work.claim, work.row, self._store.namespace, deadline, work.job.first_name)
        try:
            if "opentelemetry.trace" in modules:  # somebody traces
                return self._attempt_traced(work, briefing)
            return self._attempt_or_lose(work, briefing)
        finally:
            work.pulse.stop()

    def _attempt_traced(self, work: Work, briefing: Briefing) -> Report:
        """The same, within a span that is the command's parent."""
        from contextlib import suppress

        from duly.work.told import account_of
        from duly.work.tracing import AttemptSpan, earlier_attempt

        span = AttemptSpan(
            work.key,
            work.claim,
            work.row,
            called_by=briefing.called_by(self._order.environment),
            executable=self._order.argv[0].rpartition("/")[2],
        )
        try:
            if work.claim.number > 1:
                with suppress(DulyError):  # a link is not worth an attempt
                    span.link_to(self._store.read(earlier_attempt(work.claim)))
            report = self._attempt_or_lose(work, replace(briefing, traceparent=span.traceparent))
        except BaseException:
            span.drop("it came to no end")
            raise
        span.end(account_of(report))
        return report

    def _attempt_or_lose(self, work: Work, briefing: Briefing) -> Report:
        try:
            return self._attempt_with(work, briefing)
        except ClaimLost:
            return self._report(work, TAKEN_OVER, states.RUNNING, "another attempt took the run over")

    def _attempt_with(self, work: Work, briefing: Briefing) -> Report:
        place = None
        if self._order.output is not None:
            from duly.work.output import found_in_place

            if (found := found_in_place(self._store, work.claim)) is not None:
                return self._complete(work, cause=f"its output was in place: {found.path}", output=found.path)
        try:
            argv = briefing.command(self._order.argv)
            if self._order.output is not None:
                place = self._order.output.place(self._store, briefing)
        except Misuse:
            self._release(work, "a placeholder has no value")
            raise
        except OutputRefused as e:
            self._release(work, "its output cannot be put in place")
            return self._report(work, CANNOT_CREATE, states.OPEN, str(e))
        if self._signals.end_is_wanted():
            why = f"signal {self._signals.asked_to_end} came before the command was started"
            self._release(work, why)
            return self._report(work, 128 + self._signals.asked_to_end, states.OPEN, why)
        self._tell(briefing)
        environment = briefing.environment(self._order.environment)
        if place is not None:
            environment["DULY_OUTPUT"] = place.temporary
        mail = Mail(work.claim.attempt_id)
        environment["DULY_OUTBOX"] = mail.path
        report = None
        child = None
        try:
            child, lost, said = self._run(work, argv, environment)
            work = replace(work, said=said) if said else work
            report = self._judge(work, child, lost=lost, place=place, mail=mail)
        except CannotExecute as e:
            self._release(work, f"cannot execute: {e}")
            return self._report(work, e.code, states.OPEN, str(e))
        finally:
            mail.close()
            # What a command has finished is kept while nobody could write down that it did.
            unsettled = report is not None and report.state == states.UNKNOWN and child == Ended(0, 0, "")
            if place is not None and not unsettled:
                place.discard()
        return report

    def _run(
        self, work: Work, argv: list[str], environment: dict[str, str]
    ) -> tuple[Ended, bool, Sequence[tuple[str, str]]]:
        """Run the child to its end with the lease kept. Answers how it ended, whether the run was taken over, and what is kept
        of its output.
        """
        heart = _Heart(self._store, work)
        if not self._order.chronic:
            return self._watched(work, argv, environment, heart, None)
        from duly.work.chronic import quietly

        with quietly() as quiet:
            sinks = (quiet.descriptor, quiet.descriptor)
            ended, lost, said = self._watched(work, argv, environment, heart, sinks)
            if ended.code or ended.signal or ended.why:
                quiet.show()
        return ended, lost, said

    def _watched(
        self,
        work: Work,
        argv: list[str],
        environment: dict[str, str],
        heart: _Heart,
        outputs: tuple[int, int] | None,
    ) -> tuple[Ended, bool, Sequence[tuple[str, str]]]:
        """Run the child with its output where ours goes, or to `outputs`."""
        inherit = work.pulse.descriptors
        if not self._order.keep_output:
            child = Child(argv, environment, self._signals, inherit=inherit, outputs=outputs)
            return child.wait(self._store, lambda: heart.beat(child)), heart.lost, ()
        from duly.redaction import Redaction
        from duly.work.kept import keeping

        redaction = (self._order.redaction or Redaction()).beside(argv)
        with keeping(self._order.keep_output, redaction, outputs or (1, 2)) as kept:
            child = Child(argv, environment, self._signals, inherit=inherit, outputs=kept.descriptors)
            kept.begin()
            ended = child.wait(self._store, lambda: heart.beat(child))
            return ended, heart.lost, kept.said()

    # -- what its end means --------------------------------------------------------------------------------------------

    def _judge(self, work: Work, ended: Ended, *, lost: bool, place: Place | None, mail: Mail) -> Report:
        """Write down what the child's end means. A command may have completed its run itself, whatever it did then."""
        try:
            return self._judged(work, ended, lost=lost, place=place, mail=mail)
        except ClaimLost:
            completed = self._store.read(has_completed(work.claim))
            self._discard(work, mail, "completed without them" if completed else "another attempt took the run over")
            self._keep_said(work)
            if not completed:
                raise
        code = 128 + ended.signal if ended.signal else ended.code
        if ended.why and ended.why != contracts.CANCELLED:
            code = TIMED_OUT
        then = f", which then ended with {code}" if code else ""
        return self._completed_itself(work, mail, code, f"completed by the command{then}")

    def _completed_itself(self, work: Work, mail: Mail, code: int, cause: str) -> Report:
        """The command has committed the completion: what it left in its outbox cannot be committed with that any more."""
        if (many := mail.count()) and not code:
            code, cause = (
                CONFIGURATION,
                f"{cause}, and {many} messages with it were not sent: it completed without them",
            )
        return self._report(work, code, states.COMPLETED, cause)

    def _judged(self, work: Work, ended: Ended, *, lost: bool, place: Place | None, mail: Mail) -> Report:
        if lost:
            raise ClaimLost
        terms = terms_of(work.job, work.claim)
        elapsed = elapsed_since_first(self._store, work.claim)
        code = 128 + ended.signal if ended.signal else ended.code
        if ended.why == contracts.CANCELLED:
            how = f"signal {ended.signal}" if ended.signal else f"exit {code}"
            ending = contracts.after_cancel(terms, elapsed=elapsed, code=code)
            return self._end(work, ending, code or STOPPED, error=how, mail=mail)
        if ended.why:
            ending = contracts.after_vanishing(terms, elapsed=elapsed, cause=ended.why)
            return self._end(work, ending, TIMED_OUT, mail=mail)
        if code == 0:
            return self._succeed(work, terms, place, mail)
        ending = contracts.after_exit(terms, code, elapsed=elapsed, failures=work.claim.failures)
        return self._end(work, ending, code, mail=mail)

    def _succeed(self, work: Work, terms: contracts.Terms, place: Place | None, mail: Mail) -> Report:
        """The child ended with 0. A transactional one must have completed its run itself."""
        if terms.contract == contracts.TRANSACTIONAL:
            if self._store.read(has_completed(work.claim)):
                self._discard(work, mail, "completed without them")
                self._keep_said(work)
                return self._completed_itself(work, mail, 0, "completed by the command")
            return self._end(work, contracts.after_exit_0(terms), CONFIGURATION, mail=mail)
        letters: Sequence[tuple[Letter, str]] = ()
        if mail.has_come():
            from duly.work.mail import MailRefused, letters_in  # of most commands there is none

            try:
                letters = letters_in(mail, self._store.namespace, work.key, work.job.first_name)
            except MailRefused as e:
                return self._end(work, Ending(states.FAILED, f"its outbox: {e}"), CONFIGURATION, mail=mail)
        if place is None:
            return self._complete(work, cause="exit 0", output=None, letters=letters)
        try:
            if not letters:  # else a file that stands would be no sign that they were sent
                self._settle(lambda: place.record(self._store, work.claim))
            return self._complete(work, cause="exit 0", output=place.final, letters=letters, place=place)
        except OutputRefused as e:
            return self._end(work, Ending(states.FAILED, str(e)), CANNOT_CREATE, mail=mail)
        except (Conflict, LedgerUnavailable) as e:
            why = f"it ended well, but its output could not be put on record ({e}); it is kept as {place.temporary}"
            return self._report(work, UNKNOWN, states.UNKNOWN, why)

    def _complete(
        self,
        work: Work,
        *,
        cause: str,
        output: str | None,
        letters: Sequence[tuple[Letter, str]] = (),
        place: Place | None = None,
    ) -> Report:
        left = Left(output, letters=letters, said=work.said)
        try:
            self._settle(lambda: self._completed(work, left, place))
        except (Conflict, LedgerUnavailable) as e:
            unsent = f", and {messages_in_words(len(letters))} of it not sent" if letters else ""
            return self._report(
                work, UNKNOWN, states.UNKNOWN, f"it ended well, but that could not be written down{unsent}: {e}"
            )
        return replace(self._report(work, 0, states.COMPLETED, cause), sent=len(letters))

    def _completed(self, work: Work, left: Left, place: Place | None) -> None:
        if place is None:
            self._store.write(complete_or_raise(work.claim, left))
        else:
            from duly.work.output import complete_with_file

            complete_with_file(self._store, work.claim, place, left)

    def _discard(self, work: Work, mail: Mail, why: str) -> None:
        """Leave evidence of messages that are not sent."""
        if many := mail.count():
            from duly.work.attempt import tell_discarded

            what = f"{messages_in_words(many)} of attempt {work.claim.number}: {why}"
            self._settle(lambda: self._store.write(tell_discarded(work.claim, what)))

    def _keep_said(self, work: Work) -> None:
        """Keep what the command said of an attempt whose end is on record without it."""
        if work.said:
            self._settle(lambda: self._store.write(keep_said(work.claim, work.said)))

    def _end(self, work: Work, ending: Ending, code: int, *, error: str = "", mail: Mail) -> Report:
        """Write down an end other than completion. An unknown outcome has a code of its own."""
        error = error or ending.cause
        code = UNKNOWN if ending.state == states.UNKNOWN else code
        retry_in = None
        many = mail.count()
        discarded = f"{messages_in_words(many)} of attempt {work.claim.number}: {ending.cause}" if many else ""
        try:
            retry_in = self._settle(
                lambda: record_ending(
                    self._store, work.job, work.claim, ending, error=error, discarded=discarded, said=work.said
                )
            )
        except ClaimLost:
            if not self._has_ended(work, ending.outcome, error):
                raise
            retry_in = self._retry_on_record(work)
        except (Conflict, LedgerUnavailable) as e:
            return self._report(work, code, ending.state, f"{ending.cause}; that could not be written down: {e}")
        return self._report(work, code, ending.state, ending.cause, retry_in)

    def _settle(self, write: Callable[[], T]) -> T:
        """Write how a child ended, for as long as it takes: the ledger may be busy, or away for a moment."""
        give_up = monotonic() + self._order.settle_seconds
        while True:
            try:
                return write()
            except (Conflict, LedgerUnavailable):
                if monotonic() >= give_up or self._signals.asked_to_end:
                    raise
            self._signals.wait(0.2)

    def _has_ended(self, work: Work, outcome: str, error: str) -> bool:
        """Whether a lost claim is only this attempt's own end, which was written before the reply to it was lost."""
        return self._settle(lambda: self._store.read(has_ended(work.claim, outcome, error)))

    def _retry_on_record(self, work: Work) -> int | None:
        """In how many microseconds the run may be taken again, as it stands in the ledger."""
        row = self._store.read(look(work.claim.run))
        if row is None or row.retry_at is None:
            return None
        return max(row.retry_at - self._store.now(), 0)

    def _release(self, work: Work, cause: str) -> None:
        try:
            self._settle(lambda: self._store.write(release_or_raise(work.claim, cause)))
        except ClaimLost:
            if not self._has_ended(work, "released", cause):
                raise

    def _report(self, work: Work, code: int, state: str, cause: str, retry_in: int | None = None) -> Report:
        took = self._store.now() - work.claim.started_at
        return Report(work.key, work.claim, code, state, cause, took, retry_in)


def _deadline(job: Job, claim: Claim, next_due: int | None) -> int | None:
    """Until when an attempt, or its retries in place, may go on: its time-out, without one the next due time.

    What had come due when it began, of a line that is behind, is no deadline.
    """
    if job.timeout is not None:
        return claim.started_at + job.timeout
    return next_due if next_due is not None and next_due > claim.started_at else None


class _Heart:
    """What is due while a child runs: the lease's renewals, with what they hear, and its time-out."""

    def __init__(self, store: Store, work: Work) -> None:
        self._store = store
        self._claim = work.claim
        self._renew_at: int | None = work.claim.started_at + work.claim.lease // 3
        self._timeout = work.job.timeout
        self._stop_at = None if self._timeout is None else work.claim.started_at + self._timeout
        self.lost = False

    def beat(self, child: Child) -> int | None:
        """Do what is due; answer when something is due again."""
        now = self._store.now()
        if not self.lost and self._renew_at is not None and now >= self._renew_at:
            self._renew(child, now)
        if self._stop_at is not None and now >= self._stop_at:
            self._stop_at = None
            child.stop(f"timed out after {duration_text(self._timeout or 0)}", now)
        waits = (None if self.lost else self._renew_at, self._stop_at)
        return min((at for at in waits if at is not None), default=None)

    def _renew(self, child: Child, now: int) -> None:
        try:
            heard = self._store.write(beat(self._claim), busy_seconds=RENEW_SECONDS)
            self.lost = heard == LOST
            if self.lost and self._store.read(has_completed(self._claim)):
                self.lost, self._renew_at = False, None  # by its command, which goes on: nothing is left to renew
                return
        except DulyError:  # not decided, and nobody can take over while the ledger is busy: soon again
            self._renew_at = now + self._claim.lease // 10
            return
        self._renew_at = now + self._claim.lease // 3
        if self.lost:  # told to stop only now that another attempt has it
            child.stop("another attempt took the run over", now)
        elif heard == ASKED_TO_STOP:
            child.stop(contracts.CANCELLED, now)
