"""Versions: how the schedule of a job changes, which it does only here.

A new version answers for the windows that end after B, the end of the last window of the old one that has begun. First
every line opens the old windows whose start has passed, due or not, so that they are worked under the bounds that they
began with; the first new window starts at B, wherever the new schedule's own would have. So the windows of a line tile
time across the change, and no old window is lost.

Another zone or grain begins a new series of each line. Its horizon is the name of its first window: whatever lies before
was done, or is owed, under the names of the series before it. A zone and grain that return go on in the series that they
had; what they would have named meanwhile is off the grid. What is unsettled of a series that is no longer in force stays
owed, under its old names.
"""

from __future__ import annotations

from itertools import takewhile

from duly.errors import Misuse, NotAllowed, Refused, UnknownJob
from duly.ledger.address import key_in
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.bounds import NEAR, Coming, open_in_order
from duly.ledger.events import tell
from duly.ledger.open import open_all_owed
from duly.ledger.records import LEASES, RUN_COLUMNS, Job, Known, Run, RunId, Series, Version
from duly.ledger.register import (
    ADD_SERIES,
    FIND_LABEL,
    FIND_SERIES,
    NO_HORIZON,
    Declaration,
    add_version,
    declare,
    find,
    name_now,
    renamed,
    same_schedule,
)
from duly.ledger.scopes import scopes_of
from duly.ledger.spells import Spell, every_spell_of, spell_in_force
from duly.ledger.take import hold_line
from duly.ledger.windows import OPENED_UNTIL, open_to_work
from duly.records import record
from duly.schedule.spells import horizon_of
from duly.schedule.versions import edited, repeated_name, seam_of, what_changes
from duly.times import SECOND, instant_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.ask import Value
    from duly.schedule.occurrence import Occurrence
    from duly.schedule.spec import Schedule


LOCK_JOB = Statement(
    "lock_job",
    # Before the lines, as everywhere: whoever declares other policies writes the job's row before it holds a line.
    "select id from duly_job where name = :name {lock}",
)

ROWS_AHEAD = Statement(
    "rows_ahead",
    # One that an edit took its time from may get it back.
    f"""
select {RUN_COLUMNS}
  from duly_run r
  {LEASES}
 where r.series = :series and r.nominal >= :nominal and r.fence = 0
   and (r.window_start is null or r.window_start >= :until)
""",
)

WORKED_AHEAD = Statement(
    "worked_ahead",
    # In a transaction of the caller's own a window may be completed before it begins. It keeps its time (I8).
    """
select nominal, window_end
  from duly_run
 where series = :series and nominal >= :nominal and window_start >= :until and fence > 0
 order by window_end desc
 limit 1
""",
)

PUT_ANEW = Statement(
    "put_anew_if_unsealed",
    """
update duly_run
   set due = cast(:due as bigint), window_start = cast(:window_start as bigint),
       window_end = cast(:window_end as bigint), version = :version
 where series = :series and nominal = :nominal and revision = 1 and fence = 0
""",
)


BEGIN_ANEW = Statement(
    "begin_series_anew",
    # I7 holds: the series has never named a window, so nothing of it was worked, or pruned.
    """
update duly_series
   set horizon = :horizon
 where line = :line and zone = :zone and grain = :grain and horizon > :horizon
""",
)


@record
class Applied:
    """A version that was put in force. `since` is B; `began` are the old windows that have begun and were not yet due.

    `first` is the new version's first window; `changes` says in words what is not as it was. Of a job's first schedule
    `before` is None and nothing began.
    """

    before: Version | None
    number: int
    words: str
    since: int | None
    began: list[Occurrence]
    first: Occurrence | None
    changes: list[str]


