"""Probes of runs: who is asked what became of a run whose outcome is unknown, and what is done with the answer.

A job declares one function or one command. It is asked by whoever comes for the job: `catch_up` and `run`, a poke of `duly
exec`, the daemon, or a person by `duly resolve --probe`. When it may be asked, and when it is believed, `ledger.probe` says.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from time import monotonic
from typing import TYPE_CHECKING

from duly.errors import Misuse
from duly.ledger.found import FoundDone, FoundNot, FoundNothing
from duly.ledger.probe import hold_question, in_doubt, record_finding, rest
from duly.ledger.take import claim_of
from duly.outbox.destinations import CannotTell, DidNot, Happened
from duly.outbox.destinations.probes import as_finding, raised, said_by, told_by
from duly.records import record
from duly.times import DAY, HOUR, MINUTE, SECOND, as_datetime, duration_text, parse_duration
from duly.work.command import Briefing
from duly.work.identity import new_attempt_id, owner
from duly.work.run import Facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duly.ledger.probe import Question
    from duly.ledger.records import RunId
    from duly.outbox.destinations import Finding
    from duly.store.protocol import Store

AFTER = MINUTE  # how long after the doubt a probe is asked, and between two questions
TIMEOUT = 30 * SECOND
RESERVE = MINUTE  # of the lease of a question, beyond the time that the answer may take
FUNCTION_LEASE = HOUR  # nobody ends a function from outside
ASKING_SECONDS = 60.0  # how long whoever comes to work asks before: the rest is asked about the next time


class Doubt(Facts):
    """A run whose outcome is unknown, as a probe is given it: which it is, and by what its effect is known."""

    @property
    def began(self) -> datetime.datetime:
        """When its newest attempt began, in UTC."""
        return as_datetime(self._claim.started_at)

    @property
    def cause(self) -> str:
        """Why nobody knows, in a few words of duly's own."""
        return self._row.cause or ""

    def __repr__(self) -> str:
        return f"<duly.Doubt {self.key} attempt {self.attempt}>"


class Probe:
    """A function that knows whether the runs of a job happened. It is given a `Doubt`, and answers `Happened`, `DidNot` or
    `CannotTell`, each with its evidence in a few words that hold no secret. Whatever else it answers or raises tells nothing.

    `after`: how long after the doubt it is asked, and between two questions, as `5m` or in microseconds. `DidNot` is believed
    when it was said twice, or at once with `reads_own_writes`: where the function looks at what the effect was written to, and
    not at a copy that may lag behind. Raises `Misuse`, naming the argument.
    """

    def __init__(
        self, function: Callable[[Doubt], object], *, after: str | int = AFTER, reads_own_writes: bool = False
    ) -> None:
        if not callable(function):
            raise Misuse(f"probe: {function!r} cannot be called; give a function that takes a duly.Doubt")
        self._function = function
        self.after = parse_duration(after) if isinstance(after, str) else after
        self.reads_own_writes = reads_own_writes
        self.lease = FUNCTION_LEASE
        if not 0 < self.after <= 366 * DAY:
            raise Misuse(f"after: {duration_text(self.after)} does not lie between 1us and 366d")

    @property
    def is_async(self) -> bool:
        """Whether the function has to be awaited."""
        return iscoroutinefunction(self._function)

    def finding(self, question: Question, namespace: str) -> Finding:
        """What the function says of a run."""
        return told_by(lambda: self._function(_doubt(question, namespace)))

    async def finding_async(self, question: Question, namespace: str) -> Finding:
        """What the function says of a run: awaited where it is async, else in a thread, so that the loop goes on."""
        if not self.is_async:
            import asyncio  # a command's probe has no need of it

            return await asyncio.to_thread(self.finding, question, namespace)
        try:
            answer = self._function(_doubt(question, namespace))
            assert isinstance(answer, Awaitable)
            return as_finding(await answer)
        except Exception as e:
            return raised(e)


@record
class CommandProbe:
    """A command that knows it: it is told of the run as the job's own command is, and prints `happened` or `did not`."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    after: int = AFTER
    timeout: int = TIMEOUT
    reads_own_writes: bool = False

    @property
    def lease(self) -> int:
        """How long a question is held, in microseconds."""
        return self.timeout + RESERVE

    def finding(self, question: Question, namespace: str) -> Finding:
        """What the command says of a run."""
        claim = claim_of(question.row, 0)
        briefing = Briefing(question.key, claim, question.row, namespace, None, question.job.first_name)
        try:
            argv = briefing.command(self.argv)
        except Misuse as e:
            return CannotTell(str(e))
        environment = briefing.environment(self.environment)
        return said_by(argv, environment, seconds=self.timeout / SECOND)


@record
class Probed:
    """What came of asking about a run: its key, its state since, and what was said, in a few words. `state` is `too late` where
    the run was in that doubt no more.
    """

    run: str
    state: str
    said: str


def ask_about_all(
    store: Store,
    job: str,
    scope: str | None,
    probe: Probe | CommandProbe,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> list[Probed]:
    """Ask about runs of a job, of one scope or of all, that are in doubt and may be asked about now, the oldest first.

    `is_over`: whether nothing more is to be begun; looked at before each.
    """
    until = monotonic() + ASKING_SECONDS
    probed = []
    for row in store.read(in_doubt(job, scope, probe_after=probe.after)):
        if is_over():
            break
        if (each := ask_about(store, row.id, probe)) is not None:
            probed.append(each)
        if monotonic() >= until:
            break
    return probed


def ask_about(store: Store, run: RunId, probe: Probe | CommandProbe) -> Probed | None:
    """Ask about one run; None where it is not to be asked about now."""
    question = store.write(hold_question(run, new_attempt_id(), lease=probe.lease, probe_after=probe.after))
    if question is None:
        return None
    found = probe.finding(question, store.namespace)
    state = store.write(record_finding(question, word_of(found, question, probe), by=owner()))
    return Probed(str(question.key), state, words_of(found))


def word_of(found: Finding, question: Question, probe: Probe | CommandProbe) -> FoundDone | FoundNot | FoundNothing:
    """What is written down of an answer."""
    match found:
        case Happened(evidence):
            return FoundDone(evidence)
        case DidNot(evidence):
            return FoundNot(evidence, probe.reads_own_writes, probe.after)
        case CannotTell(cause):
            return FoundNothing(cause, rest(question.asked, probe_after=probe.after))


def words_of(found: Finding) -> str:
    """An answer in a few words."""
    match found:
        case Happened(evidence):
            return f"it happened: {evidence}"
        case DidNot(evidence):
            return f"it did not happen: {evidence}"
        case CannotTell(cause):
            return f"it cannot be told: {cause}"


def _doubt(question: Question, namespace: str) -> Doubt:
    return Doubt(namespace, question.key, claim_of(question.row, 0), question.row, question.job.first_name)
