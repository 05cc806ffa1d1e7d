"""Wrapping: one run that was claimed is given to a command, and what its end means is written down.

What that is, is the contract's word (`ledger.contracts`). Nothing of this is imported by a poke that finds nothing to do.
"""

from __future__ import annotations

from sys import modules
from time import monotonic

from duly.codes import CANNOT_CREATE, CONFIGURATION, TAKEN_OVER, TIMED_OUT, UNKNOWN
from duly.errors import ClaimLost, Conflict, DulyError, LedgerUnavailable, Misuse, OutputRefused
from duly.ledger import contracts, states
from duly.ledger.complete import Left, complete_or_raise, has_completed, has_ended, keep_said, release_or_raise
from duly.ledger.contracts import Ending
from duly.ledger.take import ASKED_TO_STOP, LOST, beat, look
from duly.records import replace
from duly.times import duration_text
from duly.work.attempt import elapsed_since_first, messages_in_words, record_ending, terms_of
from duly.work.child import CannotExecute, Child, Ended
from duly.work.command import Briefing
from duly.work.letterbox import Mail
from duly.work.poke import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from duly.ledger.records import Claim, Job
    from duly.ledger.send import Letter
    from duly.store.protocol import Store
    from duly.work.child import Ears
    from duly.work.output import Place
    from duly.work.poke import Order, Work

    T = TypeVar("T")

STOPPED = 128 + 15  # as a shell says of SIGTERM: a command that was told to stop, and ended with 0
RENEW_SECONDS = 1.0  # how long a renewal waits for its turn before the child is looked at again


class Wrapping:
    """Attempts of one poke. `tell` is called before a child starts."""

    def __init__(self, store: Store, order: Order, signals: Ears, tell: Callable[[Briefing], None]) -> None:
        self._store = store
        self._order = order
        self._signals = signals
        self._tell = tell

    def attempt(self, work: Work) -> Report:
        """Give one run to the command, and write down how that ended."""
        deadline = deadline_of(work.job, work.claim, work.next_due)
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


def deadline_of(job: Job, claim: Claim, next_due: int | None) -> int | None:
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
