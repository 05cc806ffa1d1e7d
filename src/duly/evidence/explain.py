"""Explain: why a run ran, did not, or will. In sentences, from the schedule to what the next poke will do.

What the ledger holds is told in the order in which it happened; the last sentence is the decision. A window without a row
is explained as well: before the line began, in a skipped range, not due yet, owed at the next poke, dropped by the
catch-up policy at the next poke, or pruned.
"""

from __future__ import annotations

from duly.evidence import verdict
from duly.evidence.runs import Attempt, History, Told, history
from duly.evidence.verdict import Window, grace_text, window_of, windows_of_line
from duly.evidence.words import ago, printable, span
from duly.ledger import states
from duly.ledger.address import Addressed, key_of
from duly.ledger.ask import Statement, every, now, one
from duly.ledger.cancel import ASKED
from duly.ledger.messages import Message
from duly.ledger.owed import UNSETTLED_OF_LINE, dropped_next
from duly.ledger.records import Run, Version, pause_of, pause_words
from duly.ledger.register import schedule_of
from duly.ledger.spells import VERSIONS_OF, placed_before, spells_of_line
from duly.ledger.take import gone, look
from duly.records import record
from duly.schedule.versions import what_changes
from duly.times import HOUR, duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
class Explanation:
    """All that is needed to explain one window at an instant. `in_the_way`: the key of a run that must end first.

    `dropped`: why the next poke will skip it, if it will; `newest` is the key of a newer window that is due.
    """

    as_of: int
    window: Window
    versions: list[Version]
    history: History
    dropped: str | None
    newest: str | None
    in_the_way: str | None
    skipped: SkippedRange | None
    end: End | None


async def explain(addressed: Addressed) -> Explanation:
    """Read what there is to tell of the window that was named. Raises `UnknownRun` as `window_of`."""
    instant = await now()
    window = await window_of(addressed, instant)
    known = addressed.known
    scheduled = known.version is not None and known.series is not None
    return Explanation(
        instant,
        window,
        await every(VERSIONS_OF, Version, job=known.job.id),
        await history(addressed),
        (await dropped_next(known, instant))(window.run),
        await _newest(window, instant) if scheduled else None,
        await _in_the_way(window),
        await one(RANGE_OVER_WINDOW, SkippedRange, series=window.run.series, nominal=window.run.nominal),
        await _end(window),
    )


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


# -- sentences ----------------------------------------------------------------------------------------------------------


