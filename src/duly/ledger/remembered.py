"""Remembered: the claim of a window by who has claimed another of its line before.

What such a process knows does not change from one run to the next: the job's policies, its schedule, its line. So it need
not look them up again. One statement makes the run, running, where all of that still holds by the edition of the job's
row, and where nothing stands in the way that may change: the horizon, a skipped range, the holder of the line, a row of
the run itself. Where anything does, nothing is written, and the claim is made from the beginning (`take`).

In a zone whose rules may change, a window has the bounds that the rules of today give it only where what is stored around it
says the same, and the ledger knows those rules. Elsewhere they are worked out by `chained`, and there alone.
"""

from __future__ import annotations

from duly.errors import KeyInvalid, TimeInvalid, WindowInvalid
from duly.ledger import states
from duly.ledger.address import key_in
from duly.ledger.ask import Statement, do, one, verdict
from duly.ledger.bounds import Beside, beside
from duly.ledger.named import Named
from duly.ledger.records import AlreadyCompleted, Claimer, Known, Run, RunId, pauses_of
from duly.ledger.register import Declaration, is_complete
from duly.ledger.spells import Spell, lookup, spell_in_force
from duly.ledger.take import answer_first, claim_of, look, run_parameters
from duly.records import record
from duly.times import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.keys import RunKey
    from duly.schedule.occurrence import Occurrence

# After the schedule has changed, a name may be one of before as well: the date of a day, as the zone has it, on which there
# was a fire. That day is over two days later, in any zone.
_NAMED_BEFORE = 2 * DAY

SEE_AS_REMEMBERED = Statement(
    "see_as_remembered",
    # A row is believed only where the job is still the one remembered: what a duplicate is told, it is told of that.
    """
select state, fence, payload, settled_at, attempt_id, started_at, zone_facts,
       (select count(*) from duly_job where id = :job and edition = :edition)
  from duly_run
 where series = :series and nominal = :nominal and revision = :revision
""",
)

LOCK_LINE_IF_ABSENT = Statement(
    "lock_line_if_absent",
    # Of a window without a row: where overlap is judged, and who edits the schedule has it while windows are opened. A
    # duplicate takes no lock: with one it would have something to commit.
    """
select l.id
  from duly_line l
 where l.id = :line and not exists (select 1 from duly_run where series = :series and nominal = :nominal)
   {lock}
""",
    only_locks=True,
)

_FACTS = """(
           select id
             from duly_zone_facts
            where zone = :zone and release = :release and source = :source and fingerprint = :fingerprint)"""

# That a window in a zone with rules has the bounds which these give it (I9), as `chained` would find: the window before it ends
# where it starts, or has no row, and the line's place does not lie within; the one after it starts where it ends, or has no
# row; and no window that other rules have named lies over it. What the rules mean there is on record.
_BOUNDS_STILL = f"""exists {_FACTS}
       and not exists (
           select 1
             from duly_line
            where id = :line and opened_until > :window_start and opened_until < :window_end)
       and not exists (
           select 1
             from duly_run
            where series = :series and nominal between :first and :last and nominal <> :nominal and revision = 1
              and ((nominal = :before and (window_end is null or window_end <> :window_start))
                   or (nominal = :after and window_start <> :window_end)
                   or (window_start < :window_end and window_end > :window_start)))"""

# What the claim of a window without a row looks at besides its line and its series.
_STILL = """exists (select 1 from duly_job where id = :job and edition = :edition)
   and :due <= {now}
   and not exists (
       select 1
         from duly_skipped
        where series = :series and from_nominal <= :nominal and to_nominal > :nominal)"""

# The same of a window whose bounds are to be judged, if they are.
_STILL_BY_RULES = f"""{_STILL}
   and (cast(:before as bigint) is null or (
       {_BOUNDS_STILL}))"""


def _hold_line_if_free(still: str) -> Statement:
    # Overlap is judged under the lock of the line's row, which an earlier statement took: this one sees what a rival noted
    # there.
    return Statement(
        "hold_line_if_free",
        f"""
update duly_line
   set holder_series = :series, holder_nominal = :nominal, holder_revision = :revision, live_claims = live_claims + 1
 where id = :line
   and {still}
   and exists (select 1 from duly_series where id = :series and horizon <= :nominal)
   and not exists (select 1 from duly_run where series = :series and nominal = :nominal)
   and not exists (
       select 1
         from duly_run r
        where r.series = duly_line.holder_series and r.nominal = duly_line.holder_nominal
          and r.revision = duly_line.holder_revision and r.state = 'running')
""",
    )


