"""Backfill: a durable request to owe past windows; what a person may say of one.

A backfill names windows of one line and works them under their own keys, as many at a time as it says, whoever comes to
work them (`backfill_claim`). It opens nothing ahead: its *place* in the range moves as slots come free. What has become of
its windows is not counted on its row, which would be a hot one; it is read from the runs. While it is active, paused or
stopped it owes its windows and holds the horizon below them, and its line's catch-up policy neither works nor drops them.

Who changes a backfill locks its row, after the job's and before the line's.
"""

from __future__ import annotations

from itertools import takewhile

from duly.errors import BelowHorizon, Misuse, NotAllowed, UnknownBackfill
from duly.ledger import backfill_states as backfills
from duly.ledger import states
from duly.ledger.address import known_or_raise
from duly.ledger.ask import Statement, count, every, now, one
from duly.ledger.events import tell
from duly.ledger.named import TO_FILL_IN
from duly.ledger.records import RunId
from duly.ledger.spells import Placed, spell_in_force, spells_of, spells_of_line, windows_after
from duly.ledger.take import hold_line, run_parameters
from duly.ledger.windows import SKIP_IF_FREE
from duly.records import record
from duly.schedule.keys import nominal_text
from duly.times import DAY, SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from duly.ledger.ask import Value
    from duly.ledger.records import Known, Line
    from duly.ledger.resolve import Word
    from duly.ledger.spells import Spell
    from duly.schedule.occurrence import Occurrence

# What a backfill may be asked to do: windows that nobody has worked, that were skipped, that failed, that are complete.
MISSING, SKIPPED, FAILED, COMPLETED = "missing", "skipped", "failed", "completed"
WHAT = (MISSING, SKIPPED, FAILED, COMPLETED)
ALL = (MISSING, FAILED, COMPLETED)  # a skip is somebody's word: it is taken back by name, or not at all

OLDEST, NEWEST = "oldest", "newest"

# What a window of a range is, besides those: not to be done by a backfill, or by this one.
OPEN, RUNNING, UNKNOWN, NO_WORK = states.OPEN, states.RUNNING, states.UNKNOWN, "no work"
KINDS = (MISSING, OPEN, RUNNING, COMPLETED, FAILED, UNKNOWN, SKIPPED, NO_WORK)

COLUMNS = """f.id, f.series, f.asked, f.from_nominal, f.to_nominal, f.since, f.until, f.what, f.direction, f.concurrency,
       f.stop_after, f.state, f.place, f.counts_from, f.asked_at, f.by, f.reason, f.said_by, f.said"""

FIND_BACKFILL = Statement("find_backfill", f"select {COLUMNS} from duly_backfill f where f.id = :id")

LOCK_BACKFILL = Statement(
    "lock_backfill",
    # How many of its runs are running is counted under this lock, by whoever wants to claim one more.
    f"select {COLUMNS} from duly_backfill f where f.id = :id {{lock}}",
)

BACKFILLS_OF_LINE = Statement(
    "backfills_of_line",
    f"""
select {COLUMNS}
  from duly_series s
  join duly_backfill f on f.series = s.id
 where s.line = :line
 order by f.id
""",
)

LIVE_BETWEEN = Statement(
    "live_backfills_between",
    f"""
select {COLUMNS}
  from duly_backfill f
 where f.series = :series and {backfills.ors("f.state", backfills.LIVE)}
   and f.from_nominal < :beyond and f.to_nominal > :first
 order by f.id
""",
)

HOLD_JOB = Statement(
    "hold_job_of_backfill",
    # By its id: a job that was renamed is not found by the name that it was called by, and would not be held.
    "select name from duly_job where id = :job {lock}",
)

ADD_BACKFILL = Statement(
    "add_backfill",
    # I7: the series is held, so that no prune can pass the range while it is asked for.
    """
insert into duly_backfill (series, asked, from_nominal, to_nominal, since, until, what, direction, concurrency, stop_after,
       state, place, counts_from, asked_at, by, reason, said_by, said)
select s.id, :asked, :first, :beyond, :since, :until, :what, :direction, :concurrency, cast(:stop_after as bigint),
       'active', :place, {now}, {now}, :by, :reason, :by, :reason
  from duly_series s
 where s.id = :series and s.horizon <= :first {share}
""",
)

