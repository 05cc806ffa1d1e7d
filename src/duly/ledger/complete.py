"""Complete: how an attempt ends, in the words of the attempt itself.

Each ending is two statements in one transaction: the run changes where key, attempt and number still match, and the
attempt's row is inserted with its start read back from that very row. A claim that is gone leaves nothing to read back;
the insert fails, and its failure ends the transaction (I2). Completing twice fails on the attempt's primary key.
"""

from __future__ import annotations

from duly.errors import ClaimLost
from duly.ledger import states
from duly.ledger.ask import Statement, count, do, one
from duly.ledger.contracts import CANCELLED, Ending
from duly.ledger.events import tell
from duly.ledger.records import Claim, RunId
from duly.ledger.take import CANCEL_IS_ASKED, claim_parameters, look, run_parameters
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from duly.ledger.send import Letter

COMPLETE_IF_HELD = Statement(
    "complete_if_held",
    """
update duly_run
   set state = {to}, settled_at = {now}, cause = null
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and attempt_id = :attempt_id and fence = :number
""",
    event="complete",
)

FAIL_IF_HELD = Statement(
    "fail_if_held",
    # Whether or not the attempt has heard of it: what a person asked to stop is not retried by policy.
    """
update duly_run
   set state = {to}, failures = failures + :counted, cause = :cause,
       retry_at = case when cancel_number = fence then null else {now} + :retry_in end
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and attempt_id = :attempt_id and fence = :number
""",
    event="fail",
)

RELEASE_IF_HELD = Statement(
    "release_if_held",
    # What is given back is worked by the next poke: not so what a person asked to stop.
    """
update duly_run
   set state = {to}, cause = :cause
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and attempt_id = :attempt_id and fence = :number
   and coalesce(cancel_number, 0) < fence
""",
    event="release",
)

DOUBT_IF_HELD = Statement(
    "doubt_if_held",
    # I5. The attempt does not end: it is the best witness. Its lease does, and with it the right to renew: a renewal that
    # was under way must not take the doubt back.
    """
update duly_run
   set state = {to}, lease_until = null, cause = :cause
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and attempt_id = :attempt_id and fence = :number
""",
    event="doubt",
)

DROP_RENEWAL = Statement(
    "drop_renewal",
    "delete from duly_renewal where series = :series and nominal = :nominal and revision = :revision",
)

RECORD_END_OR_RAISE = Statement(
    "record_end_or_raise",
    # I1, I2: the start is read back from the run under key, attempt, number and the state just written. No such row, or
    # a second end of the same attempt, is an error of the database that ends the transaction, effect and all.
    """
insert {or_rollback} into duly_attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome,
       contract, owner, trigger, error)
values (:series, :nominal, :revision, :number, :attempt_id,
       (select started_at
          from duly_run
         where series = :series and nominal = :nominal and revision = :revision
           and state = :state and attempt_id = :attempt_id and fence = :number),
       {now}, :outcome, :contract, :owner, :trigger, :error)
""",
    refuses=ClaimLost,
)

KEEP_TEXT = Statement(
    "keep_text",
    """
insert into duly_text (series, nominal, revision, number, kind, body)
values (:series, :nominal, :revision, :number, :kind, :body)
    on conflict (series, nominal, revision, number, kind) do update set body = excluded.body
""",
)


KEEP_SAID = Statement(
    "keep_said",
    # I2: beside an attempt that is on record, or that holds its run; it need not have done so well.
    """
insert into duly_text (series, nominal, revision, number, kind, body)
select :series, :nominal, :revision, :number, :kind, :body
 where exists (select 1
                 from duly_attempt
                where series = :series and nominal = :nominal and revision = :revision
                  and number = :number and attempt_id = :attempt_id)
    or exists (select 1
                 from duly_run
                where series = :series and nominal = :nominal and revision = :revision
                  and fence = :number and attempt_id = :attempt_id)
    on conflict (series, nominal, revision, number, kind) do update set body = excluded.body
""",
)

COMPLETED_BY = Statement(
    "completed_by",
    # A person's word on an unknown run leaves a text; an attempt's own completion leaves none.
    """
select 1
  from duly_attempt
 where series = :series and nominal = :nominal and revision = :revision
   and number = :number and attempt_id = :attempt_id and outcome = 'completed' and error is null
""",
)

ENDED_BY = Statement(
    "ended_by",
    """
select 1
  from duly_attempt
 where series = :series and nominal = :nominal and revision = :revision
   and number = :number and attempt_id = :attempt_id and outcome = :outcome and error = :error
""",
)


