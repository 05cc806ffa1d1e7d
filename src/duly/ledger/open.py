"""Open: a poke. What is owed is given its rows, what is dropped its reason, and the next run to work its claim.

A look comes first, and is all that a duplicate costs; then one transaction opens, drops and takes. Every drop leaves a
skipped row, or a range where no row ever was. What stays owed is worked oldest first.
"""

from __future__ import annotations

from duly.errors import Misuse, Refused
from duly.ledger import states
from duly.ledger.address import key_here, key_of
from duly.ledger.ask import Statement, count, every, now
from duly.ledger.bounds import Range
from duly.ledger.events import tell
from duly.ledger.owed import UNSETTLED_OF_LINE, Owed, next_of_backlog, owed
from duly.ledger.peek import Idle as Idle
from duly.ledger.peek import in_order, is_workable, noted_next_due, standing_of
from duly.ledger.records import (
    AlreadyCompleted,
    Busy,
    Claim,
    Claimer,
    Known,
    NotDue,
    Run,
    RunId,
    Series,
    pause_of,
)
from duly.ledger.register import Declaration, declare, find_again, refusal_of
from duly.ledger.spells import find_nominal, is_of_line, known_of, spells_of
from duly.ledger.take import end_gone, ending_when_gone, hold_line, look, run_parameters, seen_of, take
from duly.ledger.windows import OPENED_UNTIL, SKIP_IF_FREE, move, open_to_work
from duly.records import record
from duly.schedule.keys import RunKey, nominal_text
from duly.schedule.occurrence import Occurrence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

SKIP_RANGE = Statement(
    "skip_range",
    """
insert into duly_skipped (series, from_nominal, to_nominal, reason, at, by)
values (:series, :first, :beyond, :reason, {now}, :by)
    on conflict (series, from_nominal)
    do update set to_nominal = excluded.to_nominal
 where duly_skipped.to_nominal < excluded.to_nominal
""",
)


async def skip_range(series: Series, span: Range, reason: str, by: str, *, said: str = "") -> None:
    """Write down that no window of a range is worked, of those without a row. `said` is a person's reason."""
    bounds = {"series": series.id, "first": span.first, "beyond": span.beyond}
    await count(SKIP_RANGE, **bounds, reason=reason, by=by)
    names = "..".join(nominal_text(series.grain, nominal, series.zone) for nominal in (span.first, span.beyond))
    changed = (states.ABSENT, states.SKIPPED)
    await tell("range_skipped", series=series.id, by=by, reason=said, detail=f"{names}: {reason}", changed=changed)


@record
class Taken:
    """A run was claimed: what it is, and the claim; `backfill`: for which one."""

    known: Known
    key: RunKey
    claim: Claim
    run: Run
    next_due: int | None
    backfill: int | None = None
    more: bool = False  # its line had more that could be worked


async def claim_next(
    declared: Declaration,
    claimer: Claimer,
    *,
    as_of: int | None,
    tried: Container[RunId],
) -> Taken | Idle | Refused | Misuse:
    """Register, open and drop what is owed, and take the oldest run that can be worked and was not tried yet.

    One transaction. Runs found with their holder gone are ended by contract on the way, so that any poke tells.
    """
    known = await declare(declared)
    if isinstance(known, (Refused, Misuse)):
        return known
    known = await _held(known)
    refusal = await refusal_of(known, declared)  # the schedule may have changed while we waited
    if refusal is not None:
        return refusal
    instant = await now()
    paused = pause_of(known, instant)
    if paused is not None:
        return Idle(known, None, None, paused=paused)
    as_of = instant if as_of is None else as_of
    backlog = await next_of_backlog(known, as_of, tried)
    if backlog is not None:
        first = backlog.first
        answer = await _claim_or_rival(known, first, claimer)
        if isinstance(answer, Claim):
            key = await key_here(known, first.id)
            return Taken(known, key, answer, answer.row or first, noted_next_due(known), more=backlog.more)
        if answer is not None:
            return Idle(known, answer, noted_next_due(known))
    known, due = await open_owed(known, as_of, declared.by)
    rows = await _with_fresh(known, due)
    for run in in_order(known, rows):
        if run.id in tried or not await is_workable(run, instant):
            continue
        if run.state == states.RUNNING and not ending_when_gone(run, instant).retry:
            await end_gone(run)
            continue
        answer = await _claim_or_rival(known, run, claimer)
        if isinstance(answer, Claim):
            key = await key_here(known, run.id)
            return Taken(known, key, answer, answer.row or run, due.next_due, more=run != rows[-1])
        if answer is not None:
            return Idle(known, answer, due.next_due)
    standing = standing_of(known, rows, due)
    return Idle(known, None if standing is None else await _unless_settled(standing.id), due.next_due)