NEWEST_BACKFILL = Statement("newest_backfill", "select max(id) from duly_backfill where series = :series")

ADOPT_OPEN = Statement(
    "adopt_open",
    # Under the lock of the line: a poke that holds it has seen the run as its line's, and takes or drops it first.
    """
insert into duly_backfill_run (series, nominal, revision, backfill, was_owed)
select series, nominal, revision, :backfill, 1
  from duly_run
 where series = :series and nominal >= :first and nominal < :beyond and state = 'open'
    on conflict (series, nominal, revision) do update set backfill = excluded.backfill, was_owed = excluded.was_owed
""",
)

ADOPT = Statement(
    "adopt_run",
    """
insert into duly_backfill_run (series, nominal, revision, backfill, was_owed)
values (:series, :nominal, :revision, :backfill, 0)
    on conflict (series, nominal, revision) do update set backfill = excluded.backfill
""",
)

OPEN_OF_BACKFILL = Statement(
    "open_of_backfill",
    """
select r.series, r.nominal, r.revision
  from duly_run r
  join duly_backfill_run b on b.series = r.series and b.nominal = r.nominal and b.revision = r.revision
 where r.series = :series and {unsettled} and r.state = 'open' and b.backfill = :backfill and b.was_owed = 0
 order by r.nominal
""",
)

_MOVES = {
    event: Statement(
        f"{event}_backfill",
        f"""
update duly_backfill
   set state = '{backfills.target(event)}', said_by = :by, said = :reason,
       counts_from = {"{now}" if event == "resume" else "counts_from"}
 where id = :id and {backfills.ors("state", backfills.sources(event))}
""",
    )
    for event in backfills.TRANSITIONS
}

SIGHTS = Statement(
    "sights",
    # Of several revisions the newest comes last.
    """
select nominal, revision, state, settled_at, started_at, window_start
  from duly_run
 where series = :series and nominal >= :first and nominal < :beyond
 order by nominal, revision
""",
)

SKIPPED_BETWEEN = Statement(
    "skipped_between",
    """
select from_nominal, to_nominal, at
  from duly_skipped
 where series = :series and from_nominal < :beyond and to_nominal > :first
""",
)


@record
class Backfill:
    """A backfill's row. `place` is an instant: the windows before it, in its direction, were opened or passed over."""

    id: int
    series: int
    asked: str
    first: int
    beyond: int
    since: int
    until: int
    what: str
    direction: str
    concurrency: int
    stop_after: int | None
    state: str
    place: int
    counts_from: int
    asked_at: int
    by: str
    reason: str
    said_by: str
    said: str

    @property
    def wanted(self) -> tuple[str, ...]:
        """What it does, by name."""
        return tuple(self.what.split(","))


@record
class Asked:
    """What a person asks for. `first` and `beyond` are nominals, half-open; without `beyond` up to now."""

    text: str
    first: int
    beyond: int | None
    what: tuple[str, ...] = (MISSING,)
    direction: str = OLDEST
    concurrency: int = 1
    stop_after: int | None = None


@record
class Sight:
    """The newest revision of a run of a range, as far as a backfill cares."""

    nominal: int
    revision: int
    state: str
    settled_at: int | None
    started_at: int | None
    window_start: int | None


@record
class SkippedRange:
    """Windows without rows that were skipped, and when."""

    first: int
    beyond: int
    at: int


@record
class Before:
    """Windows in a range that came due under schedules that counted by another zone or grain: how many, and the newest."""

    windows: int
    newest: str  # its name, with its zone

    def words(self, known: Known) -> str:
        """What they are, and what can be done about them."""
        scope = f" --scope {known.line.scope}" if known.line is not None and known.line.scope else ""
        return (
            f"{self.windows} belong to the schedule of before, which counted by another zone or grain, and no backfill comes "
            f"to them; name them singly, as `duly exec {known.job.name}{scope} --window '{self.newest}' -- COMMAND`"
        )


@record
class Plan:
    """What a backfill would do: the windows of its range by kind, those it would do, and those it leaves out."""

    known: Known
    asked: Asked
    counts: dict[str, int]
    to_do: int
    first: Occurrence | None  # of the range, in order of time
    last: Occurrence | None
    low: int  # names, half-open
    beyond: int
    future: int  # in the range and not due yet
    not_owed: int  # in the range, and due only after the line has ended
    before: Before | None  # in the range, and no backfill's: a schedule of before answers for them
    at_a_time: int