def _claim_if_as_remembered(still: str, facts: str) -> Statement:
    # I7: the series is held, so that no prune can pass this run while it is being created.
    return Statement(
        "claim_if_as_remembered",
        f"""
insert into duly_run (series, nominal, revision, state, fence, due, window_start, window_end, resolution, version,
       opened_at, payload, failures, asked_at, first_started_at, attempt_id, started_at, lease_until, contract, remembers,
       owner, trigger, zone_facts)
select s.id, :nominal, :revision, {{to}}, 1, cast(:due as bigint), cast(:window_start as bigint),
       cast(:window_end as bigint), :resolution, cast(:version as bigint), {{now}},
       coalesce(cast(:payload as text), 'none'), 0, {{now}}, {{now}}, :attempt_id, {{now}}, {{now}} + :lease, :contract,
       cast(:remembers as bigint), :owner, :trigger, {facts}
  from duly_series s
 where s.id = :series and s.horizon <= :nominal
   and {still}
   and (:overlap = 1 or exists (
       select 1
         from duly_line
        where id = :line and holder_series = :series and holder_nominal = :nominal and holder_revision = :revision))
   {{absent}} {{share}}
    on conflict do nothing
""",
        event="take",
    )


# Where a zone has no rules, nothing is asked that depends on them: a question costs even if it is not answered, and an insert
# that reads its own table copies first.
HOLD_LINE_IF_FREE, HOLD_LINE_IF_FREE_IN_UTC = map(_hold_line_if_free, (_STILL_BY_RULES, _STILL))
CLAIM_IF_AS_REMEMBERED = _claim_if_as_remembered(_STILL_BY_RULES, _FACTS)
CLAIM_IF_AS_REMEMBERED_IN_UTC = _claim_if_as_remembered(_STILL, "cast(null as bigint)")


@record
class _Sight:
    """What a look sees of a run: who has it, or how it ended."""

    state: str
    fence: int
    payload: str | None
    settled_at: int | None
    attempt_id: bytes | None
    started_at: int | None
    zone_facts: int | None
    is_same: int  # 1: the job is the one that is remembered


@record
class Remembered:
    """What was known of a line when a run of it was claimed, with the spell of the schedule in force."""

    known: Known
    spell: Spell


@record
class Recalled:
    """A window of a line that is remembered."""

    known: Known
    run: RunId
    occurrence: Occurrence
    beside: Beside | None  # in a zone with rules


def remember(known: Known, declared: Declaration) -> Remembered | None:
    """What can be claimed from memory later; None where more has to be looked at than one statement can. Pure.

    In an ordered job, what is owed before a window counts. Whether a pause is over, the clock says.
    """
    if known.version is None or known.job.ordered or pauses_of(known) or not is_complete(known, declared):
        return None
    if known.version.number != known.job.version:  # of a former series
        return None
    return Remembered(known, spell_in_force(known))


def recall(remembered: Remembered, window: str) -> Recalled | None:
    """The window that is named; None where it has to be looked up, also to say what is wrong with it. Pure."""
    series, version, spell = remembered.known.series, remembered.known.version, remembered.spell
    assert series is not None
    assert version is not None
    try:
        found = lookup([spell], window)
    except (KeyInvalid, TimeInvalid, WindowInvalid):
        return None
    if spell.since is not None and "@" in spell.schedule.grain:  # `2026-Q2` may have been another quarter's whole name
        return None
    if found.off or found.start >= found.end:
        return None
    line = remembered.known.line
    assert line is not None
    if not line.owes(found.due):  # an end that lay ahead when it was remembered
        return None
    if spell.since is not None and found.start < spell.since + _NAMED_BEFORE:
        return None
    around = None
    if version.zone != "UTC":  # whose rules never change
        around = beside(spell, found)
        if around is None:
            return None
    return Recalled(remembered.known, RunId(series.id, found.nominal), found, around)


@record
class Untouched:
    """Nobody has touched a window: a claim has to be tried."""


async def peek_remembered(recalled: Recalled, claimer: Claimer) -> Named | Untouched | None:
    """What a plain look can say of the window: complete, held, or that nobody has touched it. None: `take` decides."""
    sight = await one(SEE_AS_REMEMBERED, _Sight, **_look(recalled))
    if sight is None:
        return Untouched()
    named = _answer(recalled, claimer, sight)
    if named is not None or not sight.is_same:
        return named
    answer = await answer_first(await look(recalled.run), claimer)
    return None if answer is None else Named(recalled.known, _key(recalled), answer, None)


