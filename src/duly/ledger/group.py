"""Group: several runs of a line in one transaction, for jobs that ask for it: one flushed commit for all of them.

The first is taken as any run that is owed (`claim_next`), under the line's lock, which the transaction keeps. What is left
of the line's backlog then needs no other judgement: nobody else can claim there. So the runs after the first are claimed and
completed in one statement when their functions have returned. One that was touched meanwhile is a failure of the database
that ends the transaction, with all that was done in it (I2).
"""

from __future__ import annotations

from duly.errors import Misuse, Refused
from duly.ledger import states
from duly.ledger.address import key_in
from duly.ledger.ask import Statement, do, now
from duly.ledger.complete import Left, complete_or_raise, keep_left, record_end_or_raise
from duly.ledger.open import Idle, Taken, claim_next
from duly.ledger.owed import workable
from duly.ledger.records import Claim, Claimer, Run, RunId, Series
from duly.ledger.register import Declaration
from duly.ledger.spells import known_of
from duly.ledger.take import claim_parameters
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from duly.schedule.keys import RunKey


COMPLETE_IF_FREE = Statement(
    "complete_if_free",
    # I3: guarded by the number that was seen. What was not free any more has no row to read back afterwards.
    """
update duly_run
   set state = {to}, fence = :number, payload = coalesce(payload, 'none'), settled_at = {now},
       first_started_at = coalesce(first_started_at, :began_at), attempt_id = :attempt_id, started_at = :began_at,
       lease_until = {now}, contract = :contract, remembers = :remembers, owner = :owner, trigger = :trigger,
       retry_at = null, cause = null
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and state <> 'running' and fence = :seen_fence
""",
    event="once",
)


@record
class Group:
    """The run that was taken, and those of its line that may follow it in the same transaction, the oldest first."""

    first: Taken
    series: Series  # of all of them
    rest: list[Run]
    is_cut: bool  # there may be more than these

    def has_more_than(self, worked: int) -> bool:
        """Whether the line may have more that can be worked, when so many were."""
        return self.is_cut or worked <= len(self.rest)


async def claim_group(
    declared: Declaration, claimer: Claimer, *, as_of: int | None, tried: Container[RunId], most: int
) -> Group | Idle | Refused | Misuse:
    """Take the oldest run that can be worked, and name those after it, so many at most altogether."""
    taken = await claim_next(declared, claimer, as_of=as_of, tried=tried)
    if not isinstance(taken, Taken):
        return taken
    rest = await _rest(taken, await now() if as_of is None else as_of, tried, most - 1) if taken.more else []
    known = await known_of(taken.known, taken.run)
    assert known.series is not None
    # Where none may follow, as of another policy than `each`, or as many as may, there may be more all the same.
    return Group(taken, known.series, rest, is_cut=taken.more and len(rest) in (0, most - 1))


async def _rest(taken: Taken, as_of: int, tried: Container[RunId], most: int) -> list[Run]:
    """The runs of the line that are due and free, where nothing but their order decides which is worked next."""
    known = taken.known
    if known.job.catch_up != "each" or known.job.ordered:
        return []
    rest: list[Run] = []
    for run in await workable(known, as_of, most):
        if run.state == states.RUNNING or run.series != taken.run.id.series:  # to be judged first, or named otherwise
            break
        if run.id not in tried:
            rest.append(run)
    return rest


def members(
    group: Group, new_attempt_id: Callable[[], bytes], elapsed: Callable[[], int]
) -> Iterator[tuple[RunKey, Claim, Run]]:
    """The runs of a group with their keys and claims, each when its turn comes, so many microseconds after the first. Of a run
    that follows the claim is written down with its completion. Pure.
    """
    taken = group.first
    yield taken.key, taken.claim, taken.run
    for run in group.rest:
        began_at = taken.claim.started_at + elapsed()
        claim = Claim(
            run.id,
            new_attempt_id(),
            run.fence + 1,
            began_at,
            taken.claim.lease_until,
            taken.claim.lease,
            taken.claim.contract,
            taken.claim.owner,
            taken.claim.trigger,
            run.failures,
            run.first_started_at or began_at,
            taken.claim.remembers,
            run,
        )
        yield key_in(taken.known, group.series, run.id), claim, run


async def complete_group(taken: Taken, worked: list[tuple[Claim, Left]]) -> None:
    """Complete the run that was taken and those that followed it, each with what it leaves. Raises `ClaimLost`: it ends all."""
    for claim, left in worked:
        if claim is taken.claim:
            await complete_or_raise(claim, left)
            continue
        assert claim.row is not None
        await do(
            COMPLETE_IF_FREE,
            **claim_parameters(claim),
            seen_fence=claim.row.fence,
            began_at=claim.started_at,
            contract=claim.contract,
            remembers=claim.remembers,
            owner=claim.owner,
            trigger=claim.trigger,
        )
        await record_end_or_raise(claim, states.COMPLETED, "completed")
        await keep_left(claim, left)