# -- what its windows are ------------------------------------------------------------------------------------------------


def check(asked: Asked) -> None:
    """Raise `Misuse`, naming the field, for what makes no sense. Pure."""
    unknown = [what for what in asked.what if what not in WHAT]
    if unknown or not asked.what:
        raise Misuse(f"what: {','.join(unknown)!r} is none of {', '.join(WHAT)}, all")
    if asked.direction not in (OLDEST, NEWEST):
        raise Misuse(f"order: {asked.direction!r} is neither oldest nor newest")
    if asked.concurrency < 1:
        raise Misuse(f"concurrency: {asked.concurrency} is not a number of runs from 1 on")
    if asked.stop_after is not None and asked.stop_after < 1:
        raise Misuse(f"stop_after: {asked.stop_after} is not a number of failures from 1 on")


def in_order(spells: list[Spell], since: int, first: int, beyond: int | None) -> Iterator[Occurrence]:
    """The windows named in [first, beyond) that end after an instant, in order of their bounds. Pure."""
    slack = 8 * DAY // SECOND  # names of neighbours may come in the other order where clocks are set back
    for occurrence in windows_after(spells, since):
        if beyond is not None and occurrence.nominal >= beyond + slack:
            return
        if occurrence.nominal >= first and (beyond is None or occurrence.nominal < beyond):
            yield occurrence


def newest_first(spells: list[Spell], until: int, since: int, first: int, beyond: int) -> Iterator[Occurrence]:
    """The windows named in [first, beyond) that end by one instant and after another, the newest first. Pure."""
    edge, span = until, 2 * DAY
    while edge > since:
        begin = max(edge - span, since)
        some = list(takewhile(lambda o: o.end <= edge, windows_after(spells, begin)))  # noqa: B023  used at once
        yield from (o for o in reversed(some) if first <= o.nominal < beyond)
        edge, span = begin, 2 * span


def windows_left(mine: Backfill, spells: list[Spell], line: Line) -> Iterator[Occurrence]:
    """The windows of a backfill beyond its place, in its direction, as far as its line owes them. Pure."""
    if mine.direction == NEWEST:
        ahead = newest_first(spells, mine.place, mine.since, mine.first, mine.beyond)
    else:
        ahead = _until_its_end(mine, spells, mine.place)
    return (o for o in ahead if line.owes(o.due))


def windows_not_owed(mine: Backfill, spells: list[Spell], line: Line) -> Iterator[Occurrence]:
    """The windows of the range of a backfill that come due after its line has ended. Pure."""
    return (o for o in _until_its_end(mine, spells, mine.since) if not line.owes(o.due))


def _until_its_end(mine: Backfill, spells: list[Spell], since: int) -> Iterator[Occurrence]:
    return takewhile(lambda o: o.end <= mine.until, in_order(spells, since, mine.first, mine.beyond))


def is_left(mine: Backfill, occurrence: Occurrence, line: Line) -> bool:
    """Whether a window lies in the range of a backfill, beyond its place, and its line owes it. Pure."""
    if not mine.first <= occurrence.nominal < mine.beyond or not line.owes(occurrence.due):
        return False
    return occurrence.end > mine.place if mine.direction == OLDEST else occurrence.end <= mine.place


def place_after(mine: Backfill, occurrence: Occurrence) -> int:
    """Where a backfill stands when it has dealt with a window. No two windows of a line end at one instant. Pure."""
    return occurrence.end if mine.direction == OLDEST else occurrence.end - 1