async def _claim_or_rival(known: Known, run: Run, claimer: Claimer) -> Claim | Run | None:
    """The claim of a run that is owed, or the run that stands in its way; None where it needs none any more."""
    answer = await take_row(known, run, claimer, heed_retry_time=True)
    if isinstance(answer, Busy) and (rival := await _unless_settled(answer.run)) is not None:
        return rival
    if isinstance(answer, Busy):  # what was in its way has just gone
        answer = await take_row(known, run, claimer, heed_retry_time=True)
    if isinstance(answer, Busy):
        return await look(answer.run)
    return answer if isinstance(answer, Claim) else None


async def _unless_settled(run: RunId) -> Run | None:
    """A run that was in the way, as it is now; None where its holder settled it meanwhile, and has no message to deliver."""
    seen = await look(run)
    if seen is None or seen.state not in states.SETTLED:
        return seen
    from duly.ledger.messages import tally  # few come here

    return None if (await tally(run)).is_settled else seen


async def _with_fresh(known: Known, due: Owed) -> list[Run]:
    """The runs that are owed, those of the windows just opened among them, in their order."""
    if not due.fresh:
        return due.rows
    assert known.line is not None
    owed_now = {run.id for run in due.rows} | {_id(known, occurrence) for occurrence in due.fresh}
    return [run for run in await every(UNSETTLED_OF_LINE, Run, line=known.line.id) if run.id in owed_now]


async def claim_again(declared: Declaration, run: RunId, claimer: Claimer) -> Taken | Idle | Refused | Misuse:
    """Take a run that was attempted once more; nothing else is opened, and nothing dropped."""
    known = await declare(declared)
    if isinstance(known, (Refused, Misuse)):
        return known
    if not await is_of_line(known, run):  # what was seen of it went with its transaction
        return Idle(known, None, None)
    # An inline attempt that failed took the row of its window with it.
    seen = await look(run)
    known = await known_of(known, run)
    occurrence = find_nominal(await spells_of(known), run.nominal) if seen is None else None
    assert known.series is not None
    answer = await take(known, known.series, occurrence, run, seen, claimer, heed_retry_time=True)
    next_due = noted_next_due(known)
    if isinstance(answer, Claim):
        return Taken(known, await key_of(run), answer, answer.row or await seen_of(run), next_due)
    return answer if isinstance(answer, (Refused, Misuse)) else Idle(known, await look(run), next_due)


def _id(known: Known, occurrence: Occurrence) -> RunId:
    assert known.series is not None
    return RunId(known.series.id, occurrence.nominal)


async def take_row(
    known: Known, run: Run, claimer: Claimer, *, heed_retry_time: bool
) -> Claim | AlreadyCompleted | Busy | NotDue | Refused:
    """Take a run that has a row, under the bounds that are stored there (I8). Its line is held."""
    assert known.series is not None
    return await take(
        known, known.series, None, run.id, run, claimer, heed_retry_time=heed_retry_time, line_is_held=True
    )


async def _held(known: Known) -> Known:
    """Hold the line; what is known of the job as it is now."""
    assert known.line is not None
    await hold_line(known)
    return await find_again(known.job.name, known.line.scope)


async def open_owed(known: Known, as_of: int, by: str) -> tuple[Known, Owed]:
    """Look at what is owed of a line that is held, and write down what the policy makes of it."""
    due = await owed(known, as_of=as_of)
    if due.moved:
        await move(known, due.moved, by)
        known = await _held(known)
        due = await owed(known, as_of=as_of)
    await _write_down(known, due, by)
    return known, due


async def open_all_owed(known: Known, as_of: int, by: str) -> tuple[Known, list[Owed]]:
    """As `open_owed`, for all that has come due, in as many steps as it takes; the line as it is then, and each step."""
    steps: list[Owed] = []
    while not steps or steps[-1].more:
        known, due = await open_owed(known, as_of, by)
        steps.append(due)
        known = await hold_line(known)  # it remembers how far it was opened
    return known, steps


async def _write_down(known: Known, due: Owed, by: str) -> None:
    """Record what the policy decided: windows opened, rows skipped, a range where there are none."""
    assert known.line is not None
    assert known.series is not None
    for each in due.dropped_rows:
        if await count(SKIP_IF_FREE, **run_parameters(each.run.id), cause=each.cause):
            changed = (each.run.standing, states.SKIPPED)
            await tell("skipped", run=each.run.id, by=by, detail=each.cause, changed=changed)
    for span in due.dropped:
        await skip_range(known.series, span.range, span.cause, by)
    for occurrence in due.fresh:
        await open_to_work(known, _id(known, occurrence), occurrence, by)
    if (due.opened_until, due.next_due) != (known.line.opened_until, known.line.next_due):
        await count(OPENED_UNTIL, line=known.line.id, until=due.opened_until, next_due=due.next_due)
