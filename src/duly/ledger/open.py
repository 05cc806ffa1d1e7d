"""Open: what is owed, and the next run of it to work.

One function says what is owed (DESIGN §5), for `exec`, for `catch_up()` and for a daemon: occurrences that have come due
since the line's windows were last opened, and the runs that are unsettled, less what the catch-up policy drops. Every
drop leaves a skipped row, or a range where no row ever was. What stays owed is worked oldest first.
"""

from __future__ import annotations

from duly.errors import Misuse, Refused
from duly.ledger import states
from duly.ledger.address import key_of
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.events import tell
from duly.ledger.records import (
    LEASES,
    RUN_COLUMNS,
    AlreadyCompleted,
    Busy,
    Claim,
    Claimer,
    Known,
    Line,
    NotDue,
    Run,
    RunId,
    Series,
)
from duly.ledger.register import Declaration, declare, find, is_complete, refusal_of
from duly.ledger.spells import Spell, spell_in_force
from duly.ledger.take import end_gone, ending_when_gone, gone, look, run_parameters, take
from duly.records import record
from duly.schedule.keys import RunKey
from duly.schedule.occurrence import Occurrence

# How many windows one transaction opens at most: a year of five-minute windows must not hold the writer for a second.
OPEN_AT_ONCE = 2_000

UNSETTLED_OF_LINE = Statement(
    "unsettled_of_line",
    f"""
select {RUN_COLUMNS}
  from duly_series s
  join duly_run r on r.series = s.id
  {LEASES}
 where s.line = :line and r.state in {{unsettled}}
 order by r.due, r.series, r.nominal
""",
)

ROWS_BETWEEN = Statement(
    "rows_between",
    """
select nominal
  from duly_run
 where series = :series and nominal between :first and :last and revision = 1
""",
)

RANGES_BETWEEN = Statement(
    "ranges_between",
    """
select from_nominal, to_nominal
  from duly_skipped
 where series = :series and from_nominal <= :last and to_nominal > :first
""",
)

NEWEST_DUE = Statement(
    "newest_due",
    "select nominal from duly_run where series = :series and due <= :as_of order by nominal desc limit 1",
)

OPEN_IF_ABSENT = Statement(
    "open_if_absent",
    """
insert into duly_run (series, nominal, revision, state, fence, due, window_start, window_end, resolution, version,
       opened_at, failures)
select s.id, :nominal, 1, 'open', 0, :due, :window_start, :window_end, :resolution, :version, {now}, 0
  from duly_series s
 where s.id = :series and s.horizon <= :nominal {share}
    on conflict do nothing
""",
)

DROP_IF_FREE = Statement(
    "drop_if_free",
    """
update duly_run
   set was = state, state = {to}, settled_at = {now}, cause = :cause
 where series = :series and nominal = :nominal and revision = :revision
   and state in {from}
""",
    event="skip",
)

SKIP_RANGE = Statement(
    "skip_range",
    """
insert into duly_skipped (series, from_nominal, to_nominal, reason, at, by)
values (:series, :first, :beyond, :reason, {now}, :by)
    on conflict (series, from_nominal)
    do update set to_nominal = max(duly_skipped.to_nominal, excluded.to_nominal)
""",
)

OPENED_UNTIL = Statement(
    "opened_until",
    "update duly_line set opened_until = :until, next_due = :next_due where id = :line and opened_until <= :until",
)


@record
class Owed:
    """What is owed at an instant: runs with a row, windows without one, what is dropped, and when more comes due."""

    rows: list[Run]
    fresh: list[Occurrence]
    dropped_rows: list[Run]
    dropped_from: int | None  # windows without a row are dropped from this nominal …
    dropped_beyond: int | None  # … to this one, exclusive
    opened_until: int
    next_due: int | None
    newest: int | None = None  # the nominal of the newest that is due, where anything is unsettled or new

    @property
    def changes_the_ledger(self) -> bool:
        return bool(self.fresh or self.dropped_rows or self.dropped_from is not None)


async def owed(known: Known, *, as_of: int) -> Owed:
    """What is owed of a line at an instant."""
    line = known.line
    assert line is not None
    unsettled = [run for run in await every(UNSETTLED_OF_LINE, Run, line=line.id) if _due_by(run, as_of)]
    if not unsettled and (line.next_due is None or line.next_due > as_of) and line.opened_until is not None:
        # The common case of a duplicate: settled, and nothing new. The schedule need not even be understood.
        return Owed([], [], [], None, None, line.opened_until, line.next_due)
    spell = spell_in_force(known)
    series = known.series
    assert series is not None
    coming = _come_due(spell, line, series, known.job.catch_up, as_of)
    fresh = await without_rows(series, coming.occurrences)
    newest = await _newest_nominal(spell, series, as_of)
    if known.job.catch_up == "each":
        return Owed(unsettled, fresh, [], None, None, coming.until, coming.next_due, newest)
    kept: list[Run] = []
    dropped: list[Run] = []
    for run in unsettled:
        stays = _stays_owed(run) or (run.series, run.nominal) == (series.id, newest)
        (kept if stays else dropped).append(run)
    first, beyond = coming.dropped or (None, None)
    return Owed(kept, fresh, dropped, first, beyond, coming.until, coming.next_due, newest)