@record
class Sights:
    """What is on record of the windows in a range of names."""

    rows: dict[int, Sight]
    skipped: list[SkippedRange]

    def kind(self, occurrence: Occurrence) -> str:
        """What a window is: one of `KINDS`."""
        row = self.rows.get(occurrence.nominal)
        if row is None:
            if occurrence.off:
                return NO_WORK
            return MISSING if self.range_over(occurrence) is None else SKIPPED
        if row.state == states.SKIPPED:
            return NO_WORK if occurrence.off or row.window_start is None else SKIPPED
        return row.state

    def range_over(self, occurrence: Occurrence) -> SkippedRange | None:
        """The skipped range that a window lies in."""
        return next((span for span in self.skipped if span.first <= occurrence.nominal < span.beyond), None)

    def wanted(self, occurrence: Occurrence, what: tuple[str, ...], asked_at: int | None = None) -> str | None:
        """The kind of a window that is to be done, or None. What was done or given up since it was asked for is not.

        A range is written by no person but by a policy: what that drops after it was asked for is done all the same.
        """
        kind = self.kind(occurrence)
        if kind in (OPEN, MISSING):
            return kind if MISSING in what else None
        row = self.rows.get(occurrence.nominal)
        if row is None:
            span = self.range_over(occurrence)
            dropped_since = span is not None and asked_at is not None and span.at > asked_at
            return kind if SKIPPED in what or (dropped_since and MISSING in what) else None
        if kind not in what:
            return None
        at = row.started_at if kind == FAILED else row.settled_at
        return None if asked_at is not None and at is not None and at > asked_at else kind


async def look_at(series: int, first: int, beyond: int) -> Sights:
    """Read what is on record of the windows named in [first, beyond)."""
    bounds = {"series": series, "first": first, "beyond": beyond}
    rows = {row.nominal: row for row in await every(SIGHTS, Sight, **bounds)}
    return Sights(rows, await every(SKIPPED_BETWEEN, SkippedRange, **bounds))


# -- asking for it -------------------------------------------------------------------------------------------------------


def _nobody(seen: int) -> None:
    """Whoever is told how far it is, where nobody asks."""


async def plan(name: str, scope: str, asked: Asked, tell: Callable[[int], object] = _nobody) -> Plan:
    """What a backfill would do. Looks only. `tell` is called with how many windows were looked at so far.

    Raises `BelowHorizon` with the number of windows that were pruned, `Misuse` naming the field, `NoSchedule`,
    `UnknownJob`, `UnknownScope`.
    """
    check(asked)
    known = await known_or_raise(name, scope)
    spells = await spells_of(known)
    assert known.series is not None
    if known.job.ordered and asked.direction == NEWEST:
        raise Misuse(f"order: {name} is ordered: a run waits until the one before it is settled, so oldest first")
    assert known.line is not None
    ahead = in_order(spells, _before(asked.first), asked.first, asked.beyond)
    windows, future, not_owed = _split(ahead, asked, await now(), known.line, tell)
    below = [o for o in windows if o.nominal < known.series.horizon]
    if below:
        horizon = nominal_text(known.series.grain, known.series.horizon, known.series.zone)
        raise BelowHorizon(
            f"{len(below)} windows of {asked.text} lie below the horizon of {name}: they were settled and pruned, and "
            f"are never worked again; begin the range at {horizon}"
        )
    low, beyond = min((o.nominal for o in windows), default=0), max((o.nominal for o in windows), default=0) + 1
    sights = await look_at(known.series.id, low, beyond)
    counts = dict.fromkeys(KINDS, 0)
    for occurrence in windows:
        counts[sights.kind(occurrence)] += 1
    to_do = sum(sights.wanted(occurrence, asked.what) is not None for occurrence in windows)
    at_a_time = asked.concurrency if known.job.overlap and not known.job.ordered else 1
    first, last = (windows[0], windows[-1]) if windows else (None, None)
    return Plan(
        known,
        asked,
        counts,
        to_do,
        first,
        last,
        low,
        beyond,
        future,
        not_owed,
        await _before_now(known, asked),
        at_a_time,
    )


async def _before_now(known: Known, asked: Asked) -> Before | None:
    """The windows of a range in the former series of a line. Ranges are civil times: they lie in each zone at its own."""
    spells = await spells_of_line(known)
    in_force = spell_in_force(known).series
    instant, line = await now(), known.line
    assert line is not None
    windows, newest = 0, ""
    for series in dict.fromkeys(spell.series for spell in spells if spell.series != in_force):
        theirs = [spell for spell in spells if spell.series == series]
        for occurrence in in_order(theirs, _before(asked.first), asked.first, asked.beyond):
            if occurrence.due > instant:
                break
            if line.owes(occurrence.due):
                windows, newest = windows + 1, Placed(theirs[-1], occurrence).name
    return Before(windows, newest) if windows else None