def sentences(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """The explanation, a sentence an item, in order. Pure. `at` puts an instant in words."""
    return [
        *_of_schedule(told, at),
        *_of_window(told, at),
        *_of_history(told, at),
        *_of_decision(told, at),
    ]


def _of_schedule(told: Explanation, at: Callable[[int], str]) -> list[str]:
    job, counted_by = told.window.known.job, told.window.known.version
    version = next((version for version in told.versions if version.number == job.version), None)
    if version is None or counted_by is None:
        return [f"{job.name} has no schedule: its runs are those that somebody names."]
    said = [f"{job.name} is {version.words}."]
    if version.number > 1:
        said.append(
            f"That is version {version.number}, which answers for windows that end after {at(version.effective_from)}."
        )
    row = told.window.row
    belongs_to = counted_by.number if row is None or row.version is None else row.version
    older = next((v for v in told.versions if v.number == belongs_to != version.number), None)
    if older is None:
        return said
    said.append(f"This window belongs to version {older.number}: {older.words}.")
    if (older.zone, older.grain) != (version.zone, version.grain):
        changes = ", ".join(what_changes(schedule_of(older), schedule_of(version))[: _series_changes(older, version)])
        said.append(f"Since then the schedule has {changes}; this window keeps its key, and what is owed of it.")
    return said


def _series_changes(older: Version, version: Version) -> int:
    return (older.zone != version.zone) + (older.grain != version.grain)


def _of_window(told: Explanation, at: Callable[[int], str]) -> list[str]:
    window = told.window
    name = window.key.middle
    if window.key.grain == "adhoc":
        return [f"{name} is a run outside the schedule."]
    bounds, due = window.bounds, window.due
    if bounds is None and due is not None:
        return [f"{name} has no time of its own."]
    if bounds is None or due is None:
        return [f"{name} was named by a caller; no schedule gave it a window or a due time."]
    comes = "came" if due <= told.as_of else "comes"
    occurrence = window.occurrence
    resolution = window.row.resolution if window.row is not None else None
    night = _night(resolution or ("exact" if occurrence is None else occurrence.resolution))
    said = [
        f"{name} answers for {at(bounds[0])} to {at(bounds[1])}, {length(bounds)}.",
        f"It {comes} due at {at(due)}, {ago(due, told.as_of)}.",
    ]
    if _is_seam(told, bounds[0]):
        said.append("It is the seam: it begins where the last window of the schedule before it ends.")
    return [*said, night] if night else said


def _is_seam(told: Explanation, start: int) -> bool:
    """Whether a window that starts there is the first one of the version that it belongs to."""
    row, counted_by = told.window.row, told.window.known.version
    number = row.version if row is not None else None if counted_by is None else counted_by.number
    return any(v.number == number and v.effective_from and v.effective_from == start for v in told.versions)


def length(bounds: tuple[int, int]) -> str:
    """How long a window is: in hours, where it is whole ones."""
    micros = bounds[1] - bounds[0]
    return f"{micros // HOUR} h" if micros % HOUR == 0 else duration_text(micros)


def _night(resolution: str) -> str:
    return {
        "gap-shifted": "Its wall-clock time does not exist that day: the clocks skip it.",
        "fold-first": "Its wall-clock time exists twice that day; this is the first.",
        "fold-second": "Its wall-clock time exists twice that day; this is the second.",
    }.get(resolution, "")


def _of_history(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """What happened, in the order in which it did; an attempt stands where it began."""
    happened: list[tuple[int, int, str]] = []
    several = len(told.history.revisions) > 1
    for row in told.history.revisions:
        if row.fence == 0 or row.opened_at < (row.first_started_at or 0) or row.revision > 1:
            which = f"Revision {row.revision} was" if several else "It was"
            happened.append((row.opened_at, 0, f"{which} opened at {at(row.opened_at)}."))
    happened += [(a.ended.started_at, 1, _of_attempt(told, a, several, at)) for a in told.history.attempts]
    happened += [(t.event.at, 2, _of_event(t, at)) for t in told.history.events]
    happened += [(m.settled_at or m.noted_at, 3, _of_message(m, at)) for m in told.history.messages]
    return [sentence for _, _, sentence in sorted(happened, key=lambda one: one[:2])]


def _of_attempt(told: Explanation, attempt: Attempt, several: bool, at: Callable[[int], str]) -> str:
    ended, request = attempt.ended, told.history.request_to(attempt)
    progress = attempt.progress
    far = "" if progress is None else f" It said {ago(progress.at, told.as_of)} that it had done {progress.words}."
    asked = "" if request is None else f" {request.by} asked it to stop: {attempt.became_of(request)}."
    which = f"Attempt {ended.number} of revision {attempt.revision}" if several else f"Attempt {ended.number}"
    began = f"{which} began at {at(ended.started_at)} (by {ended.owner}, started by {ended.trigger}, contract {ended.contract})"
    if ended.ended_at is None:
        doubt = f"; nobody knows how it ended: {ended.error}" if ended.outcome == states.UNKNOWN else ""
        return f"{began} and has not reported an end{doubt}.{far}{asked}"
    how = {"lost": "was lost", "released": "gave the run back", "cancelled": "was cancelled"}.get(
        ended.outcome, ended.outcome
    )
    error = f": {ended.error}" if ended.error else ""
    # Nobody saw it end, and another host cannot be looked at.
    late = _LATE[attempt.alive] if attempt.was_superseded else ""
    return f"{began} and {how} after {span(ended.ended_at - ended.started_at)}{error}.{far}{asked}{late}"


_LATE = {
    True: " It was superseded, and its process is alive still: what it reports is refused.",
    False: " It was superseded, and shows no pulse any more; what it reports after all is refused.",
    None: " It was superseded, and may be alive: what it reports is refused.",
}


def _of_message(message: Message, at: Callable[[int], str]) -> str:
    where = f"Message {message.name} to {message.destination}"
    if message.is_settled and message.settled_at is not None:
        return (
            f"{where} was {message.state} at {at(message.settled_at)}{f': {message.cause}' if message.cause else ''}."
        )
    return f"{where} is {message.state}{f': {message.cause}' if message.cause else ''}."


_DID = {
    ASKED: "asked its attempt to stop",
    "unknown": "said that its outcome is unknown",
    "payload_refused": "was refused, with another payload than the first",
    "below_horizon": "was refused, for it lies below the horizon",
    "message_unknown": "said that the outcome of a message is unknown",
    "message_resolved": "resolved a message",
    "message_retried": "retried a message",
    "message_skipped": "skipped a message",
    "message_refused": "saw a message refused",
    "message_dead": "gave a message up",
    "message_probed": "looked for a message",
    "message_late_word": "came too late with word of a message",
    "messages_discarded": "discarded its messages",
}


def _of_event(told: Told, at: Callable[[int], str]) -> str:
    event = told.event
    why = "; ".join(part for part in (event.reason, event.detail) if part)
    did = _DID.get(event.kind, f"{event.kind.replace('_', ' ')} it")
    return f"At {at(event.at)} {event.by or 'duly'} {did}{': ' + why if why else ''}."


def _of_decision(told: Explanation, at: Callable[[int], str]) -> list[str]:
    """What stands now, and what the next poke makes of it."""
    window, row = told.window, told.window.row
    said, line = window.verdict, window.known.line
    assert line is not None
    if window.backfill is not None and said.word not in (verdict.RUNNING, verdict.UNKNOWN, verdict.FAILED):
        return [f"So backfill {window.backfill} owes it: whoever works that does it in its turn."]
    match said.word:
        case verdict.COMPLETE if row is not None:
            when = f" since {at(row.settled_at)}" if row.settled_at is not None else ""
            return [*_left(told, row), f"So it is complete{when}, and nothing will run it again."]
        case verdict.UNDELIVERED:
            then = "a person has to say what becomes of them" if said.stuck else "a relay delivers them"
            return [
                *_left(told, row),
                f"So its effect is there, and its messages are not: {said.note}; {then}, and nothing will run it again.",
            ]
        case verdict.SKIPPED if row is None and told.skipped is not None:
            who = f"by {told.skipped.by or 'duly'} at {at(told.skipped.at)}"
            return [
                f"It never had a row: it lies in a range that was skipped {who} ({told.skipped.reason}).",
                "So nothing runs it, unless somebody unskips it.",
            ]
        case verdict.SKIPPED:
            return [f"It was skipped ({said.note}).", "So nothing runs it, unless somebody unskips it."]
        case verdict.PRUNED:
            return ["It lies below the horizon: it was settled, its record was pruned, and it is never executed again."]
        case verdict.NOT_OWED:
            if said.note == verdict.AFTER_END and line.ends is not None:
                who = "" if told.end is None else f", by {told.end.by}: {told.end.reason}"
                return [f"It is not owed: {said.note} at {at(line.ends)}{who}.", "So nothing runs it."]
            began = f" at {at(line.starts)}" if line.starts is not None else ""
            return [
                f"It is not owed: {said.note}{began}.",
                "So no poke works it; `duly exec --window` can name it all the same.",
            ]
        case verdict.COMING:
            paused = pause_of(window.known, window.due or told.as_of)
            if paused is not None:
                return [f"So nothing is owed yet; and {window.key.job} is {pause_words(paused)}."]
            return ["So nothing is owed yet: a poke works it from its due time on."]
        case verdict.RUNNING if row is not None and row.lease_until is not None:
            late = f" It is late: its grace is {grace_text(window)}." if said.late else ""
            if row.cancel_is_asked:
                return [
                    f"So it is running still, and may be alive; {_hears(told)}. Nothing tries again by itself.{late}"
                ]
            return [
                f"So it is running; its lease lasts until {at(row.lease_until)}, and nobody else may take it before.{late}"
            ]
        case verdict.UNKNOWN:
            return [
                "So nothing runs it again until somebody says what happened: a second effect could be worse than none."
            ]
        case verdict.FAILED:
            return ["So it waits for a person: retry it, or skip it."]
    return _of_owed(told, at)


def _hears(told: Explanation) -> str:
    """Whether an attempt that was asked to stop can have heard of that."""
    beat = told.window.known.job.lease // 3
    request = told.history.request_to(told.history.attempts[-1])
    if request is not None and told.as_of - request.at > beat:
        return "asked to stop, it has had time to hear of that, and has not ended"
    return f"asked to stop, it hears of that with a heartbeat, within {span(beat)}"


def _left(told: Explanation, row: Run | None) -> list[str]:
    """Where the completing attempt left its output, and its result, if it said."""
    return [
        f"Its {text.kind}: {printable(text.body)}."
        for text in told.history.texts
        if row is not None
        and (text.revision, text.number) == (row.revision, row.fence)
        and text.kind in ("output", "result")
    ]


def _of_owed(told: Explanation, at: Callable[[int], str]) -> list[str]:
    window, row = told.window, told.window.row
    line = window.known.line
    grace = grace_text(window)
    said = [f"It is late: it has been due for longer than its grace, {grace}."] if window.verdict.late else []
    if row is None and line is not None and line.opened_until is not None:
        said.append(f"It has no row: of this job no window is open that ends after {at(line.opened_until)}.")
    if row is not None and row.retry_at is not None and row.retry_at > told.as_of:
        return [*said, f"So a poke takes it again from {at(row.retry_at)} on."]
    paused = pause_of(window.known, told.as_of)
    if paused is not None:
        return [*said, f"So nothing starts it: {window.key.job} is {pause_words(paused)}."]
    if told.dropped is not None:
        newest = (
            f", {told.newest}" if told.newest is not None and told.dropped.endswith("a newer window was due") else ""
        )
        return [*said, f"So the next poke skips it: {told.dropped}{newest}."]
    if told.in_the_way is not None:
        return [*said, f"So it is owed, and waits for {told.in_the_way}."]
    return [*said, "So it is owed: the next poke works it."]