async def apply(name: str, schedule: Schedule, *, by: str, reason: str, label: str = "") -> Applied | None:
    """Put a schedule in force for all lines of a job; None where it is in force already.

    Raises `UnknownJob`, and `NotAllowed` in the hours when clocks are set back, where a window would have a name again, or
    where one of after the seam was worked ahead of its time.
    """
    # Two who apply at once come one after the other, and see what the first one did.
    await one(LOCK_JOB, int, name=name)
    lines = [await _found(name, scope) for scope in await scopes_of(name)]
    if not lines:
        if (now_named := await name_now(name)) is not None:
            raise renamed(name, now_named)
        raise UnknownJob(f"the ledger knows no job {name!r}; its first `duly exec` registers it")
    version = lines[0].version
    if version is None:
        return await _first(lines, schedule, by=by)
    if same_schedule(version, schedule):
        return None
    instant = await now()
    spell = spell_in_force(lines[0])
    seam = seam_of(spell, instant)
    spells = edited(await every_spell_of(lines[0].job), schedule, instant)
    refuse_same_name(spells)
    coming = spells[-1]
    for known in lines:
        await _open_begun(known, coming, instant, by)
        await _begin_series(known, spells)
    await add_version(
        lines[0].job, schedule, number=coming.version, effective_from=seam.since, by=by, reason=reason, label=label
    )
    changes = what_changes(spell.schedule, schedule)
    words = f"version {coming.version} from {instant_text(seam.since)}: {schedule.words()} ({', '.join(changes)})"
    changed = (f"version {version.number}: {version.words}", f"version {coming.version}: {schedule.words()}")
    await tell("version_applied", job=lines[0].job.id, by=by, reason=reason, detail=words, changed=changed)
    first = next(coming.ending_after(seam.since), None)
    return Applied(version, coming.version, schedule.words(), seam.since, seam.began, first, changes)


async def adopt(job: Job, schedule: Schedule, label: str, *, by: str) -> None:
    """Put a schedule in force that code declares under a label which is new: the review of the code was its review.

    The same schedule under another label is a version as well, from where the one before is in force: its windows are the
    same, and the label is known from then on. So is any, of a job that has no line yet. A label that has come meanwhile
    changes nothing: who declares looks again.
    """
    await one(LOCK_JOB, int, name=job.name)
    if await one(FIND_LABEL, Version, job=job.id, label=label) is not None:
        return
    version = (await _found(job.name, "")).version
    assert version is not None  # it is declared in place of one
    reason = f"version {label} in code"
    if not same_schedule(version, schedule) and await scopes_of(job.name):
        await apply(job.name, schedule, by=by, reason=reason, label=label)
        return
    number, since = version.number + 1, version.effective_from
    await add_version(job, schedule, number=number, effective_from=since, by=by, reason=reason, label=label)
    detail = f"version {number} ({label}) in place of version {version.number}: {schedule.words()}"
    changed = (f"version {version.number} ({version.label or 'no label'})", f"version {number} ({label})")
    await tell("version_labelled", job=job.id, by=by, reason=reason, detail=detail, changed=changed)


async def _found(name: str, scope: str) -> Known:
    known = await find(name, scope)
    assert known is not None  # its scope was read in this transaction
    return known


async def _first(lines: list[Known], schedule: Schedule, *, by: str) -> Applied:
    """A job that ran outside any schedule gets its first one: a registration, which needs no seam."""
    for known in lines:
        assert known.line is not None
        answer = await declare(Declaration(known.job.name, known.line.scope, schedule, by=by))
        if isinstance(answer, (Refused, Misuse)):
            raise answer
    return Applied(None, 1, schedule.words(), None, [], next(schedule.after(await now()), None), [])


def refuse_same_name(spells: list[Spell]) -> None:
    """Raise `NotAllowed` where the new schedule has a window of the name of one of the old. A name is done once.

    It can only happen in the hours when the clocks change, between two readings of one wall time. Pure.
    """
    repeated = repeated_name(spells)
    if repeated is not None:
        raise NotAllowed(
            "the clocks change just now, and both schedules have a window of the same name; "
            f"apply it after {instant_text(repeated.end)}"
        )


async def _begin_series(known: Known, spells: list[Spell]) -> None:
    """The series of a line under the newest of the spells: the one it had, or one that begins where its first spell does."""
    assert known.line is not None
    zone, grain = spells[-1].series
    # A version that was replaced before it was in force has named nothing, though its series is there.
    first = next(spell for spell in spells if spell.series == (zone, grain) and not spell.is_empty)
    horizon = None if first.since is None else horizon_of(first)
    series: dict[str, Value] = {
        "line": known.line.id,
        "zone": zone,
        "grain": grain,
        "horizon": NO_HORIZON if horizon is None else horizon,
    }
    if not await count(ADD_SERIES, **series) and first is spells[-1]:
        await count(BEGIN_ANEW, **series)


