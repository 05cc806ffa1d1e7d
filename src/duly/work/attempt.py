"""An attempt from its claim to its end: the file lock that is its pulse, its lease, and what its end means."""

from __future__ import annotations

import os
from time import monotonic

from duly.errors import Misuse
from duly.ledger import contracts, states
from duly.ledger.complete import doubt_or_raise, fail_or_raise, keep_said
from duly.ledger.contracts import Ending, Terms
from duly.ledger.records import Claim, Claimer, Job
from duly.times import SECOND
from duly.work.identity import new_attempt_id, owner

LONGEST_TRIGGER = 200
AT_MOST_IN_VAIN = 3  # looks for what a line owes before its backfill, where others have taken it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from duly.ledger.progress import Progress
    from duly.store.protocol import AsyncStore, Store

    T = TypeVar("T")


class Pulse:
    """A claimer with its file lock, held from before the claim is visible until the attempt ends."""

    def __init__(self, store: Store | AsyncStore, *, trigger: str, payload: str | None = None) -> None:
        check_trigger(trigger)
        self.claimer = Claimer(new_attempt_id(), owner(), trigger, payload)
        self.descriptor = store.begin_pulse(self.claimer.attempt_id)

    @property
    def descriptors(self) -> list[int]:
        """What a child has to inherit to keep the pulse; nothing where there is none."""
        return [self.descriptor] if self.descriptor >= 0 else []

    def stop(self) -> None:
        """Let the lock go; again is a no-op."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def onlooker(trigger: str, payload: str | None = None) -> Claimer:
    """Who only looks whether a run may be claimed, and holds nothing. Raises `Misuse` as for a claimer."""
    check_trigger(trigger)
    return Claimer(b"", "", trigger, payload)


def check_trigger(words: str) -> None:
    """Raise `Misuse` for what cannot stand on record as that which called: it is shown to whoever looks at an attempt."""
    if not 1 <= len(words) <= LONGEST_TRIGGER or not words.isprintable():
        raise Misuse(f"trigger: {words[:40]!r} is not up to {LONGEST_TRIGGER} printable characters in one line")


def terms_of(job: Job, claim: Claim) -> Terms:
    """The terms that an attempt's end is judged by: the contract sealed with it, the numbers as they are now."""
    clean = frozenset(int(code) for code in job.clean_exits.split(",") if code)
    return Terms(claim.contract, claim.remembers, clean, job.retries or 0, retries_declared=job.retries is not None)


def messages_in_words(many: int) -> str:
    """So many messages."""
    return "1 message" if many == 1 else f"{many} messages"


def record_ending(
    store: Store,
    job: Job,
    claim: Claim,
    ending: Ending,
    *,
    error: str,
    progress: Progress | None = None,
    discarded: str = "",
    said: Sequence[tuple[str, str]] = (),
) -> int | None:
    """Write down how an attempt ended, other than by completing. Answers in how many microseconds a retry may be taken.

    `discarded` says which messages of it are not sent, `said` what its command said last. Raises `ClaimLost` if another
    attempt took the run over.
    """
    retry_in = retry_delay(job, claim, counted=ending.counted) if ending.retry else None
    return store.write(
        ended(claim, ending, retry_in=retry_in, error=error, progress=progress, discarded=discarded, said=said)
    )


async def ended(
    claim: Claim,
    ending: Ending,
    *,
    retry_in: int | None,
    error: str,
    progress: Progress | None,
    discarded: str = "",
    said: Sequence[tuple[str, str]] = (),
) -> int | None:
    """The operation that writes down how an attempt ended, with how far it came."""
    if discarded:
        await tell_discarded(claim, discarded)
    if progress is not None:
        from duly.ledger.progress import report  # commands tell of none

        await report(claim, progress)
    if ending.state == states.UNKNOWN:
        await doubt_or_raise(claim, ending.cause)
        retry_in = None
    else:
        retry_in = await fail_or_raise(claim, ending, retry_in=retry_in, error=error)
    await keep_said(claim, said)
    return retry_in


async def tell_discarded(claim: Claim, what: str) -> None:
    """The operation that leaves evidence of messages that are not sent, for their attempt did not complete its run."""
    from duly.ledger.events import tell

    await tell("messages_discarded", run=claim.run, attempt_id=claim.attempt_id, by=claim.owner, detail=what)


def ending_of(job: Job, claim: Claim, cause: str, *, elapsed: int, cancelled: bool) -> Ending:
    """What a run becomes when the code that worked it gave up. `cancelled`: it had heard that it was asked to stop."""
    terms = terms_of(job, claim)
    if cancelled:
        return contracts.after_cancel(terms, elapsed=elapsed)
    return contracts.after_failure(terms, cause, elapsed=elapsed, failures=claim.failures)


def retry_delay(job: Job, claim: Claim, *, counted: bool) -> int:
    """Microseconds until a failed run may be taken again: doubling with each failure, jittered."""
    tries = claim.failures + 1 if counted else claim.number
    jitter = int.from_bytes(os.urandom(4), "big") / (1 << 32)
    return contracts.backoff(tries, delay=job.retry_delay, ceiling=job.retry_ceiling, jitter=jitter)


def elapsed_since_first(store: Store, claim: Claim) -> int:
    """Microseconds since the first attempt of the claim's revision."""
    return store.now() - claim.first_started_at


def passing(store: Store | AsyncStore) -> Callable[[], int]:
    """Tells how many microseconds have passed since, without asking the ledger; none by a clock that is set by hand."""
    if store.clock_by_hand:
        return lambda: 0
    began = monotonic()
    return lambda: int((monotonic() - began) * SECOND)
