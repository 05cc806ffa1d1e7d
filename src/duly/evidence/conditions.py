"""Conditions: what is wrong now, and somebody may want to be told of. It is judged as `status` judges, from the schedule and
the rows, and nothing of it is stored: so a window that nobody ever opened is late though every scheduler is dead.

    late         a line with a window that is late and that nobody has come to work; since its grace was over
    failed       a run that waits for a person
    unknown      a run of which nobody knows what it did
    stuck        a destination with messages that were refused, are dead, or in doubt for longer than a quarter of an hour
    superseded   an attempt that vanished while its run went on under another
    drift        a run whose stored window is not what the rules say now

A late line is late until the window is complete or skipped: that somebody has begun it, or tried and failed, is no end of it.
"""

from __future__ import annotations

from duly.evidence.status import look_at_most, never_opened
from duly.evidence.verdict import (
    FAILED,
    LATE,
    MISSING,
    RETRYING,
    RUNNING,
    UNKNOWN,
    Window,
    lines,
    window_of_row,
)
from duly.ledger import alerts
from duly.ledger.address import key_of
from duly.ledger.alerts import Condition
from duly.ledger.ask import Statement, every, now
from duly.ledger.backfill_states import ors
from duly.ledger.message_states import DEAD, REFUSED, UNSETTLED
from duly.ledger.named import quoted, step
from duly.ledger.owed import UNSETTLED_OF_LINE, nothing_due_yet
from duly.ledger.policy import grace_of
from duly.ledger.records import Known, Run, RunId, pause_of
from duly.times import MINUTE, duration_text, instant_text

DOUBT_LASTS = 15 * MINUTE  # a doubt that the next sending or a probe settles is no news

_NOT_DONE = (LATE, MISSING, RETRYING, RUNNING, FAILED, UNKNOWN)

BUSY_LINES = Statement(
    "busy_lines",
    """
select distinct s.line
  from duly_run r
  join duly_series s on s.id = r.series
 where {unsettled}
""",
)

STUCK = Statement(
    "stuck_destinations",
    # Those that are not settled are few, and an index holds them.
    f"""
select m.destination, min(m.noted_at),
       sum(case when m.state = 'unknown' then 0 else 1 end), sum(case when m.state = 'unknown' then 1 else 0 end)
  from duly_message m
 where {ors("m.state", UNSETTLED)}
   and ({ors("m.state", (REFUSED, DEAD))}
        or (m.state = 'unknown' and coalesce(m.first_sent_at, m.noted_at) <= {{now}} - :doubt_lasts))
 group by m.destination
 order by m.destination
""",
)

TAKEN_OVER = Statement(
    "taken_over_since",
    """
select a.series, a.nominal, a.revision, a.number, a.ended_at, j.id, l.scope
  from duly_attempt a
  join duly_series s on s.id = a.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where a.outcome = 'lost' and a.ended_at >= :since
 order by a.ended_at
""",
)

DRIFTED = Statement(
    "drifted_since",
    """
select e.series, e.nominal, e.revision, min(e.at), min(e.detail), j.id, l.scope
  from duly_event e
  join duly_series s on s.id = e.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
 where e.kind = 'tz_drift' and e.at >= :since
 group by e.series, e.nominal, e.revision, j.id, l.scope
 order by min(e.at)
""",
)


async def conditions(since: int) -> list[Condition]:
    """All that is wrong in the ledger now, and what has happened since an instant."""
    instant = await now()
    busy = set(await every(BUSY_LINES, int))
    found: list[Condition] = []
    awake = [known for known in await lines() if known.job.name != alerts.JOB and _may_be_late(known, busy, instant)]
    for known in awake:
        found += await _of_line(known, instant, look_at_most(len(awake)))
    found += await every(STUCK, _stuck, doubt_lasts=DOUBT_LASTS)
    for *run, number, at, job, scope in await every(TAKEN_OVER, lambda *cells: cells, since=since):
        found.append(await _superseded(RunId(*run), number, at, job, scope))
    for *run, at, detail, job, scope in await every(DRIFTED, lambda *cells: cells, since=since):
        found.append(await _drifted(RunId(*run), at, detail, job, scope))
    return found


