"""Prune: what `ledger.forget` and `ledger.receive` allow, carried out in short transactions with a pause after each.

Whoever claims meanwhile waits for one batch at most. So a batch is made smaller when it took longer than it may, and larger
again when it took less; and as long as one took, nothing is asked of the ledger after it. May be killed at any time, and be
started by anybody again: what lies below a horizon is forgotten, whether its rows are still there or not.
"""

from __future__ import annotations

from functools import partial
from time import monotonic, sleep

from duly.errors import LedgerBusy, Misuse, NotAllowed, UnknownJob
from duly.evidence.verdict import lines
from duly.ledger.address import current_name
from duly.ledger.ask import now
from duly.ledger.forget import Below, forget_batch, prospects, raise_horizon, undercut
from duly.ledger.receive import forget_received_batch, raise_source_horizon
from duly.records import record
from duly.times import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from duly.ledger.ask import Operation
    from duly.ledger.forget import Prospect
    from duly.ledger.records import Job
    from duly.store.protocol import Store

    T = TypeVar("T")

FIRST, BATCH = 500, 5_000  # runs or keys in one transaction: at first, and at most
HOLD_SECONDS = 0.05  # how long a batch may hold what it locks: half of it is aimed at, for the next one may meet more
SHORTEST_PAUSE = 0.002


class Pace:
    """How many rows the next batch takes, and the pause before it."""

    def __init__(self, most: int) -> None:
        self._most, self.many = most, min(most, FIRST)

    def after(self, seconds: float) -> float:
        """After a batch that took so long: take as many next as fit, after a pause of so many seconds."""
        if seconds > HOLD_SECONDS / 2:
            self.many = max(self.many // 2, 1)
        elif seconds < HOLD_SECONDS / 8:
            self.many = min(self.many * 2, self._most)
        return max(seconds, SHORTEST_PAUSE)

    def less(self) -> bool:
        """After a batch that the ledger gave up: whether a smaller one can be tried."""
        if self.many == 1:
            return False
        self.many = max(self.many // 8, 1)
        return True


@record
class Wanted:
    """What is to be forgotten, for how long each job keeps its runs, and why some jobs cannot be pruned so far."""

    prospects: list[Prospect]
    retains: dict[str, int]
    refused: dict[str, str]

    def reason_of(self, job: str) -> str:
        """Why runs of a job are forgotten, as it goes on record."""
        return f"settled for longer than {duration_text(self.retains[job])}"


async def wanted(name: str | None, scope: str | None, older_than: int | None) -> Wanted:
    """What of a job, or of every one, was settled for longer than `older_than`, or than it says itself. Looks only.

    Raises `UnknownJob`, and `Misuse` for a job that is named and kept for ever.
    """
    if older_than is not None and older_than < 0:
        raise Misuse("older_than: it cannot be negative")
    instant = await now()
    found = await lines(None if name is None else await current_name(name), scope)
    if name is not None and not found:
        raise UnknownJob(f"the ledger knows no job {name!r}, or not that scope of it")
    looked = Wanted([], {}, {})
    for known in found:
        retain = known.job.retain if older_than is None else older_than
        if retain is None:
            if name is not None:
                raise _kept_for_ever(known.job)
            continue
        why = _undercut(known.job, retain)
        if why is not None:
            looked.refused[known.job.name] = why
        elif known.line is not None:
            looked.retains[known.job.name] = retain
            looked.prospects.extend(await prospects(known, settled_by=instant - retain))
    return looked


def refusal(refused: dict[str, str]) -> NotAllowed:
    """The error for jobs that cannot be pruned so far."""
    said = "; ".join(f"{name} cannot be pruned so far: {why}" for name, why in refused.items())
    return NotAllowed(said, next_step=f"duly jobs show {next(iter(refused))}")


def _kept_for_ever(job: Job) -> Misuse:
    return Misuse(
        f"{job.name} is kept for ever: it has no `retain`; say for how long",
        next_step=f"duly db prune {job.name} --older-than 400d --dry-run",
    )


def _undercut(job: Job, retain: int) -> str | None:
    if job.retain is not None and retain < job.retain:
        return f"it is to be kept for {duration_text(job.retain)} (retain), and {duration_text(retain)} is less"
    why = undercut(job, retain)
    return None if why is None else f"{why}, and {duration_text(retain)} is less"


def prune(store: Store, name: str | None, older_than: int | None, *, by: str) -> int:
    """Forget what was settled for longer than `older_than`, or than jobs say; how many runs. Raises as `Ledger.prune`."""
    looked = store.read(wanted(name, None, older_than))
    runs = 0
    for prospect in looked.prospects:
        reason = looked.reason_of(prospect.known.job.name)
        runs += prune_series(store, prospect, by=by, reason=reason, tell=lambda gone: None).runs
    if looked.refused:
        raise refusal(looked.refused)
    return runs


def prune_series(
    store: Store, prospect: Prospect, *, by: str, reason: str, batch: int = BATCH, tell: Callable[[Below], None]
) -> Below:
    """Forget of a series what was found, and what is left below its horizon from before; what was deleted.

    `tell` is told after each batch what that was so far. Raises as a write does; then what was deleted is deleted.
    """
    if prospect.found is not None:
        store.write(raise_horizon(prospect.found, by=by, reason=reason))
    gone, after = Below(), None
    pace = Pace(batch)
    while True:
        forget = partial(forget_batch, prospect.series, settled_by=prospect.settled_by, after=after)
        done = _batch(store, pace, forget)
        gone, after = gone + done.gone, done.last
        tell(gone)
        if done.is_last:
            return gone


def prune_received(store: Store, source: str, *, by: str, reason: str, batch: int = BATCH) -> int:
    """Forget the keys of a source that it need not remember any longer; how many there were."""
    store.write(raise_source_horizon(source, by=by, reason=reason))
    forgotten, pace = 0, Pace(batch)
    while gone := _batch(store, pace, lambda many: forget_received_batch(source, many)):
        forgotten += gone
    return forgotten


def _batch(store: Store, pace: Pace, operation: Callable[[int], Operation[T]]) -> T:
    """One batch at this pace: smaller, where the ledger gives it up for having taken too long."""
    while True:
        try:
            done, seconds = store.write(timed(operation(pace.many)))
        except LedgerBusy:
            if not pace.less():
                raise
        else:
            sleep(pace.after(seconds))
            return done


async def timed(operation: Operation[T]) -> tuple[T, float]:
    """What an operation answers, and how long it held its locks, in seconds: not how long it waited for its turn."""
    began = monotonic()
    return await operation, monotonic() - began
