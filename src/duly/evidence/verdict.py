"""Verdicts: what to say of one window at an instant. Every view says the same of the same window, because it asks here.

A window is judged by its row where it has one, by the skipped range that it lies in, else by the schedule alone: a window
that came due while nobody poked has no row, and is missing all the same. Late is due for longer than grace. A running run
whose holder is gone is judged as what the next poke will make of it.
"""

from __future__ import annotations

from duly.errors import UnknownRun
from duly.evidence.on_record import TOLD_OF, OnRecord, on_record, progress, requests, tallies
from duly.evidence.words import ago
from duly.ledger import states
from duly.ledger.address import Addressed, key_in, key_of
from duly.ledger.ask import Statement, every, one
from duly.ledger.backfill import is_left
from duly.ledger.bounds import is_before_start, is_passed_over
from duly.ledger.cancel import Request, request_of
from duly.ledger.contracts import CANCELLED
from duly.ledger.messages import Tally, tally
from duly.ledger.policy import grace_of
from duly.ledger.progress import progress_of
from duly.ledger.records import (
    JOB_COLUMNS,
    LINE_COLUMNS,
    SERIES_COLUMNS,
    VERSION_COLUMNS,
    Job,
    Known,
    Run,
    RunId,
    pause_of,
    pause_words,
)
from duly.ledger.register import known_from_row
from duly.ledger.spells import Placed, known_by
from duly.ledger.take import ending_when_gone, gone
from duly.ledger.windows import NO_TIME_LEFT
from duly.records import record, replace
from duly.schedule.keys import RunKey
from duly.times import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.schedule.occurrence import Occurrence

COMPLETE = "complete"
SKIPPED = "skipped"
RUNNING = "running"
UNKNOWN = "unknown"
FAILED = "failed"  # and waits for a person
RETRYING = "retrying"  # failed, and taken again by policy
DUE = "due"  # not begun, and not late
LATE = "late"  # opened, never begun, and late
MISSING = "missing"  # never opened, and late
UNDELIVERED = "undelivered"  # completed, and not all of its messages are delivered
COMING = "coming"
NOT_OWED = "not owed"
PRUNED = "pruned"

_HELD_BACK = (DUE, LATE, MISSING, RETRYING)

WORDS = (
    *(COMPLETE, SKIPPED, RUNNING, UNKNOWN, FAILED, RETRYING, UNDELIVERED, DUE, LATE, MISSING, COMING, NOT_OWED, PRUNED),
)

AFTER_END = "after this line ended"
UNDECLARED = "its scope is no longer declared"

PRUNED_STATE = Statement(
    "pruned_state",
    # Of a run outside the schedule the state is kept; of what was named by an earlier schedule it is known to be settled.
    """
select coalesce(a.state, 'settled')
  from duly_series s
  left join duly_adhoc a on a.series = s.id and a.nominal = :nominal
 where s.id = :series and :nominal < s.horizon
""",
)

LINES = Statement(
    "lines",
    f"""
select {JOB_COLUMNS},
       {VERSION_COLUMNS},
       {LINE_COLUMNS},
       {SERIES_COLUMNS}
  from duly_job j
  join duly_line l on l.job = j.id
  left join duly_version v on v.job = j.id and v.number = j.version
  left join duly_series s on s.line = l.id and s.zone = v.zone and s.grain = v.grain
 where (cast(:name as text) is null or j.name = :name) and (cast(:scope as text) is null or l.scope = :scope)
 order by j.name, l.scope
""",
)


@record
class Verdict:
    """What to say of a window: one of `WORDS`, whether it is late, why in a few words, and the verb that mends it.

    `unattended`: no poke has come to work it for longer than grace, though one could have. `stuck`: no relay will deliver one
    of its messages by itself.
    """

    word: str
    late: bool = False
    note: str = ""
    verb: str = ""
    unattended: bool = False
    stuck: bool = False

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody should look: nothing that duly does by itself at the next poke makes it right in time."""
        return self.word in (UNKNOWN, FAILED) or self.unattended or self.stuck


@record
class Window:
    """A window of a line with all that is known of it now."""

    known: Known
    key: RunKey
    run: RunId
    occurrence: Occurrence | None
    row: Run | None
    verdict: Verdict
    backfill: int | None = None  # that owes it

    @property
    def due(self) -> int | None:
        """When it came or comes due: as stored, for the stored value wins (I8)."""
        if self.row is not None and self.row.due is not None:
            return self.row.due
        return None if self.occurrence is None else self.occurrence.due

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The half-open window of time: as stored, where there is a row; it may have none, whatever the rules say today."""
        if self.row is not None:
            start, end = self.row.window_start, self.row.window_end
            return None if start is None or end is None else (start, end)
        return None if self.occurrence is None else (self.occurrence.start, self.occurrence.end)