def _lowest_name(known: Known, series: Series, coming: Spell, until: int) -> int:
    """The lowest nominal that a window of a series may have which begins at the seam or later. Pure.

    A window is named after its start or its end; the first one of a version, where it begins before the seam, after that.
    """
    spells = [spell for spell in (spell_in_force(known), coming) if spell.series == (series.zone, series.grain)]
    firsts = [first.nominal for spell in spells if (first := next(spell.ending_after(until), None)) is not None]
    return min([2 * (until // SECOND), *firsts]) - NEAR


async def refuse_worked_ahead(known: Known, coming: Spell, until: int) -> None:
    """Raise `NotAllowed` where a window after the seam was worked already, and would lie in another series than its time."""
    series = known.series
    if series is None or (series.zone, series.grain) == coming.series:
        return
    lowest = _lowest_name(known, series, coming, until)
    ahead = await one(WORKED_AHEAD, lambda *row: row, series=series.id, nominal=lowest, until=until)
    if ahead is not None:
        nominal, end = ahead
        raise NotAllowed(
            f"{key_in(known, series, RunId(series.id, nominal))} was worked ahead of its time, and keeps it; put a schedule "
            f"of another zone or grain in force after {instant_text(end)}"
        )


async def _open_begun(known: Known, coming: Spell, instant: int, by: str) -> None:
    """Give the line's old windows their rows: what came due by the catch-up policy, then what has begun.

    The next window of the line starts where the last of them ends as it is stored, which may not be B to the hour: B was
    laid by the rules of the zone as they are here.
    """
    known = await hold_line(known)
    assert known.line is not None
    if known.line.opened_until is None or known.series is None:
        return
    known, _ = await open_all_owed(known, instant, by)
    assert known.line is not None
    assert known.line.opened_until is not None
    assert known.series is not None
    line, unopened = known.line, spell_in_force(known).ending_after(known.line.opened_until)
    begun = list(takewhile(lambda o: o.start <= instant and line.owes(o.due), unopened))
    opening = await open_in_order(known.series, known.line.opened_until, Coming(begun, [], None))
    for occurrence in opening.fresh:
        await open_to_work(known, RunId(known.series.id, occurrence.nominal), occurrence, by)
    await refuse_worked_ahead(known, coming, opening.until)
    await _put_ahead_anew(known, known.series, coming, opening.until, by)
    returning = await one(FIND_SERIES, Series, line=known.line.id, zone=coming.series[0], grain=coming.series[1])
    if returning is not None and returning.id != known.series.id:
        await _put_ahead_anew(known, returning, coming, opening.until, by)
    first = next(coming.ending_after(opening.until), None)
    next_due = first.due if first is not None and line.owes(first.due) else None
    await count(OPENED_UNTIL, line=known.line.id, until=opening.until, next_due=next_due)


async def _put_ahead_anew(known: Known, series: Series, coming: Spell, until: int, by: str) -> None:
    """Windows that a person skipped ahead of time: of the new version too, or without a time of their own."""
    lowest = _lowest_name(known, series, coming, until)
    for run in await every(ROWS_AHEAD, Run, series=series.id, nominal=lowest, until=until):
        found = coming.find(run.nominal) if (series.zone, series.grain) == coming.series else None
        if found is None and run.window_start is None:
            continue
        bounds = (None, None, None) if found is None else (found.due, found.start, found.end)
        due, start, end = bounds
        await count(
            PUT_ANEW,
            series=series.id,
            nominal=run.nominal,
            due=run.due if due is None else due,
            window_start=start,
            window_end=end,
            version=coming.version,
        )
        said = (
            "has no such window"
            if found is None
            else f"has it at {instant_text(found.start)}..{instant_text(found.end)}"
        )
        bounds_after = "no such window" if found is None else _span_words(found.start, found.end)
        before = "no window" if run.window_start is None else _span_words(run.window_start, run.window_end or 0)
        detail = f"version {coming.version} of the schedule {said}"
        await tell("window_moved", run=run.id, by=by, detail=detail, changed=(before, bounds_after))


def _span_words(start: int, end: int) -> str:
    return f"{instant_text(start)}..{instant_text(end)}"
