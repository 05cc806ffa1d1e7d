"""Ends: how a line stops being owed, and how it begins again.

An end is an instant on the line's row, judged under its lock: what comes due at or after it is not owed, what came due
before it stays owed. So a line that ends first opens what has come due, and nothing is lost in the change; and a line that
begins again writes the time in between down as skipped, so that nothing is owed for it by surprise.

The job's row is changed before any line of it is held: that keeps two such changes apart, and whoever claims from memory
notices.
"""

from __future__ import annotations

from duly.ledger import states
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.bounds import Coming, Range, open_in_order
from duly.ledger.events import tell
from duly.ledger.open import open_all_owed, skip_range
from duly.ledger.owed import UNSETTLED_OF_LINE
from duly.ledger.policy import dropped_ranges
from duly.ledger.records import Known, Run, RunId, Series
from duly.ledger.register import name_now, renamed
from duly.ledger.spells import Spell, known_by, placed_before, spell_in_force, spells_of_line
from duly.ledger.take import hold_line, run_parameters, seen_of
from duly.ledger.windows import OPENED_UNTIL, SKIP_IF_FREE, open_to_work
from duly.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.ledger.resolve import Word
    from duly.schedule.occurrence import Occurrence

CHANGE_JOB = Statement(
    "change_job",
    # Changes nothing but the edition. Who changes several lines of a job holds its row, so that two of them come one after
    # the other; who remembers the job looks again.
    "update duly_job set roster = roster where id = :job and name = :name",
)

JOB_NAMED = Statement("job_named", "select id from duly_job where name = :name")

SET_END = Statement(
    "set_end",
    # Only under the lock of the line's row, where a claim looks.
    """
update duly_line
   set ends = cast(:ends as bigint),
       next_due = case when next_due >= cast(:ends as bigint) then null else next_due end
 where id = :line
""",
)


@record
class Ended:
    """A line that was given an end, with what that leaves: runs that stay owed, and runs that were skipped."""

    known: Known
    owed: list[Run]
    skipped: list[Run]


async def end_line(known: Known, ends: int, word: Word, *, skip_owed: bool) -> Ended:
    """Let nothing be owed of the line that comes due from an instant on. The job's row is held.

    What was opened and comes due after it is skipped, unless it is being worked. What came due before it stays owed, or
    is skipped as well where that is asked for.
    """
    known = await _open_due(await hold_line(known), min(await now(), ends - 1), word.by)
    assert known.line is not None
    await count(SET_END, line=known.line.id, ends=ends)
    owed, skipped = [], []
    for run in await every(UNSETTLED_OF_LINE, Run, line=known.line.id):
        beyond = run.due is not None and run.due >= ends
        if (skip_owed or beyond) and run.state in (states.OPEN, states.FAILED) and await _skip(run, word):
            skipped.append(await seen_of(run.id))
        else:
            owed.append(run)
    return Ended(await hold_line(known), owed, skipped)


async def _skip(run: Run, word: Word) -> bool:
    cause = f"retired: {word.reason}"
    if not await count(SKIP_IF_FREE, **run_parameters(run.id), cause=cause):
        return False
    changed = (run.standing, states.SKIPPED)
    await tell("skipped", run=run.id, by=word.by, reason=word.reason, detail="retired", changed=changed)
    return True


async def _open_due(known: Known, as_of: int, by: str) -> Known:
    """Open what has come due of a line that is held, by the catch-up policy, as the next poke would."""
    assert known.line is not None
    if known.series is None or known.line.opened_until is None:
        return known
    known, _ = await open_all_owed(known, as_of, by)
    return known


async def resume_line(known: Known, since: int | None, word: Word) -> Known:
    """Let what comes due of an ended line from an instant on be owed again, by default from its newest that is due.

    The job's row is held. What came due meanwhile is skipped, as a range.
    """
    known = await hold_line(known)
    line = known.line
    assert line is not None
    instant = await now()
    known = await _open_due(known, line.owed_by(instant), word.by)
    await count(SET_END, line=line.id, ends=None)
    known = await hold_line(known)
    if known.series is not None and known.line is not None and known.line.opened_until is not None:
        await _pass_over(known, since, instant, word)
    return await hold_line(known)