async def has_ended(claim: Claim, outcome: str, error: str) -> bool:
    """Whether this very attempt is on record as ended so, in these words of its own."""
    return await one(ENDED_BY, int, **claim_parameters(claim), outcome=outcome, error=error) is not None


async def has_completed(claim: Claim) -> bool:
    """Whether this very attempt has completed its run: a command may do so by itself."""
    return await one(COMPLETED_BY, int, **claim_parameters(claim)) is not None


@record
class Left:
    """What an attempt leaves with its completion: where its output is, its result as JSON, its messages, each with its
    idempotency key, and what its command said last: `stdout` and `stderr`, without secrets.
    """

    output: str | None = None
    result: str | None = None
    letters: Sequence[tuple[Letter, str]] = ()
    said: Sequence[tuple[str, str]] = ()


NOTHING = Left()


async def complete_or_raise(claim: Claim, left: Left = NOTHING) -> None:
    """Settle the run as completed, in the transaction that carries its effect, with what it leaves. Raises `ClaimLost`, which
    ends it.
    """
    await do(COMPLETE_IF_HELD, **claim_parameters(claim))
    await record_end_or_raise(claim, states.COMPLETED, "completed")
    await keep_left(claim, left)


async def keep_left(claim: Claim, left: Left) -> None:
    """Keep what a completing attempt leaves."""
    for kind, body in (("output", left.output), ("result", left.result)):
        if body is not None:
            await keep_text(claim.run, claim.number, kind, body)
    await keep_said(claim, left.said)
    if left.letters:
        from duly.ledger.send import send_noted  # most runs have none

        await send_noted(claim.run, left.letters)


async def fail_or_raise(claim: Claim, ending: Ending, *, retry_in: int | None, error: str) -> int | None:
    """End the attempt as failed; in `retry_in` microseconds it may be taken again (None: it waits for a person).

    Answers what has come of that: of an attempt that a person asked to stop, the run waits for a person.
    """
    await count(
        FAIL_IF_HELD,
        **claim_parameters(claim),
        cause=ending.cause,
        retry_in=retry_in,
        counted=1 if ending.counted else 0,
    )
    await record_end_or_raise(claim, states.FAILED, ending.outcome, error=error)
    if retry_in is None:
        return None
    left = await look(claim.run)
    return None if left is None or left.waits_for_a_person else retry_in


async def release_or_raise(claim: Claim, cause: str) -> None:
    """Give the run back untouched: nothing was done, and nothing counts against it.

    An attempt that a person asked to stop ends as cancelled instead.
    """
    held = claim_parameters(claim)
    if not await count(RELEASE_IF_HELD, **held, cause=cause) and await one(CANCEL_IS_ASKED, int, **held) is not None:
        ending = Ending(states.FAILED, CANCELLED, counted=False, outcome="cancelled")
        await fail_or_raise(claim, ending, retry_in=None, error=cause)
        return
    await record_end_or_raise(claim, states.OPEN, "released", error=cause)


async def doubt_or_raise(claim: Claim, cause: str) -> None:
    """Say that the outcome is unknown, and give up lease and line. The attempt may still report."""
    doubted = await count(DOUBT_IF_HELD, **claim_parameters(claim), cause=cause)
    if not doubted:
        seen = await look(claim.run)
        # Whoever found the lease lapsed may have said so already: then the attempt agrees.
        if seen is None or seen.state != states.UNKNOWN or seen.attempt_id != claim.attempt_id:
            raise ClaimLost
    await count(DROP_RENEWAL, **run_parameters(claim.run))
    changed = (states.RUNNING if doubted else states.UNKNOWN, states.UNKNOWN)
    await tell("unknown", run=claim.run, attempt_id=claim.attempt_id, by=claim.owner, detail=cause, changed=changed)


async def record_end_or_raise(claim: Claim, state: str, outcome: str, *, error: str | None = None) -> None:
    """Write the row of an attempt whose run was just written. Raises `ClaimLost` where it was not."""
    await do(
        RECORD_END_OR_RAISE,
        **claim_parameters(claim),
        state=state,
        outcome=outcome,
        contract=claim.contract,
        owner=claim.owner,
        trigger=claim.trigger,
        error=error,
    )


async def keep_text(run: RunId, number: int, kind: str, body: str) -> None:
    """Keep a long text beside an attempt: an error, an output, a result, a person's evidence."""
    await do(KEEP_TEXT, **run_parameters(run), number=number, kind=kind, body=body)


async def keep_said(claim: Claim, said: Sequence[tuple[str, str]]) -> None:
    """Keep what an attempt's command said last, by the name of the stream."""
    for kind, body in said:
        await count(KEEP_SAID, **claim_parameters(claim), kind=kind, body=body)