def _due_by(run: Run, as_of: int) -> bool:
    return run.due is not None and run.due <= as_of


def _stays_owed(run: Run) -> bool:
    """Runs that no catch-up policy drops: being worked, waiting for a person or for word, or asked for by a person."""
    return run.state in (states.RUNNING, states.UNKNOWN) or run.waits_for_a_person or run.asked_at is not None


async def _newest_nominal(spell: Spell, series: Series, as_of: int) -> int | None:
    """The newest window that is due: of the version in force, else the last that an earlier version opened."""
    newest = next(spell.before(as_of), None)
    if newest is not None or spell.since is None:
        return None if newest is None else newest.nominal
    return await one(NEWEST_DUE, int, series=series.id, as_of=as_of)


@record
class _Coming:
    occurrences: list[Occurrence]
    dropped: tuple[int, int] | None
    until: int
    next_due: int | None


def _come_due(spell: Spell, line: Line, series: Series, policy: str, as_of: int) -> _Coming:
    """The occurrences due since the line's windows were opened, as far as the policy keeps them. Pure."""
    since = line.opened_until if line.opened_until is not None else as_of
    if line.next_due is None or line.next_due > as_of:
        return _Coming([], None, since, line.next_due)
    admitted = (o for o in spell.after(since) if o.nominal >= series.horizon)
    first = next(admitted, None)
    if first is None or first.due > as_of or _ended(line, first.due):
        return _Coming([], None, max(since, as_of), None if first is None else first.due)
    if policy == "each":
        batch = [first]
        following = next(admitted, None)
        while following is not None and following.due <= as_of and not _ended(line, following.due):
            if len(batch) == OPEN_AT_ONCE:
                return _Coming(batch, None, batch[-1].due, following.due)
            batch.append(following)
            following = next(admitted, None)
        return _Coming(batch, None, as_of, None if following is None else following.due)
    newest = next(o for o in spell.before(as_of) if not _ended(line, o.due))
    dropped = (first.nominal, newest.nominal) if first.nominal < newest.nominal else None
    following = next(spell.after(as_of), None)
    return _Coming([newest], dropped, as_of, None if following is None else following.due)


def _ended(line: Line, due: int) -> bool:
    return line.ends is not None and due >= line.ends


async def without_rows(series: Series, occurrences: list[Occurrence]) -> list[Occurrence]:
    """Those that have no row yet (a person may have taken one by name) and lie in no skipped range."""
    if not occurrences:
        return []
    bounds = {"first": min(o.nominal for o in occurrences), "last": max(o.nominal for o in occurrences)}
    present = set(await every(ROWS_BETWEEN, int, series=series.id, **bounds))
    ranges = await every(RANGES_BETWEEN, lambda *ends: ends, series=series.id, **bounds)
    return [
        o
        for o in occurrences
        if o.nominal not in present and not any(first <= o.nominal < beyond for first, beyond in ranges)
    ]


# -- a poke -------------------------------------------------------------------------------------------------------------


@record
class Idle:
    """Nothing to work now. `standing` is the newest run that is due but unsettled, or the one that blocks it."""

    known: Known | None
    standing: Run | None
    next_due: int | None
    writes: bool = False  # there is something to claim or to record: a look cannot settle this poke


@record
class Taken:
    """A run was claimed: what it is, and the claim."""

    known: Known
    key: RunKey
    claim: Claim
    run: Run
    next_due: int | None


async def peek(declared: Declaration, *, as_of: int | None, tried: frozenset[RunId]) -> Idle | Refused | Misuse:
    """What a plain look says of a poke: nothing to do, and why; or that a claim has to be tried (`writes`).

    No lock, no commit: this is all that a duplicate costs.
    """
    known = await find(declared.job, declared.scope)
    refusal = refusal_of(known, declared)
    if refusal is not None:
        return refusal
    if known is None or not is_complete(known, declared):
        return Idle(known, None, None, writes=True)
    instant = await now()
    due = await owed(known, as_of=instant if as_of is None else as_of)
    workable = [
        run for run in _in_order(known, due.rows) if run.id not in tried and await _workable(known, run, instant)
    ]
    if not workable and not due.changes_the_ledger:
        return Idle(known, _standing(known, due.rows, due), due.next_due)
    holder = await _holder_in_the_way(known)
    if holder is not None:
        return Idle(known, holder, due.next_due)
    return Idle(known, None, due.next_due, writes=True)