def _before(nominal: int) -> int:
    """An instant before every window of this name or a higher one ends, whatever the zone."""
    return (nominal >> 1) * SECOND - 2 * DAY


def _split(
    windows: Iterable[Occurrence], asked: Asked, instant: int, line: Line, tell: Callable[[int], object]
) -> tuple[list[Occurrence], int, int]:
    """The windows that are due and owed; how many of a range with an end are not due; how many the line does not owe."""
    due: list[Occurrence] = []
    future = not_owed = 0
    for occurrence in windows:
        if occurrence.due > instant and asked.beyond is None:
            break
        if not line.owes(occurrence.due):
            not_owed += 1
        elif occurrence.due <= instant:
            due.append(occurrence)
        else:
            future += 1
        tell(len(due) + future + not_owed)
    return due, future, not_owed


@record
class Started:
    """A backfill that was started, and what it will do."""

    backfill: Backfill
    plan: Plan


async def start(
    name: str,
    scope: str,
    asked: Asked,
    word: Word,
    *,
    expect: int | None = None,
    tell: Callable[[int], object] = _nobody,
) -> Started:
    """Ask for windows to be owed; `tell` as for `plan`.

    Raises as `plan`, and `NotAllowed` where there is nothing to do, or another has them.

    `expect` is how many windows the caller was told; completed ones are done again only by who says it.
    """
    # Two who start one after the other see each other's, whichever of its names they call the job by.
    job = (await known_or_raise(name, scope)).job.id
    name_now = await one(HOLD_JOB, str, job=job)
    assert name_now is not None  # a job is never deleted
    planned = await plan(name_now, scope, asked, tell)
    series = planned.known.series
    assert series is not None
    if COMPLETED in asked.what and expect is None:
        raise Misuse(
            f"expect: completed windows would be done again, {planned.counts[COMPLETED]} of {planned.to_do}; "
            f"say how many windows you expect"
        )
    if expect is not None and expect != planned.to_do:
        raise Misuse(f"expect: {planned.to_do} windows would be done, not {expect}; nothing was changed")
    if not planned.to_do:
        left = [f"{number} {kind}" for kind, number in planned.counts.items() if number] or ["no window"]
        left += [] if planned.before is None else [planned.before.words(planned.known)]
        raise NotAllowed(f"nothing of {asked.text} is {' or '.join(asked.what)}: {', '.join(left)}")
    assert planned.first is not None
    assert planned.last is not None
    others = await every(LIVE_BETWEEN, Backfill, series=series.id, first=planned.low, beyond=planned.beyond)
    if others:
        raise NotAllowed(
            f"backfill {others[0].id} ({others[0].asked}, {others[0].state}) has windows of this range; "
            "wait until it is done, or cancel it",
            next_step=f"duly backfill show {others[0].id}",
        )
    columns: dict[str, Value] = {
        "series": series.id,
        "asked": asked.text,
        "first": planned.low,
        "beyond": planned.beyond,
        "since": planned.first.start,
        "until": planned.last.end,
        "what": ",".join(asked.what),
        "direction": asked.direction,
        "concurrency": asked.concurrency,
        "stop_after": asked.stop_after,
        "place": planned.first.start if asked.direction == OLDEST else planned.last.end,
        "by": word.by,
        "reason": word.reason,
    }
    await hold_line(planned.known)  # before its series, which is held as the row is added
    if not await count(ADD_BACKFILL, **columns):
        raise BelowHorizon(f"windows of {asked.text} were pruned just now; nothing was changed")
    number = await one(NEWEST_BACKFILL, int, series=series.id)
    assert number is not None
    if MISSING in asked.what:
        await count(ADOPT_OPEN, series=series.id, first=planned.low, beyond=planned.beyond, backfill=number)
    mine = await find_backfill(number)
    await _tell("backfill_started", states.ABSENT, mine, planned.known.job.id, word)
    return Started(mine, planned)


# -- what a person says of one -------------------------------------------------------------------------------------------


def _unknown(number: int) -> UnknownBackfill:
    return UnknownBackfill(f"the ledger knows no backfill {number}", next_step="duly backfill list")


async def find_backfill(number: int) -> Backfill:
    """A backfill by its number. Raises `UnknownBackfill`."""
    mine = await one(FIND_BACKFILL, Backfill, id=number)
    if mine is None:
        raise _unknown(number)
    return mine