async def claim_remembered(recalled: Recalled, claimer: Claimer) -> Named | None:
    """Claim a window that nobody has touched, or tell that it is complete. None: nothing was written, `take` decides."""
    job, line, found = recalled.known.job, recalled.known.line, recalled.occurrence
    assert line is not None
    assert recalled.known.version is not None
    named: dict[str, Value] = {
        **run_parameters(recalled.run),
        "line": line.id,
        "job": job.id,
        "edition": job.edition,
        "due": found.due,
        "window_start": found.start,
        "window_end": found.end,
        **_zone(recalled),
    }
    await do(LOCK_LINE_IF_ABSENT, line=line.id, series=recalled.run.series, nominal=recalled.run.nominal)
    in_utc = recalled.beside is None
    if not job.overlap:
        await do(HOLD_LINE_IF_FREE_IN_UTC if in_utc else HOLD_LINE_IF_FREE, **named)
    await do(
        CLAIM_IF_AS_REMEMBERED_IN_UTC if in_utc else CLAIM_IF_AS_REMEMBERED,
        **named,
        resolution=found.resolution,
        version=recalled.known.version.number,
        payload=claimer.payload,
        attempt_id=claimer.attempt_id,
        owner=claimer.owner,
        trigger=claimer.trigger,
        lease=job.lease,
        contract=job.contract,
        remembers=job.remembers,
        overlap=job.overlap,
    )
    return _answer(recalled, claimer, await verdict(SEE_AS_REMEMBERED, _Sight, **_look(recalled)))


def _look(recalled: Recalled) -> dict[str, Value]:
    job = recalled.known.job
    return {**run_parameters(recalled.run), "job": job.id, "edition": job.edition}


_WITHOUT_RULES: dict[str, Value] = dict.fromkeys(
    ("zone", "release", "source", "fingerprint", "before", "after", "first", "last")
)


def _zone(recalled: Recalled) -> dict[str, Value]:
    """What the bounds of a window in a zone with rules depend on: what those mean on this host now, and its neighbours."""
    around, found = recalled.beside, recalled.occurrence
    if around is None:
        return _WITHOUT_RULES
    from duly.schedule.facts import facts_of  # needed in a zone that has rules

    assert recalled.known.version is not None
    facts = facts_of(recalled.known.version.zone, found.start, found.end)
    return {
        "zone": facts.zone,
        "release": facts.release.version,
        "source": facts.release.source,
        "fingerprint": facts.fingerprint,
        "before": around.before,
        "after": around.after,
        "first": around.first,
        "last": around.last,
    }


def _key(recalled: Recalled) -> RunKey:
    assert recalled.known.series is not None
    return key_in(recalled.known, recalled.known.series, recalled.run)


def _answer(recalled: Recalled, claimer: Claimer, sight: _Sight | None) -> Named | None:
    if sight is None:
        return None
    known, run = recalled.known, recalled.run
    if sight.attempt_id == claimer.attempt_id and sight.state == states.RUNNING:
        row = _row(recalled, claimer, sight)
        return Named(known, _key(recalled), claim_of(row, known.job.lease), row)
    differs = claimer.payload is not None and claimer.payload != sight.payload
    if sight.is_same and sight.state == states.COMPLETED and not differs:
        return Named(known, _key(recalled), AlreadyCompleted(run, sight.settled_at or 0, sight.fence), None)
    return None


def _row(recalled: Recalled, claimer: Claimer, sight: _Sight) -> Run:
    """The row of a run that was claimed just now: what is in it was put there by its claim. A test compares them."""
    job, found, at = recalled.known.job, recalled.occurrence, sight.started_at
    assert at is not None
    assert recalled.known.version is not None
    return Run(
        series=recalled.run.series,
        nominal=recalled.run.nominal,
        revision=recalled.run.revision,
        state=sight.state,
        fence=sight.fence,
        due=found.due,
        window_start=found.start,
        window_end=found.end,
        resolution=found.resolution,
        version=recalled.known.version.number,
        opened_at=at,
        payload=sight.payload,
        failures=0,
        retry_at=None,
        asked_at=at,
        settled_at=None,
        was=None,
        cause=None,
        first_started_at=at,
        attempt_id=claimer.attempt_id,
        started_at=at,
        lease_until=at + job.lease,
        contract=job.contract,
        owner=claimer.owner,
        trigger=claimer.trigger,
        zone_facts=sight.zone_facts,
        remembers=job.remembers,
    )