def _standing(known: Known, rows: list[Run], due: Owed) -> Run | None:
    """The unsettled run that a poke has to answer for: the newest due, or of an ordered job the oldest, which blocks it."""
    if not rows:
        return None
    if known.job.ordered:
        return rows[0]
    assert known.series is not None
    return rows[-1] if (rows[-1].series, rows[-1].nominal) == (known.series.id, due.newest) else None


async def _holder_in_the_way(known: Known) -> Run | None:
    """The run that holds the line, where runs may not overlap and its holder is not gone."""
    if known.job.overlap or known.line is None or known.line.holder is None:
        return None
    held = await look(known.line.holder)
    if held is None or held.state != states.RUNNING or await gone(held):
        return None
    return held


def _in_order(known: Known, rows: list[Run]) -> list[Run]:
    """The runs that may be worked: all, or of an ordered job the oldest unsettled one."""
    return rows[:1] if known.job.ordered else rows


async def _workable(known: Known, run: Run, instant: int) -> bool:
    """Whether a claim of this run could succeed now, or would find its holder gone."""
    match run.state:
        case states.OPEN:
            return True
        case states.FAILED:
            return run.retry_at is not None and run.retry_at <= instant
        case states.RUNNING:
            return await gone(run)
    return False


async def claim_next(
    declared: Declaration,
    claimer: Claimer,
    *,
    as_of: int | None,
    tried: frozenset[RunId],
    only: RunId | None = None,
) -> Taken | Idle | Refused | Misuse:
    """Register, open and drop what is owed, and take the oldest run that can be worked and was not tried yet.

    One transaction. With `only`, no other run is taken. Runs found with their holder gone are ended by contract on the
    way, so that any poke tells.
    """
    known = await declare(declared)
    if isinstance(known, (Refused, Misuse)):
        return known
    instant = await now()
    due = await owed(known, as_of=instant if as_of is None else as_of)
    await write_down(known, due, declared.by)
    rows = sorted(
        [*due.rows, *[run for o in due.fresh if (run := await look(_id(known, o))) is not None]],
        key=lambda run: (run.due or 0, run.series, run.nominal),
    )
    for run in _in_order(known, rows):
        if run.id in tried or only not in (None, run.id) or not await _workable(known, run, instant):
            continue
        if run.state == states.RUNNING and ending_when_gone(known.job, run, instant).state == states.UNKNOWN:
            await end_gone(known.job, run)
            continue
        answer = await take_row(known, run, claimer, heed_retry_time=True)
        if isinstance(answer, Claim):
            return Taken(known, await key_of(run.id), answer, await _seen(run.id), due.next_due)
        if isinstance(answer, Busy):
            return Idle(known, await look(answer.run), due.next_due)
    standing = _standing(known, rows, due)
    return Idle(known, None if standing is None else await _seen(standing.id), due.next_due)


async def _seen(run: RunId) -> Run:
    seen = await look(run)
    assert seen is not None  # seen in this transaction
    return seen


def _id(known: Known, occurrence: Occurrence) -> RunId:
    assert known.series is not None
    return RunId(known.series.id, occurrence.nominal)


async def take_row(
    known: Known, run: Run, claimer: Claimer, *, heed_retry_time: bool
) -> Claim | AlreadyCompleted | Busy | NotDue | Refused:
    """Take a run that has a row, under the bounds that are stored there (I8)."""
    assert known.line is not None
    assert known.series is not None
    return await take(known.job, known.line, known.series, None, run.id, claimer, heed_retry_time=heed_retry_time)


async def open_window(known: Known, occurrence: Occurrence) -> None:
    """Give a window its row, if it has none and lies above the horizon."""
    assert known.series is not None
    await count(
        OPEN_IF_ABSENT,
        series=known.series.id,
        nominal=occurrence.nominal,
        due=occurrence.due,
        window_start=occurrence.start,
        window_end=occurrence.end,
        resolution=occurrence.resolution,
        version=known.job.version,
    )


async def write_down(known: Known, due: Owed, by: str) -> None:
    """Record what the policy decided: windows opened, rows skipped, a range where there are none."""
    assert known.line is not None
    assert known.series is not None
    cause = f"catch-up {known.job.catch_up}: a newer window was due"
    for run in due.dropped_rows:
        if await count(DROP_IF_FREE, **run_parameters(run.id), cause=cause):
            await tell("skipped", run=run.id, by=by, detail=cause)
    if due.dropped_from is not None:
        await count(
            SKIP_RANGE,
            series=known.series.id,
            first=due.dropped_from,
            beyond=due.dropped_beyond,
            reason=cause,
            by=by,
        )
    for occurrence in due.fresh:
        await open_window(known, occurrence)
    if due.opened_until != known.line.opened_until:
        await count(OPENED_UNTIL, line=known.line.id, until=due.opened_until, next_due=due.next_due)