def judge_row(job: Job, row: Run, instant: int, *, holder_gone: bool, request: Request | None = None) -> Verdict:
    """What to say of a run that has a row. Pure. `request` is a person's, to its newest attempt, to stop."""
    bounds = None if row.window_start is None or row.window_end is None else (row.window_start, row.window_end)
    grace = grace_of(job, bounds)
    late = row.due is not None and instant - row.due > grace
    # Since when a poke could have worked it: a person who asks for a retry today is not told that it is a week late.
    workable_since = max(row.due or 0, row.retry_at or 0, row.asked_at or 0)
    unattended = late and instant - workable_since > grace
    cause = _cause(row, request)
    match row.state:
        case states.COMPLETED:
            return Verdict(COMPLETE, note="" if request is None else f"{request.by} asked it to stop, too late")
        case states.REPLACED:
            return Verdict(COMPLETE, note=f"reopened as revision {row.revision + 1}")
        case states.SKIPPED:
            return Verdict(SKIPPED, note=cause)
        case states.UNKNOWN:
            return Verdict(UNKNOWN, late, f"attempt {row.fence}: {cause or 'outcome unknown'}", "resolve")
        case states.RUNNING if holder_gone:
            return _judge_gone(job, row, instant, late=late, unattended=unattended)
        case states.RUNNING:
            asked = "" if request is None else f", asked to stop {_ago(request, instant)}, maybe alive"
            return Verdict(RUNNING, late, f"attempt {row.fence} by {row.owner}{asked}")
        case states.FAILED if row.retry_at is None:
            return Verdict(FAILED, late, f"{_after_attempts(row)}{cause}", "retry")
        case states.FAILED:
            return Verdict(RETRYING, late, f"{_after_attempts(row)}{cause}", "explain" if late else "", unattended)
    if row.due is not None and row.due > instant:
        return Verdict(COMING)
    note = f"given back: {cause}" if cause else "never started"
    return Verdict(LATE, late, note, "explain", unattended) if late else Verdict(DUE, note=note)


def _cause(row: Run, request: Request | None) -> str:
    """Why a run is what it is; and who asked its attempt to stop, whether or not that came of it."""
    cause = row.cause or ""
    if request is None or row.state not in (states.FAILED, states.UNKNOWN):
        return cause
    return f"cancelled by {request.by}" if cause == CANCELLED else f"{cause}; {request.by} had asked it to stop"


def _ago(request: Request, instant: int) -> str:
    return f"{ago(request.at, instant)} by {request.by}"


def _judge_gone(job: Job, row: Run, instant: int, *, late: bool, unattended: bool) -> Verdict:
    asked = " was asked to stop and" if row.cancel_is_asked else ""
    note = f"attempt {row.fence}{asked} vanished"
    ending = ending_when_gone(row, instant)
    if ending.state == states.UNKNOWN:
        return Verdict(UNKNOWN, late, f"{note}; what it did is not known", "resolve")
    if not ending.retry:
        return Verdict(FAILED, late, note, "retry")
    return Verdict(RETRYING, late, f"{note}; the next poke takes it again", "explain" if late else "", unattended)


def _after_attempts(row: Run) -> str:
    return f"{row.failures} failures, " if row.failures > 1 else ""


def judge_absent(known: Known, occurrence: Occurrence, skipped: str | None, instant: int) -> Verdict:
    """What to say of a window without a row. Pure. `skipped` is the reason of the range that it lies in."""
    line, series = known.line, known.series
    assert line is not None
    assert series is not None
    if skipped is not None:
        return Verdict(SKIPPED, note=skipped)
    if occurrence.off:
        return Verdict(SKIPPED, note=occurrence.off)
    if occurrence.nominal < series.horizon:
        return Verdict(PRUNED, note="settled long ago; its record was pruned")
    if is_before_start(known, occurrence):
        return Verdict(NOT_OWED, note="before this line began")
    if not line.owes(occurrence.due):
        return Verdict(NOT_OWED, note=AFTER_END)
    if occurrence.due > instant:
        return Verdict(COMING)
    if is_passed_over(known, occurrence):
        return Verdict(SKIPPED, note=NO_TIME_LEFT)
    if instant - occurrence.due <= grace_of(known.job, (occurrence.start, occurrence.end)):
        return Verdict(DUE, note="not yet started")
    never = "never started" if line.undeclared_at is None else f"never started; {UNDECLARED}"
    return Verdict(MISSING, late=True, note=never, verb="explain", unattended=True)


