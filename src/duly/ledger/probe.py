"""Probe: asking what became of a run whose outcome is unknown, and when the answer is believed.

It is asked only when the attempt is gone, and a while after the doubt: an effect may take its time to be seen. Whoever asks
holds the question under a lease, so that two answers to one question do not count as two; and what he found is written only
if the run is in the same doubt still. A probe ends a run as a person's `resolve` does.
"""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, alive, count, every, now, one
from duly.ledger.contracts import backoff
from duly.ledger.events import tell
from duly.ledger.found import TOO_LATE, FoundDone, FoundNot, FoundNothing, is_believed
from duly.ledger.records import LEASES, RUN_COLUMNS, Job, Run, RunId
from duly.ledger.register import find
from duly.ledger.resolve import Word, resolve
from duly.ledger.take import HOLD_RUN, look, run_parameters
from duly.records import record
from duly.times import HOUR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.keys import RunKey

IN_DOUBT = Statement(
    "in_doubt",
    # Those whose question rests, or is being asked, are left out; a doubt that is another one is asked about anew.
    f"""
select {RUN_COLUMNS}
  from duly_job j
  join duly_line l on l.job = j.id
  join duly_series s on s.line = l.id
  join duly_run r on r.series = s.id
  {LEASES}
 where j.name = :job and (cast(:scope as text) is null or l.scope = :scope) and {{unsettled}} and r.state = 'unknown'
   and not exists (
       select 1
         from duly_probe p
        where p.series = r.series and p.nominal = r.nominal and p.revision = r.revision
          and p.number = r.fence and p.next_at > {{now}}
          and p.doubt = (select max(e.id)
                           from duly_event e
                          where e.series = r.series and e.nominal = r.nominal and e.revision = r.revision
                            and e.kind = 'unknown'))
 order by r.due, r.series, r.nominal, r.revision
 limit :many
""",
)

DOUBT = Statement(
    "doubt",
    # The newest, and not the latest by its clock, which may have been put back.
    """
select id, at
  from duly_event
 where series = :series and nominal = :nominal and revision = :revision and kind = 'unknown'
 order by id desc limit 1
""",
)

HOLD_QUESTION = Statement(
    "hold_question",
    # Denials of another doubt say nothing of this one: the attempt may have gone on in between.
    """
insert into duly_probe (series, nominal, revision, number, doubt, probe_id, next_at, asked, denials)
select r.series, r.nominal, r.revision, r.fence, :doubt, :probe_id, {now} + :lease, 1, 0
  from duly_run r
 where r.series = :series and r.nominal = :nominal and r.revision = :revision
   and r.state = 'unknown' and r.fence = :number and :doubted_at + :probe_after <= {now}
    on conflict (series, nominal, revision) do update
   set number = excluded.number, doubt = excluded.doubt, probe_id = excluded.probe_id, next_at = excluded.next_at,
       asked = case when duly_probe.number = excluded.number and duly_probe.doubt = excluded.doubt
                    then duly_probe.asked + 1 else 1 end,
       denials = case when duly_probe.number = excluded.number and duly_probe.doubt = excluded.doubt
                      then duly_probe.denials else 0 end
 where duly_probe.next_at <= {now}
    or duly_probe.number <> excluded.number or duly_probe.doubt <> excluded.doubt
""",
)

# Whoever was asked holds the question no more once another asks it.
_THIS = "series = :series and nominal = :nominal and revision = :revision and number = :number and probe_id = :probe_id"

ASKED_BEFORE = Statement("asked_before", f"select asked, denials from duly_probe where {_THIS}")

ASK_RUN_AGAIN = Statement(
    "ask_run_again",
    f"""
update duly_probe
   set next_at = {{now}} + :again_in, denials = :denials, said = :said
 where {_THIS}
""",
)

FORGET_QUESTION = Statement("forget_question", f"delete from duly_probe where {_THIS}")

LAST_SAID = Statement(
    "last_said",
    """
select asked, denials, next_at, said
  from duly_probe
 where series = :series and nominal = :nominal and revision = :revision and number = :number and doubt = :doubt
""",
)


@record
class Doubt:
    """A doubt of a run: an attempt may be in several, one after the other. 0 where no event tells of it."""

    id: int = 0
    at: int = 0


@record
class _Before:
    asked: int
    denials: int


@record
class Question:
    """A run in doubt that whoever holds the question may ask about. So often it was `asked`, with this time, and denied."""

    job: Job
    key: RunKey
    row: Run
    doubt: int
    probe_id: bytes
    asked: int
    denials: int


