"""Output: a file that a run is about to move into its place, on record before the move.

Its size and digest are written with the current attempt and committed; then, in the transaction that completes the run and
while it holds it, the file is linked. Whoever finds the run unfinished and the file in place with that very digest knows
that it was done. So only a file that is all that the attempt leaves is on record before: where rows, messages or a result go
with the completion, a crash before the commit takes them along, and the file is no sign that they are there.
"""

from __future__ import annotations

from duly.errors import ClaimLost
from duly.ledger.ask import Statement, count, every, one
from duly.ledger.take import HOLD_RUN, claim_parameters, run_parameters
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.records import Claim, RunId

RECORD_OUTPUT_IF_HELD = Statement(
    "record_output_if_held",
    """
insert into duly_output (series, nominal, revision, attempt_id, path, size, sha256, at)
select r.series, r.nominal, r.revision, r.attempt_id, :path, :size, :sha256, {now}
  from duly_run r
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state in ('running', 'unknown') and r.attempt_id = :attempt_id and r.fence = :number
    on conflict (series, nominal, revision)
    do update set attempt_id = excluded.attempt_id, path = excluded.path, size = excluded.size,
                  sha256 = excluded.sha256, at = excluded.at
""",
)

FIND_OUTPUT = Statement(
    "find_output",
    """
select path, size, sha256
  from duly_output
 where series = :series and nominal = :nominal and revision = :revision
""",
)

FORGET_OUTPUT_IF_HELD = Statement(
    "forget_output_if_held",
    """
delete from duly_output
 where series = :series and nominal = :nominal and revision = :revision
   and exists (
       select 1
         from duly_run r
        where r.series = :series and r.nominal = :nominal and r.revision = :revision
          and r.state in ('running', 'unknown') and r.attempt_id = :attempt_id and r.fence = :number)
""",
)

ATTEMPTS_AT = Statement(
    "attempts_at",
    """
select attempt_id
  from duly_attempt
 where series = :series and nominal = :nominal and revision = :revision
 union
select attempt_id
  from duly_run
 where series = :series and nominal = :nominal and revision = :revision and attempt_id is not null
""",
)


ATTEMPTS_BEFORE = Statement(
    "attempts_before",
    # Of an attempt that was superseded and does not know, those after it are none of its business.
    """
select attempt_id
  from duly_attempt
 where series = :series and nominal = :nominal and revision = :revision and number < :number
""",
)

IS_HELD = Statement(
    "output_is_of_holder",
    """
select 1
  from duly_run
 where series = :series and nominal = :nominal and revision = :revision
   and state in ('running', 'unknown') and attempt_id = :attempt_id and fence = :number
""",
)


@record
class Intent:
    """A file that was to be put in place: its path, its size in bytes, its SHA-256 in hex."""

    path: str
    size: int
    sha256: str


async def record_output_or_raise(claim: Claim, intent: Intent) -> None:
    """Write down what is about to be put in place. Raises `ClaimLost`, and then nothing may be."""
    written = await count(
        RECORD_OUTPUT_IF_HELD, **claim_parameters(claim), path=intent.path, size=intent.size, sha256=intent.sha256
    )
    if not written:
        raise ClaimLost


async def hold_and_record_output_or_raise(claim: Claim, intent: Intent) -> None:
    """Hold the run for this attempt until the transaction ends, and write down what is put in place in it.

    Nobody takes a run over that is held, so that a file is only ever moved by the attempt that completes. Raises `ClaimLost`.
    """
    await one(HOLD_RUN, str, **run_parameters(claim.run))
    await record_output_or_raise(claim, intent)


async def forget_output(claim: Claim) -> None:
    """Forget what an earlier attempt was about to put in place, before the work is done again: a file with that very digest
    says nothing of this attempt.
    """
    await count(FORGET_OUTPUT_IF_HELD, **claim_parameters(claim))


async def find_output(run: RunId) -> Intent | None:
    """What an attempt at this run was about to put in place."""
    return await one(FIND_OUTPUT, Intent, **run_parameters(run))


async def attempts_before(claim: Claim) -> list[bytes]:
    """The ids of the attempts at a run that ended before this one began."""
    return await every(ATTEMPTS_BEFORE, bytes, **run_parameters(claim.run), number=claim.number)


async def held_or_raise(claim: Claim) -> None:
    """Raise `ClaimLost` where another attempt has the run: then a file that is not as expected is not this one's trouble."""
    if await one(IS_HELD, int, **claim_parameters(claim)) is None:
        raise ClaimLost


async def attempts_at(run: RunId) -> list[bytes]:
    """The ids of all attempts at a run."""
    return await every(ATTEMPTS_AT, bytes, **run_parameters(run))