def with_messages(verdict: Verdict, job: Job, row: Run, messages: Tally, instant: int) -> Verdict:
    """The verdict of a run that completed, by how its messages stand: it is complete when all of them are delivered. Pure."""
    if messages.is_settled:
        few = f"{messages.skipped} of {messages.total} messages skipped" if messages.skipped else ""
        return replace(verdict, note="; ".join(filter(None, (verdict.note, few))))
    bounds = None if row.window_start is None or row.window_end is None else (row.window_start, row.window_end)
    late = row.due is not None and instant - row.due > grace_of(job, bounds)
    stuck = messages.unknown + messages.stuck > 0
    note = f"completed, {messages.words}"
    return Verdict(UNDELIVERED, late, note, "outbox show" if stuck or late else "", stuck=stuck)


def under_pause(verdict: Verdict, known: Known, instant: int) -> Verdict:
    """The verdict where a pause may hold the window back: it is as late, but who paused the job need not be told. Pure."""
    paused = pause_of(known, instant)
    if paused is None or verdict.word not in _HELD_BACK:
        return verdict
    note = "; ".join(filter(None, (verdict.note, pause_words(paused))))
    return replace(verdict, note=note, verb="", unattended=False)


def under_backfill(verdict: Verdict, number: int | None) -> Verdict:
    """The verdict of a window that a backfill owes: that works it, not a poke, and nobody need be told that it is old. Pure."""
    if number is None:
        return verdict
    note = "; ".join(filter(None, (verdict.note, f"backfill {number} owes it")))
    if verdict.word in (FAILED, UNKNOWN):
        return replace(verdict, note=note)
    return replace(verdict, note=note, verb="", unattended=False)


def grace_text(window: Window) -> str:
    """The grace of a window in words."""
    return duration_text(grace_of(window.known.job, window.bounds))


# -- reading ------------------------------------------------------------------------------------------------------------


async def lines(name: str | None = None, scope: str | None = None) -> list[Known]:
    """The lines of the ledger, or of one job, or one line, by name and scope."""
    return await every(LINES, known_from_row, name=name, scope=scope)


async def line_zone(name: str) -> str:
    """The zone of a job's schedule in force, for showing times; UTC without one."""
    version = next((known.version for known in await lines(name)), None)
    return "UTC" if version is None else version.zone


async def window_of_row(known: Known, row: Run, instant: int, occurrence: Occurrence | None = None) -> Window:
    """The window of a run that has a row, judged."""
    attempt = (row.id, row.attempt_id)
    request = await request_of(row)
    told = await progress_of(row) if row.state in TOLD_OF else None
    seen = OnRecord(
        {row.series: {row.nominal: row}},
        {},
        {},
        {row.id: await tally(row.id)} if row.state == states.COMPLETED else {},
        {} if told is None else {attempt: told},
        {} if request is None else {attempt: request},
    )
    holder_gone = row.state == states.RUNNING and await gone(row)
    key = await _key(known, row.id)
    return _window_of_row(known, key, row, instant, occurrence, seen, holder_gone=holder_gone)


async def windows_of_rows(pairs: list[tuple[Known, Run]], instant: int) -> list[Window]:
    """The windows of runs that have a row, each of a line, judged, in their order; in a few statements, however many."""
    rows = [row for _, row in pairs]
    seen = OnRecord(
        {},
        {},
        {},
        await tallies([row.id for row in rows if row.state == states.COMPLETED]),
        await progress([row for row in rows if row.state in TOLD_OF]),
        await requests([row for row in rows if row.cancel_is_asked]),
    )
    windows = []
    for known, row in pairs:
        holder_gone = row.state == states.RUNNING and await gone(row, instant)
        key = await _key(known, row.id)
        windows.append(_window_of_row(known, key, row, instant, None, seen, holder_gone=holder_gone))
    return windows


def _window_of_row(
    known: Known,
    key: RunKey,
    row: Run,
    instant: int,
    occurrence: Occurrence | None,
    seen: OnRecord,
    *,
    holder_gone: bool,
) -> Window:
    attempt = (row.id, row.attempt_id)
    request = seen.requests.get(attempt) if row.cancel_is_asked else None
    verdict = judge_row(known.job, row, instant, holder_gone=holder_gone, request=request)
    messages = seen.tallies.get(row.id)
    if row.state == states.COMPLETED and messages is not None:
        verdict = with_messages(verdict, known.job, row, messages, instant)
    number = row.backfill if row.state in states.UNSETTLED else None
    verdict = under_backfill(under_pause(verdict, known, instant), number)
    told = seen.progress.get(attempt) if row.state in TOLD_OF else None
    if told is not None:
        verdict = replace(verdict, note=f"{verdict.note}; {told.words}, {ago(told.at, instant)}")
    return Window(known, key, row.id, occurrence, row, verdict, number)