# -- lines and runs -----------------------------------------------------------------------------------------------------


def _may_be_late(known: Known, busy: set[int], instant: int) -> bool:
    """Whether a line has anything that is not settled, by the notes of the ledger: most have not. Pure."""
    assert known.line is not None
    return known.line.id in busy or not nothing_due_yet(known, instant)


async def _of_line(known: Known, instant: int, most: int) -> list[Condition]:
    assert known.line is not None
    rows = await every(UNSETTLED_OF_LINE, Run, line=known.line.id)
    windows = [await window_of_row(known, row, instant) for row in rows]
    found = [_of_run(known, window, instant) for window in windows if window.verdict.word in (FAILED, UNKNOWN)]
    asleep = await never_opened(known, instant, most)
    windows += asleep.windows
    is_paused = pause_of(known, instant) is not None
    late = [each for each in windows if not is_paused and each.verdict.late and _is_owed(each)]
    return [*found, *([_late(known, late, more=asleep.more)] if late else [])]


def _is_owed(window: Window) -> bool:
    """Whether a poke is to complete it. What a backfill owes is old, and nobody need be told that."""
    return window.verdict.word in _NOT_DONE and window.backfill is None


def _of_run(known: Known, window: Window, instant: int) -> Condition:
    said = window.verdict
    run = window.run
    kind = alerts.FAILED if said.word == FAILED else alerts.UNKNOWN
    return Condition(
        kind,
        f"run {run.series} {run.nominal} {run.revision}",
        known.job.id,
        window.key.scope,
        str(window.key),
        said.note,
        step(said.verb, window.key),
        instant,
    )


def _late(known: Known, late: list[Window], *, more: bool) -> Condition:
    """That a line is late: since the oldest of its windows is."""
    assert known.line is not None
    oldest = min(late, key=lambda window: window.due or 0)
    due, grace = oldest.due or 0, grace_of(known.job, oldest.bounds)
    others = f"; {len(late)} windows{' or more' if more else ''} are late" if len(late) > 1 else ""
    note = f"{oldest.key.middle} {oldest.verdict.note}, due {instant_text(due)} (grace {duration_text(grace)}){others}"
    return Condition(
        alerts.LATE,
        f"line {known.line.id}",
        known.job.id,
        known.line.scope,
        f"{known.line.scope}/{known.job.name}" if known.line.scope else known.job.name,
        note,
        step("explain", oldest.key),
        due + grace,
        raises=any(window.verdict.unattended for window in late),
    )


# -- messages -----------------------------------------------------------------------------------------------------------


def _stuck(destination: str, since: int, refused: int, in_doubt: int) -> Condition:
    parts = (f"{refused} refused or dead" if refused else "", f"{in_doubt} in doubt" if in_doubt else "")
    return Condition(
        alerts.STUCK,
        f"destination {destination}",
        None,
        "",
        destination,
        f"messages that nothing delivers by itself: {', '.join(filter(None, parts))}",
        f"duly outbox list --to {quoted(destination)}",
        since,
    )


# -- what has happened --------------------------------------------------------------------------------------------------


async def _superseded(run: RunId, number: int, at: int, job: int, scope: str) -> Condition:
    note = f"attempt {number} vanished, and its run goes on without it"
    return await _happened(alerts.SUPERSEDED, run, f" attempt {number}", note, at, job, scope)


async def _drifted(run: RunId, at: int, detail: str, job: int, scope: str) -> Condition:
    return await _happened(alerts.DRIFT, run, "", f"its window stays as stored, though {detail}", at, job, scope)


async def _happened(kind: str, run: RunId, part: str, note: str, at: int, job: int, scope: str) -> Condition:
    key = await key_of(run)
    subject = f"run {run.series} {run.nominal} {run.revision}{part}"
    return Condition(kind, subject, job, scope, str(key), note, step("explain", key), at, happened=True)