@record
class Asked:
    """What has come of asking about a run so far: how often, how often it was denied, when it is asked again, the last word."""

    asked: int
    denials: int
    next_at: int
    said: str | None


def rest(asked: int, *, probe_after: int) -> int:
    """Microseconds until one that could not tell is asked again, the more often the later. Pure."""
    return max(backoff(max(asked, 1), delay=probe_after, ceiling=HOUR, jitter=0.0), probe_after)


async def in_doubt(job: str, scope: str | None = None, *, probe_after: int, many: int = 100) -> list[Run]:
    """Runs of a job, of one scope or of all, that may be asked about now, the oldest first."""
    found = await every(IN_DOUBT, Run, job=job, scope=scope, many=many)
    return [run for run in found if await _may_be_asked(run, probe_after)]


async def may_be_asked(run: RunId, *, probe_after: int) -> bool:
    """Whether a run may be asked about now."""
    seen = await look(run)
    if seen is None or not await _may_be_asked(seen, probe_after):
        return False
    asked = await last_asked(seen)
    return asked is None or asked.next_at <= await now()


async def _may_be_asked(seen: Run, probe_after: int) -> bool:
    return await _is_left(seen) and (await _doubt_of(seen.id)).at + probe_after <= await now()


async def last_asked(run: Run) -> Asked | None:
    """What has come of asking about an unknown run in this doubt so far; None where nobody has asked."""
    doubt = await _doubt_of(run.id)
    return await one(LAST_SAID, Asked, **run_parameters(run.id), number=run.fence, doubt=doubt.id)


async def hold_question(run: RunId, probe_id: bytes, *, lease: int, probe_after: int) -> Question | None:
    """Hold the question what became of a run, for so long; None where it is not to be asked now: the run is not unknown, its
    attempt may yet say what it did, the doubt is too young, or another asks.
    """
    seen = await look(run)
    if seen is None or not await _is_left(seen):
        return None
    assert seen.attempt_id is not None
    doubt = await _doubt_of(run)
    place: dict[str, Value] = {**run_parameters(run), "number": seen.fence, "probe_id": probe_id}
    held: dict[str, Value] = {**place, "doubt": doubt.id, "doubted_at": doubt.at, "lease": lease}
    if not await count(HOLD_QUESTION, **held, probe_after=probe_after):
        return None
    before = await one(ASKED_BEFORE, _Before, **place)
    assert before is not None  # it was written just now
    key = await key_of(run)
    known = await find(key.job, key.scope)
    assert known is not None  # it has a run
    return Question(known.job, key, seen, doubt.id, probe_id, before.asked, before.denials)


async def _doubt_of(run: RunId) -> Doubt:
    return await one(DOUBT, Doubt, **run_parameters(run)) or Doubt()


async def _is_left(seen: Run) -> bool:
    """Whether the run is unknown, and nobody is left who could say what its attempt did."""
    if seen.state != states.UNKNOWN or seen.attempt_id is None:
        return False
    return (seen.lease_until or 0) <= await now() and not await alive(seen.attempt_id)


async def record_finding(question: Question, word: FoundDone | FoundNot | FoundNothing, *, by: str) -> str:
    """Write down what a probe found of a run. Answers the run's state then, or `too late` where it is not in that doubt."""
    run = question.row.id
    place: dict[str, Value] = {**run_parameters(run), "number": question.row.fence, "probe_id": question.probe_id}
    await one(HOLD_RUN, str, **run_parameters(run))
    seen = await look(run)
    is_same = seen is not None and seen.fence == question.row.fence and await _is_left(seen)
    if not is_same or (await _doubt_of(run)).id != question.doubt:
        return TOO_LATE
    if await one(ASKED_BEFORE, _Before, **place) is None:
        return TOO_LATE
    match word:
        case FoundNothing(said, again_in):
            await count(
                ASK_RUN_AGAIN, **place, again_in=again_in, denials=question.denials, said=f"cannot tell: {said}"
            )
            return states.UNKNOWN
        case FoundNot(said, _, again_in) if not is_believed(word, question.denials):
            await count(
                ASK_RUN_AGAIN, **place, again_in=again_in, denials=question.denials + 1, said=f"did not happen: {said}"
            )
            detail = f"a probe says once that it did not happen: {said}"
            await tell("probed", run=run, attempt_id=question.row.attempt_id, by=by, detail=detail)
            return states.UNKNOWN
    done = isinstance(word, FoundDone)
    reason = "its probe says that it happened" if done else "its probe says that it did not happen"
    await count(FORGET_QUESTION, **place)
    return (await resolve(run, Word(by, reason, word.said), done=done)).state
