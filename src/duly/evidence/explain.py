"""Explain: all that is needed to say why a run ran, did not, or will. `explain_words` puts it in sentences.

A window without a row is explained as well: before the line began, in a skipped range, not due yet, owed at the next poke,
dropped by the catch-up policy at the next poke, or pruned.
"""

from __future__ import annotations

from duly.evidence import verdict
from duly.evidence.complete_through import Completeness, completeness_of
from duly.evidence.runs import History, history
from duly.evidence.verdict import Window, lines, window_of, windows_of_line
from duly.ledger import states
from duly.ledger.address import Addressed, key_of
from duly.ledger.ask import Statement, alive, every, now, one
from duly.ledger.backfill import COLUMNS, Backfill, find_backfill
from duly.ledger.events import Event
from duly.ledger.messages import Message, MessageAttempt, attempts_at_message
from duly.ledger.owed import UNSETTLED_OF_LINE, dropped_next
from duly.ledger.probe import Asked, last_asked
from duly.ledger.records import Pause, Run, Version, pause_of
from duly.ledger.spells import VERSIONS_OF, placed_before, spells_of_line
from duly.ledger.take import gone, look
from duly.records import record

# How many messages of a run are told of with each of their sendings.
MOST_WITH_SENDINGS = 50

RANGE_OVER_WINDOW = Statement(
    "range_over_window",
    """
select reason, at, by
  from duly_skipped
 where series = :series and from_nominal <= :nominal and to_nominal > :nominal
 order by at
 limit 1
""",
)


LAST_END = Statement(
    "last_end",
    # Events of a job name its scope in their detail.
    """
select by, reason
  from duly_event
 where job = :job
   and (kind = 'job_retired' or (kind = 'scope_retired' and substr(detail, 1, length(:named)) = :named))
 order by id desc limit 1
""",
)

BACKFILL_OF_RUN = Statement(
    "backfill_of_run",
    # The last that took the run on, whatever has become of it since.
    f"""
select {COLUMNS}
  from duly_backfill_run b
  join duly_backfill f on f.id = b.backfill
 where b.series = :series and b.nominal = :nominal
 order by f.id desc
 limit 1
""",
)


PAUSES_BETWEEN = Statement(
    "pauses_between",
    # What is said of one scope names it in its detail.
    """
select at, kind, attempt_id, by, reason, detail, before, after
  from duly_event
 where job = :job and at between :since and :until and (kind = 'paused' or kind = 'resumed')
   and (substr(detail, 1, 6) <> 'scope ' or substr(detail, 1, length(:named)) = :named)
 order by at, id
""",
)


@record
class End:
    """Who ended a line, and why."""

    by: str
    reason: str


@record
class SkippedRange:
    """Why, when and by whom a range of windows was skipped."""

    reason: str
    at: int
    by: str


@record
class Sent:
    """A message with the sendings of it that have ended, oldest first."""

    message: Message
    sendings: list[MessageAttempt]


@record
class Explanation:
    """All that is needed to explain one window at an instant. `in_the_way`: the key of a run that must end first.

    `dropped`: why the next poke will skip it, if it will; `newest` is the key of a newer window that is due. `asked`: what has
    come of asking its probe, where its outcome is unknown. `holder_alive`: whether the process shows a pulse whose lease is
    over and whose end nobody saw; None where nobody can tell, or it is no question. `paused`: what was said of pauses since it
    came due. `completeness`: how far its line is complete, where there is one with a schedule.
    """

    as_of: int
    window: Window
    versions: list[Version]
    history: History
    sent: list[Sent]
    dropped: str | None
    newest: str | None
    in_the_way: str | None
    skipped: SkippedRange | None
    end: End | None
    asked: Asked | None
    backfill: Backfill | None
    pause: Pause | None
    paused: list[Event]
    holder_alive: bool | None
    completeness: Completeness

    @property
    def was_resolved(self) -> set[bytes]:
        """The attempts of which a person or a probe said how they ended."""
        told = (told.event for told in self.history.events if told.event.kind == "resolved")
        return {event.attempt_id for event in told if event.attempt_id is not None}