@record
class Owner:
    """The job and scope whose windows a backfill owes."""

    job: str
    scope: str


OWNER_OF = Statement(
    "owner_of_backfill",
    """
select j.name, l.scope
  from duly_backfill f
  join duly_series s on s.id = f.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where f.id = :id
""",
)


async def owner_of(number: int) -> Owner:
    """Whose windows a backfill owes. Raises `UnknownBackfill`."""
    found = await one(OWNER_OF, Owner, id=number)
    if found is None:
        raise _unknown(number)
    return found


async def scope_of_backfill(number: int, job: str, scope: str | None) -> str:
    """The scope of a backfill that is named. Raises `UnknownBackfill`, and `Misuse` for one of another job or scope."""
    owner = await owner_of(number)
    if owner.job != job or scope not in (None, owner.scope):
        whose = f"{owner.scope}/{owner.job}" if owner.scope else owner.job
        raise Misuse(f"backfill: {number} is one of {whose}", next_step=f"duly backfill show {number}")
    return owner.scope


async def backfills_of(known: Known) -> list[Backfill]:
    """The backfills of a line, oldest first."""
    assert known.line is not None
    return await every(BACKFILLS_OF_LINE, Backfill, line=known.line.id)


async def pause_backfill(number: int, word: Word) -> Backfill:
    """Start nothing more of a backfill until it is resumed. Raises `UnknownBackfill`, `NotAllowed`."""
    return await move(number, "pause", "backfill_paused", word)


async def resume_backfill(number: int, word: Word) -> Backfill:
    """Go on with a backfill that is paused or stopped; what has failed by now does not stop it again.

    Raises as `pause`, and `NotAllowed` for one whose series is not in force: its next claim would stop it.
    """
    mine, owner = await find_backfill(number), await owner_of(number)
    known = await known_or_raise(owner.job, owner.scope)
    is_held = mine.state in backfills.sources("resume")
    if is_held and (known.series is None or known.series.id != mine.series):
        raise NotAllowed(
            f"cannot resume backfill {number}: its windows belong to the schedule of before, which counted by another zone or "
            "grain; cancel it, and name those that are left singly",
            next_step=f"duly backfill cancel {number} --reason '{TO_FILL_IN}'",
        )
    return await move(number, "resume", "backfill_resumed", word)


async def cancel_backfill(number: int, word: Word) -> Backfill:
    """End a backfill for good. What is running ends as it ends, and what was given back is skipped. Raises as `pause`.

    A run that was open before goes back to its line, and so does one that failed and is to be tried again.
    """
    mine = await move(number, "cancel", "backfill_cancelled", word)
    cause = f"backfill {number} was cancelled: {word.reason}"
    for run in await every(OPEN_OF_BACKFILL, RunId, series=mine.series, backfill=number):
        if await count(SKIP_IF_FREE, **run_parameters(run), cause=cause):
            changed = (states.OPEN, states.SKIPPED)
            await tell("skipped", run=run, by=word.by, reason=word.reason, detail=cause, changed=changed)
    return mine


async def move(number: int, event: str, kind: str, word: Word, detail: str = "") -> Backfill:
    """Bring a backfill into another state, with an event. Raises `UnknownBackfill`, and `NotAllowed` by the table."""
    if await one(LOCK_BACKFILL, Backfill, id=number) is None:
        raise _unknown(number)
    before = await find_backfill(number)
    if not await count(_MOVES[event], id=number, by=word.by, reason=word.reason):
        raise NotAllowed(
            f"cannot {event} backfill {number}: it is {before.state}", next_step=f"duly backfill show {number}"
        )
    after = await find_backfill(number)
    await _tell(kind, before.state, after, None, word, detail)
    return after


JOB_OF_SERIES = Statement(
    "job_of_series",
    "select l.job from duly_series s join duly_line l on l.id = s.line where s.id = :series",
)


async def _tell(kind: str, before: str, mine: Backfill, job: int | None, word: Word, detail: str = "") -> None:
    job = await one(JOB_OF_SERIES, int, series=mine.series) if job is None else job
    said = "; ".join(filter(None, (f"backfill {mine.id}: {mine.what} of {mine.asked}", detail)))
    await tell(kind, job=job, by=word.by, reason=word.reason, detail=said, changed=(before, mine.state))