async def _pass_over(known: Known, since: int | None, instant: int, word: Word) -> None:
    """Skip the windows between the last that is open and the first that is owed again, and open from there on.

    Another schedule may have come meanwhile: each window is skipped, or opened, in the series that names it.
    """
    line = known.line
    assert line is not None
    assert line.opened_until is not None
    spells = await spells_of_line(known)
    if since is None:
        newest = next(placed_before(spells, instant), None)
        since = instant if newest is None else newest.occurrence.due
    until = line.opened_until
    for former in spells[:-1]:
        until = await _leave(known, former, until, since, word)
    spell = spell_in_force(known)
    first, unopened = next(spell.after(since - 1), None), next(spell.ending_after(until), None)
    if first is None or unopened is None or unopened.due >= first.due:
        first = unopened  # nothing came due meanwhile
    else:
        until = await _skip_before(known, spell, until, first, word)
    await count(OPENED_UNTIL, line=line.id, until=until, next_due=None if first is None else first.due)


async def _leave(known: Known, former: Spell, until: int, since: int, word: Word) -> int:
    """Skip what came due of a version before the one in force, and open what is owed again; where its windows end.

    No poke opens them: it looks at the version in force.
    """
    if former.until is None or until >= former.until or (unopened := next(former.ending_after(until), None)) is None:
        return until
    of_series = await known_by(known, *former.series)
    assert of_series is not None  # it is a spell of the line
    series = of_series.series
    assert series is not None
    missed = next((o for o in former.before(since - 1) if o.end >= unopened.end), None)
    ranges = [] if missed is None else dropped_ranges(former, unopened, missed)
    await _skip_ranges(series, ranges, word)
    last = [] if missed is None else [missed]
    owed = list(former.ending_after(until if missed is None else missed.end))
    opening = await open_in_order(series, until, Coming([*last, *owed], ranges, None))
    for occurrence in opening.fresh:
        await open_to_work(of_series, RunId(series.id, occurrence.nominal), occurrence, word.by)
    return opening.until


async def _skip_before(known: Known, spell: Spell, until: int, first: Occurrence, word: Word) -> int:
    """Skip all windows of the version in force that are not open and lie before one; where the next window starts then."""
    series = known.series
    assert series is not None
    ranges = _away(spell, until, first)
    await _skip_ranges(series, ranges, word)
    last = next((o for o in spell.before(first.due) if o.end <= first.start), None)
    coming = Coming([] if last is None else [last], ranges, first)
    return (await open_in_order(series, until, coming)).until


async def _skip_ranges(series: Series, ranges: list[Range], word: Word) -> None:
    reason = f"not on the roster then; resumed: {word.reason}"
    for span in ranges:
        await skip_range(series, span, reason, word.by, said=word.reason)


def _away(spell: Spell, opened_until: int, first: Occurrence) -> list[Range]:
    """The windows of the version in force that are not open and lie before one, as ranges. Pure."""
    unopened = next(spell.ending_after(opened_until), None)
    last = next((o for o in spell.before(first.due) if o.end <= first.start), None)
    if unopened is None or last is None or last.end < unopened.end:
        return []
    return dropped_ranges(spell, unopened, last)


async def hold_job(name: str) -> int | None:
    """Hold the job's row before any of its lines; its id, or None for a name that no job has, nor gave up.

    Raises `JobRenamed` for a former name.
    """
    job = await one(JOB_NAMED, int, name=name)
    if job is not None and await count(CHANGE_JOB, job=job, name=name):
        return job
    if (now_named := await name_now(name)) is not None:
        raise renamed(name, now_named)
    return None