async def explain(addressed: Addressed) -> Explanation:
    """Read what there is to tell of the window that was named. Raises `UnknownRun` as `window_of`."""
    instant = await now()
    window = await window_of(addressed, instant)
    known, run = addressed.known, {"series": window.run.series, "nominal": window.run.nominal}
    scheduled = known.version is not None and known.series is not None
    past = await history(addressed)
    return Explanation(
        instant,
        window,
        await every(VERSIONS_OF, Version, job=known.job.id),
        past,
        await _sent(past),
        (await dropped_next(known, instant))(window.run),
        await _newest(window, instant) if scheduled else None,
        await _in_the_way(window),
        await one(RANGE_OVER_WINDOW, SkippedRange, **run),
        await _end(window),
        await _asked(window),
        await find_backfill(window.backfill) if window.backfill else await one(BACKFILL_OF_RUN, Backfill, **run),
        pause_of(known, instant),
        await _paused(window, instant),
        await _holder_alive(window),
        await _completeness(window, instant),
    )


async def _completeness(window: Window, instant: int) -> Completeness:
    """Of the line as it is in force, whichever series the window is of."""
    line = window.known.line
    assert line is not None
    (in_force,) = await lines(window.known.job.name, line.scope)
    return await completeness_of(in_force, instant)


async def _sent(past: History) -> list[Sent]:
    """The messages in their order, with their sendings; of very many those of each that is not settled."""
    many = len(past.messages) > MOST_WITH_SENDINGS
    return [
        Sent(message, [] if many and message.is_settled else await attempts_at_message(message.id))
        for message in past.messages
    ]


async def _paused(window: Window, instant: int) -> list[Event]:
    """What was said of pauses while the window was owed."""
    line, row = window.known.line, window.row
    if window.due is None or line is None or window.due > instant:
        return []
    until = instant if row is None or row.settled_at is None else row.settled_at
    named = f"scope {line.scope!r}"
    return await every(PAUSES_BETWEEN, Event, job=window.known.job.id, since=window.due, until=until, named=named)


async def _holder_alive(window: Window) -> bool | None:
    row = window.row
    if row is None or row.state != states.RUNNING or row.attempt_id is None or window.verdict.word == verdict.RUNNING:
        return None
    return await alive(row.attempt_id)


async def _asked(window: Window) -> Asked | None:
    row = window.row
    return None if row is None or row.state != states.UNKNOWN else await last_asked(row)


async def _end(window: Window) -> End | None:
    line = window.known.line
    if line is None or window.verdict.note != verdict.AFTER_END:
        return None
    return await one(LAST_END, End, job=window.known.job.id, named=f"{line.scope} at ")


async def _newest(window: Window, instant: int) -> str | None:
    known = window.known
    by = instant if known.line is None else known.line.owed_by(instant)
    newest = next(placed_before(await spells_of_line(known), by), None)
    if newest is None or window.due is None or newest.occurrence.due <= window.due:
        return None
    (newer,) = await windows_of_line(known, [newest], instant)
    return str(newer.key)


async def _in_the_way(window: Window) -> str | None:
    """Another run of the line that this one has to wait for: the holder of the line, or of an ordered job an older one."""
    job, line = window.known.job, window.known.line
    assert line is not None
    if not job.overlap and line.holder is not None and line.holder != window.run:
        held = await look(line.holder)
        if held is not None and held.state == states.RUNNING and not await gone(held):
            return str(await key_of(held.id))
    if job.ordered:
        for row in await every(UNSETTLED_OF_LINE, Run, line=line.id):
            if row.id != window.run and row.backfill is None and (row.due or 0) < (window.due or 0):
                return str(await key_of(row.id))
    return None
