"""Effect contracts: what it means that an attempt vanished, or ended without completing. Pure.

DESIGN: `transactional` effects commit with their completion, so anything else means that nothing happened. `idempotent`
destinations remember a key for a stated time. `external` effects nobody can know about.
"""

from __future__ import annotations

from duly.ledger import states
from duly.records import record

TRANSACTIONAL = "transactional"
IDEMPOTENT = "idempotent"
EXTERNAL = "external"
CONTRACTS = (TRANSACTIONAL, IDEMPOTENT, EXTERNAL)

EXIT_UNKNOWN = 80  # a child's own word for "outcome unknown"
CANCELLED = "cancelled"  # the cause of an end that a person asked for


@record
class Terms:
    """A contract with its numbers. `remembers`: microseconds from the first attempt of the revision; None: for ever."""

    contract: str
    remembers: int | None = None
    clean_exits: frozenset[int] = frozenset()
    retries: int = 0
    retries_declared: bool = False


@record
class Ending:
    """What a run becomes. `retry`: taken again by policy (None: it waits for a person); `counted` against `retries`.

    `outcome` is the attempt's, where it ends with that.
    """

    state: str
    cause: str
    retry: bool = False
    counted: bool = True
    outcome: str = "failed"


def after_vanishing(terms: Terms, *, elapsed: int, cause: str) -> Ending:
    """What a run becomes when its attempt vanished: nobody saw it end. `elapsed`: since the revision's first attempt."""
    if terms.contract == TRANSACTIONAL or (terms.contract == IDEMPOTENT and _remembered(terms, elapsed)):
        return Ending(states.FAILED, cause, retry=True, counted=False)
    return Ending(states.UNKNOWN, cause)


def after_cancel(terms: Terms, *, elapsed: int, code: int | None = None) -> Ending:
    """What a run becomes when its attempt ended because a person asked it to stop: what it would be had the attempt vanished,
    but never retried by policy.

    `code` is a command's exit code. One that is declared clean proves that nothing happened; one of 0 proves nothing, for
    many programs end so when they are told to.
    """
    ending = after_vanishing(terms, elapsed=elapsed, cause=CANCELLED)
    if code == EXIT_UNKNOWN or (ending.state == states.UNKNOWN and code not in terms.clean_exits):
        return Ending(states.UNKNOWN, CANCELLED)
    return Ending(states.FAILED, CANCELLED, counted=False, outcome="cancelled")


def after_exit(terms: Terms, code: int, *, elapsed: int, failures: int) -> Ending:
    """What a run becomes when its command ended by itself with a code that is not 0.

    129 to 192 is how a shell reports that a signal killed the command: it counts as vanished, unless it is declared clean.
    """
    cause = f"exit {code}"
    if code == EXIT_UNKNOWN:
        return Ending(states.UNKNOWN, cause)
    if 129 <= code <= 192 and code not in terms.clean_exits:
        return after_vanishing(terms, elapsed=elapsed, cause=f"signal {code - 128}")
    return after_failure(terms, cause, elapsed=elapsed, failures=failures, clean=code in terms.clean_exits)


def after_failure(terms: Terms, cause: str, *, elapsed: int, failures: int, clean: bool = False) -> Ending:
    """What a run becomes when its attempt reported failure itself. `failures`: those counted before this one."""
    if terms.contract == IDEMPOTENT and not _remembered(terms, elapsed):
        return Ending(states.UNKNOWN, cause)
    if terms.contract == EXTERNAL and not clean and not terms.retries_declared:
        return Ending(states.FAILED, cause)
    return Ending(states.FAILED, cause, retry=failures < terms.retries)


def after_exit_0(terms: Terms) -> Ending:
    """What a run becomes when its command ended with 0 and did not complete the run itself."""
    if terms.contract == TRANSACTIONAL:
        return Ending(states.FAILED, "exit 0 without completing the run")
    return Ending(states.COMPLETED, "exit 0")


def _remembered(terms: Terms, elapsed: int) -> bool:
    return terms.remembers is None or elapsed < terms.remembers


def backoff(attempt: int, *, delay: int, ceiling: int, jitter: float) -> int:
    """Microseconds until the next try after `attempt` failures (from 1): doubling, capped, jittered.

    `jitter` in [0, 1) is drawn by the caller; the wait lies between half and the whole of the doubled delay, so that
    jobs that failed together do not come back together.
    """
    whole = min(delay << min(attempt - 1, 30), ceiling)
    return whole - int(whole * jitter / 2)
