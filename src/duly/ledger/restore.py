"""Restore: a ledger that went back in time, and what has to be doubted then.

A copy of a database, or a replica that takes over late, has forgotten what was committed after some instant T. What a
transactional job did then is forgotten with its completion, and is done again. What left the database was not undone: a run
of another contract that is owed since may have been done, and nobody here can know. So it becomes unknown, and is not taken
again until somebody says what happened; its number rises beyond all that were given out in the time that is lost (I3). So does
a message that was to be sent, and every message of a window that came due before and is done again: it is sent again only while
its receiver remembers the key, from that instant on. Of a run outside a schedule nobody can tell.
"""

from __future__ import annotations

from duly.errors import Misuse
from duly.ledger import contracts, message_states, states
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.backfill_states import ors
from duly.ledger.contracts import Terms
from duly.ledger.events import tell
from duly.ledger.open import open_all_owed
from duly.ledger.owed import UNSETTLED_OF_LINE
from duly.ledger.records import Known, Run
from duly.ledger.register import find
from duly.ledger.send import NUMBERS_LOST
from duly.ledger.take import hold_line, run_parameters, seen_of
from duly.times import instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.ledger.resolve import Word

LINES_OF_OTHERS = Statement(
    "lines_of_others",
    """
select j.name, l.scope
  from duly_job j
  join duly_line l on l.job = j.id
 where j.contract <> 'transactional'
 order by j.id, l.id
""",
)

DOUBT_RESTORED = Statement(
    "doubt_restored_if_unchanged",
    # I5. An attempt that may yet report is the best witness, and keeps its id and number; else one is made up that never does.
    # What was unknown before is in doubt anew: what was said of it then says nothing of the time that is lost.
    """
update duly_run
   set state = {to}, cause = :cause, lease_until = null,
       attempt_id = case when state = 'running' or state = 'unknown' then attempt_id else :attempt_id end,
       fence = case when state = 'running' or state = 'unknown' then fence else fence + :lost end,
       started_at = case when state = 'running' or state = 'unknown' then started_at else cast(:at as bigint) end,
       first_started_at = coalesce(first_started_at, cast(:at as bigint)),
       contract = coalesce(contract, :contract), owner = coalesce(owner, 'unknown'),
       trigger = coalesce(trigger, 'unknown'), payload = coalesce(payload, 'none'), retry_at = null
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from} and fence = :seen_fence
""",
    event="restore",
)

DOUBT_MESSAGES = Statement(
    "doubt_messages",
    # They may have been sent in the time that is lost: by attempts that nobody knows any more, up to a number that none had.
    f"""
update duly_message
   set state = {{to}}, cause = :cause, lease_until = null, due_at = case when due_at is null then null else {{now}} end,
       doubted_at = {{now}}, first_sent_at = coalesce(first_sent_at, cast(:at as bigint)), denials = 0,
       probe_until = null, fence = case when state = 'pending' then fence + :lost else fence end,
       doubt_number = coalesce(doubt_number, case when state = 'pending' then fence + :lost else fence end)
 where state in {{from}} and {ors("state", message_states.UNSETTLED)}
""",
    event="restore",
    of=message_states,
)

LOST_SINCE = Statement(
    "lost_since",
    # Of several times that are lost, all from the first to the last: what is done again may have been done in any of them.
    """
insert into duly_meta (name, value)
values ('lost_since', cast(cast(:at as bigint) as text))
    on conflict (name) do update set value = excluded.value
 where cast(duly_meta.value as bigint) > cast(excluded.value as bigint)
""",
)

LOST_UNTIL = Statement(
    "lost_until",
    """
insert into duly_meta (name, value)
values ('lost_until', cast({now} as text))
    on conflict (name) do update set value = excluded.value
""",
)

EPOCH = Statement("epoch", "select value from duly_meta where name = 'epoch'")

# A copy has it: up to when it is whole. A ledger has it only from when it was put back until somebody has said so.
BACKED_UP_AT = "backed_up_at"