async def windows_of(known: Known, occurrences: list[Occurrence], instant: int) -> list[Window]:
    """The windows of these occurrences, judged, in their order."""
    (windows,) = await windows_of_many([(known, occurrences)], instant)
    return windows


async def windows_of_many(asked: list[tuple[Known, list[Occurrence]]], instant: int) -> list[list[Window]]:
    """The windows of the occurrences of each line, or series of one, judged, in their order. Those of one series that are asked
    for apart do not overlap. What is read for all of them takes a few statements, however many there are.
    """
    seen = await on_record([_span(known, occurrences) for known, occurrences in asked if occurrences])
    return [await _judged(known, occurrences, instant, seen) for known, occurrences in asked]


def _span(known: Known, occurrences: list[Occurrence]) -> tuple[int, int, int]:
    assert known.series is not None
    names = [occurrence.nominal for occurrence in occurrences]
    return known.series.id, min(names), max(names)


async def _judged(known: Known, occurrences: list[Occurrence], instant: int, seen: OnRecord) -> list[Window]:
    """Windows of one series, judged by what was read. Only whether a lapsed holder shows a pulse is looked at one by one."""
    if not occurrences:
        return []
    assert known.series is not None
    series = known.series
    asked_for = _asked_for(known, occurrences, seen)
    windows = []
    for occurrence in occurrences:
        row, number = seen.row(series.id, occurrence.nominal), asked_for.get(occurrence.nominal)
        if row is not None:
            holder_gone = row.state == states.RUNNING and await gone(row, instant)
            key = key_in(known, series, row.id)
            window = _window_of_row(known, key, row, instant, occurrence, seen, holder_gone=holder_gone)
            if window.backfill is None:
                window = replace(window, verdict=under_backfill(window.verdict, number), backfill=number)
            windows.append(window)
            continue
        skipped = seen.skipped(series.id, occurrence.nominal)
        verdict = under_pause(judge_absent(known, occurrence, skipped, instant), known, instant)
        verdict = under_backfill(verdict, number)
        run = RunId(series.id, occurrence.nominal)
        windows.append(Window(known, key_in(known, series, run), run, occurrence, None, verdict, number))
    return windows


async def windows_of_line(known: Known, placed: list[Placed], instant: int) -> list[Window]:
    """The windows of a line, of whichever of its series, judged, in their order."""
    judged: dict[tuple[tuple[str, str], int], Window] = {}
    for series in dict.fromkeys(each.series for each in placed):
        theirs = await known_by(known, *series)
        assert theirs is not None  # the line has a series for each spell of its own
        windows = await windows_of(theirs, [each.occurrence for each in placed if each.series == series], instant)
        judged |= {(series, window.run.nominal): window for window in windows}
    return [judged[each.series, each.occurrence.nominal] for each in placed]


def _asked_for(known: Known, occurrences: list[Occurrence], seen: OnRecord) -> dict[int, int]:
    """By nominal, the backfill that is still to come to a window, as things stand. Pure."""
    line, series = known.line, known.series
    assert line is not None
    assert series is not None
    live = seen.backfills.get(series.id)
    if not live:
        return {}
    sights = seen.sights(series.id)
    return {
        occurrence.nominal: mine.id
        for mine in live
        for occurrence in occurrences
        if is_left(mine, occurrence, line) and sights.wanted(occurrence, mine.wanted, mine.asked_at) is not None
    }


async def window_of(addressed: Addressed, instant: int) -> Window:
    """The window that was named, judged. Raises `UnknownRun` for one of an earlier series that has no row."""
    if addressed.row is not None:
        window = await window_of_row(addressed.known, addressed.row, instant, addressed.occurrence)
        if addressed.occurrence is None or window.backfill is not None or addressed.known.series is None:
            return window
        occurrences = [addressed.occurrence]
        seen = await on_record([_span(addressed.known, occurrences)])
        number = _asked_for(addressed.known, occurrences, seen).get(addressed.run.nominal)
        return replace(window, verdict=under_backfill(window.verdict, number), backfill=number)
    if addressed.occurrence is None:
        was = await one(PRUNED_STATE, str, series=addressed.run.series, nominal=addressed.run.nominal)
        if was is not None:
            verdict = Verdict(PRUNED, note=f"{was} long ago; its record was pruned")
            return Window(addressed.known, addressed.key, addressed.run, None, None, verdict)
        raise UnknownRun(f"the ledger has no run {addressed.key}, and the schedule in force no such window")
    (window,) = await windows_of(addressed.known, [addressed.occurrence], instant)
    return window


async def _key(known: Known, run: RunId) -> RunKey:
    if known.series is not None and run.series == known.series.id:
        return key_in(known, known.series, run)
    return await key_of(run)