WHOLE_UNTIL = Statement("whole_until", f"select value from duly_meta where name = '{BACKED_UP_AT}'")

IS_PUT_BACK = Statement("is_put_back", f"delete from duly_meta where name = '{BACKED_UP_AT}'")

NEXT_EPOCH = Statement(
    "next_epoch",
    "update duly_meta set value = cast(cast(value as bigint) + 1 as text) where name = 'epoch'",
)


async def whole_until() -> int | None:
    """Up to when a ledger is whole that is a copy put back; None for any other. Looks only."""
    return await one(WHOLE_UNTIL, int)


async def doubt_since(at: int, word: Word) -> list[Run]:
    """Doubt every run that is owed and may have been done since an instant; those runs, as they are then.

    Begins a new epoch of the ledger. Raises `Misuse` for an instant to come.
    """
    instant = await now()
    if at > instant:
        raise Misuse(f"at: {instant_text(at)} is still to come; give the instant up to which the ledger is whole")
    doubted: list[Run] = []
    for name, scope in await every(LINES_OF_OTHERS, lambda *names: names):
        known = await find(name, scope)
        assert known is not None
        doubted += await _doubt_line(known, at, instant, word)
    cause = f"the ledger forgot what happened after {instant_text(at)}"
    messages = await count(DOUBT_MESSAGES, at=at, cause=cause, lost=NUMBERS_LOST)
    if messages:
        await tell(
            "messages_doubted",
            by=word.by,
            reason=word.reason,
            detail=f"{messages} messages are in doubt; {cause}",
            changed=("not settled", message_states.UNKNOWN),
        )
    await count(LOST_SINCE, at=at)
    await count(LOST_UNTIL)
    before = await one(EPOCH, str)
    await count(NEXT_EPOCH)
    await count(IS_PUT_BACK)
    detail = f"whole up to {instant_text(at)}; {len(doubted)} runs are in doubt"
    changed = (f"epoch {before}", f"epoch {await one(EPOCH, str)}")
    await tell("restored", by=word.by, reason=word.reason, detail=detail, changed=changed)
    return doubted


async def _doubt_line(known: Known, at: int, instant: int, word: Word) -> list[Run]:
    known = await hold_line(known)
    assert known.line is not None
    if known.version is not None and known.line.opened_until is not None:
        known, _ = await open_all_owed(known, instant, word.by)
    assert known.line is not None
    cause = f"the ledger forgot what happened after {instant_text(at)}"
    doubted = []
    for run in await every(UNSETTLED_OF_LINE, Run, line=known.line.id):
        if not _may_have_been_done(known, run, at, instant):
            continue
        told: dict[str, Value] = {"at": at, "cause": cause, "contract": known.job.contract, "lost": NUMBERS_LOST}
        named: dict[str, Value] = {**run_parameters(run.id), "seen_fence": run.fence, "attempt_id": _nobody(run, at)}
        if await count(DOUBT_RESTORED, **told, **named):
            changed = (run.standing, states.UNKNOWN)
            await tell("unknown", run=run.id, by=word.by, reason=word.reason, detail=cause, changed=changed)
            doubted.append(await seen_of(run.id))
    return doubted


def _nobody(run: Run, at: int) -> bytes:
    """The id of an attempt that nobody makes: no UUID of version 7 begins like this, and no other run has it."""
    return at.to_bytes(8, "big") + (run.nominal & (1 << 64) - 1).to_bytes(8, "big")


def _may_have_been_done(known: Known, run: Run, at: int, instant: int) -> bool:
    if run.due is not None and run.due > instant:
        return False
    if run.state == states.UNKNOWN:
        return True
    sealed = run.state == states.RUNNING and run.contract is not None
    terms = Terms(run.contract or "", run.remembers) if sealed else Terms(known.job.contract, known.job.remembers)
    return contracts.after_vanishing(terms, elapsed=instant - at, cause="").state == states.UNKNOWN
